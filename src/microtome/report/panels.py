"""The drawing of small multiples: one scale and one legend for all panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from microtome.report.bars import bar_legend, bar_summary, plot_bars
from microtome.report.curves import curve_legend, curve_summary, plot_curve
from microtome.report.drawing import Drawing, Label, Mark, Style, moved
from microtome.report.heatmaps import (
    heat_map_legend,
    heat_map_summary,
    plot_heat_map,
    with_span,
)
from microtome.report.text import plain, shortened
from microtome.views import Bars, Curve, Figure, HeatMap, Panels

MOST_COLUMNS, NARROWEST = 3, 240.0  # of panels next to each other, and their width
NARROWEST_ON_PAPER = 140.0
GAP, TITLE = 16.0, 24.0

Plotted = tuple[list[Mark], float, float]  # the marks of a panel, its width and its height


def draw_panels(view: Panels, style: Style) -> Drawing:
    """All panels in rows: as many next to each other as fit, at most three."""
    width = style.width
    if not view.panels:
        return Drawing(width, TITLE, (Label(4, 14, "no panels"),), _summary(view))
    kinds = {type(panel) for panel in view.panels}
    assert len(kinds) == 1, f"panels are figures of one kind, got {kinds}"
    curves = [panel for panel in view.panels if isinstance(panel, Curve)]
    bars = [panel for panel in view.panels if isinstance(panel, Bars)]
    maps = with_span([panel for panel in view.panels if isinstance(panel, HeatMap)])
    names: list[Mark] = []
    top = 4.0
    if curves:
        names, top = curve_legend(curves, style)
    elif bars:
        names, top = bar_legend(bars, width)

    def plot(room: float) -> list[Plotted]:
        small = replace(style, width=room)
        if curves:
            done = (plot_curve(curve, small, like=curves, top=0) for curve in curves)
            return [(marks, room, height) for marks, height in done]
        if bars:
            return [plot_bars(chart, small, like=bars, top=0) for chart in bars]
        return [plot_heat_map(each, small) for each in maps]

    marks, right, bottom = _arranged(plot, view.panels, style, top + 4)
    if maps:
        shown = replace(maps[0], marked=tuple(cell for each in maps for cell in each.marked))
        marks += heat_map_legend(shown, bottom + 4, max(width, right))
        bottom += 44
    return Drawing(max(width, right), bottom, (*names, *marks), _summary(view))


def _arranged(
    plot: Callable[[float], list[Plotted]], panels: Sequence[Figure], style: Style, top: float
) -> tuple[list[Mark], float, float]:
    """The panels with their titles, how far right they reach, and where they end."""
    width, narrowest = style.width, NARROWEST
    if style.is_paper and len(panels) > MOST_COLUMNS:
        narrowest = NARROWEST_ON_PAPER  # one below the other they would fill the page
    most = min(MOST_COLUMNS, len(panels), max(1, int((width + GAP) // (narrowest + GAP))))
    most = math.ceil(len(panels) / math.ceil(len(panels) / most))  # four: two and two
    for n_columns in range(most, 0, -1):
        room = (width - (n_columns - 1) * GAP) / n_columns
        plotted = plot(room)
        if all(wide <= room + 1 for _, wide, _ in plotted):
            break
    marks: list[Mark] = []
    right = 0.0
    for start in range(0, len(panels), n_columns):
        row = list(zip(panels, plotted, strict=True))[start : start + n_columns]
        for column, (panel, (own, wide, _)) in enumerate(row):
            left = column * (room + GAP)
            title = shortened(plain(panel.title), max(room, wide) - 8, 12)
            marks.append(Label(left + 4, top + 14, title, "strong"))
            marks += [moved(mark, left, top + TITLE) for mark in own]
            right = max(right, left + wide)
        top += TITLE + max(height for _, (_, _, height) in row) + GAP
    return marks, right, top


def _summary(view: Panels) -> str:
    words = []
    for panel in view.panels:
        if isinstance(panel, Curve):
            words.append(curve_summary(panel))
        elif isinstance(panel, Bars):
            words.append(bar_summary(panel))
        else:
            words.append(heat_map_summary(panel))
    return f"{plain(view.title)}. {len(view.panels)} panels. {' '.join(words)}"
