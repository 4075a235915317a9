"""Experiments on a subject, from a request to rows, findings and a report: one resumable run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from microtome.errors import RequestError, RunError
from microtome.experiments import Experiment, Subject, find_experiment
from microtome.report.page import Reported, Section, Status
from microtome.runs import RunResult, run
from microtome.views import View

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """One experiment of a run: its rows, and what went wrong.

    ``task`` is named where a run has several: each of them is a part of its own.
    """

    experiment: Experiment
    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()
    task: str = ""

    @property
    def status(self) -> Status:
        """``done``, ``failed`` where any of its trials did, ``not run yet`` without rows."""
        if self.problems:
            return "failed"
        return "done" if self.rows else "not run yet"

    @property
    def finding(self) -> str:
        """In words; a part that failed says so."""
        which = f"{self.task}: " if self.task else ""
        if self.problems:
            return f"{which}not measured: {self.problems[0]}"
        if not self.rows:
            return f"{which}not measured yet"
        return which + self.experiment.finding(self.rows)

    @property
    def name(self) -> str:
        """The experiment's; with the task, where there are several."""
        own = self.experiment.name
        return f"{own} on {self.task}" if self.task else own

    @property
    def question(self) -> str:
        """What it asks; of which task, where there are several."""
        own = self.experiment.question
        return f"{own} ({self.task})" if self.task else own

    @property
    def views(self) -> tuple[View, ...]:
        """Its figures and tables; none where it failed."""
        return self.experiment.views(self.rows) if self.status == "done" else ()

    def section(self, model: str, task: str) -> Section:
        """As a report shows it, with what the papers say of this model and task."""
        return Section(
            name=self.name,
            question=self.question,
            source=self.experiment.section,
            status=self.status,
            finding=self.finding,
            views=self.views,
            method=self.experiment.method,
            reported=self._reported(model, self.task or task),
            rows=self.rows,
            problem="; ".join(self.problems),
        )

    def _repr_html_(self) -> str:
        """In a notebook: the question, the finding, and the figures."""
        from microtome.report import html_of

        return html_of(*self.views, title=self.question, texts=[self.finding])

    def _reported(self, model: str, task: str) -> tuple[Reported, ...]:
        from microtome.report import reported

        measured = self.experiment.measured(self.rows) if self.status == "done" else {}
        return reported(self.experiment.name, model, task, self.rows, measured=measured)


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


@dataclass(frozen=True)
class Study:
    """A finished pass over a run, part by part."""

    subject: Subject  # the first of several
    folder: Path
    parts: tuple[Part, ...]
    result: RunResult

    def part(self, name: str, task: str = "") -> Part:
        """The part of one experiment, and of one task where there are several."""
        return next(
            part for part in self.parts if (part.experiment.name, part.task) == (name, task)
        )

    def _repr_html_(self) -> str:
        """In a notebook: its parts, one after another."""
        return "".join(part._repr_html_() for part in self.parts)


@dataclass(frozen=True)
class Wanted:
    """One experiment with its options, as asked for."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


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

    Several subjects are one model on several tasks. ``begin`` is called once all is planned: what
    can't work has been refused by then.
    """
    if not wanted:
        raise RequestError("no experiment asked for", "name at least one")
    workers = workers or Workers()
    subjects = _one_model([subject] if isinstance(subject, Subject) else list(subject))
    planned = [(find_experiment(one.name), one.settings) for one in wanted]
    plans = [
        experiment.plan(one, experiment.settings(settings))
        for experiment, settings in planned
        for one in subjects
    ]
    begin()
    request = {
        "kind": kind,
        **_about(subjects),
        "experiments": {e.name: e.settings(settings) for e, settings in planned},
    }
    result = run(
        [trial for trials in plans for trial in trials],
        out,
        request,
        executor=workers.executor,
        workers=workers.n_workers,
        devices=workers.devices,
        retry_failed=workers.retry_failed,
        progress=workers.progress,
        track=workers.track,
        ray_address=workers.ray_address,
    )
    tasks = [one.task for one in subjects]
    parts = tuple(part for one, _ in planned for part in parts_of(one.name, result, tasks))
    return Study(subjects[0], Path(out), parts, result)


def _one_model(subjects: list[Subject]) -> list[Subject]:
    """The subjects, if they are one model and every task once."""
    tasks = {one.task for one in subjects}
    if len({one.model_hash for one in subjects}) != 1 or len(tasks) < len(subjects):
        raise RequestError(
            f"subjects {', '.join(f'{one.model} on {one.task}' for one in subjects) or 'none'}"
            " given, one model and every task once wanted"
        )
    return subjects


def _about(subjects: Sequence[Subject]) -> dict[str, Any]:
    """What a run's request says of its subjects; several tasks are a list, which may grow."""
    first = subjects[0]
    if len(subjects) == 1:
        return {"model": first.model, "task": first.task, "rows": first.rows.as_json()}
    rows = replace(first.rows, task=None).as_json()
    tasks = [one.task for one in subjects]
    return {"model": first.model, "task": "", "tasks": tasks, "rows": rows}


def parts_of(name: str, result: RunResult, tasks: Sequence[str]) -> list[Part]:
    """One experiment's parts of a run, task by task where there are several."""
    if len(tasks) < 2:
        return [part_of(name, result)]
    return [part_of(name, result, task) for task in tasks]


def part_of(name: str, result: RunResult, task: str = "") -> Part:
    """One experiment's part of a run, from its records alone; of one task only, if it is named."""
    own = [
        one
        for one in result.records.values()
        if one.columns.get("experiment") == name and task in ("", one.columns.get("task"))
    ]
    rows = tuple({**record.columns, **row} for record in own if record.ok for row in record.rows)
    problems = tuple(f"{record.name}: {record.error}" for record in own if not record.ok)
    return Part(find_experiment(name), rows, problems, task)


def only(done: Study) -> Part:
    """The one part of a study of one experiment; a failed one is raised."""
    check_done(done)
    return done.parts[0]


def check_done(done: Study) -> None:
    """Raise the first part that failed, or wasn't run."""
    for part in done.parts:
        if part.problems:
            raise RunError(
                f"{part.name} failed: {part.problems[0]}",
                f"the run keeps what is done; see {done.folder}/records, then --retry-failed",
            )
        if not part.rows:
            raise RunError(f"{part.name} has no rows yet", "run it again")
