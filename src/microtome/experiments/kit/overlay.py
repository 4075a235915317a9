"""Views of several models and tasks as one: lines over each other, panels, one table.

A legend names what differs: tasks, models, or both. One axis has one meaning, so curves of
different metrics have different pictures; no picture has more lines than there are colours.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from microtome.views import Bars, Cell, Curve, HeatMap, Panels, Table, View

MOST_LINES = 6  # colours there are
MOST_ROWS = 24  # of a joint table; longer ones are read in the sections
Subject = tuple[str, str]  # a model (or a run), and a task
Alike = TypeVar("Alike", Curve, HeatMap, Bars, Table)


@dataclass(frozen=True)
class Legend:
    """What tells subjects apart: a name for each, and whether it takes both model and task."""

    names: Mapping[Subject, str]
    title: str
    by_both: bool = False

    @classmethod
    def of(cls, subjects: Sequence[Subject], who: str) -> Legend:
        """Tasks where each has one subject, else models, else both."""
        if len({task for _, task in subjects}) == len(subjects):
            return cls({each: each[1] for each in subjects}, "Task by task")
        if len({name for name, _ in subjects}) == len(subjects):
            return cls({each: each[0] for each in subjects}, f"{who.capitalize()} by {who}")
        both = {each: " on ".join(each) for each in subjects}
        return cls(both, f"{who.capitalize()} by {who}, task by task", by_both=True)

    def titled(self, view: View, more: str = "") -> str:
        """The title of a joint view."""
        return f"{self.title}: {view.title[:1].lower()}{view.title[1:]}{more}"


def overlaid(views: Mapping[Subject, Sequence[View]], *, who: str = "model") -> Iterator[View]:
    """What at least two subjects have under one title, as one view.

    ``views`` are those of each subject; ``who`` says what the first of a subject's names is, a
    model or a run. Curves have the lines of all, without controls, which stay in the sections; a
    panel for each task where models differ too. Heat maps and bars become panels, tables one table.
    """
    legend = Legend.of(list(views), who)
    for title in dict.fromkeys(view.title for shown in views.values() for view in shown):
        yield from _joint_curves(_called(title, views, Curve), legend)
        for maps in _same_meaning(_called(title, views, HeatMap)):
            yield Panels(*_panels(maps, legend))
        for bars in _same_meaning(_called(title, views, Bars)):
            yield Panels(*_panels(bars, legend))
        for tables in _same_meaning(_called(title, views, Table)):
            yield from _joint_table(tables, legend, who)


def _called(
    title: str, views: Mapping[Subject, Sequence[View]], kind: type[Alike]
) -> dict[Subject, Alike]:
    """The views of one kind and title, where at least two subjects have one."""
    found = {
        subject: view
        for subject, shown in views.items()
        for view in shown
        if isinstance(view, kind) and view.title == title
    }
    return found if len(found) > 1 else {}


def _meaning(view: Curve | HeatMap | Bars | Table) -> Hashable:
    """What must agree for two views to share axes, colours or columns."""
    if isinstance(view, Curve):
        return view.y_label, view.x_label, view.percent
    if isinstance(view, HeatMap):
        return view.value_label, view.percent, view.diverging, view.mark_label
    if isinstance(view, Bars):
        return view.x_label, view.y_label, view.percent, view.stacked
    return view.columns, view.percent, view.groups


def _same_meaning(views: Mapping[Subject, Alike], least: int = 2) -> list[dict[Subject, Alike]]:
    """The views by what they mean; a meaning that fewer than ``least`` have is left out."""
    groups: dict[Hashable, dict[Subject, Alike]] = {}
    for subject, view in views.items():
        groups.setdefault(_meaning(view), {})[subject] = view
    return [group for group in groups.values() if len(group) >= least]


def _panels(views: Mapping[Subject, Alike], legend: Legend) -> tuple[str, tuple[Alike, ...]]:
    """A title, and the views of all subjects as panels, each named by its subject."""
    named = tuple(replace(view, title=legend.names[each]) for each, view in views.items())
    return legend.titled(next(iter(views.values()))), named


def _joint_curves(views: Mapping[Subject, Curve], legend: Legend) -> Iterator[View]:
    """The lines of all subjects: in one picture, in one for each kind of line, or in panels."""
    groups = _same_meaning(views, least=1)
    for curves in groups:
        first = next(iter(curves.values()))
        title = legend.titled(first, f" ({first.y_label})" if len(groups) > 1 else "")
        kinds = list(dict.fromkeys(line for curve in curves.values() for line in _results(curve)))
        columns: dict[str, dict[str, Curve]] = {}
        for (name, task), curve in curves.items():
            label = name if legend.by_both else legend.names[name, task]
            columns.setdefault(task if legend.by_both else "", {})[label] = curve
        n_names = len({name for column in columns.values() for name in column})
        if n_names > MOST_LINES:
            yield Panels(title, _panels(curves, legend)[1])
            continue
        pictures = [kinds] if n_names * len(kinds) <= MOST_LINES else [[kind] for kind in kinds]
        for shown in pictures:
            name = title if len(pictures) == 1 else f"{title}, {shown[0]}"
            drawn = [_in_one(column, shown, task) for task, column in columns.items()]
            drawn = [curve for curve in drawn if curve.series]
            if len(drawn) > 1:
                yield Panels(name, tuple(drawn))
            elif drawn:
                yield replace(drawn[0], title=name)


def _results(curve: Curve) -> list[str]:
    """The names of its lines that aren't controls."""
    return [line.name for line in curve.series if not line.is_control]


def _in_one(curves: Mapping[str, Curve], shown: Sequence[str], title: str) -> Curve:
    """Some lines of several curves; a divider stays where it is that of all."""
    first, *others = curves.values()
    series = [
        replace(line, name=f"{name}: {line.name}")
        for name, curve in curves.items()
        for line in curve.series
        if line.name in shown and not line.is_control
    ]
    levels = [
        replace(level, name=f"{name}: {level.name}")
        for name, curve in curves.items()
        for level in curve.levels
        if level.name in shown or level.name not in _results(curve)
    ]
    divider = first.divider if all(each.divider == first.divider for each in others) else None
    return replace(
        first, title=title, series=tuple(series), levels=tuple(levels), divider=divider
    )  # fmt: skip


def _joint_table(tables: Mapping[Subject, Table], legend: Legend, who: str) -> Iterator[Table]:
    """One table with a block for each subject, which the first columns name."""
    if sum(len(table.rows) for table in tables.values()) > MOST_ROWS:
        return
    first = next(iter(tables.values()))
    # What differs among all subjects: a table that only one of the models has says whose it is.
    named = {
        i: name
        for i, name in enumerate((who, "task"))
        if len({each[i] for each in legend.names}) > 1 and name not in first.columns
    }
    rows: list[tuple[Cell, ...]] = []
    better: list[tuple[int, int]] = []
    worse: list[tuple[int, int]] = []
    for each, table in tables.items():
        for marks, marked in ((better, table.better), (worse, table.worse)):
            marks += [(len(rows) + i, len(named) + j) for i, j in marked]
        rows += [(*(each[i] for i in named), *row) for row in table.rows]
    yield replace(
        first,
        title=legend.titled(first),
        columns=(*named.values(), *first.columns),
        rows=tuple(rows),
        groups=(("", len(named)), *first.groups) if first.groups and named else first.groups,
        better=tuple(better),
        worse=tuple(worse),
    )
