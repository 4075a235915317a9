"""Curves of several tasks in one picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from microtome.views import Curve, View

MOST_LINES = 6  # pens there are


def overlaid(views: Mapping[str, Sequence[View]]) -> Iterator[Curve]:
    """Curves that every task has, as one picture each; controls stay in the tasks' own sections.

    ``views`` are those of each task. Tasks with different metrics have different pictures: one axis
    has one meaning. Where there are more lines than can be told apart, each kind of line has its
    own picture.
    """
    by_task = {
        task: {view.title: view for view in shown if isinstance(view, Curve)}
        for task, shown in views.items()
    }
    first, *others = by_task.values()
    for title, curve in first.items():
        if all(title in curves for curves in others):
            of_title = {task: curves[title] for task, curves in by_task.items()}
            metrics = dict.fromkeys(curve.y_label for curve in of_title.values())
            for metric in metrics:
                alike = {task: own for task, own in of_title.items() if own.y_label == metric}
                yield from _in_one(alike, curve, f" ({metric})" if len(metrics) > 1 else "")


def _in_one(curves: Mapping[str, Curve], model: Curve, which: str) -> Iterator[Curve]:
    """The curves of one title and one metric, drawn like ``model``."""
    metric = next(iter(curves.values())).y_label
    lines = [
        (task, line)
        for task, curve in curves.items()
        for line in curve.series
        if not line.is_control
    ]
    kinds = list(dict.fromkeys(line.name for _, line in lines))
    pictures = [kinds] if len(lines) <= MOST_LINES else [[kind] for kind in kinds]
    title = f"Task by task: {model.title[:1].lower()}{model.title[1:]}{which}"
    for shown in pictures:
        series = tuple(
            replace(line, name=f"{task}: {line.name}") for task, line in lines if line.name in shown
        )
        name = title if len(pictures) == 1 else f"{title}, {shown[0]}"
        if series:
            yield replace(model, title=name, y_label=metric, series=series)
