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
from microtome.tasks import open_data
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
    embedded ones in their place. ``changes`` are settings of experiments in the place of the
    scale's, and ``limit`` is the number of rows that are measured of a task at most.
    """

    paper: Paper
    scale: str
    models: tuple[str, ...]
    data: Path | None
    exhibits: tuple[Exhibit, ...]
    tasks: Mapping[str, str]
    left_out: tuple[str, ...] = ()  # why some of the paper's tasks aren't there
    changes: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None

    @cached_property
    def subjects(self) -> dict[tuple[str, str], Subject]:
        """Every model on every task, and without rows under the task ""."""
        specs = {
            name: spec_of(self.paper, task, name, self.data, self.limit)
            for task, name in self.tasks.items()
        }
        found = {}
        for model in self.models:
            found[model, ""] = subject_of(model, DataSpec(), needs_rows=False)
            for name, spec in specs.items():
                found[model, name] = subject_of(model, spec)
        return found

    def as_json(self) -> dict[str, Any]:
        """What run.json says of it: lists may grow, so that a wider request resumes."""
        names = list(dict.fromkeys(self.tasks.values()))
        first = self.models[0]
        sizes = [_size(self.subjects[first, name]) for name in names]
        whole = [
            name
            for task, name in self.tasks.items()
            if task == name
            and (self.limit is None or len(self.subjects[first, name].dataset) < self.limit)
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
            # what isn't changed isn't said: runs that were stored without it resume
            "settings": dict(self.changes) or None,
            "limit": None if self.limit == ROWS_AT_MOST[self.scale] else self.limit,
        }


def spec_of(paper: Paper, task: str, name: str, data: Path | None, limit: int | None) -> DataSpec:
    """The rows of a paper's task, which has another ``name`` where an embedded one is measured.

    The papers give STS-B a head with one output, so an embedder gets one, too.
    """
    split = paper.splits.get(task) if name == task else None
    known = find_task(name)
    folder = None if data is None else task_folder(data, known)
    kind = known.kind if known.kind == "regression" else None
    return DataSpec(name, folder, split=split, limit=limit, kind=kind)


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
    settings: Mapping[str, Any] | None = None,
    limit: int | None = None,
) -> Replication:
    """Fill in what wasn't said: the models, the tasks, all exhibits of the paper.

    Without ``models`` they are the embedded ones, at the scale ``paper`` the paper's own. Without
    ``data`` the embedded tasks take the place of the paper's; at the scale ``paper`` its own come
    from the hub. ``settings`` are options of experiments that replace the scale's in every
    experiment that has them (None: the scale's), ``limit`` the rows that are measured at most.

        replication_of("kao2021", only=["Table 3"], settings={"learning_rate": 1e-4})
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
    changes = {name: value for name, value in (settings or {}).items() if value is not None}
    _check_known(changes, found)
    most = ROWS_AT_MOST[scale] if limit is None else limit
    return Replication(found, scale, chosen, data, exhibits, tasks, tuple(left_out), changes, most)


def _check_known(changes: Mapping[str, Any], paper: Paper) -> None:
    """Refuse a setting that no experiment of the paper has: it would change nothing."""
    names = {name for exhibit in paper.exhibits for name in exhibit.experiments}
    known = {option.name for name in names for option in find_experiment(name).options}
    if unknown := [name for name in changes if name not in known]:
        flag = "--" + unknown[0].replace("_", "-")
        raise RequestError(f"no experiment of {paper.key} has the option {flag}")


def _exhibits(paper: Paper, only: Sequence[str]) -> tuple[Exhibit, ...]:
    known = {_spelled(exhibit.name): exhibit for exhibit in paper.exhibits}
    if unknown := [name for name in only if _spelled(name) not in known]:
        raise RequestError(
            f"{paper.key} has no exhibit {unknown[0]!r}",
            f"there are {', '.join(exhibit.name for exhibit in paper.exhibits)}",
        )
    asked = {_spelled(name) for name in only} or known.keys()
    return tuple(exhibit for name, exhibit in known.items() if name in asked)


def _spelled(name: str) -> str:
    """``Figure 1a`` and ``figure 1 a`` are one."""
    return "".join(name.casefold().split())


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
                open_data(spec_of(paper, task, task, data, limit=1))
            tasks[task] = task
        except MicrotomeError as error:
            left_out.append(error.message)
    if data is not None and not tasks:
        names = ", ".join(shown)
        raise RequestError(
            f"{data} has rows for none of {names}: {left_out[0]}", "name its folders as the tasks"
        )
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
            yield from self._planned(work, subject, {work.stored: str(folder)})

    def add(self, work: Work, subject: Subject) -> None:
        """Plan an experiment on a subject; where it can't be run, the reason is kept."""
        if work.stored:
            self.stored.append((work, subject))
        else:
            self.trials += self._planned(work, subject, {})

    def _planned(self, work: Work, subject: Subject, more: Mapping[str, Any]) -> Sequence[Trial]:
        experiment = find_experiment(work.experiment)
        try:
            settings = {**self._settings(work, subject), **more}
            return experiment.plan(subject, experiment.settings(settings))
        except MicrotomeError as error:
            why = f"{work.experiment} of {subject.model} on {subject.task}: {error.message}"
            self.refused[work.experiment, subject.model, subject.task] = why
            return ()

    def _settings(self, work: Work, subject: Subject) -> dict[str, Any]:
        """The scale's, and in their place what was asked for, where the experiment has it."""
        known = {option.name for option in find_experiment(work.experiment).options}
        changes = self.replication.changes
        settings = settings_for(work, self.replication.scale, layers_of(subject.model_path))
        settings |= {name: changes[name] for name in changes if name in known}
        return _rows_there_are(settings, subject)


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


def _rows_there_are(settings: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """The settings with all training rows where a scale asks for more than a task has."""

    def there(size: float) -> float:
        return 1.0 if size >= len(subject.training) else size

    if settings.get("fraction", 1.0) > 1:
        settings["fraction"] = there(settings["fraction"])
    if sizes := [size for size in settings.get("fractions", ()) if size > 1]:
        fewer = {size: there(size) for size in sizes}
        all_sizes = [fewer.get(size, size) for size in settings["fractions"]]
        settings["fractions"] = list(dict.fromkeys(all_sizes))
    return settings


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
