"""The four papers by their keys."""

from __future__ import annotations

from microtome.papers.exhibit import Paper
from microtome.papers.kao_exhibits import KAO_2020, KAO_2021
from microtome.papers.kovaleva_exhibits import KOVALEVA_2019
from microtome.papers.singh_exhibits import SINGH_2020

PAPERS: dict[str, Paper] = {
    paper.key: paper for paper in (KAO_2020, KAO_2021, SINGH_2020, KOVALEVA_2019)
}
