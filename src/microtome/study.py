"""Experiments on one subject, from a request to rows, findings and a report: one resumable run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microtome.errors import RequestError, RunError
from microtome.experiments import Experiment, Subject, find_experiment
from microtome.report.page import Reported, Section, Status
from microtome.runs import RunResult, run

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """One experiment of a run: its rows, and what went wrong."""

    experiment: Experiment
    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """``done``, or ``failed`` where any of its trials did."""
        return "failed" if self.problems else "done"

    @property
    def finding(self) -> str:
        """In words; a part that failed says so."""
        if self.problems:
            return f"not measured: {self.problems[0]}"
        return self.experiment.finding(self.rows)

    def section(self, model: str, task: str) -> Section:
        """As a report shows it, with what the papers say of this model and task."""
        return Section(
            name=self.experiment.name,
            question=self.experiment.question,
            source=self.experiment.section,
            status=self.status,
            finding=self.finding,
            views=() if self.problems else self.experiment.views(self.rows),
            method=self.experiment.method,
            reported=self._reported(model, task),
            rows=self.rows,
            problem="; ".join(self.problems),
        )

    def _repr_html_(self) -> str:
        """In a notebook: the question, the finding, and the figures."""
        from microtome.report import html_of

        views = () if self.problems else self.experiment.views(self.rows)
        return html_of(*views, title=self.experiment.question, texts=[self.finding])

    def _reported(self, model: str, task: str) -> tuple[Reported, ...]:
        from microtome.report import reported

        measured = {} if self.problems else self.experiment.measured(self.rows)
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

    subject: Subject
    folder: Path
    parts: tuple[Part, ...]
    result: RunResult

    def part(self, name: str) -> Part:
        """The part of one experiment."""
        return next(part for part in self.parts if part.experiment.name == name)

    def _repr_html_(self) -> str:
        """In a notebook: its parts, one after another."""
        return "".join(part._repr_html_() for part in self.parts)


@dataclass(frozen=True)
class Wanted:
    """One experiment with its options, as asked for."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def study(
    subject: Subject,
    wanted: Sequence[Wanted],
    out: str | Path,
    *,
    workers: Workers | None = None,
    kind: str = "experiment",
    begin: Callable[[], object] = lambda: None,
) -> Study:
    """Run the experiments into one folder; what is there already isn't run again.

    ``begin`` is called once all is planned: what can't work has been refused by then.
    """
    if not wanted:
        raise RequestError("no experiment asked for", "name at least one")
    workers = workers or Workers()
    planned = [(find_experiment(one.name), one.settings) for one in wanted]
    plans = [
        (experiment, experiment.plan(subject, experiment.settings(settings)))
        for experiment, settings in planned
    ]
    begin()
    request = {
        "kind": kind,
        "model": subject.model,
        "task": subject.task,
        "rows": subject.rows.as_json(),
        "experiments": {e.name: e.settings(settings) for e, settings in planned},
    }
    result = run(
        [trial for _, trials in plans for trial in trials],
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
    parts = tuple(part_of(experiment.name, result) for experiment, _ in plans)
    return Study(subject, Path(out), parts, result)


def part_of(name: str, result: RunResult) -> Part:
    """One experiment's part of a run, from its records alone."""
    own = [one for one in result.records.values() if one.columns.get("experiment") == name]
    rows = tuple({**record.columns, **row} for record in own if record.ok for row in record.rows)
    problems = tuple(f"{record.name}: {record.error}" for record in own if not record.ok)
    return Part(find_experiment(name), rows, problems)


def only(done: Study) -> Part:
    """The one part of a study of one experiment; a failed one is raised."""
    part = done.parts[0]
    if part.problems:
        raise RunError(
            f"{part.experiment.name} failed: {part.problems[0]}",
            f"the run keeps what is done; see {done.folder}/records, then --retry-failed",
        )
    return part
