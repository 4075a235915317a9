"""Bars, panels, baselines, dividers and marked tables: what is drawn is what the data says."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.report import html_of
from microtome.report.bars import HATCHES, draw_bars
from microtome.report.csvs import view_csv
from microtome.report.curves import draw_curve
from microtome.report.drawing import SCREEN, Circle, Label, Outline, Style
from microtome.report.heatmaps import draw_heat_map
from microtome.report.panels import draw_panels
from microtome.report.text import width_of
from microtome.views import Bars, BarSeries, Curve, HeatMap, Level, Panels, Series, Table

WIDE = 800.0


def height_of(drawing, percent):
    """Where a value of the (only) y axis is, from two of its ticks."""
    ticks = [
        (float(m.text.replace("−", "-")), m.y - 4)
        for m in drawing.marks
        if isinstance(m, Label) and m.anchor == "end" and re.fullmatch(r"−?[\d.]+", m.text)
    ]
    (v0, y0), (v1, y1) = ticks[0], ticks[1]
    return y0 + (percent - v0) / (v1 - v0) * (y1 - y0)


def bars_of(drawing):
    """The bars that say their value, as (hint, left, right, top, bottom)."""
    found = []
    for mark in drawing.marks:
        if isinstance(mark, Outline) and mark.pen.startswith("bar") and mark.hint:
            xs, ys = zip(*mark.points, strict=True)
            found.append((mark.hint, min(xs), max(xs), min(ys), max(ys)))
    return found


def grouped(*series, **more):
    groups = tuple(f"g{i}" for i in range(len(series[0].values)))
    return Bars("b", "group", "score", groups, series, **more)


def test_a_bar_reaches_from_0_to_its_value():
    view = grouped(BarSeries("a", (0.5, -0.25, None)), BarSeries("b", (0.1, 0.2, 0.3)))
    drawing = draw_bars(view, SCREEN)
    found = {hint: (top, bottom) for hint, _, _, top, bottom in bars_of(drawing)}
    assert found.keys() == {
        "g0, a: 50.0 %", "g1, a: −25.0 %", "g0, b: 10.0 %", "g1, b: 20.0 %", "g2, b: 30.0 %",
    }  # fmt: skip
    for hint, (top, bottom) in found.items():
        value = float(hint.split(": ")[1].removesuffix(" %").replace("−", "-"))
        ends = sorted((height_of(drawing, 0), height_of(drawing, value)))
        assert (top, bottom) == pytest.approx(ends, abs=1)


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.lists(
            st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=1, max_size=8
        )
    ),
    st.sampled_from([326.0, 800.0]),
)
def test_bars_of_a_group_do_not_overlap_and_groups_keep_their_order(values, width):
    view = grouped(*(BarSeries(f"s{i}", tuple(row)) for i, row in enumerate(values)))
    drawing = draw_bars(view, Style(width))
    found = sorted(bars_of(drawing), key=lambda bar: bar[1])
    assert [hint.split(":")[0] for hint, *_ in found] == [
        f"{group}, {series.name}" for group in view.groups for series in view.series
    ]
    assert all(a[2] <= b[1] + 1e-6 for a, b in pairwise(found))
    assert found[-1][2] <= drawing.width


def test_stacked_bars_begin_where_the_one_below_ends():
    view = grouped(
        BarSeries("a", (0.2,)), BarSeries("b", (0.5,)), BarSeries("c", (0.3,)), stacked=True
    )
    drawing = draw_bars(view, SCREEN)
    found = bars_of(drawing)
    total = 0.0
    for (_, left, right, top, bottom), share in zip(found, (20, 50, 30), strict=True):
        assert (left, right) == found[0][1:3]
        assert bottom == pytest.approx(height_of(drawing, total), abs=1)
        assert top == pytest.approx(height_of(drawing, total + share), abs=1)
        total += share
    assert "100" in {m.text for m in drawing.marks if isinstance(m, Label)}
    assert "120" not in {m.text for m in drawing.marks if isinstance(m, Label)}


def test_intervals_of_bars_are_lines_from_end_to_end():
    view = grouped(BarSeries("a", (0.5, 0.6), (0.4, None), (0.7, None)))
    drawing = draw_bars(view, SCREEN)
    (whisker,) = [m for m in drawing.marks if isinstance(m, Outline) and m.pen == "whisker"]
    ends = sorted(y for _, y in whisker.points)
    assert ends == pytest.approx(sorted((height_of(drawing, 40), height_of(drawing, 70))))


@given(st.floats(1, 60), st.floats(0, 300), st.integers(0, 5))
def test_textures_stay_in_their_bar(share, start, series):
    names = [BarSeries(f"s{i}", (share / 60 if i == series else None,)) for i in range(6)]
    drawing = draw_bars(grouped(*names), Style(326 + start))
    ((_, left, right, top, bottom),) = bars_of(drawing)
    legend_end = max(m.y for m in drawing.marks if isinstance(m, Label) and m.text == "s5") + 8
    for mark in drawing.marks:
        if mark.pen == "hatch" and mark.points[0][1] > legend_end:
            for x, y in mark.points:
                assert left - 1e-6 <= x <= right + 1e-6
                assert top - 1e-6 <= y <= bottom + 1e-6


def test_every_series_has_a_texture_of_its_own():
    assert len(set(HATCHES)) == len(HATCHES) == 6


def line(name, *ys, **more):
    return Series(name, tuple(float(i) for i in range(len(ys))), ys, **more)


def test_a_baseline_is_at_its_value_in_the_colour_of_its_line():
    levels = (Level("b", 0.6), Level("chance", 0.55))
    view = Curve("c", "x", "y", (line("a", 0.5, 0.7), line("b", 0.6, 0.65)), levels=levels)
    drawing = draw_curve(view, SCREEN)
    found = {m.hint: m for m in drawing.marks if isinstance(m, Outline) and "level" in m.pen}
    assert found["b: 60.0 %"].pen == "level1"
    assert found["chance: 55.0 %"].pen == "level"
    for hint, value in (("b: 60.0 %", 60), ("chance: 55.0 %", 55)):
        (x0, y0), (x1, y1) = found[hint].points
        assert y0 == y1 == pytest.approx(height_of(drawing, value))
        assert x1 - x0 > WIDE / 2
    texts = [m.text for m in drawing.marks if isinstance(m, Label)]
    assert "chance" in texts
    assert texts.count("b") == 1, "the dotted line has the colour, not a second name"


def test_an_axis_reaches_its_baseline_and_its_divider():
    view = Curve("c", "x", "y", (line("a", 0.50, 0.52),), levels=(Level("base", 0.70),))
    drawing = draw_curve(replace(view, divider=3.0), SCREEN)
    assert "70" in {m.text for m in drawing.marks if isinstance(m, Label)}
    dots = sorted(m.x for m in drawing.marks if isinstance(m, Circle))[1:]  # after the legend's
    (divider,) = [m for m in drawing.marks if isinstance(m, Outline) and m.pen == "divider"]
    at = [x for x, _ in divider.points]
    assert at == pytest.approx([dots[0] + 3 * (dots[1] - dots[0])] * 2)


def positions(drawing, pen):
    return [m for m in drawing.marks if isinstance(m, Circle) and m.pen == pen and m.hint]


def test_points_by_themselves_keep_off_the_ends_of_the_axis():
    """A line begins at the axis; a point there would look like a part of it."""

    def markers(*places):
        lines = tuple(Series(f"s{k}", xs, (0.5,) * len(xs)) for k, xs in enumerate(places))
        marks = draw_curve(Curve("t", "ms", "score", lines), SCREEN).marks
        axis = next(m for m in marks if isinstance(m, Outline) and m.pen == "grid")
        (left, _), (right, _) = axis.points
        circles = [mark.x for mark in marks if isinstance(mark, Circle) and mark.hint]
        return [(x - left, right - x) for x in circles]

    assert min(min(ends) for ends in markers((10.0,), (90.0,))) > 20
    assert markers((10.0, 90.0))[0][0] < 20


def test_panels_of_curves_have_one_axis_and_one_legend():
    low, high = (
        Curve("low", "x", "y", (line("a", 0.1, 0.2),)),
        Curve("high", "x", "y", (line("a", 0.2, 0.9),)),
    )
    drawing = draw_panels(Panels("p", (low, high)), SCREEN)
    texts = [m.text for m in drawing.marks if isinstance(m, Label)]
    assert texts.count("a") == 1
    assert (texts.count("low"), texts.count("high")) == (1, 1)
    assert texts.count("100") == 2, "both reach to 100, which only one of them needs"
    heights = {m.hint: m.y for m in positions(drawing, "dot0")}
    assert heights["a, x 1: 20.0 %"] == heights["a, x 0: 20.0 %"]


def test_a_line_has_the_same_pen_in_every_panel():
    first = Curve("one", "x", "y", (line("a", 0.1), line("b", 0.2)))
    second = Curve("two", "x", "y", (line("b", 0.3), line("a", 0.4)))
    drawing = draw_panels(Panels("p", (first, second)), SCREEN)
    pens = {m.hint: m.pen for m in drawing.marks if getattr(m, "hint", "")}
    assert pens["a, x 0: 10.0 %"] == pens["a, x 0: 40.0 %"] != pens["b, x 0: 20.0 %"]
    assert pens["b, x 0: 20.0 %"] == pens["b, x 0: 30.0 %"]


def heat_map(title, *values, **more):
    names = tuple(map(str, range(len(values))))
    return HeatMap(title, "layer", "head", names, ("0",), tuple((v,) for v in values), "v", **more)


@pytest.mark.parametrize("diverging", [False, True])
def test_panels_of_heat_maps_have_one_scale_of_colours(diverging):
    maps = tuple(
        heat_map(name, *values, diverging=diverging)
        for name, values in (("one", (0.1, 0.2)), ("two", (0.2, 0.9)))
    )
    drawing = draw_panels(Panels("p", maps), SCREEN)
    value = "v +20.0 %" if diverging else "v 20.0 %"
    pens = {m.hint: m.pen for m in drawing.marks if isinstance(m, Outline) and m.hint}
    assert pens[f"layer 1, head 0: {value}"] == pens[f"layer 0, head 0: {value}"]
    alone = {m.hint: m.pen for m in draw_heat_map(maps[0], SCREEN).marks if hasattr(m, "hint")}
    assert alone[f"layer 1, head 0: {value}"] != pens[f"layer 1, head 0: {value}"]
    texts = [m.text for m in drawing.marks if isinstance(m, Label)]
    assert texts.count("v (%)") == 1


def test_a_mark_in_any_panel_is_in_the_legend():
    maps = heat_map("one", 0.1), heat_map("two", 0.2, marked=((0, 0),))
    texts = [m.text for m in draw_panels(Panels("p", maps), SCREEN).marks if isinstance(m, Label)]
    assert texts.count("significant") == 1


@pytest.mark.parametrize(("n", "width", "in_first_row"), [(4, 800, 2), (3, 800, 3), (4, 326, 1)])
def test_panels_are_next_to_each_other_where_they_fit(n, width, in_first_row):
    panels = tuple(Curve(f"panel {i}", "x", "y", (line("a", 0.1),)) for i in range(n))
    drawing = draw_panels(Panels("p", panels), Style(width))
    titles = [m for m in drawing.marks if isinstance(m, Label) and m.pen == "strong"]
    assert [m.text for m in titles] == [panel.title for panel in panels]
    assert [m.y for m in titles].count(titles[0].y) == in_first_row
    assert drawing.width == width


def test_a_panel_that_needs_more_room_scrolls_and_is_not_cut():
    wide = Bars(
        "w", "x", "y", tuple(f"a rather long name {i}" for i in range(9)),
        (BarSeries("s", (0.5,) * 9),),
    )  # fmt: skip
    drawing = draw_panels(Panels("p", (wide, wide)), Style(326))
    assert drawing.width > 326
    rightmost = max(x for m in drawing.marks if isinstance(m, Outline) for x, _ in m.points)
    assert rightmost <= drawing.width


TABLE = Table(
    "t", ("model", "EM", "F1", "acc"), (("a", 0.8, 0.9, 0.7), ("b", 0.7, 0.95, 0.7)),
    percent=("EM", "F1", "acc"), groups=(("", 1), ("SQuAD", 2)),
    better=((1, 2),), worse=((1, 1),),
)  # fmt: skip


def test_a_group_spans_its_columns_and_the_drawn_interval():
    def spans(table):
        row = re.search(r'<tr class="groups">(.*?)</tr>', html_of(table))[1]
        return [int(n) for n in re.findall(r'colspan="(\d+)"', row)]

    assert spans(TABLE) == [1, 2, 1]
    change = Table(
        "t", ("name", "change", "low", "high"), (("a", 0.1, 0.0, 0.2),), groups=(("", 1), ("c", 3))
    )
    assert spans(change) == [1, 4]
    assert 'class="groups"' not in html_of(replace(TABLE, groups=()))


def test_a_column_does_not_repeat_the_name_of_its_group():
    table = replace(TABLE, columns=("model", "SQuAD EM", "SQuAD F1", "SQuAD-like"))
    headings = re.findall(r'<th scope="col"[^>]*>([^<]*)', html_of(table))
    assert [text.strip() for text in headings] == ["model", "EM", "F1", "SQuAD-like"]
    assert list(rows_of(replace(table, better=(), worse=()))[0]) == list(table.columns)


def test_better_and_worse_are_signs_as_well_as_colours():
    html = html_of(TABLE)
    cells = re.findall(r"<td[^>]*data-v=\"([\d.]+)\">(.*?)</td>", html)
    signs = [(value, "▲" in text, "▼" in text) for value, text in cells]
    assert signs == [
        ("0.8", False, False), ("0.9", False, False), ("0.7", False, False),
        ("0.7", False, True), ("0.95", True, False), ("0.7", False, False),
    ]  # fmt: skip
    assert 'aria-label="better"' in html
    assert "worse than the baseline" in html
    assert "worse than the baseline" not in html_of(replace(TABLE, better=(), worse=()))


def rows_of(view):
    return list(csv.DictReader(io.StringIO(view_csv(view).decode())))


def test_the_csv_of_a_table_has_its_groups_and_marks():
    assert rows_of(TABLE)[1] == {
        "model": "b", "SQuAD EM": "0.7", "SQuAD EM against the baseline": "worse",
        "SQuAD F1": "0.95", "SQuAD F1 against the baseline": "better", "acc": "0.7",
    }  # fmt: skip


def test_the_csv_of_figures_has_every_value():
    bars = grouped(BarSeries("a", (0.5, None), (0.4, None), (0.6, None)))
    assert rows_of(bars) == [
        {"group": "g0", "series": "a", "score": "0.5", "low": "0.4", "high": "0.6"},
        {"group": "g1", "series": "a", "score": "", "low": "", "high": ""},
    ]
    curve = Curve("one", "x", "y", (line("a", 0.1),), levels=(Level("base", 0.3),))
    panels = Panels("p", (curve, replace(curve, title="two")))
    assert [(row["panel"], row["series"], row["x"], row["y"]) for row in rows_of(panels)] == [
        (name, *value)
        for name in ("one", "two")
        for value in (("a", "0.0", "0.1"), ("base", "", "0.3"))
    ]


@pytest.mark.parametrize("unit", [1e-7, 1e-5, 1e-3, 0.1, 1.0, 100.0])
def test_numbers_of_an_axis_fit_their_room(unit):
    view = Curve("c", "x", "y", (line("a", 19 * unit, 24 * unit),), percent=False)
    drawing = draw_curve(view, SCREEN)
    ticks = [m for m in drawing.marks if isinstance(m, Label) and m.anchor == "end"]
    assert len({m.text for m in ticks}) == len(ticks) > 3
    assert all(width_of(m.text, 11) <= m.x for m in ticks)  # digits are narrower than letters
    values = [float(m.text.replace("−", "-")) for m in ticks]
    assert values[0] <= 19.001 * unit
    assert values[-1] >= 23.999 * unit


def test_a_metric_on_the_axis_is_words():
    curve = Curve("t", "x", "cosine_spearman", (Series("a", (0.0, 1.0), (0.1, 0.2)),))
    marks = draw_curve(curve, SCREEN).marks
    assert "cosine spearman (%)" in [mark.text for mark in marks if isinstance(mark, Label)]


def test_cells_of_one_map_have_as_many_digits():
    cosines = HeatMap("t", "layer", "head", ("0", "1"), ("0",), ((1.0,), (0.93,)), "cosine",
                      percent=False)  # fmt: skip
    texts = [mark.text for mark in draw_heat_map(cosines, SCREEN).marks if isinstance(mark, Label)]
    assert {"1.000", "0.930"} <= {*texts}


def test_bars_fit_a_telephone_with_their_names_in_lines():
    names = tuple(f"micro-{word}" for word in ("paraphrase", "similarity", "sentiment", "answer"))
    view = Bars("t", "task", "share", names, (BarSeries("a", (0.1, 0.2, 0.3, 0.4)),))
    drawing = draw_bars(view, Style(326.0))
    assert drawing.width == 326
    assert {"micro-", "answer"} <= {m.text for m in drawing.marks if isinstance(m, Label)}
