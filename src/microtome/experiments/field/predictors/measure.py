"""The trials of predictors: norms and entropy, and every score against the measured change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.field.head_importance.report import rank_agreement
from microtome.experiments.field.predictors.scores import Place, Score, all_scores
from microtome.experiments.field.predictors.variants import HealedLayers, SweptHeads, SweptLayers
from microtome.experiments.field.trim.healing import HEALED
from microtome.experiments.field.trim.judging import Halves
from microtome.experiments.kao.layer_removal.stored_cuts import StoredCuts
from microtome.experiments.kit.head_tables import number
from microtome.experiments.kit.paired_comparison import Outcome, baseline_row
from microtome.experiments.kit.paired_comparison import compare as paired
from microtome.experiments.kit.stored_predictions import Indices, on_rows, score_on
from microtome.experiments.kit.trial_inputs import opened_rows, opened_unshared
from microtome.experiments.kovaleva.head_disabling.head_sets import BASELINE, HeadSets
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe import HeadMeans, reductions, stream
from microtome.observe.evaluation import encode_to_score
from microtome.runs import Context, Result
from microtome.statistics import Interval
from microtome.tasks import Dataset, Encoded
from microtome.tasks.scoring.constant import answer_columns

SHARES = {"layer": (1 / 6, 1 / 3, 1 / 2), "head": (0.1, 0.25, 0.5)}  # that are cut
MEASURED = "measured"  # the choice that scores are compared with
WITHOUT_TRAINING = "measured without training"  # as a score of what is lost after healing
SCORED_BY_WORD = ("tokens", "spans")  # a row may be several encoded texts


def weights_and_maps(request: Mapping[str, Any], context: Context) -> Result:
    """Norms of every layer's and head's weights, and the entropy of every head's attention."""
    model, tokenizer, _ = opened_unshared(context)
    encoded = encode_to_score(model, tokenizer, opened_rows(request, context))
    entropy = HeadMeans(reductions.entropy)
    stream(model, encoded, [entropy])
    layers, heads = weight_norms(adapt(model))
    return Result(arrays={"entropy": entropy.mean, "layer_norms": layers, "head_norms": heads})


def weight_norms(family: Family) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of all weights of a layer (layers,), and of a head's columns of the output projection."""
    layers, heads = [], []
    for layer in family.layers:
        squares = [float(value.detach().double().square().sum()) for value in layer.parameters()]
        layers.append(np.sqrt(sum(squares)))
        output = family.part("attention_output").weight(layer).double()
        heads.append(
            [float(output[:, family.head_rows(h)].norm()) for h in range(family.shape.n_heads)]
        )
    return np.array(layers), np.array(heads)


def compare(request: Mapping[str, Any], context: Context) -> Result:
    """Rows of every unit, of every score's agreement, and of every cut that a score chooses."""
    sets, cuts = HeadSets.of_sweep(request, context), StoredCuts.opened(request, context)
    halves = Halves.of(sets.dataset.n_scored, sets.dataset.scored_clusters)
    swept: dict[str, SweptHeads | SweptLayers] = {
        "head": SweptHeads(sets), "layer": SweptLayers(cuts),
    }  # fmt: skip
    everywhere = np.arange(sets.dataset.n_scored)
    on_all, on_half = (
        all_scores(request, context, _texts_of(sets.dataset, sets.encoded, rows))
        for rows in (everywhere, halves.picking)
    )
    rows: list[dict[str, Any]] = [_base_row(sets)]
    for unit, variants in swept.items():
        sweep_seconds = sum(context.needs[hash_].seconds for hash_ in request["sweep"][unit])
        losses = variants.losses(everywhere)
        for score in (one for one in on_all if one.unit == unit):
            rows += _unit_rows(score, losses)
            rows.append({**_agreement(score, losses), "sweep_seconds": sweep_seconds})
        chosen = [one for one in on_half if one.unit == unit]
        measured = Score(unit, MEASURED, variants.losses(halves.picking), sweep_seconds)
        rows += _cut_rows(variants, [measured, *chosen], halves)
    if "healed" in request:
        rows += _healed_rows(request, context, swept["layer"], (on_all, on_half), halves)
    marked = [{"metric": sets.metric, **row} for row in rows]
    return Result(rows=marked, summary={sets.metric: rows[0]["value"]})


def _healed_rows(
    request: Mapping[str, Any], context: Context, removed: SweptHeads | SweptLayers,
    scores: tuple[Sequence[Score], Sequence[Score]], halves: Halves,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Scores, and measuring without training, against what each layer costs after healing.

    ``scores`` are those on all rows, and on the half that chooses.
    """
    assert isinstance(removed, SweptLayers)
    trials = [context.needs[hash_] for hash_ in request["healed"]]
    healed = HealedLayers.of(removed.cuts, trials)
    seconds = sum(need.seconds for need in trials)
    everywhere = np.arange(removed.cuts.dataset.n_scored)
    losses = healed.losses(everywhere)
    on_all, on_half = (
        [
            *(one for one in of_rows if one.unit == "layer"),
            Score("layer", WITHOUT_TRAINING, removed.losses(rows), 0.0),
        ]
        for of_rows, rows in zip(scores, (everywhere, halves.picking), strict=True)
    )
    for score in on_all:
        found = [
            *_unit_rows(score, losses),
            {**_agreement(score, losses), "sweep_seconds": seconds},
        ]
        yield from ({**row, "stage": f"{HEALED} {row['stage']}"} for row in found)
    best = Score("layer", MEASURED, healed.losses(halves.picking), seconds)
    for row in _cut_rows(healed, [best, *on_half], halves, counts=[1]):
        yield {**row, "stage": f"{HEALED} cut"}


def _texts_of(dataset: Dataset, encoded: Encoded, rows: Indices) -> NDArray[np.bool_]:
    """Which units of the gradients (texts, windows, pairs) belong to these scored rows."""
    if dataset.n_scored < len(dataset):  # a query's passages are scored as one
        queries = dataset.clusters
        assert queries is not None
        scored = np.unique(queries[dataset.targets > 0])
        return np.isin(queries, scored[rows])
    of_row = np.arange(len(dataset))
    if dataset.task.kind in SCORED_BY_WORD:
        of_row = getattr(encoded, "of_row", of_row)
    return np.isin(of_row, rows)


def _base_row(sets: HeadSets) -> dict[str, Any]:
    """The model as it is, and what one constant answer scores."""
    base = baseline_row(sets.answers[BASELINE][sets.metric], sets.dataset, metric=sets.metric)
    kept = {name: base[name] for name in ("value", "value_low", "value_high", "n")}
    found = sets.evaluation(BASELINE)
    return {
        "stage": "baseline", **kept,
        **answer_columns(sets.dataset, found, sets.metric, sets.encoded),
    }  # fmt: skip


def _unit_rows(score: Score, losses: Mapping[Place, float]) -> list[dict[str, Any]]:
    """A score of every layer or head next to its measured loss; None where it can't be cut."""
    return [
        {
            "stage": "unit", "unit": score.unit, "score": score.name, "layer": place[0],
            "head": place[1], "value": value, "loss": losses.get(place),
        }
        for place, value in score.values.items()
    ]  # fmt: skip


def _agreement(score: Score, losses: Mapping[Place, float]) -> dict[str, Any]:
    """The rank correlation of a score with the measured loss, over layers or heads."""
    places = list(losses)
    row = {"stage": "agreement", "unit": score.unit, "score": score.name, "n": len(places)}
    row |= {"seconds": score.seconds, "spearman": None, "low": None, "high": None}
    found = rank_agreement([score.values[p] for p in places], [losses[p] for p in places])
    if found is None:
        return row
    return row | {"spearman": found.value, "low": found.low, "high": found.high}


def _cut_rows(
    variants: SweptHeads | SweptLayers | HealedLayers, scores: Sequence[Score], halves: Halves,
    counts: Sequence[int] | None = None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """What each score's choice of every size costs on the other half, and more than measuring's."""
    places = list(variants.losses(halves.picking))
    if counts is None:
        counts = sorted({round(share * len(places)) for share in SHARES[variants.unit]} - {0})
    counts = [count for count in counts if count < len(places)]
    chosen = {
        (score.name, count): tuple(sorted(
            sorted(places, key=lambda place: score.values[place])[:count],
            key=lambda place: (place[0], place[1] or 0),
        ))
        for score in scores
        for count in counts
    }  # fmt: skip
    found = variants.outcomes([*dict.fromkeys(chosen.values())])
    for (name, count), cut in chosen.items():
        best, changed = found[chosen[MEASURED, count]], found[cut]
        cost = _difference(changed, variants.baseline, halves)
        regret = _difference(best, changed, halves)
        yield {
            "stage": "cut", "unit": variants.unit, "score": name, "n_cut": count,
            "cut": " ".join(f"{i}" if j is None else f"{i}.{j}" for i, j in cut),
            "value": score_on(changed, halves.scoring), "n": cost.n,
            "delta": cost.value, "delta_low": number(cost.low), "delta_high": number(cost.high),
            "regret": regret.value, "regret_low": number(regret.low),
            "regret_high": number(regret.high),
        }  # fmt: skip


def _difference(one: Outcome, other: Outcome, halves: Halves) -> Interval:
    """``one`` minus ``other`` on the rows that nothing was chosen on."""
    rows = halves.scoring
    groups = None if halves.clusters is None else halves.clusters[rows]
    return paired(on_rows(one, rows), on_rows(other, rows), groups).difference
