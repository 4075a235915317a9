"""The trials of a comparison: let a model answer, compare every pair, time all by turns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.field.comparison.plan import MODEL_OF
from microtome.experiments.kit.measured import Measured
from microtome.experiments.kit.paired_comparison import Outcome, compare
from microtome.experiments.kit.stored_predictions import stored_arrays
from microtome.experiments.kit.subject import MODEL, POOLING, Subject
from microtome.experiments.kit.trial_inputs import load_with_tokenizer, opened_rows
from microtome.families import adapt
from microtome.models.costs import cost
from microtome.observe.evaluation import check_fit
from microtome.observe.speed import SINGLE_TURNS, padded, seconds_by_turns
from microtome.runs import Context, Result
from microtome.statistics import holm
from microtome.tasks import Dataset
from microtome.tasks.scoring.constant import answer_columns
from microtome.tasks.task import UNIT_OF

ANSWERS = "answers"  # an array
TURNS = 3 * SINGLE_TURNS  # every text three times: models of one size differ by little


def check_answers(subject: Subject) -> None:
    """Refuse a model that can't answer its rows, by name."""
    try:
        model, _ = load_with_tokenizer(
            subject.model_path, device="cpu", pooling=subject.data.pooling
        )
        check_fit(model, subject.dataset)
    except RequestError as error:
        raise RequestError(f"{subject.model}: {error.message}", error.hint) from error


def answer(request: Mapping[str, Any], context: Context) -> Result:
    """One model's answers to all rows, its size, and its score by every metric of the task."""
    measured = Measured.opened(request, context)
    model, answers = measured.model, measured.answers()
    found = measured.evaluation(answers)
    size = {"layers": adapt(model).shape.n_layers, "parameters": cost(model).parameters}
    rows = [
        {
            "stage": "score", "metric": name, "primary": found.primary, "value": score.value,
            "value_low": score.low, "value_high": score.high, "n": score.n, "unit": found.unit,
            **answer_columns(measured.dataset, found, name, measured.encoded), **size,
        }
        for name, score in found.scores.items()
        if name in found.outcomes
    ]  # fmt: skip
    summary = {found.primary: found.scores[found.primary].value}
    return Result(rows=rows, summary=summary, arrays={ANSWERS: answers})


def compare_pairs(request: Mapping[str, Any], context: Context) -> Result:
    """Every pair of models on the same rows, by the primary metric: the later minus the earlier."""
    names, dataset = request["models"], opened_rows(request, context)
    metric = next(iter(context.needs.values())).rows[0]["primary"]
    found = _outcomes(names, dataset, context, metric)
    pairs = list(combinations(names, 2))
    compared = [compare(found[b], found[a], dataset.scored_clusters) for a, b in pairs]
    corrected = holm([one.p for one in compared])
    rows = [
        {
            "stage": "difference", "model": b, "compared_with": a, "metric": metric,
            "primary": metric, "delta": one.difference.value, "low": one.difference.low,
            "high": one.difference.high, "n": one.difference.n,
            "unit": UNIT_OF.get(dataset.task.kind, "rows"), "p": one.p, "p_holm": float(p_holm),
            "test": one.test,
        }
        for (a, b), one, p_holm in zip(pairs, compared, corrected, strict=True)
    ]  # fmt: skip
    return Result(rows=rows)


def _outcomes(
    names: list[str], dataset: Dataset, context: Context, metric: str
) -> dict[str, Outcome]:
    """What each model's stored answers are worth, ready to be paired."""
    found = {}
    for place, (name, need) in enumerate(zip(names, context.needs.values(), strict=True)):
        assert need.arrays is not None  # every model answered
        answers = stored_arrays(need.arrays)[ANSWERS]
        found[name] = _opened(place, dataset, context).outcome(answers, metric)
    return found


def time_models(request: Mapping[str, Any], context: Context) -> Result:
    """Milliseconds of one text, and the speed relative to the first model: medians of turns."""
    names, dataset = request["models"], opened_rows(request, context)
    opened = [_opened(place, dataset, context) for place in range(len(names))]
    turns = seconds_by_turns(
        [
            (each.model, padded(each.encoded, each.model, n_texts=SINGLE_TURNS, size=1))
            for each in opened
        ],
        TURNS,
    )
    rows = []
    for place, name in enumerate(names):
        low, speed, high = quantiles([turn[0] / turn[place] for turn in turns], n=4)
        rows.append(
            {
                "stage": "time", "model": name,
                "latency_ms": 1000 * median(turn[place] for turn in turns), "speed": speed,
                "speed_low": low, "speed_high": high,
            }
        )  # fmt: skip
    return Result(rows=rows)


def _opened(place: int, dataset: Dataset, context: Context) -> Measured:
    """The model at a place of the request, with the rows in its tokens."""
    folder = Path(context.where[MODEL_OF.format(place) if place else MODEL])
    model, tokenizer = load_with_tokenizer(
        folder, device=context.device, pooling=context.where.get(POOLING)
    )
    return Measured(model, tokenizer, dataset)
