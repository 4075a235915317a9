"""Several checkpoints answer the same rows, each with its tokenizer and its order of labels.

Every pair is compared row by row: exact McNemar and a score interval where a row is right or wrong,
else a paired permutation and a bootstrap. Rows that aren't independent (questions of one article)
are resampled together. p-values are corrected by Holm for the number of pairs. Models take turns
at one text after another in one process, so that whatever else the machine does hits all alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtome.errors import DataError, RequestError
from microtome.experiments.kit.subject import Subject, TrialInput
from microtome.models.source import short_name
from microtome.runs import Trial

QUESTION = "Which model is best, and by how much?"
MODEL_OF = "model_{}"  # of the second, third … model, among a trial's inputs


def plan(subjects: Sequence[Subject]) -> list[Trial]:
    """One trial per model for its answers, one that compares them, and one that times them all.

    The timing comes last: nothing else runs then, however many workers there are.
    """
    first, *others = subjects
    answers = [
        each.trial("comparison.answer", {}, label=f"{short_name(each.model)} answers")
        for each in subjects
    ]
    named = {"models": [each.model for each in subjects]}
    inputs = {
        MODEL_OF.format(place): TrialInput(each.model_path, each.identity)
        for place, each in enumerate(others, 1)
    }
    pairs = first.trial(
        "comparison.compare_pairs", named, needs=tuple(answers), inputs=inputs,
        label="compare every pair",
    )  # fmt: skip
    times = first.trial(
        "comparison.time_models", named, needs=(pairs,), inputs=inputs, label="time all by turns"
    )
    return [*answers, pairs, times]


def check_distinct(subjects: Sequence[Subject]) -> None:
    """Refuse a model by itself, one that is named twice, and models on different kinds of rows."""
    if len(subjects) < 2:
        raise RequestError(f"compare expects two models or more, got {len(subjects)}")
    first = subjects[0]
    seen: dict[str, str] = {}
    for each in subjects:
        if (twin := seen.get(each.identity)) is not None:
            same = f"{twin} twice" if twin == each.model else f"{twin} and {each.model}, its copy"
            raise RequestError(f"compare expects different checkpoints, got {same}")
        seen[each.identity] = each.model
        kind = each.dataset.task.kind
        if kind != first.dataset.task.kind:
            raise RequestError(
                f"{each.model} is scored on {each.task} as {kind}, and {first.model} as"
                f" {first.dataset.task.kind}: their scores aren't the same metric",
                "compare models of one job",
            )
    if not first.dataset.labelled and first.dataset.task.kind != "text":
        raise DataError(f"{first.task} has no labels to score the models by", "name a label column")
