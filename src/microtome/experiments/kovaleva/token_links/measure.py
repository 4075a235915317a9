"""Attention on links as rows: one per link, direction and head; and what [CLS] attends to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.kit.head_tables import head_rows, head_scores
from microtome.experiments.kit.trial_inputs import opened_model, opened_texts
from microtome.families import adapt
from microtome.observe import HeadMeans, stream
from microtome.observe.linguistic.link_attention import (
    Link,
    LinkAttention,
    Placements,
    placements_of,
)
from microtome.observe.linguistic.random_draws import Draws
from microtome.observe.linguistic.received_attention import MarkedAttention, feature_marks, units_of
from microtome.observe.reductions import on_next, on_previous
from microtome.runs import Context, Result
from microtome.tasks.annotation.features import CLS, FEATURES, MARKS
from microtome.tasks.annotation.links import SIDES, chosen_links, word_pairs
from microtome.tasks.annotation.passages import AnnotatedTexts


def score_links(request: Mapping[str, Any], context: Context) -> Result:
    """Every link in every head in both directions, and [CLS] in the last layer."""
    model, tokenizer = opened_model(context)
    texts = opened_texts(request, context, model, tokenizer)
    links = chosen_links(texts.passages, request["links"])
    context.report(f"attention over {len(texts)} texts: {', '.join(links) or 'no link'}, [CLS]")
    rows = [*link_rows(model, texts, links), *cls_rows(model, texts)]
    looked_for = ", ".join(request["links"] or SIDES)  # what is absent has no row to say so
    return Result(rows=[{**row, "looked_for": looked_for} for row in rows])


def link_rows(
    model: PreTrainedModel, texts: AnnotatedTexts, links: Sequence[str]
) -> list[dict[str, Any]]:
    """Both directions of every link; a link that no text has gives no row."""
    draws = Draws(texts.clusters)
    reductions: dict[tuple[str, str], LinkAttention] = {}
    for link in links:
        for turned, (source, goal) in ((False, SIDES[link]), (True, SIDES[link][::-1])):
            placed = {
                text: placements_in(texts, text, link, turned=turned) for text in range(len(texts))
            }
            reductions[link, f"{source}→{goal}"] = LinkAttention(placed, draws)
    previous, following = HeadMeans(on_previous), HeadMeans(on_next)
    stream(model, texts, [previous, following, *reductions.values()])
    diagonal = np.maximum(previous.mean, following.mean)
    return [
        {"link": link, "direction": direction, **row}
        for (link, direction), reduction in reductions.items()
        if reduction.n_links
        for row in _head_rows(reduction, diagonal, texts.clusters)
    ]


def placements_in(texts: AnnotatedTexts, text: int, link: str, *, turned: bool) -> list[Placements]:
    """Where a text's links are, and could be without meeting another; ``turned``: keys first."""
    links: list[Link] = []
    for words in word_pairs(texts, text, link):
        query, key = words[::-1] if turned else words
        if pairs := tuple((q, k) for q in query.pieces for k in key.pieces if q != k):
            links.append(pairs)
    taken = [pair for pairs in links for pair in pairs]
    return [placements_of(pairs, texts.sides_of(text), avoid=taken) for pairs in links]


def _head_rows(
    reduction: LinkAttention,
    diagonal: NDArray[np.float64],  # (layers, heads)
    clusters: NDArray[np.int64] | None,
) -> list[dict[str, Any]]:
    score, control, stripe, excess = (
        head_scores(values, clusters=clusters)
        for values in (
            reduction.values, reduction.control, reduction.stripe,
            reduction.values - reduction.control,
        )
    )  # fmt: skip
    return head_rows(
        {
            "attention": score.mean, "low": score.low, "high": score.high, "n": score.n,
            "control": control.mean, "stripe_control": stripe.mean, "excess": excess.mean,
            "excess_low": excess.low, "excess_high": excess.high, "p_maxt": reduction.test.p_max,
            "diagonal": diagonal, "n_links": reduction.n_links, "n_alone": reduction.n_alone,
            "feature": None,
        }
    )  # fmt: skip


def cls_rows(model: PreTrainedModel, texts: AnnotatedTexts) -> list[dict[str, Any]]:
    """What [CLS] gives every kind of token in the last layer, head by head."""
    last = adapt(model).shape.n_layers - 1
    units = units_of(texts, mode="paper")
    marks = feature_marks(texts, units, (*FEATURES, MARKS))
    reduction = MarkedAttention(marks, ~texts.special, units.received_from_first, layer=last)
    stream(model, texts, [reduction])
    rows: list[dict[str, Any]] = []
    for feature, values in reduction.values.items():
        if np.isnan(values).all():
            continue
        score = head_scores(values, clusters=texts.clusters)
        chance = head_scores(reduction.control[feature], clusters=texts.clusters)
        by_head = head_rows(
            {
                "attention": score.mean, "low": score.low, "high": score.high, "n": score.n,
                "control": chance.mean, "stripe_control": None, "excess": score.mean - chance.mean,
                "excess_low": None, "excess_high": None, "p_maxt": None, "diagonal": None,
                "n_links": None, "n_alone": None, "feature": feature,
            }
        )  # fmt: skip
        which = {"link": CLS, "direction": f"{CLS}→{feature}"}
        rows += [{**which, **row, "layer": last} for row in by_head]
    return rows
