"""The trial of layer-similarity: one pass over the rows, all depths of one model or two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import parse
from microtome.experiments.field.layer_similarity.plan import OTHER
from microtome.experiments.kit.head_tables import HeadScores, head_scores, number
from microtome.experiments.kit.trial_inputs import load_with_tokenizer, opened_model, opened_rows
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.observe.similarity import LayerSimilarity, layer_similarity
from microtome.observe.texts import IntArray
from microtome.runs import Context, Result
from microtome.surgery import apply, certify_weights


def compare_depths(request: Mapping[str, Any], context: Context) -> Result:
    """CKA of all pairs of depths, and how far every layer and block of layers moves the states."""
    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    other = None
    if request["edit"] or OTHER in context.where:
        second, its_tokenizer = _second(request, context, model, tokenizer)
        other = (second, encode_for(second, its_tokenizer, dataset))
    clusters = text_clusters(dataset, encoded)
    found = layer_similarity(
        model, encoded, other=other, unit=request["unit"], clusters=clusters,
        progress=lambda done, n_texts: context.report(f"{done} of {n_texts} texts"),
    )  # fmt: skip
    rows = similarity_rows(found, clusters)
    return Result(rows=rows, summary={"least influence": float(found.influence.mean(0).min())})


def _second(
    request: Mapping[str, Any],
    context: Context,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model to compare with: another one, or this one after an edit."""
    if not request["edit"]:
        return load_with_tokenizer(Path(context.where[OTHER]), device=context.device)
    edit = parse(request["edit"])
    edited = apply(edit, model)
    certify_weights(edit, model, edited).require()
    return edited, tokenizer


def similarity_rows(found: LayerSimilarity, clusters: IntArray | None) -> list[dict[str, Any]]:
    """A row per pair of depths and measure, and one per layer."""
    n = len(found.influence)
    aligned = [("cka", found.within)]
    if found.across is not None:
        aligned.append(("other_cka", found.across))
    rows = [
        row
        for measure, pairs in aligned
        for row in _rows(measure, HeadScores(pairs.cka, *pairs.ends(), n))
    ]
    rows += _rows("influence", head_scores(found.influence, clusters=clusters))
    rows += _rows("angle", head_scores(found.angles, clusters=clusters))
    return rows


def _rows(measure: str, scores: HeadScores) -> list[dict[str, Any]]:
    """Of a table (layers,), or (depths, depths): within one model each pair of depths once."""
    rows = []
    for place in np.ndindex(scores.mean.shape):
        layer, depth, other_depth = (
            (place[0], None, None) if len(place) == 1 else (None, *place)
        )  # fmt: skip
        if depth is not None and measure != "other_cka" and depth >= other_depth:
            continue
        value, low, high = (
            number(table[place]) for table in (scores.mean, scores.low, scores.high)
        )
        rows.append(
            {
                "measure": measure, "layer": layer, "depth": depth, "other_depth": other_depth,
                "value": value, "low": low, "high": high, "n": scores.n,
            }
        )  # fmt: skip
    return rows
