"""The trials of layer removal: answers and speed of every cut, comparisons, and the best cuts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.edits import parse
from microtome.errors import RunError
from microtome.experiments.kao.layer_removal.cuts import Cut, all_cuts, cuts_of
from microtome.experiments.kao.layer_removal.stored_cuts import CORRECTED, StoredCuts
from microtome.experiments.kit.judging import TEST
from microtome.experiments.kit.layers import edit_to
from microtome.experiments.kit.paired_comparison import Outcome, VariantSweep, compare
from microtome.experiments.kit.stored_predictions import on_rows, score_on
from microtome.experiments.kit.trial_inputs import (
    data_of,
    model_place,
    opened_rows,
    opened_tokenizer,
    opened_unshared,
)
from microtome.families import adapt
from microtome.observe import predict
from microtome.observe.evaluation import check_fit, encode_to_score
from microtome.observe.layer_orders import predict_orders
from microtome.observe.outcomes import ordered_answers
from microtome.observe.speed import time_against
from microtome.observe.texts import first_texts
from microtome.runs import Context, Result
from microtome.statistics import Interval, honest_choice
from microtome.surgery import apply, certify_weights
from microtome.tasks import Dataset, Encoded
from microtome.tasks.reading.opening import open_data

HALF_CORRECTED = 0.025  # of the honest picks, shared by all numbers of layers
SPLITS, METRIC_SPLITS = 100, 20  # a metric that isn't a mean over rows is resampled in each half
PROVEN_ROWS = 4
BEST = "best"
Indices = NDArray[np.int64]


def predict_cuts(request: Mapping[str, Any], context: Context) -> Result:
    """Logits of every row under each cut that begins at some layers, and under the whole model."""
    model, tokenizer, _ = opened_unshared(context)
    dataset = opened_rows(request, context)
    check_fit(model, dataset)
    encoded = encode_to_score(model, tokenizer, dataset)
    stack = adapt(model).stack
    first, last = request["first_removed"]
    cuts = [
        cut
        for cut in all_cuts(stack.n_layers, stack.rules)
        if cut.order and first <= cut.removed[0] < last
    ]
    orders = [tuple(range(stack.n_layers)), *(cut.order for cut in cuts)]
    answers = ordered_answers(
        model, dataset, encoded, orders,
        progress=lambda done, n_rows: context.report(f"{done} of {n_rows} rows"),
    )  # fmt: skip
    if cuts:
        _prove(model, encoded, cuts[-1])
    names = np.array([cut.name for cut in cuts], dtype=str)
    return Result(arrays={"cuts": names, "baseline": answers[0], "logits": answers[1:]})


def _prove(model: PreTrainedModel, encoded: Encoded, cut: Cut) -> None:
    """Layers in another order must answer as the edited checkpoint does: one cut is made."""
    edit = parse(cut.edit)
    edited = apply(edit, model)
    certify_weights(edit, model, edited).require()
    few = first_texts(encoded, PROVEN_ROWS)
    answers, (ordered,) = predict(edited, few), predict_orders(model, few, [cut.order])
    seen = np.isfinite(answers)  # answers beyond the position table are −inf in both
    error = float(np.abs(answers - ordered)[seen].max())
    if not error < 1e-2:
        raise RunError(f"{cut.edit} answers otherwise than the edited model, by {error:.2g}")


def time_layers(request: Mapping[str, Any], context: Context) -> Result:
    """The speed of one number of layers relative to the base: a measurement, stored once.

    Which layers are left makes no difference to the speed, so the first ones are.
    """
    model, tokenizer, _ = opened_unshared(context)
    encoded = encode_to_score(model, tokenizer, opened_rows(request, context))
    count, n_layers = request["layers"], adapt(model).shape.n_layers
    edited = apply(parse(edit_to(count, n_layers)), model)
    timing = time_against(edited, model, encoded, share=count / n_layers)
    summary = {} if timing.speed is None else {"speed": timing.speed}
    return Result(summary={**summary, "timing": {"layers": count, **vars(timing)}})


def compare_cuts(request: Mapping[str, Any], context: Context) -> Result:
    """The cuts of one way of removing against the whole model, by every metric of the task."""
    stored = StoredCuts.opened(request, context)
    stack = adapt(stored.model).stack
    named = cuts_of(request["strategy"], stack.n_layers, stack.rules)
    made = {name: cut for name, cut in named.items() if cut.order}
    prices = {name: stored.price(cut) for name, cut in made.items()}
    rows = [row for metric in stored.metrics for row in _compared(stored, made, prices, metric)]
    refused = [
        refused_row(name, stored.edit_text(cut), stored.metric, cut.refusal)
        for name, cut in named.items()
        if not cut.order
    ]
    marked = [{"strategy": request["strategy"], **row} for row in (*rows, *refused)]
    return Result(rows=marked, summary={stored.metric: rows[0]["value"]})


def _compared(
    stored: StoredCuts, made: Mapping[str, Cut], prices: Mapping[str, dict[str, Any]], metric: str
) -> Iterator[dict[str, Any]]:
    """The rows of one metric, paired and corrected; the shown one's best cut is picked, too."""
    variants = {name: stored.outcomes[cut.name][metric] for name, cut in made.items()}
    sweep = VariantSweep(variants, stored.baseline[metric], stored.dataset.scored_clusters)
    is_shown = metric == stored.metric
    yield stored.baseline_row(metric) | (sweep.selection() if variants and is_shown else {})
    for row in sweep.rows(metric):
        cut = made[row["target"]]
        corrected = {"low_corrected": stored.corrected_low(cut)} if is_shown else {}
        answers = stored.answer_columns(stored.logits[cut.name], metric)
        yield {**row, "primary": stored.metric, **prices[row["target"]], **answers, **corrected}


def pick_best(request: Mapping[str, Any], context: Context) -> Result:
    """The best cut of every number of layers: picked on half of the rows, scored on the others."""
    stored = StoredCuts.opened(request, context)
    by_size = _by_size(stored.model)
    return Result(rows=[_best_row(stored, cuts, n_sizes=len(by_size)) for cuts in by_size])


def _by_size(model: PreTrainedModel) -> list[list[Cut]]:
    """The cuts that can be made, by the number of layers left, the most layers first."""
    stack = adapt(model).stack
    by_size: dict[int, list[Cut]] = {}
    for cut in all_cuts(stack.n_layers, stack.rules):
        if cut.order:
            by_size.setdefault(len(cut.order), []).append(cut)
    return [by_size[size] for size in sorted(by_size, reverse=True)]


def _best_row(stored: StoredCuts, cuts: list[Cut], *, n_sizes: int) -> dict[str, Any]:
    metric = stored.metric
    variants = {cut.name: stored.outcomes[cut.name][metric] for cut in cuts}
    base = stored.baseline[metric]
    gain, (name, share) = best_of(variants, base, stored.dataset, n_sizes=n_sizes)
    cut = next(cut for cut in cuts if cut.name == name)
    return {
        "strategy": BEST, "target": name, "metric": metric, "primary": metric,
        "value": score_on(base) + gain.value, "value_low": None, "value_high": None,
        "delta": gain.value, "low": gain.low, "high": gain.high, "n": gain.n,
        "p": None, "p_holm": None, "p_bh": None, "p_maxt": None,
        "share": share, "candidates": len(cuts), **stored.price(cut),
        **stored.answer_columns(stored.logits[name], metric),
    }  # fmt: skip


def score_on_test(request: Mapping[str, Any], context: Context) -> Result:
    """The best cut of every number of layers on dev, scored on test: these alone are run there."""
    data = data_of(request, context)
    dev = open_data(replace(data, split=request["picked_on"]))
    stored, test = StoredCuts.opened(request, context, dev), open_data(data)
    by_size = _by_size(stored.model)
    picks = [
        (metric, max(cuts, key=lambda cut: score_on(stored.outcomes[cut.name][metric])))
        for metric in stored.metrics
        for cuts in by_size
    ]
    orders = {cut.name: cut.order for _, cut in picks}
    encoded = encode_to_score(stored.model, opened_tokenizer(model_place(context)), test)
    whole = tuple(range(adapt(stored.model).stack.n_layers))
    baseline, *answers = predict_orders(stored.model, encoded, [whole, *orders.values()])
    on_test = replace(
        stored, dataset=test, encoded=encoded, baseline_logits=baseline,
        logits=dict(zip(orders, answers, strict=True)),
    )  # fmt: skip
    level = 1 - CORRECTED / max(1, len(by_size))  # shared by the picks of all sizes
    about = {"split": TEST, "picked_on": dev.split, "strategy": TEST}
    return Result(rows=[_test_row(on_test, *pick, level) | about for pick in picks])


def _test_row(on_test: StoredCuts, metric: str, cut: Cut, level: float) -> dict[str, Any]:
    changed, base = on_test.outcomes[cut.name][metric], on_test.baseline[metric]
    gain = compare(changed, base, on_test.dataset.scored_clusters, level=level).difference
    return {
        "target": cut.name, "metric": metric, "primary": on_test.metric,
        "value": score_on(base) + gain.value, "delta": gain.value, "low": gain.low,
        "high": gain.high, "n": gain.n, **on_test.price(cut),
        **on_test.answer_columns(on_test.logits[cut.name], metric),
    }  # fmt: skip


def best_of(
    variants: Mapping[str, Outcome], baseline: Outcome, dataset: Dataset, *, n_sizes: int
) -> tuple[Interval, tuple[str, float]]:
    """What the best variant changes on rows that it wasn't picked on; and which it is, how often.

    The level is shared by the ``n_sizes`` picks that are made.
    """
    names, clusters = list(variants), dataset.scored_clusters
    is_mean = isinstance(baseline, np.ndarray)

    def choose(rows: Indices) -> str:
        return max(names, key=lambda name: score_on(variants[name], rows))

    def gain(name: str, rows: Indices) -> Interval:
        groups = None if clusters is None else clusters[rows]
        changed, base = on_rows(variants[name], rows), on_rows(baseline, rows)
        return compare(changed, base, groups, level=1 - HALF_CORRECTED / n_sizes).difference

    choice = honest_choice(
        choose, gain, dataset.n_scored, clusters=clusters,
        n_splits=SPLITS if is_mean else METRIC_SPLITS,
    )  # fmt: skip
    return choice.gain, choice.picks[0]


def refused_row(name: str, edit: str, metric: str, why: str) -> dict[str, Any]:
    """A cut that the family doesn't allow: no number, and the reason."""
    empty = (
        "value", "value_low", "value_high", "delta", "low", "high", "n", "p", "p_holm", "p_bh",
        "p_maxt", "layers", "parameters", "flops_per_token", "speed",
    )  # fmt: skip
    named = {"target": name, "edit": edit, "metric": metric, "primary": metric, "refused": why}
    return named | dict.fromkeys(empty)
