"""Experiments on a model and its tasks: one resumable run, its findings, and its page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from microtome.errors import RequestError, RunError
from microtome.experiments import FOLDERS, Experiment, Subject, find_experiment
from microtome.experiments.kit.overlay import overlaid
from microtome.experiments.kit.subject import TRAINING
from microtome.experiments.next_steps import next_steps
from microtome.models.source import short_name
from microtome.papers.comparison import Reported, reported
from microtome.report import html_of, write
from microtome.report.page import Page, Section, Status
from microtome.runs import Record, RunResult, Trial, open_run, run
from microtome.views import TidyRow, View

RUNS = Path("microtome-runs")


@dataclass(frozen=True)
class StudyPart:
    """One experiment of a run: its rows, and what went wrong.

    ``task`` is named where a run has several: each of them is a part of its own.
    """

    experiment: Experiment
    rows: tuple[TidyRow, ...]
    problems: tuple[str, ...] = ()
    task: str = ""

    @property
    def status(self) -> Status:
        """``done``, ``failed`` where any of its trials did, ``not run yet`` without rows."""
        if self.problems:
            return "failed"
        return "done" if self.rows else "not run yet"

    @cached_property
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
        return f"{self.experiment.name} on {self.task}" if self.task else self.experiment.name

    @property
    def question(self) -> str:
        """What it asks; of which task, where there are several."""
        question = self.experiment.question
        return f"{question} ({self.task})" if self.task else question

    @cached_property
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
        return html_of(*self.views, title=self.question, texts=[self.finding])

    def _reported(self, model: str, task: str) -> tuple[Reported, ...]:
        measured = self.experiment.claims(self.rows) if self.status == "done" else {}
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
    parts: tuple[StudyPart, ...]
    result: RunResult

    def part(self, name: str, task: str = "") -> StudyPart:
        """The part of one experiment, and of one task where there are several."""
        return next(
            part for part in self.parts if (part.experiment.name, part.task) == (name, task)
        )

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

        subject = subject_of("nano-bert", DataSpec("micro-sentiment", limit=100))
        study(subject, [Wanted("decoding")], "runs/decoding").part("decoding").finding
    """
    if not wanted:
        raise RequestError("no experiment is named", "name at least one")
    workers = workers or Workers()
    subjects = _one_model([subject] if isinstance(subject, Subject) else list(subject))
    planned = [(find_experiment(one.name), one.settings) for one in wanted]
    plans = [
        experiment.plan(each, experiment.settings(settings))
        for experiment, settings in planned
        for each in subjects
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
        notes=_notes(subjects, plans),
        whole=True,
    )
    tasks = [each.task for each in subjects]
    parts = tuple(part for one, _ in planned for part in parts_of(one.name, result, tasks))
    return Study(subjects[0], Path(out), parts, result)


def _notes(subjects: Sequence[Subject], plans: Sequence[Sequence[Trial]]) -> list[str]:
    """What to know of the rows, those to learn from included where a trial learns."""
    learns = any(TRAINING in trial.content for trials in plans for trial in trials)
    return list(
        dict.fromkeys(
            f"{each.task}: {note}" if len(subjects) > 1 else note
            for each in subjects
            for note in (*each.notes, *(each.training.notes if learns else ()))
        )
    )


def _one_model(subjects: list[Subject]) -> list[Subject]:
    """The subjects, if they are one model and every task once."""
    tasks = {each.task for each in subjects}
    if len({each.model_hash for each in subjects}) != 1 or len(tasks) < len(subjects):
        named = ", ".join(f"{each.model} on {each.task}" for each in subjects) or "nothing"
        raise RequestError(f"expected one model and every task once, got {named}")
    return subjects


def _about(subjects: Sequence[Subject]) -> dict[str, Any]:
    """What a run's request says of its subjects; several tasks are a list, which may grow."""
    first = subjects[0]
    if len(subjects) == 1:
        return {"model": first.model, "task": first.task, "rows": first.data.as_json()}
    rows = replace(first.data, task=None).as_json()
    tasks = [each.task for each in subjects]
    return {"model": first.model, "task": "", "tasks": tasks, "rows": rows}


def parts_of(name: str, result: RunResult, tasks: Sequence[str]) -> list[StudyPart]:
    """One experiment's parts of a run, task by task where there are several."""
    if len(tasks) < 2:
        return [part_of(name, result)]
    return [part_of(name, result, task) for task in tasks]


def part_of(name: str, result: RunResult, task: str = "") -> StudyPart:
    """One experiment's part of a run, from its records alone; of one task only, if it is named."""
    records = [
        record
        for record in result.records.values()
        if record.columns.get("experiment") == name and task in ("", record.columns.get("task"))
    ]
    rows = tuple({**r.columns, **row} for r in records if r.ok for row in r.rows)
    causes = (_cause(record, result.records) for record in records if not record.ok)
    problems = tuple(dict.fromkeys(f"{cause.title}: {cause.error}" for cause in causes))
    return StudyPart(find_experiment(name), rows, problems, task)


def _cause(record: Record, records: Mapping[str, Record]) -> Record:
    """What kept a trial from its numbers: itself, or the needed trial that failed."""
    while record.status == "blocked":
        record = next(records[need] for need in record.needs if not records[need].ok)
    return record


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


def stored_parts(result: RunResult, first: Sequence[str] = ()) -> tuple[StudyPart, ...]:
    """Every part of a run: the experiments named ``first``, then in the order of the catalogue."""
    asked = result.request
    tasks = asked.get("tasks", [asked["task"]])
    order = [name for name in dict.fromkeys([*first, *FOLDERS]) if name in asked["experiments"]]
    return tuple(part for name in order for part in parts_of(name, result, tasks))


def page_of(
    result: RunResult, parts: Sequence[StudyPart], *, what: str = "", more: Sequence[Section] = ()
) -> Page:
    """The page of a run: every number on it is in the run's rows.

    ``what`` is the page's subject in its title, the experiments unless given; ``more`` sections
    follow those of the parts.
    """
    asked = result.request
    tasks = asked.get("tasks", [asked["task"]])
    sections = [part.section(asked["model"], asked["task"]) for part in parts]
    names = ", ".join(dict.fromkeys(part.experiment.name for part in parts)).capitalize()
    model = short_name(asked["model"])  # the whole path is among the facts
    on = f" on {', '.join(tasks)}" if any(tasks) else ""
    done = [part for part in parts if part.status == "done" and not part.task]
    prices = [view for part in done for view in part.experiment.front(part.rows)]
    return Page(
        title=f"{what or names} of {model}{on}",
        model=model,
        task=", ".join(tasks),
        answers=tuple(part.finding for part in parts),
        sections=(*sections, *more),
        front=(*prices, *_task_by_task(parts)),
        steps=next_steps(result, {part.experiment.name: part.rows for part in done}),
        notes=result.notes,
        facts=result.facts,
    )


def _task_by_task(parts: Sequence[StudyPart]) -> Iterator[View]:
    """Of an experiment on several tasks, the curves of all in one picture."""
    done = [part for part in parts if part.task and part.status == "done"]
    for name in dict.fromkeys(part.experiment.name for part in done):
        views = {part.task: part.views for part in done if part.experiment.name == name}
        if len(views) > 1:
            yield from overlaid(views)
