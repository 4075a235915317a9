"""Attention on links as rows: one per link, direction and head; and what [CLS] attends to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from microtome.experiments.annotated_text import AnnotatedTexts
from microtome.experiments.feature_expressions import CLS, FEATURES, MARKS
from microtome.experiments.head_tables import beyond_chance, head_scores, number
from microtome.experiments.link_attention import Link, LinkAttention, Placements, placements_of
from microtome.experiments.received_attention import MarkedAttention, feature_marks, units_of
from microtome.experiments.word_links import SIDES, word_pairs
from microtome.observe import HeadMeans, stream
from microtome.observe.attention import Reduction
from microtome.observe.reductions import on_next, on_previous


def link_rows(
    model: PreTrainedModel, texts: AnnotatedTexts, links: Sequence[str]
) -> list[dict[str, Any]]:
    """Both directions of every link; a link that no text has gives no row."""
    looked: dict[tuple[str, str], LinkAttention] = {}
    for link in links:
        one, other = SIDES[link]
        for turned, direction in ((False, f"{one}→{other}"), (True, f"{other}→{one}")):
            placed = {
                text: places_in(texts, text, link, turned=turned) for text in range(len(texts))
            }
            looked[link, direction] = LinkAttention(placed)
    before, behind = HeadMeans(on_previous), HeadMeans(on_next)
    wanted: list[Reduction] = [before, behind, *looked.values()]
    stream(model, texts, wanted)
    diagonal = np.maximum(before.mean, behind.mean)
    return [
        {"link": link, "direction": direction, **row}
        for (link, direction), reduction in looked.items()
        if reduction.n_links
        for row in _rows(reduction, diagonal, texts)
    ]


def places_in(texts: AnnotatedTexts, text: int, link: str, *, turned: bool) -> list[Placements]:
    """Where a text's links stand, and could stand without meeting another one."""
    own: list[Link] = []
    for one, other in word_pairs(texts, text, link):
        query, key = (other, one) if turned else (one, other)
        pairs = tuple((q, k) for q in query.pieces for k in key.pieces if q != k)
        if pairs:
            own.append(pairs)
    sides = texts.sides[texts.offsets[text] : texts.offsets[text + 1]]
    taken = [pair for pairs in own for pair in pairs]
    return [placements_of(pairs, sides, avoid=taken) for pairs in own]


def _rows(
    reduction: LinkAttention,
    diagonal: Any,  # noqa: ANN401  # (layers, heads)
    texts: AnnotatedTexts,
) -> list[dict[str, Any]]:
    clusters = texts.clusters
    score = head_scores(reduction.values, clusters=clusters)
    control = head_scores(reduction.control, clusters=clusters)
    stripe = head_scores(reduction.stripe, clusters=clusters)
    difference = reduction.values - reduction.control
    excess = head_scores(difference, clusters=clusters)
    p = beyond_chance(difference, clusters=clusters)
    rows = []
    for place in np.ndindex(*score.mean.shape):
        one, over = score.at(*place), excess.at(*place)
        rows.append(
            {
                "layer": place[0], "head": place[1], "attention": one["mean"], "low": one["low"],
                "high": one["high"], "n": one["n"], "control": control.at(*place)["mean"],
                "stripe_control": stripe.at(*place)["mean"], "excess": over["mean"],
                "excess_low": over["low"], "excess_high": over["high"],
                "p_maxt": number(p[place]), "diagonal": float(diagonal[place]),
                "n_links": reduction.n_links, "n_alone": reduction.n_alone, "feature": None,
            }
        )  # fmt: skip
    return rows


def cls_rows(model: PreTrainedModel, texts: AnnotatedTexts) -> list[dict[str, Any]]:
    """What [CLS] gives every kind of token in the last layer, head by head."""
    from microtome.families import adapt

    last = adapt(model).shape.n_layers - 1
    units = units_of(texts, mode="paper")
    marks = feature_marks(texts, units, (*FEATURES, MARKS))
    reduction = MarkedAttention(marks, ~texts.special, units.received_from_first, layer=last)
    stream(model, texts, [reduction])
    rows = []
    for feature, values in reduction.values.items():
        if np.isnan(values).all():
            continue
        score = head_scores(values, clusters=texts.clusters)
        chance = head_scores(reduction.control[feature], clusters=texts.clusters)
        for head in range(values.shape[-1]):
            one, control = score.at(0, head), chance.at(0, head)["mean"]
            rows.append(
                {
                    "link": CLS, "direction": f"{CLS}→{feature}", "layer": last, "head": head,
                    "attention": one["mean"], "low": one["low"], "high": one["high"],
                    "n": one["n"], "control": control, "stripe_control": None,
                    "excess": None if control is None else one["mean"] - control,
                    "excess_low": None, "excess_high": None, "p_maxt": None, "diagonal": None,
                    "n_links": None, "n_alone": None, "feature": feature,
                }
            )  # fmt: skip
    return rows
