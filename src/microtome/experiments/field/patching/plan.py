"""Activation patching: at which depth, and at which tokens, the states hold the answer.

A clean and a corrupted text of as many tokens are run. Then the clean state of one position at one
depth is put into the corrupted run, and the layers above are computed (causal tracing: Meng et al.
2022; Zhang & Nanda 2024 on how to do it): the restored share is (patched − corrupted) / (clean −
corrupted) of the answer, a difference of two outputs. Pairs come from a file, or are made by
swapping one word of a text for another, of a few random swaps the one that changes the answer most.
Shares are ratios of sums over pairs, with an interval by drawing pairs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.field.patching.pair_file import read_pairs
from microtome.experiments.kit import arms
from microtome.experiments.kit.layers import CHARACTERS_PER_TOKEN, layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import DATA, MODEL, Subject, file_input
from microtome.runs import Trial

SECTION = "Not of the papers: activation patching (causal tracing)"
QUESTION = "At which depth, and at which tokens, do the states hold the answer?"
COLUMNS = (
    "stage", "depth", "group", "share", "low", "high", "n", "unit", "pair", "position", "token",
    "corrupted_token", "clean", "corrupted", "clean_pair", "corrupted_pair", "answer", "other",
    "clean_value", "corrupted_value", "reason",
)  # fmt: skip
NEEDS_ROWS = False  # a file of pairs is enough
CHANGED, FIRST, MASKED, SEPARATORS = "changed", "first", "masked", "separators"
BEFORE, BETWEEN, AFTER = "before", "between", "after"
GROUPS = (FIRST, CHANGED, MASKED, BEFORE, BETWEEN, AFTER, SEPARATORS)
PAIRS = "pairs"  # the file, among a trial's inputs
KINDS = ("classification", "regression", "multilabel", "reranking", "text")
NO_ANSWER = {
    "token-classification": "answers every token", "question-answering": "answers every token",
    "other": "has a head that isn't measured",
}  # fmt: skip
FINETUNE = Option("finetune", False, "give a masked LM a task head first, by fine-tuning", "flag")
OPTIONS = (
    Option(PAIRS, None, "a file of pairs: columns clean and corrupted, for [MASK] answer", "path"),
    Option("n_pairs", 100, "pairs to make at most, one of each row", "whole"),
    Option("tries", 8, "swaps that are tried on each row", "whole"),
    Option("least", 0.1, "leave out pairs below this share of the mean difference", "number"),
    Option("examples", 3, "pairs that are shown token by token", "whole"),
    FINETUNE,
    *arms.OPTIONS,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One trial, after the fine-tuning of a model that has no answer yet."""
    _check(settings)
    needs = _answering(subject, settings)
    n_pairs = _n_pairs(subject, settings)
    request = {name: settings[name] for name in ("n_pairs", "tries", "least", "examples")}
    if settings[PAIRS]:
        request = {name: settings[name] for name in ("least", "examples")}
    trial = subject.trial(
        "patching.patch", request, needs=needs,
        reads=(MODEL,) if settings[PAIRS] else (MODEL, DATA),
        inputs={PAIRS: file_input(settings[PAIRS])} if settings[PAIRS] else {},
        label="patch every position at every depth", work=_work(subject, n_pairs),
    )  # fmt: skip
    return [*needs, trial]


def _check(settings: Mapping[str, Any]) -> None:
    for name, least in (("n_pairs", 1), ("tries", 1), ("examples", 0)):
        if settings[name] < least:
            raise RequestError(
                f"--{name.replace('_', '-')} must be {least} or more, got {settings[name]}"
            )
    if not 0 <= settings["least"] < 1:
        raise RequestError(f"--least must be from 0 to below 1, got {settings['least']:g}")


def _n_pairs(subject: Subject, settings: Mapping[str, Any]) -> int:
    """How many pairs there are at most; a file that can't be of this model is refused."""
    if not settings[PAIRS]:
        if subject.opened is None:
            raise RequestError(
                "patching needs pairs of texts, or rows to make them of",
                "name them: --pairs FILE, --task, or --data FILE",
            )
        return min(int(settings["n_pairs"]), len(subject.dataset))
    pairs = read_pairs(Path(settings[PAIRS]))
    if not _is_masked(subject, settings) and any(pair.answer or pair.other for pair in pairs):
        raise RequestError(
            "the columns answer and other are words at [MASK], and the model is a classifier",
            "leave them out: its own labels are compared",
        )
    return len(pairs)


def _is_masked(subject: Subject, settings: Mapping[str, Any]) -> bool:
    """Whether it is patched as the masked LM that it is."""
    return subject.head == "mlm" and not settings["finetune"]


def _answering(subject: Subject, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The fine-tuning that the model needs to have an answer; what never has one is refused.

    A classifier and a masked LM answer as they are; ``--finetune`` makes a classifier of the LM.
    """
    if why := NO_ANSWER.get(subject.head):
        raise RequestError(
            f"patching needs one answer per text, and {subject.model} {why} ({subject.head})",
            "give a classifier or a masked LM",
        )
    kind = None if subject.opened is None else subject.opened.task.kind
    if subject.is_used_as_is or kind not in (None, *KINDS):
        raise RequestError(
            f"patching needs one answer per text, and {subject.task} is {kind}",
            "name rows with labels, a number per text or none, or pairs: --pairs FILE",
        )
    if subject.has_task_head or _is_masked(subject, settings):
        return ()
    if subject.opened is None:
        raise RequestError(
            f"{subject.model} has no answer before it is fine-tuned", "name a task: --task TASK"
        )
    if not subject.opened.labelled:
        raise RequestError(
            f"{subject.model} has no answer before it is fine-tuned, and {subject.task} has no"
            " labels",
            "name a label column: --label-column",
        )
    return arms.head_first(subject, settings)


def _work(subject: Subject, n_pairs: int) -> float:
    """Layers applied to all measured rows, about: every token of a pair at every depth."""
    n_layers = layers_of(subject.model_path).count
    lengths = [1.0] if subject.opened is None else [len(r.text) for r in subject.opened.rows()]
    n_tokens = sum(lengths) / len(lengths) / CHARACTERS_PER_TOKEN + 2
    return n_tokens * n_layers * (n_layers + 1) / 2 * n_pairs / len(lengths)
