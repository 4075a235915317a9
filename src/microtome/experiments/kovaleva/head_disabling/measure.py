"""Heads, whole layers and sets of heads disabled in turn, and compared with the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from microtome.edits import Disable, parse
from microtome.experiments.kit.judging import TEST
from microtome.experiments.kit.paired_comparison import Outcome, baseline_row
from microtome.experiments.kit.stored_predictions import score_on
from microtome.experiments.kit.subject import CHECKPOINT, Subject
from microtome.experiments.kit.trial_inputs import data_of, opened_rows, opened_unshared
from microtome.experiments.kovaleva.head_disabling.head_sets import (
    BASELINE,
    HeadSets,
    Progress,
    kind_of,
)
from microtome.experiments.kovaleva.head_disabling.report import best_head_edit
from microtome.families import adapt
from microtome.observe.evaluation import check_fit, encode_to_score
from microtome.observe.outcomes import swept_answers
from microtome.runs import Context, Result, RunResult
from microtome.statistics import halves, honest_choice
from microtome.surgery import operate
from microtome.tasks.reading.opening import open_data
from microtome.tasks.scoring.constant import constant_answer
from microtome.tasks.task import UNIT_OF
from microtome.views import TidyRows

SET_SIZES = (2, 4, 8, 16)


def sweep(request: Mapping[str, Any], context: Context) -> Result:
    """Logits of every row with each head, and each whole layer, of some layers disabled."""
    first, last = request["layers"]
    n_heads = adapt(opened_unshared(context)[0]).shape.n_heads
    heads = [f"{i}.{j}" for i in range(first, last) for j in range(n_heads)]
    return _disabled(request, context, [*heads, *(f"{i}.*" for i in range(first, last))])


def sweep_random_sets(request: Mapping[str, Any], context: Context) -> Result:
    """The same for random sets of 2, 4, 8, 16 heads: more than the paper's one random head."""
    shape = adapt(opened_unshared(context)[0]).shape
    rng = np.random.default_rng(request["seed"])
    heads = [f"{i}.{j}" for i in range(shape.n_layers) for j in range(shape.n_heads)]
    sets = [
        sorted(rng.choice(heads, size, replace=False).tolist())
        for size in SET_SIZES
        if size < len(heads)
        for _ in range(request["sets"])
    ]
    return _disabled(request, context, sets)


def _disabled(
    request: Mapping[str, Any], context: Context, targets: Sequence[str | list[str]]
) -> Result:
    """The answers with each target disabled, and those of the baseline, as arrays."""
    model, tokenizer, _ = opened_unshared(context)
    dataset = opened_rows(request, context)
    check_fit(model, dataset)
    encoded = encode_to_score(model, tokenizer, dataset)
    baseline, answers = swept_answers(
        model, dataset, encoded, targets, how=request["how"], progress=_told(context)
    )
    names = np.array(
        [target if isinstance(target, str) else " ".join(target) for target in targets]
    )
    return Result(arrays={"targets": names, "baseline": baseline, "logits": answers})


def choose_greedily(request: Mapping[str, Any], context: Context) -> Result:
    """Sets of heads chosen greedily on one half of the rows and scored on the other.

    On the choosing half the heads are ranked by their gain, and the best of the leading sets is
    kept; the other half, which nothing was chosen on, says what it is worth.
    """
    sets = HeadSets.of_sweep(request, context)
    n_scored, clusters = sets.dataset.n_scored, sets.dataset.scored_clusters
    chosen_on = halves(n_scored, clusters=clusters, n_splits=request["splits"])
    sets.compute(
        (heads for half in chosen_on for heads in sets.candidates(np.flatnonzero(half))),
        progress=_told(context),
    )
    choice = honest_choice(
        sets.choose, sets.gain, n_scored, clusters=clusters, n_splits=request["splits"]
    )
    chosen, gain = choice.picks[0][0], choice.gain
    row = {
        "target": " ".join(chosen) or "none", "metric": sets.metric, "primary": sets.metric,
        "layer": None, "head": None, "value": score_on(sets.outcome(())) + gain.value,
        "delta": gain.value, "low": gain.low, "high": gain.high, "n": gain.n, "chosen": "greedy",
        "n_heads_disabled": len(chosen), "edit": edit_of(chosen, request["how"], sets.first_edit),
    }  # fmt: skip
    return Result(rows=[row], summary={"honest gain of a set": gain.value})


def compare(request: Mapping[str, Any], context: Context) -> Result:
    """Every head, layer and set against the baseline, by every metric of the task."""
    sets = HeadSets.of_sweep(request, context)
    metrics = dict.fromkeys((sets.metric, *sets.dataset.task.metrics))
    rows = [row for metric in metrics for row in _compared(sets, metric)]
    return Result(rows=rows, summary={sets.metric: rows[0]["value"]})


def _compared(sets: HeadSets, metric: str) -> Iterator[dict[str, Any]]:
    """The rows of one metric: paired, corrected, and the best of them picked honestly."""
    heads, layers, random_sets = (sets.variants(kind, metric) for kind in ("head", "layer", "set"))
    base = baseline_row(heads.baseline, sets.dataset, metric=metric) | heads.selection()
    best_layer = {name.replace("_", "_layer_", 1): value for name, value in layers.best().items()}
    yield {
        **base, "honest_value": base["value"] + base["honest_gain"], **best_layer,
        "honest_layer_value": base["value"] + best_layer["honest_layer_gain"],
        **place(BASELINE), "primary": sets.metric, "edit": sets.first_edit,
        "one_answer": sets.answers_alike(BASELINE),
        "constant_value": constant_answer(sets.dataset, metric, sets.encoded),
    }  # fmt: skip
    for group in (heads, layers, random_sets):  # heads compete with heads, layers with layers
        for row in group.rows(metric):
            edit = edit_of(row["target"].split(), sets.how, sets.first_edit)
            about = {"edit": edit, "one_answer": sets.answers_alike(row["target"])}
            yield {**row, **place(row["target"]), "primary": sets.metric, **about}


def score_on_test(request: Mapping[str, Any], context: Context) -> Result:
    """The best head and the best layer on dev, scored on test: these two alone are run there."""
    data = data_of(request, context)
    dev = open_data(replace(data, split=request["picked_on"]))
    picked_on = HeadSets.of_sweep(request, context, dev)
    test = HeadSets.opened(request, context, open_data(data))
    clusters = test.dataset.scored_clusters
    rows = []
    for metric in dict.fromkeys((test.metric, *test.dataset.task.metrics)):

        def scored_on(target: str, metric: str = metric) -> tuple[Outcome, Outcome]:
            test.compute([(target,)])
            return test.answers[target][metric], test.answers[BASELINE][metric]

        for kind in ("head", "layer"):
            variants = picked_on.variants(kind, metric)
            row = variants.on_second_split(scored_on, metric=metric, clusters=clusters)
            edit = edit_of([row["target"]], test.how, test.first_edit)
            about = {"split": TEST, "picked_on": dev.split, "primary": test.metric, "edit": edit}
            about["unit"] = UNIT_OF.get(test.dataset.task.kind, "rows")
            rows.append({**row, **place(row["target"]), **about})
    return Result(rows=rows, summary={f"gain of {rows[0]['target']}": rows[0]["delta"]})


def _told(context: Context) -> Progress:
    """Rows done, as a trial's progress."""
    return lambda done, n_rows: context.report(f"{done} of {n_rows} rows")


def place(target: str) -> dict[str, Any]:
    """The columns that say what was disabled; a whole layer has no head, a set has neither."""
    if target == BASELINE or kind_of(target) == "set":
        n_heads = 0 if target == BASELINE else len(target.split())
        return {"layer": None, "head": None, "n_heads_disabled": n_heads}
    layer, head = target.split(".")
    is_layer = head == "*"
    return {
        "layer": int(layer),
        "head": None if is_layer else int(head),
        "n_heads_disabled": None if is_layer else 1,
    }


def edit_of(targets: Sequence[str], how: str, first_edit: str) -> str:
    """The edit that gives a row's model; ``first_edit`` was done to the baseline already."""
    disabled = Disable(*targets, how=how).text if targets else ""
    return " | ".join(text for text in (first_edit, disabled) if text)


def save_best_head(rows: TidyRows, result: RunResult, subject: Subject, out: Path) -> Path:
    """Save the model with the head disabled that honest selection picks most often.

    ``rows`` are those of head-disabling in the run ``result``. The model is the one that the run
    fine-tuned, or the subject's where it had a task head. Gives the folder.
    """
    edit = parse(best_head_edit(rows))
    folders = (result.checkpoint(trial) for trial in result.records)
    tuned = next((folder for folder in folders if folder is not None), None)
    return operate(subject.model_path if tuned is None else tuned / CHECKPOINT, edit, out).out
