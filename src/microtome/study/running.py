"""Experiments on models and tasks, run into one folder; what is there isn't run again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from microtome.errors import DataError, RequestError, RunError
from microtome.experiments import Experiment, Subject, find_experiment
from microtome.experiments.kit.subject import TRAINING, on_fewer_rows
from microtome.models.source import short_name
from microtome.report import write
from microtome.runs import RunResult, Trial, open_run, run
from microtome.study.page import page_of
from microtome.study.parts import StudyPart, parts_of
from microtome.views import TidyRow

RUNS = Path("microtome-runs")


@dataclass(frozen=True)
class Workers:
    """Where trials run; the same trials give the same records everywhere."""

    executor: str = "local"
    n_workers: int | None = 1  # a trial uses all cores by itself
    devices: tuple[str, ...] = ("cpu",)
    ray_address: str | None = None
    retry_failed: bool = False
    progress: bool = True
    track: str | None = None

    def run(
        self,
        trials: Sequence[Trial],
        out: str | Path,
        request: Mapping[str, Any],
        *,
        notes: Sequence[str],
    ) -> RunResult:
        """Run the trials, all there are of the run, into ``out``: see ``microtome.runs.run``."""
        return run(
            trials,
            out,
            request,
            executor=self.executor,
            workers=self.n_workers,
            devices=self.devices,
            retry_failed=self.retry_failed,
            progress=self.progress,
            track=self.track,
            ray_address=self.ray_address,
            notes=notes,
            whole=True,
        )


@dataclass(frozen=True)
class Study:
    """A finished pass over a run, part by part."""

    subject: Subject  # the first of several
    folder: Path
    parts: tuple[StudyPart, ...]
    result: RunResult

    def part(self, name: str, task: str = "", model: str = "") -> StudyPart:
        """The part of one experiment, and of one task and model where there are several."""
        return next(
            part
            for part in self.parts
            if (part.experiment.name, part.task, part.model) == (name, task, model)
        )

    def rows(self, experiment: str) -> tuple[TidyRow, ...]:
        """All rows of an experiment, over all models and tasks."""
        return tuple(r for p in self.parts if p.experiment.name == experiment for r in p.rows)

    def check(self) -> None:
        """Raise the first part that failed, or wasn't run."""
        for part in self.parts:
            if part.problems:
                raise RunError(
                    f"{part.name} failed: {part.problems[0]}",
                    f"the run keeps what is done; see {self.folder}/records, then --retry-failed",
                )
            if not part.rows:
                raise RunError(f"{part.name} has no rows yet", "run it again")

    def _repr_html_(self) -> str:
        """In a notebook: its parts, one after another."""
        return "".join(part._repr_html_() for part in self.parts)


@dataclass(frozen=True)
class Wanted:
    """One experiment with its options, as asked for; on some of the tasks only, if any is named."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    optional: bool = False  # where it can't be run, a note says why, and the others are
    tasks: tuple[str, ...] = ()
    rows_at_most: int | None = None  # of the measured ones, all unless given


@dataclass(frozen=True)
class Planned:
    """One experiment with all its settings, and its trials for each subject it is run on."""

    experiment: Experiment
    settings: Mapping[str, Any]
    trials: Mapping[tuple[str, str], Sequence[Trial]]  # by model and task


def study(
    subject: Subject | Sequence[Subject],
    wanted: Sequence[Wanted],
    out: str | Path,
    *,
    workers: Workers | None = None,
    kind: str = "experiment",
    begin: Callable[[], object] = lambda: None,
) -> Study:
    """Run the experiments into one folder; what is there already isn't run again.

    Several subjects are models on tasks, any of them; equal trials are run once. ``begin`` is
    called once all is planned: what can't work has been refused by then.

        subject = subject_of("nano-bert", DataSpec("micro-sentiment", limit=100))
        study(subject, [Wanted("decoding")], "runs/decoding").part("decoding").finding
    """
    if not wanted:
        raise RequestError("no experiment is named", "name at least one")
    workers = workers or Workers()
    subjects = _distinct([subject] if isinstance(subject, Subject) else list(subject))
    planned, refused = _planned(wanted, subjects)
    trials = [trial for one in planned for plan in one.trials.values() for trial in plan]
    begin()
    request = {
        "kind": kind,
        **_about(subjects, planned),
        "experiments": {one.experiment.name: one.settings for one in planned},
    }
    result = workers.run(trials, out, request, notes=[*_notes(subjects, trials), *refused])
    parts = tuple(part for one in planned for part in parts_of(one.experiment.name, result))
    return Study(subjects[0], Path(out), parts, result)


def _planned(
    wanted: Sequence[Wanted], subjects: Sequence[Subject]
) -> tuple[list[Planned], list[str]]:
    """Every experiment with its settings and trials; and why optional ones can't be run."""
    planned, refused = [], []
    for one in wanted:
        experiment = find_experiment(one.name)
        settings = experiment.settings(one.settings)
        trials: dict[tuple[str, str], Sequence[Trial]] = {}
        for each in subjects:
            if one.tasks and each.task not in one.tasks:
                continue
            measured = on_fewer_rows(each, one.rows_at_most)
            try:
                trials[each.model, each.task] = experiment.plan(measured, settings)
            except (RequestError, DataError) as error:
                if not one.optional:
                    raise
                of = f" of {short_name(each.model)} on {each.task}" if len(subjects) > 1 else ""
                refused.append(f"{one.name}{of} is left out: {error.message}")
        if trials:
            planned.append(Planned(experiment, settings, trials))
    return planned, refused


def _notes(subjects: Sequence[Subject], trials: Sequence[Trial]) -> list[str]:
    """What to know of the rows, those to learn from included where a trial learns."""
    learns = any(TRAINING in trial.content for trial in trials)
    several_models = len({each.model for each in subjects}) > 1
    several_tasks = len({each.task for each in subjects}) > 1
    notes: list[str] = []
    for each in subjects:
        names = [short_name(each.model)] * several_models + [each.task] * several_tasks
        for note in (*each.notes, *(each.training.notes if learns else ())):
            notes.append(f"{' on '.join(names)}: {note}" if names else note)
    return list(dict.fromkeys(notes))


def _distinct(subjects: list[Subject]) -> list[Subject]:
    """The subjects, if there are any, and no model is twice on one task.

    A copy of a model has the same trials: they would be run once, and be the rows of one of both.
    """
    if not subjects:
        raise RequestError("expected a model, got none", "name one: --model MODEL")
    seen: dict[tuple[str, str], str] = {}
    for each in subjects:
        key = each.identity, each.task
        if key in seen:
            copy = f"{seen[key]} twice" if seen[key] == each.model else f"{each.model}, its copy"
            both = copy if seen[key] == each.model else f"{seen[key]} and {copy}"
            on = f" on {each.task}" if each.task else ""
            raise RequestError(f"expected every model once on every task, got {both}{on}")
        seen[key] = each.model
    return subjects


def _about(subjects: Sequence[Subject], planned: Sequence[Planned]) -> dict[str, Any]:
    """What a run's request says of its subjects; several models and tasks are lists: they may grow.

    The models and tasks of each experiment are listed where there are several models, or where an
    experiment isn't run on every task.
    """
    first = subjects[0]
    models = list(dict.fromkeys(each.model for each in subjects))
    tasks = list(dict.fromkeys(each.task for each in subjects))
    about: dict[str, Any] = {"model": first.model, "task": first.task}
    rows = first.data if len(tasks) == 1 else replace(first.data, task=None)
    if len(models) > 1:
        about |= {"model": "", "models": models}
    if len(tasks) > 1:
        about |= {"task": "", "tasks": tasks}
    if len(models) > 1 or any(len(one.trials) < len(subjects) for one in planned):
        about["subjects"] = {one.experiment.name: list(map(list, one.trials)) for one in planned}
    return {**about, "rows": rows.as_json()}


def default_folder(model: str, task: str) -> Path:
    """Where a run is stored that was given no folder: found again by model and task."""
    name = re.sub(r"[^\w.-]+", "-", f"{Path(model).name}-{task}").strip("-.")
    return RUNS / (name[:80] or "run")


def write_report(done: Study) -> Path:
    """Write the page of a finished study into its folder."""
    return write(page_of(done.result, done.parts), done.folder)


def opened(folder: Path) -> RunResult:
    """A stored run that has records."""
    result = open_run(folder)
    if not result.records:
        raise RequestError(f"{folder} has no records yet", "run its experiment first")
    return result
