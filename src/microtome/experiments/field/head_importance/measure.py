"""The trials of head importance: gradients at gates, single layers removed, rollout, rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.field.head_importance.gates import gate_gradients
from microtome.experiments.kao.layer_removal.cuts import cuts_of
from microtome.experiments.kao.layer_removal.stored_cuts import StoredCuts
from microtome.experiments.kit.head_tables import head_rows, head_scores
from microtome.experiments.kit.paired_comparison import VariantSweep
from microtome.experiments.kit.stored_predictions import stored_arrays
from microtome.experiments.kit.trial_inputs import opened_rows, opened_unshared
from microtome.experiments.kovaleva.head_disabling.head_sets import HeadSets
from microtome.families import adapt
from microtome.observe import SampledMaps, stream
from microtome.observe.evaluation import check_fit, encode_to_score, text_clusters
from microtome.observe.outcomes import ordered_answers
from microtome.observe.texts import first_texts
from microtome.runs import Context, Result

HEADS, LAYERS = "head_gradients", "layer_gradients"  # arrays
MEASURED = {"delta": "delta", "low": "delta_low", "high": "delta_high"}


def gradients(request: Mapping[str, Any], context: Context) -> Result:
    """|∂ loss / ∂ gate| of every text for all heads and layers, as arrays."""
    model, tokenizer, _ = opened_unshared(context)
    dataset = opened_rows(request, context)
    check_fit(model, dataset)
    encoded = encode_to_score(model, tokenizer, dataset)
    heads, layers = gate_gradients(
        model, dataset, encoded, lambda done, n_texts: context.report(f"{done} of {n_texts} texts")
    )
    clusters = text_clusters(dataset, encoded)
    if clusters is None or len(clusters) != len(heads):  # a pair is one unit
        clusters = np.arange(len(heads)) if dataset.clusters is None else dataset.clusters
    return Result(arrays={HEADS: heads, LAYERS: layers, "clusters": clusters})


def remove_each(request: Mapping[str, Any], context: Context) -> Result:
    """The answers of all rows without each layer in turn, those that may go, and of the model."""
    model, tokenizer, _ = opened_unshared(context)
    dataset = opened_rows(request, context)
    check_fit(model, dataset)
    stack = adapt(model).stack
    cuts = [cut for cut in cuts_of("each", stack.n_layers, stack.rules).values() if cut.order]
    answers = ordered_answers(
        model, dataset, encode_to_score(model, tokenizer, dataset),
        [tuple(range(stack.n_layers)), *(cut.order for cut in cuts)],
        progress=lambda done, n_rows: context.report(f"{done} of {n_rows} rows"),
    )  # fmt: skip
    names = np.array([cut.name for cut in cuts], dtype=str)
    return Result(arrays={"cuts": names, "baseline": answers[0], "logits": answers[1:]})


def compare(request: Mapping[str, Any], context: Context) -> Result:
    """Every head and layer: importance, and what disabling or removing it changes where swept."""
    stored = stored_gradients(context)
    heads, layers = (
        head_scores(stored[name], clusters=stored["clusters"]) for name in (HEADS, LAYERS)
    )
    rows = []
    for unit, scores in (("head", heads), ("layer", layers)):
        columns = {
            "importance": scores.mean, "low": scores.low, "high": scores.high, "n": scores.n,
        }  # fmt: skip
        rows += [{"unit": unit, **row} for row in head_rows(columns)]
    changes = measured_changes(request, context)
    metric = request["metric"] if changes else None
    nothing = dict.fromkeys(MEASURED.values())
    for row in rows:
        place = (row["layer"], row["head"])
        row |= {"metric": metric, **(changes.get(place) or nothing)}
    return Result(rows=rows, summary={"largest importance": float(heads.mean.max())})


def stored_gradients(context: Context) -> dict[str, NDArray[Any]]:
    """What the trial of the gradients left."""
    loaded = (stored_arrays(need.arrays) for need in context.needs.values() if need.arrays)
    return next(arrays for arrays in loaded if HEADS in arrays)


def measured_changes(
    request: Mapping[str, Any], context: Context
) -> dict[tuple[int, int | None], dict[str, Any]]:
    """By layer and head (None: the layer removed), the change of the score; empty without sweep."""
    loaded = (stored_arrays(need.arrays) for need in context.needs.values() if need.arrays)
    if not any("targets" in arrays for arrays in loaded):
        return {}
    sets, cuts = HeadSets.of_sweep(request, context), StoredCuts.opened(request, context)
    metric = sets.metric
    found: dict[tuple[int, int | None], dict[str, Any]] = {}
    for row in sets.variants("head", metric).rows(metric):
        layer, head = map(int, row["target"].split("."))
        found[layer, head] = {new: row[old] for old, new in MEASURED.items()}
    removed = {name: by_metric[metric] for name, by_metric in cuts.outcomes.items()}
    sweep = VariantSweep(removed, cuts.baseline[metric], cuts.dataset.scored_clusters)
    for row in sweep.rows(metric):
        found[int(row["target"]), None] = {new: row[old] for old, new in MEASURED.items()}
    return found


def roll_out(request: Mapping[str, Any], context: Context) -> Result:
    """Attention rollout of the first texts: how much of each token attention could have carried.

    To the first token where the head reads that one, else to all tokens on average.
    """
    model, tokenizer, _ = opened_unshared(context)
    encoded = encode_to_score(model, tokenizer, opened_rows(request, context))
    few = first_texts(encoded, min(request["examples"], len(encoded.offsets) - 1))
    sampled = SampledMaps(range(len(few)))
    stream(model, few, [sampled])
    rows = []
    for text, maps in sorted(sampled.maps.items()):
        flow = rollout(maps)
        shares = flow[0] if adapt(model).reads == "first" else flow.mean(0)
        start = int(few.offsets[text])
        tokens = tokenizer.convert_ids_to_tokens(few.ids[start : start + len(shares)].tolist())
        rows += [
            {"unit": "token", "text": text, "position": place, "token": token, "rollout": share}
            for place, (token, share) in enumerate(zip(tokens, shares.tolist(), strict=True))
        ]
    return Result(rows=rows)


def rollout(maps: NDArray[np.float32]) -> NDArray[np.float64]:
    """The product of all layers' maps (L, L), heads averaged, half of each the token itself."""
    itself = np.eye(maps.shape[-1])
    flow = itself
    for layer in maps.astype(np.float64):  # (heads, L, L)
        flow = (layer.mean(0) + itself) / 2 @ flow
    return flow
