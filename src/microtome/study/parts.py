"""The parts of a run: an experiment on a model and a task, from the run's records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from microtome.experiments import Experiment, experiment_names, find_experiment
from microtome.models.source import short_names
from microtome.papers.comparison import Reported, reported
from microtome.report import html_of
from microtome.report.page import Picture, Section, Status, first_picture
from microtome.runs import RunResult
from microtome.study.headlines import plain_headline
from microtome.views import Headline, TidyRow, View

Pair = tuple[str, str]  # a model and a task, as rows name them


@dataclass(frozen=True)
class StudyPart:
    """One experiment of a run: its rows, and what went wrong.

    ``model`` and ``task`` are named where a run has several: each model on each task is a part.
    ``run`` is named where a page is about several runs. ``model_name`` is how people are shown the
    model: a folder by its name.
    """

    experiment: Experiment
    rows: tuple[TidyRow, ...]
    problems: tuple[str, ...] = ()
    task: str = ""
    model: str = ""
    model_name: str = ""
    run: str = ""

    @property
    def status(self) -> Status:
        """``done``, ``failed`` where any of its trials did, ``not run yet`` without rows."""
        if self.problems:
            return "failed"
        return "done" if self.rows else "not run yet"

    @property
    def about(self) -> str:
        """What it is about, where there are several: "nano-bert on sst2", or one of the two."""
        names = " on ".join(filter(None, (self.model_name or self.model, self.task)))
        return ", ".join(filter(None, (self.run, names)))

    @cached_property
    def finding(self) -> str:
        """In words; a part that failed says so."""
        which = f"{self.about}: " if self.about else ""
        if self.problems:
            return f"{which}not measured: {self.problems[0]}"
        if not self.rows:
            return f"{which}not measured yet"
        return which + self.experiment.finding(self.rows)

    @property
    def name(self) -> str:
        """The experiment's; with the model and the task, where there are several."""
        model = f" of {self.model_name or self.model}" if self.model else ""
        task = f" on {self.task}" if self.task else ""
        run = f" ({self.run})" if self.run else ""
        return f"{self.experiment.name}{model}{task}{run}"

    @property
    def question(self) -> str:
        """What it asks; of which model and task, where there are several."""
        question = self.experiment.question
        return f"{question} ({self.about})" if self.about else question

    @cached_property
    def views(self) -> tuple[View, ...]:
        """Its figures and tables; none where it failed."""
        return self.experiment.views(self.rows) if self.status == "done" else ()

    @cached_property
    def front(self) -> tuple[View, ...]:
        """What a page shows of it first; nothing where it failed."""
        return self.experiment.front(self.rows) if self.status == "done" else ()

    @property
    def picture(self) -> Picture | None:
        """The figure that stands for it: the first that is drawn."""
        return first_picture((*self.front, *self.views))

    @cached_property
    def headline(self) -> Headline | None:
        """What a page says first of it; nothing where it failed."""
        if self.status != "done":
            return None
        if self.experiment.headline is not None:
            return self.experiment.headline(self.rows)
        claims = self.experiment.claims(self.rows)
        finding = self.experiment.finding(self.rows)
        return plain_headline(finding, self.rows, claims, self.experiment.section)

    def section(self, model: str, task: str) -> Section:
        """As a report shows it, with what the papers say of its model and task.

        ``model`` and ``task`` are those of the run, for a part that doesn't name its own.
        """
        return Section(
            name=self.name,
            question=self.question,
            source=self.experiment.section,
            status=self.status,
            finding=self.finding,
            views=self.views,
            method=self.experiment.method,
            reported=self._reported(self.model or model, self.task or task),
            rows=self.rows,
            problem="; ".join(self.problems),
        )

    def _repr_html_(self) -> str:
        """In a notebook: the question, the finding, and the figures."""
        return html_of(*self.views, title=self.question, texts=[self.finding])

    def _reported(self, model: str, task: str) -> tuple[Reported, ...]:
        measured = self.experiment.claims(self.rows) if self.status == "done" else {}
        return reported(self.experiment.name, model, task, self.rows, measured=measured)


def tidy(parts: Sequence[StudyPart]) -> list[TidyRow]:
    """The rows of all parts, every row with all columns: null where one doesn't apply."""
    rows = [row for part in parts for row in part.rows]
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column) for column in columns} for row in rows]


def models_of(request: Mapping[str, Any]) -> list[str]:
    """The models that a run's request names."""
    return list(request.get("models") or [request["model"]])


def tasks_of(request: Mapping[str, Any]) -> list[str]:
    """The tasks that a run's request names; "" for a run without rows."""
    return list(request.get("tasks") or [request["task"]])


def subjects_of(request: Mapping[str, Any], experiment: str) -> list[Pair]:
    """The models and tasks of one experiment of a run: all pairs, unless the request lists them."""
    listed = request.get("subjects", {}).get(experiment)
    if listed is None:
        return list(product(models_of(request), tasks_of(request)))
    return [(model, task) for model, task in listed]


def stored_parts(result: RunResult, first: Sequence[str] = ()) -> tuple[StudyPart, ...]:
    """Every part of a run: the experiments named ``first``, then in the order of the catalogue."""
    asked = result.request["experiments"]
    order = [name for name in dict.fromkeys([*first, *experiment_names(), *asked]) if name in asked]
    return tuple(part for name in order for part in parts_of(name, result))


def parts_of(name: str, result: RunResult, *, named: bool = False) -> list[StudyPart]:
    """One experiment's parts of a run, one for each model and task.

    The model is named where there are several, and so is the task; ``named`` names both always.
    """
    models, tasks = models_of(result.request), tasks_of(result.request)
    names = short_names(models)
    has_models, has_tasks = named or len(models) > 1, named or len(tasks) > 1
    return [
        StudyPart(
            find_experiment(name),
            *_measured(name, result, model, task),
            task=task if has_tasks else "",
            model=model if has_models else "",
            model_name=names[model] if has_models else "",
        )
        for model, task in subjects_of(result.request, name)
    ]


def _measured(
    name: str, result: RunResult, model: str, task: str
) -> tuple[tuple[TidyRow, ...], tuple[str, ...]]:
    """The rows of an experiment on a model and a task, and what kept others from being measured."""
    # A run of one model, or of one task, may call it otherwise than its request does.
    wanted = {
        key: value
        for key, value in (("model", model), ("task", task))
        if f"{key}s" in result.request
    }
    records = [
        record
        for record in result.records.values()
        if record.columns.get("experiment") == name and wanted.items() <= record.columns.items()
    ]
    rows = tuple({**r.columns, **row} for r in records if r.ok for row in r.rows)
    causes = (result.cause_of(record) for record in records if not record.ok)
    return rows, tuple(dict.fromkeys(f"{cause.title}: {cause.error}" for cause in causes))
