"""From a paper, models and data to trials: what is to be measured, and what can't be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from microtome.errors import MicrotomeError, RequestError
from microtome.experiments import Subject, find_experiment, subject_of
from microtome.experiments.kit.layers import Layers, layers_of
from microtome.models.listing import facts_of_model
from microtome.papers.exhibit import MORE_LAYERS, SCALES, SHARES_OF_LAYERS, Exhibit, Paper, Work
from microtome.papers.exhibits import PAPERS
from microtome.replication.measured import fits_stack
from microtome.runs import Trial
from microtome.tasks.catalogue import find_task
from microtome.tasks.data_spec import DataSpec, task_folder
from microtome.values import format_ranges

REPLICATION = "replication"  # the kind of a run
EMBEDDED_MODELS = ("nano-bert", "nano-albert")
ROWS_AT_MOST = {"demo": 120, "small": 2000, "paper": None}  # of every task that are measured


@dataclass(frozen=True)
class Replication:
    """A paper to be replicated: on which models, at which scale, from which data.

    ``tasks`` are the paper's tasks and the names that they have here: their own, or those of the
    embedded ones in their place.
    """

    paper: Paper
    scale: str
    models: tuple[str, ...]
    data: Path | None
    exhibits: tuple[Exhibit, ...]
    tasks: Mapping[str, str]
    left_out: tuple[str, ...] = ()  # why some of the paper's tasks aren't there

    @cached_property
    def subjects(self) -> dict[tuple[str, str], Subject]:
        """Every model on every task, and without rows under the task ""."""
        specs = {name: self._spec(task, name) for task, name in self.tasks.items()}
        found = {}
        for model in self.models:
            found[model, ""] = subject_of(model, DataSpec(), needs_rows=False)
            for name, spec in specs.items():
                found[model, name] = subject_of(model, spec)
        return found

    def _spec(self, task: str, name: str) -> DataSpec:
        split = self.paper.splits.get(task) if name == task else None
        folder = None if self.data is None else task_folder(self.data, find_task(name))
        return DataSpec(name, folder, split=split, limit=ROWS_AT_MOST[self.scale])

    def as_json(self) -> dict[str, Any]:
        """What run.json says of it: lists may grow, so that a wider request resumes."""
        names = list(dict.fromkeys(self.tasks.values()))
        first = self.models[0]
        sizes = [_size(self.subjects[first, name]) for name in names]
        most = ROWS_AT_MOST[self.scale]
        whole = [
            name
            for task, name in self.tasks.items()
            if task == name and (most is None or len(self.subjects[first, name].dataset) < most)
        ]
        return {
            "kind": REPLICATION,
            "paper": self.paper.key,
            "scale": self.scale,
            "model": "",
            "models": list(self.models),
            "task": "",
            "tasks": names,
            "exhibits": [exhibit.name for exhibit in self.exhibits],
            "paper_tasks": [list(pair) for pair in self.tasks.items()],
            "stacks": [facts_of_model(self.subjects[m, ""].model_path, m) for m in self.models],
            "sizes": sizes,
            "whole": whole,
        }


def _size(subject: Subject) -> dict[str, Any]:
    task, dataset = subject.dataset.task, subject.dataset
    return {
        "task": task.name,
        "kind": task.kind,
        "metric": task.primary,
        "train": len(subject.training),
        "measured_split": dataset.split,
        "measured_rows": len(dataset),
    }


def replication_of(
    paper: str,
    *,
    models: Sequence[str] = (),
    scale: str = "demo",
    data: Path | None = None,
    only: Sequence[str] = (),
) -> Replication:
    """Fill in what wasn't said: the models, the tasks, all exhibits of the paper.

    Without ``models`` they are the embedded ones, at the scale ``paper`` the paper's own. Without
    ``data`` the embedded tasks take the place of the paper's; at the scale ``paper`` its own come
    from the hub.

        replication_of("kao2021", only=["Table 3"])
    """
    if paper not in PAPERS:
        raise RequestError(f"no paper is called {paper!r}", f"there are {', '.join(PAPERS)}")
    if scale not in SCALES:
        raise RequestError(f"--scale expects {', '.join(SCALES)}, got {scale!r}")
    found = PAPERS[paper]
    chosen = tuple(models) or (found.models if scale == "paper" else EMBEDDED_MODELS)
    exhibits = _exhibits(found, only)
    in_order = max((each.shown_tasks for each in found.exhibits), key=len)
    asked = {task for each in exhibits for task in each.shown_tasks}
    shown = [task for task in in_order if task in asked]
    tasks, left_out = _tasks(found, shown, scale, data)
    return Replication(found, scale, chosen, data, exhibits, tasks, tuple(left_out))


def _exhibits(paper: Paper, only: Sequence[str]) -> tuple[Exhibit, ...]:
    known = {exhibit.name.casefold(): exhibit for exhibit in paper.exhibits}
    if unknown := [name for name in only if name.strip().casefold() not in known]:
        raise RequestError(
            f"{paper.key} has no exhibit {unknown[0]!r}",
            f"there are {', '.join(exhibit.name for exhibit in paper.exhibits)}",
        )
    asked = {name.strip().casefold() for name in only} or known.keys()
    return tuple(exhibit for name, exhibit in known.items() if name in asked)


def _tasks(
    paper: Paper, shown: Sequence[str], scale: str, data: Path | None
) -> tuple[dict[str, str], list[str]]:
    """The paper's tasks by their names here, and why others aren't there."""
    tasks, left_out = {}, []
    for task in shown:
        if data is None and scale != "paper":
            if task in paper.stand_ins:
                tasks[task] = paper.stand_ins[task]
            else:
                left_out.append(f"no embedded task is in the place of {task}")
            continue
        try:
            if data is not None:
                task_folder(data, find_task(task))
            tasks[task] = task
        except RequestError as error:
            left_out.append(error.message)
    if data is not None and not tasks:
        names = ", ".join(shown)
        raise RequestError(f"{data} has no folder for any of {names}", "name them as the tasks")
    return tasks, left_out


@dataclass
class Plan:
    """Trials of a replication; those of ``stored`` work can be planned once the others are done."""

    replication: Replication
    trials: list[Trial] = field(default_factory=list)
    refused: dict[tuple[str, str, str], str] = field(default_factory=dict)
    stored: list[tuple[Work, Subject]] = field(default_factory=list)

    def notes(self) -> list[str]:
        """What to know of the rows, and what is left out."""
        subjects = self.replication.subjects.values()
        notes = [f"{one.task}: {note}" for one in subjects for note in one.notes]
        return list(dict.fromkeys([*notes, *self.replication.left_out, *self.refused.values()]))

    def stored_trials(self, folder: Path) -> Iterator[Trial]:
        """The trials of work that reads what the run has stored by now."""
        for work, subject in self.stored:
            settings = {**work.at(self.replication.scale), work.stored: str(folder)}
            yield from self._planned(work.experiment, subject, settings)

    def _planned(self, name: str, subject: Subject, settings: Mapping[str, Any]) -> Sequence[Trial]:
        experiment = find_experiment(name)
        try:
            return experiment.plan(subject, experiment.settings(settings))
        except MicrotomeError as error:
            why = f"{name} of {subject.model} on {subject.task}: {error.message}"
            self.refused[name, subject.model, subject.task] = why
            return ()

    def add(self, work: Work, subject: Subject) -> None:
        """Plan an experiment on a subject; where it can't be run, the reason is kept."""
        settings = settings_for(work, self.replication.scale, layers_of(subject.model_path))
        if work.stored:
            self.stored.append((work, subject))
        else:
            self.trials += self._planned(work.experiment, subject, settings)


def plan_of(replication: Replication) -> Plan:
    """The trials that the exhibits need; equal ones are run once."""
    plan = Plan(replication)
    asked: dict[tuple[int, str, str], tuple[Work, str, str]] = {}
    for exhibit in replication.exhibits:
        for work in exhibit.work:
            for model, task in _pairs(replication, exhibit, work):
                asked.setdefault((id(work), model, task), (work, model, task))
    for work, model, task in asked.values():
        plan.add(work, replication.subjects[model, task])
    return plan


def _pairs(replication: Replication, exhibit: Exhibit, work: Work) -> Iterator[tuple[str, str]]:
    shown = [task for task in work.tasks if task in exhibit.shown_tasks]
    names = [replication.tasks[task] for task in shown if task in replication.tasks]
    for model in replication.models:
        stack = {"shared": layers_of(replication.subjects[model, ""].model_path).shared}
        if fits_stack(stack, exhibit.stack) and fits_stack(stack, work.stack):
            for name in dict.fromkeys(names) if work.tasks else ("",):
                yield model, name


def settings_for(work: Work, scale: str, layers: Layers) -> dict[str, Any]:
    """The settings of some work, those that depend on a model's layers worked out for it."""
    settings = work.at(scale)
    more, shares = settings.pop(MORE_LAYERS, None), settings.pop(SHARES_OF_LAYERS, None)
    if more is not None:
        counts = [layers.count + extra for extra in more]
        counts = [count for count in counts if count <= layers.deepest]
        # One experiment takes numbers, the other ranges as text.
        as_text = work.experiment == "decoding"
        settings["layers"] = format_ranges(tuple(counts)) if as_text else counts
    if shares is not None:
        settings["counts"] = sorted({round(share * layers.count) for share in shares})
    return settings
