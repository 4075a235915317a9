"""The trials of layer removal: answers and speed of every cut, comparisons, and the best cuts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.edits import parse
from microtome.errors import RunError
from microtome.experiments.kao.layer_removal.cuts import Cut, all_cuts, cuts_of
from microtome.experiments.kao.layer_removal.stored_cuts import StoredCuts
from microtome.experiments.kit.paired_comparison import Outcome, VariantSweep, compare
from microtome.experiments.kit.stored_predictions import on_rows, score_on
from microtome.experiments.kit.trial_inputs import opened_rows, opened_unshared
from microtome.families import adapt
from microtome.observe import predict
from microtome.observe.evaluation import check_fit, encode_to_score
from microtome.observe.layer_orders import predict_orders
from microtome.observe.speed import time_against
from microtome.observe.texts import first_texts
from microtome.runs import Context, Result
from microtome.statistics import Interval, honest_choice
from microtome.surgery import apply, certify_weights
from microtome.tasks import Dataset, Encoded

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
    logits = predict_orders(
        model, encoded, orders,
        progress=lambda done, n_rows: context.report(f"{done} of {n_rows} rows"),
    )  # fmt: skip
    if cuts:
        _prove(model, encoded, cuts[-1], logits[-1])
    names = np.array([cut.name for cut in cuts], dtype=str)
    return Result(arrays={"cuts": names, "baseline": logits[0], "logits": logits[1:]})


def _prove(model: PreTrainedModel, encoded: Encoded, cut: Cut, logits: NDArray[np.float32]) -> None:
    """Layers in another order must answer as the edited checkpoint does: one cut is made."""
    edit = parse(cut.edit)
    edited = apply(edit, model)
    certify_weights(edit, model, edited).require()
    answers = predict(edited, first_texts(encoded, PROVEN_ROWS))
    seen = np.isfinite(answers)  # answers beyond the position table are −inf in both
    error = float(np.abs(answers - logits[: len(answers)])[seen].max())
    if not error < 1e-2:
        raise RunError(f"{cut.edit} answers otherwise than the edited model, by {error:.2g}")


def time_layers(request: Mapping[str, Any], context: Context) -> Result:
    """The speed of one number of layers relative to the base: a measurement, stored once.

    Which layers are left makes no difference to the speed, so the first ones are.
    """
    model, tokenizer, _ = opened_unshared(context)
    encoded = encode_to_score(model, tokenizer, opened_rows(request, context))
    count, n_layers = request["layers"], adapt(model).shape.n_layers
    edited = apply(parse(f"keep(0-{count - 1})"), model)
    timing = time_against(edited, model, encoded, share=count / n_layers)
    summary = {} if timing.speed is None else {"speed": timing.speed}
    return Result(summary={**summary, "timing": {"layers": count, **vars(timing)}})


def compare_cuts(request: Mapping[str, Any], context: Context) -> Result:
    """The cuts of one way of removing against the whole model, paired and corrected."""
    stored = StoredCuts.opened(request, context)
    stack, metric = adapt(stored.model).stack, stored.metric
    named = cuts_of(request["strategy"], stack.n_layers, stack.rules)
    made = {name: cut for name, cut in named.items() if cut.order}
    variants = {name: stored.outcomes[cut.name] for name, cut in made.items()}
    sweep = VariantSweep(variants, stored.baseline, stored.dataset.clusters)
    base = stored.baseline_row() | (sweep.selection() if variants else {})
    rows = [
        row
        | stored.price(made[row["target"]])
        | stored.answer_columns(stored.logits[made[row["target"]].name])
        | {"low_corrected": stored.corrected_low(made[row["target"]])}
        for row in sweep.rows(metric)
    ]
    refused = [
        refused_row(name, stored.edit_text(cut), metric, cut.refusal)
        for name, cut in named.items()
        if not cut.order
    ]
    marked = [{"strategy": request["strategy"], **row} for row in (base, *rows, *refused)]
    return Result(rows=marked, summary={metric: base["value"]})


def pick_best(request: Mapping[str, Any], context: Context) -> Result:
    """The best cut of every number of layers: picked on half of the rows, scored on the others."""
    stored = StoredCuts.opened(request, context)
    stack = adapt(stored.model).stack
    by_size: dict[int, list[Cut]] = {}
    for cut in all_cuts(stack.n_layers, stack.rules):
        if cut.order:
            by_size.setdefault(len(cut.order), []).append(cut)
    rows = [
        _best_row(stored, cuts, n_sizes=len(by_size))
        for _, cuts in sorted(by_size.items(), reverse=True)
    ]
    return Result(rows=rows)


def _best_row(stored: StoredCuts, cuts: list[Cut], *, n_sizes: int) -> dict[str, Any]:
    outcomes = {cut.name: stored.outcomes[cut.name] for cut in cuts}
    gain, (name, share) = best_of(outcomes, stored.baseline, stored.dataset, n_sizes=n_sizes)
    cut = next(cut for cut in cuts if cut.name == name)
    return {
        "strategy": BEST, "target": name, "metric": stored.metric,
        "value": score_on(stored.baseline) + gain.value, "value_low": None, "value_high": None,
        "delta": gain.value, "low": gain.low, "high": gain.high, "n": gain.n,
        "p": None, "p_holm": None, "p_bh": None, "p_maxt": None,
        "share": share, "candidates": len(cuts), **stored.price(cut),
        **stored.answer_columns(stored.logits[name]),
    }  # fmt: skip


def best_of(
    variants: Mapping[str, Outcome], baseline: Outcome, dataset: Dataset, *, n_sizes: int
) -> tuple[Interval, tuple[str, float]]:
    """What the best variant changes on rows that it wasn't picked on; and which it is, how often.

    The level is shared by the ``n_sizes`` picks that are made.
    """
    names = list(variants)
    is_mean = isinstance(baseline, np.ndarray)

    def choose(rows: Indices) -> str:
        return max(names, key=lambda name: score_on(variants[name], rows))

    def gain(name: str, rows: Indices) -> Interval:
        clusters = None if dataset.clusters is None else dataset.clusters[rows]
        changed, base = on_rows(variants[name], rows), on_rows(baseline, rows)
        return compare(changed, base, clusters, level=1 - HALF_CORRECTED / n_sizes).difference

    choice = honest_choice(
        choose, gain, len(dataset), clusters=dataset.clusters,
        n_splits=SPLITS if is_mean else METRIC_SPLITS,
    )  # fmt: skip
    return choice.gain, choice.picks[0]


def refused_row(name: str, edit: str, metric: str, why: str) -> dict[str, Any]:
    """A cut that the family doesn't allow: no number, and the reason."""
    empty = (
        "value", "value_low", "value_high", "delta", "low", "high", "n", "p", "p_holm", "p_bh",
        "p_maxt", "layers", "parameters", "flops_per_token", "speed",
    )  # fmt: skip
    named = {"target": name, "edit": edit, "metric": metric, "refused": why}
    return named | dict.fromkeys(empty)
