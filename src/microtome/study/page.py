"""The page of a run, or of several runs: every number on it is in their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from microtome.experiments import experiment_names
from microtome.experiments.kit.overlay import overlaid
from microtome.experiments.next_steps import next_steps
from microtome.models.source import short_names
from microtome.report.page import Page, Picture, Section, first_picture
from microtome.runs import RunResult
from microtome.study.headlines import joint_headline
from microtome.study.parts import StudyPart, models_of, parts_of, tasks_of
from microtome.views import Headline, View


def page_of(
    result: RunResult, parts: Sequence[StudyPart], *, what: str = "", more: Sequence[Section] = ()
) -> Page:
    """The page of a run: every number on it is in the run's rows.

    ``what`` is the page's subject in its title, the experiments unless given; ``more`` sections
    follow those of the parts. A run of one model and one task has what its experiments show first,
    and what to do next; of several, there are joint figures and tables.
    """
    models, tasks = models_of(result.request), tasks_of(result.request)
    names = list(short_names(models).values())  # the whole path is among the facts
    model, task = (each[0] if len(each) == 1 else "" for each in (models, tasks))
    has_one = len(models) == len(tasks) == 1
    alone = [part for part in parts if part.status == "done" and not part.about]
    joint = tuple(_joint(parts))
    return Page(
        title=_title(what or _experiments(parts), names, tasks),
        model=", ".join(names),
        task=", ".join(tasks),
        answers=tuple(part.finding for part in parts),
        sections=(*(part.section(model, task) for part in parts), *more),
        front=(*(view for part in alone for view in part.front), *joint),
        steps=next_steps(result, {part.experiment.name: part.rows for part in alone})
        if has_one
        else (),
        notes=result.notes,
        facts=result.facts,
        headline=_headline(parts),
        picture=_picture(parts, joint),
    )


def _headline(parts: Sequence[StudyPart]) -> Headline | None:
    """What all parts that are done say first, together."""
    done = [part for part in parts if part.status == "done"]
    same_subject = len({part.about for part in done}) < 2
    return joint_headline(
        [(part.about, part.headline) for part in done if part.headline is not None],
        same_subject=same_subject,
    )


def _picture(parts: Sequence[StudyPart], joint: Sequence[View]) -> Picture | None:
    """The figure of all subjects, where there are several; else the first part's that has one."""
    pictures = (part.picture for part in parts if part.status == "done")
    return first_picture(joint) or next((each for each in pictures if each is not None), None)


def joint_page(results: Sequence[RunResult], others: Sequence[Page] = ()) -> Page:
    """One page of several runs of experiments, with joint figures.

    A run is named where model and task don't tell its parts from those of another. ``others`` are
    pages of runs that aren't of experiments: what they show follows.
    """
    names = short_names([str(result.folder.resolve()) for result in results])
    runs = dict(zip(names.values(), results, strict=True))
    parts = _told_apart(
        [
            replace(part, run=run)
            for name in experiment_names()
            for run, result in runs.items()
            if name in result.request["experiments"]
            for part in parts_of(name, result, named=True)
        ]
    )
    models = short_names(_distinct(model for r in results for model in models_of(r.request)))
    tasks = _distinct(task for result in results for task in tasks_of(result.request))
    titles = [_title(_experiments(parts), list(models.values()), tasks)] if parts else []
    notes = [f"{run}: {note}" for run, result in runs.items() for note in result.notes]
    joint = tuple(_joint(parts))
    pictures = [_picture(parts, joint), *(page.picture for page in others)]
    return Page(
        title="; ".join([*titles, *(page.title for page in others)]),
        model=", ".join(_distinct([*models.values(), *(page.model for page in others)])),
        task=", ".join(_distinct([*tasks, *(page.task for page in others)])),
        answers=(*(part.finding for part in parts), *(a for p in others for a in p.answers)),
        sections=(*(p.section("", "") for p in parts), *(s for p in others for s in p.sections)),
        front=(*joint, *(view for page in others for view in page.front)),
        notes=(*notes, *(note for page in others for note in page.notes)),
        facts={run: r.facts for run, r in runs.items()} | {p.title: p.facts for p in others},
        headline=_headline(parts) or next((p.headline for p in others if p.headline), None),
        picture=next((picture for picture in pictures if picture is not None), None),
    )


def _distinct(names: Iterable[str]) -> list[str]:
    """Every name once, without those that are empty."""
    return list(filter(None, dict.fromkeys(names)))


def _told_apart(parts: Sequence[StudyPart]) -> list[StudyPart]:
    """The parts, without their runs' names where those aren't needed."""
    known = [(part.experiment.name, part.model, part.task) for part in parts]
    if len(set(known)) == len(known):
        return [replace(part, run="") for part in parts]
    return list(parts)


def _experiments(parts: Sequence[StudyPart]) -> str:
    names = dict.fromkeys(part.experiment.name for part in parts)
    return ", ".join(names).replace("-", " ").capitalize()


def _title(what: str, models: Sequence[str], tasks: Sequence[str]) -> str:
    on = f" on {', '.join(filter(None, tasks))}" if any(tasks) else ""
    return f"{what} of {', '.join(models)}{on}"


def _joint(parts: Sequence[StudyPart]) -> Iterator[View]:
    """Of an experiment on several models or tasks, what all show, in one picture or table."""
    done = [part for part in parts if part.about and part.status == "done"]
    who = "run" if any(part.run for part in done) else "model"
    for name in dict.fromkeys(part.experiment.name for part in done):
        views = {
            (", ".join(filter(None, (part.run, part.model_name))), part.task): (
                *part.front,
                *part.views,
            )
            for part in done
            if part.experiment.name == name
        }
        if len(views) > 1:
            yield from overlaid(views, who=who)
