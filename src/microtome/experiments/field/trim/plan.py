"""Trimming: cut a model to every number of layers, heal the best cuts, and price them.

Candidates (every subset of few layers; of many, the usual shapes and a greedy search) are screened
without training. Of a size, the best three learn for a tenth of its time each to answer as the base
does, and the best of these for the rest. Everything is picked on one half of the measured rows, and
scored on the other. Every cut comes with its price: parameters, milliseconds, and speed relative to
the base.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microtome.errors import DataError, RequestError
from microtome.experiments.field.trim.budget import check_enough
from microtome.experiments.field.trim.candidates import deeper_sizes, healed_sizes
from microtome.experiments.kit import arms
from microtome.experiments.kit.arms import head_to_score
from microtome.experiments.kit.judging import METRIC, chosen_metric
from microtome.experiments.kit.layers import Layers, layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import (
    DATA,
    MODEL,
    TRAINING,
    Subject,
    file_input,
    with_rows,
)
from microtome.models.checkpoint import look_at_fetched
from microtome.runs import Trial
from microtome.tasks.catalogue import all_tasks
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.reading.beir import beir_splits, is_beir
from microtome.tasks.reading.opening import open_data, open_training

TRIM = "trim"  # the experiment, and the kind of its runs
SECTION = "Not of the papers: cut, heal, choose"
QUESTION = "How small and fast can it be, and what does that cost?"
COLUMNS = (
    "stage", "edit", "layers", "healed", "steps", "metric", "value", "value_low", "value_high",
    "delta", "low", "high", "n", "pick_value", "pick_delta", "pick_low", "parameters", "bytes",
    "speed", "latency_ms", "batch_ms", "on_frontier",
)  # fmt: skip
TEXT = "text"  # a file of texts, among a trial's inputs
LEARNING_RATE, BATCH = 3e-4, 64
TOKENS, SPEED = 30, 5e10  # of a text, and operations a second, to guess how long a trial takes
SIMILARITY = "micro-similarity"
COLUMN_OPTIONS = ("text_column", "pair_column", "label_column", "label_separator")
OPTIONS = (
    Option("minutes", 10.0, "of healing, shared by all sizes", "number"),
    Option("steps", None, "of healing for every size, instead of minutes", "whole"),
    Option("layers", None, "the sizes to heal; at most five of all unless given", "numbers"),
    Option("text", None, "texts to heal on, one per line: no labels needed", "path"),
    Option("also", [], "more data to score the cuts on: tasks or files", "words"),
    Option("screened_rows", 500, "rows at most that cuts are ranked on before healing", "whole"),
    Option("deeper", False, "try duplicated layers, too", "flag"),
    Option("healing_rate", LEARNING_RATE, "the learning rate of the healing", "number"),
    Option("seed", 0, "of the order of texts", "whole"),
    METRIC,
    *arms.OPTIONS,
)


@dataclass(frozen=True)
class _Plan:
    """What every trial of a trim is made from."""

    subject: Subject
    settings: Mapping[str, Any]
    layers: Layers
    head: tuple[Trial, ...]

    @property
    def sizes(self) -> list[int]:
        """The numbers of layers that are healed."""
        count = self.layers.count
        more = deeper_sizes(count) if self.settings["deeper"] else ()
        return [*healed_sizes(range(1, count), self.settings["layers"]), *more]

    def trial(
        self, name: str, request: Mapping[str, Any], needs: Sequence[Trial], label: str,
        *, learns: bool = False, work: float = 1.0,
    ) -> Trial:  # fmt: skip
        """A trial on the subject, after the head's; ``learns``: it reads the texts to heal on."""
        text = self.settings["text"] if learns else None
        reads = (MODEL, DATA, TRAINING) if learns and text is None else (MODEL, DATA)
        if text is not None and (column := self.subject.data.text_column) is not None:
            request = {**request, "text_column": column}
        return self.subject.trial(
            f"trim.{name}", request, needs=(*self.head, *needs), label=label, reads=reads,
            inputs={} if text is None else {TEXT: file_input(text)}, work=work,
        )  # fmt: skip

    def healing_work(self, size: int) -> float:
        """What the healing of a size takes, in layers applied to all measured rows: a guess."""
        n_rows = len(self.subject.dataset)
        steps: int | None = self.settings["steps"]
        minutes: float = self.settings["minutes"]
        if steps is not None:
            return 3.0 * steps * BATCH * size / n_rows  # a step goes forth once and back twice
        weights = look_at_fetched(self.subject.model_path).weights_applied / self.layers.count
        seconds = 2 * weights * n_rows * TOKENS / SPEED
        return max(1.0, 60 * minutes / len(self.sizes) / seconds)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """Screen, time, calibrate, let the base answer, heal every size, judge."""
    _check_settings(subject, settings)
    subject = measured_apart(subject, settings)
    _check_rows(subject, settings)
    made = _Plan(subject, settings, layers_of(subject.model_path), head_to_score(subject, settings))
    healing = {
        "sizes": made.sizes, "batch_size": BATCH, "learning_rate": settings["healing_rate"],
        "fraction": float(settings["fraction"]),
    }  # fmt: skip
    judged = {"metric": chosen_metric(subject, settings)}
    screening = {**judged, "sizes": made.sizes, "rows_at_most": settings["screened_rows"]}
    screen = made.trial(
        "screen", screening, (), "screen all cuts without training", work=10.0 * made.layers.count
    )
    calibrate = made.trial("calibrate", healing, (), "time a step of every size", learns=True)
    calibrated: tuple[Trial, ...] = (calibrate,)
    budget = {"minutes": settings["minutes"], "steps": None}
    if settings["steps"] is not None:
        calibrated, budget = (), {"minutes": None, "steps": settings["steps"]}
    answers = made.trial(
        "answer", {**healing, **budget}, calibrated, "let the base answer the texts", learns=True,
        work=made.healing_work(made.layers.count) / 3,  # a step also goes back, twice
    )  # fmt: skip
    learning = {**screening, **healing, **budget, "seed": settings["seed"]}
    heals = [
        made.trial(
            "heal", {**learning, "layers": size}, (screen, *calibrated, answers),
            f"heal {size} of {made.layers.count} layers", learns=True,
            work=made.healing_work(size),
        )
        for size in made.sizes
    ]  # fmt: skip
    times = [
        subject.trial(
            "layer-removal.time_layers", {"layers": size}, needs=made.head, experiment="trim",
            label=f"time {size} of {made.layers.count} layers",
        )
        for size in made.sizes
    ]  # fmt: skip
    judge = made.trial("judge", judged, (screen, *heals, *times), "score on the other half")
    more = [_other_rows(made, name, heals) for name in _also(subject, settings)]
    return [*made.head, screen, *times, *calibrated, answers, *heals, judge, *more]


def healed_apart(
    subject: Subject, head: tuple[Trial, ...], edits: Sequence[str], metric: str | None,
    *, steps: int, text: str | None, fraction: float,
) -> tuple[Trial, tuple[Trial, ...]]:  # fmt: skip
    """The base's answers to the texts; for each edit, which removes a layer, a healing of its own.

    The healings leave the answers on all measured rows, and no checkpoint.
    """
    settings = {"steps": steps, "minutes": None, "text": text, "layers": None, "deeper": False}
    made = _Plan(subject, settings, layers_of(subject.model_path), head)
    size = made.layers.count - 1
    healing = {
        "sizes": [size], "batch_size": BATCH, "learning_rate": LEARNING_RATE,
        "fraction": float(fraction), "minutes": None, "steps": steps,
    }  # fmt: skip
    answers = made.trial(
        "answer", healing, (), "let the base answer the texts", learns=True,
        work=made.healing_work(made.layers.count) / 3,
    )  # fmt: skip
    heals = tuple(
        made.trial(
            "heal_one", {**healing, "edit": edit, "metric": metric, "seed": 0}, (answers,),
            f"heal {edit}", learns=True, work=made.healing_work(size),
        )
        for edit in edits
    )  # fmt: skip
    return answers, heals


def measured_apart(subject: Subject, settings: Mapping[str, Any]) -> Subject:
    """The subject, measured on rows that nothing is healed on: of one file, on a side of it."""
    data = subject.data
    is_apart = settings["text"] is not None or data.dev_path is not None or data.held_out
    if is_apart or not (data.is_file or _has_no_training_queries(data.path)):
        return subject
    if data.split is not None:
        raise RequestError(
            f"--split {data.split}: without queries to heal on, a search is divided by its queries",
            "leave --split out, or name texts to heal on: --text FILE",
        )
    return with_rows(subject, replace(data, held_out=True))


def texts_in(path: str | Path, column: str | None) -> DataSpec:
    """The texts to heal on: a line each, or a column of a table."""
    return DataSpec(path=Path(path), kind="text", text_column=column)


def _has_no_training_queries(path: Path | None) -> bool:
    return path is not None and is_beir(path) and "train" not in beir_splits(path)


def _also(subject: Subject, settings: Mapping[str, Any]) -> list[str]:
    """More data to score on: what was asked for; an embedder's cuts on an embedded task at least.

    A cut that looks free on one data set isn't free on another.
    """
    if settings["also"] or not subject.is_used_as_is or subject.task == SIMILARITY:
        return list(settings["also"])
    return [SIMILARITY]


def _other_rows(made: _Plan, name: str, heals: Sequence[Trial]) -> Trial:
    """The cuts' scores on other data: a task by name, or a file."""
    spec = (
        DataSpec(task=name)
        if name in (task.name for task in all_tasks())
        else DataSpec(path=Path(name))
    )
    if spec.path is not None and not spec.path.exists():
        raise RequestError(f"--also expects tasks or files, got {name!r}")
    shared = ("pooling", "prompt", *(COLUMN_OPTIONS if spec.is_file else ()))
    given = {name: getattr(made.subject.data, name) for name in shared}
    other = with_rows(made.subject, replace(spec, **given))
    own, kind = made.subject.dataset.task.kind, other.dataset.task.kind
    if kind != own and not (other.is_used_as_is and made.subject.is_used_as_is):
        raise RequestError(f"--also {name} is {kind} data, and the model is trimmed on {own}")
    return other.trial(
        "trim.score_also", {}, needs=(*made.head, *heals),
        label=f"score the cuts on {other.task}",
    )  # fmt: skip


def _check_settings(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse what can't be healed, before anything is measured."""
    minutes, steps, text = (settings[name] for name in ("minutes", "steps", "text"))
    if steps is None and not 0 < minutes < math.inf:
        raise RequestError(f"--minutes must be above 0, got {minutes:g}")
    if steps is not None and steps < 1:
        raise RequestError(f"--steps must be 1 or more, got {steps}")
    if not 0 < settings["healing_rate"] < math.inf:
        raise RequestError(f"--healing-rate must be above 0, got {settings['healing_rate']:g}")
    n_layers = layers_of(subject.model_path).count
    if n_layers < 2:
        raise RequestError(f"{subject.model} has {n_layers} layer: there is nothing to cut")
    if wrong := [size for size in settings["layers"] or () if not 1 <= size < n_layers]:
        raise RequestError(f"--layers must be 1 to {n_layers - 1}, got {wrong[0]}")
    if not subject.dataset.labelled and not subject.is_scored_on_masks:
        raise DataError(
            f"{subject.task} has no labels, and a cut is scored by them",
            "name a label column; the texts to heal on (--text) need none",
        )
    if text is None and subject.dataset.split == "train":
        raise RequestError("the training rows are healed on, so others must be measured")
    if text is not None and not subject.is_used_as_is and next(subject.dataset.rows()).pair:
        raise RequestError(
            f"{subject.task} has pairs of texts, and --text has single ones",
            "leave --text out: the training rows are healed on",
        )


def _check_rows(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse rows that can't be halved, and a file that has too few texts to heal on."""
    rows, text = subject.dataset, settings["text"]
    clusters = rows.scored_clusters
    n_units = rows.n_scored if clusters is None else len(set(clusters.tolist()))
    if n_units < 4:
        raise DataError(
            f"{subject.task} has {n_units} independent rows to measure: half of them pick a cut,"
            " the other half score it"
        )
    if text is not None:
        rows = open_data(texts_in(text, subject.data.text_column))
    elif subject.data.is_file:
        rows, _ = open_training(subject.data)
    else:
        return
    check_enough(2 * len(rows) if rows.task.kind == "similarity" else len(rows))
