"""Attention to features as rows: one per checkpoint, feature and head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.annotated_text import AnnotatedTexts
from microtome.experiments.feature_expressions import FEATURES, Feature
from microtome.experiments.head_tables import beyond_chance, head_scores, number
from microtome.experiments.received_attention import (
    MarkedAttention,
    Units,
    feature_marks,
    units_of,
)
from microtome.observe import stream

Values = NDArray[np.float32]  # (texts, layers, heads)


def attended(
    model: PreTrainedModel, texts: AnnotatedTexts, own: tuple[Feature, ...], *, mode: str
) -> tuple[MarkedAttention, Units]:
    """What every feature receives in every head, and what counted as a token."""
    units = units_of(texts, mode=mode)
    marks = feature_marks(texts, units, (*FEATURES, *own))
    pool = units.stands_here & ~texts.special
    reduction = MarkedAttention(marks, pool, units.received)
    stream(model, texts, [reduction])
    return reduction, units


def feature_rows(
    found: Mapping[str, tuple[MarkedAttention, Units]], texts: AnnotatedTexts
) -> list[dict[str, Any]]:
    """One row per checkpoint, feature and head; a feature that no text has gives none."""
    rows = []
    for checkpoint, (reduction, units) in found.items():
        for feature, values in reduction.values.items():
            if np.isnan(values).all():
                continue
            control = reduction.control[feature]
            base = None
            if checkpoint == "finetuned" and "pretrained" in found:
                base = found["pretrained"][0].values[feature]
            rows += [
                {"checkpoint": checkpoint, "feature": feature, **row}
                for row in _head_rows(values, control, units.sizes, base, texts.clusters)
            ]
    return rows


def _head_rows(
    values: Values,
    control: Values,
    sizes: NDArray[np.int64],
    base: Values | None,
    clusters: NDArray[np.int64] | None,
) -> list[dict[str, Any]]:
    score = head_scores(values, clusters=clusters)
    scaled = head_scores(values * sizes[:, None, None], clusters=clusters)
    chance = head_scores(control, clusters=clusters)
    excess = head_scores(values - control, clusters=clusters)
    p = beyond_chance(values - control, clusters=clusters)
    change = None if base is None else head_scores(values - base, clusters=clusters)
    p_change = None if base is None else beyond_chance(values - base, clusters=clusters)
    rows = []
    for place in np.ndindex(*score.mean.shape):
        one, over = score.at(*place), excess.at(*place)
        row = {
            "layer": place[0], "head": place[1], "attention": one["mean"], "low": one["low"],
            "high": one["high"], "n": one["n"], "times_length": scaled.at(*place)["mean"],
            "control": chance.at(*place)["mean"], "excess": over["mean"],
            "excess_low": over["low"], "excess_high": over["high"], "p_maxt": number(p[place]),
            "change": None, "change_low": None, "change_high": None, "p_change": None,
        }  # fmt: skip
        if change is not None and p_change is not None:
            moved = change.at(*place)
            row |= {
                "change": moved["mean"], "change_low": moved["low"], "change_high": moved["high"],
                "p_change": number(p_change[place]),
            }  # fmt: skip
        rows.append(row)
    return rows
