"""Figures for papers: the width of a column, text that can be read in print, fonts in the file."""

from __future__ import annotations

import re
import zlib
from functools import cache

import pytest

from microtome.report import SCREEN, paper, write_figures
from microtome.report.drawing import Circle, Label, Outline
from microtome.report.palette import DASHES, PENS
from microtome.report.pdf import pdf_file
from microtome.report.rendering import draw
from microtome.report.svg import svg_file
from microtome.views import Bars, BarSeries, Curve, HeatMap, Panels, Series

PIXELS, POINTS = 96, 72  # in an inch
COLUMN = 3.3
X = tuple(map(float, range(6)))
NAMES = tuple(map(str, range(24)))


@pytest.fixture(autouse=True, scope="module")
def pdf_files():
    """Reports have them here."""


def lines(n, *, apart=0.1, interval=0.05, title="The title"):
    """Curves of so many series, one above the other."""

    def line(i):
        y = tuple(0.2 + apart * i + 0.01 * x for x in X)
        low, high = (tuple(v + side * interval for v in y) for side in (-1, 1))
        return Series(f"series {i}", X, y, low, high)

    return Curve(title, "layers that were removed from it", "accuracy", tuple(map(line, range(n))))


VIEWS = [
    lines(3),
    lines(6),
    Panels("The title", (lines(2, title="a task"),) * 2),
    Panels("The title", (lines(2, title="a task"),) * 9),
    Bars("The title", "start", "score", ("a pre-trained start", "random_start_with_a_name") * 3,
         tuple(BarSeries(f"s{i}", (0.5,) * 6) for i in range(5))),
    HeatMap("The title", "layer", "head", NAMES, NAMES, ((0.1,) * 24,) * 24, "points",
            diverging=True),
    Panels("The title", tuple(
        HeatMap(f"task {i}", "layer", "head", NAMES[:12], NAMES[:12], ((0.1 * i,) * 12,) * 12,
                "share")
        for i in range(4))),
]  # fmt: skip


def places(drawing):
    """Every x at which something is drawn."""
    for mark in drawing.marks:
        if isinstance(mark, Outline):
            yield from (x for x, _ in mark.points)
        else:
            yield mark.x


@cache
def printed(k, inches):
    """The drawing of a view, and its PDF."""
    drawing = draw(VIEWS[k], paper(inches))
    return drawing, pdf_file(drawing)


@pytest.mark.parametrize("inches", [COLUMN, 7.0])
@pytest.mark.parametrize("k", range(len(VIEWS)))
def test_a_figure_is_as_wide_as_asked_and_nothing_is_outside(k, inches):
    drawing, pdf = printed(k, inches)
    assert drawing.width == pytest.approx(inches * PIXELS)
    assert min(places(drawing)) >= 0
    assert max(places(drawing)) <= drawing.width
    assert f'width="{inches:g}in"' in svg_file(drawing, in_inches=True)
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)
    assert float(box[1]) == pytest.approx(inches * POINTS, abs=0.01)


@pytest.mark.parametrize("k", range(len(VIEWS)))
def test_text_is_7_to_9_points_in_print(k):
    drawing, pdf = printed(k, COLUMN)
    labels = [mark for mark in drawing.marks if isinstance(mark, Label)]
    in_svg = {PENS[mark.pen].size * POINTS / PIXELS for mark in labels}
    streams = [
        zlib.decompress(s) for s in re.findall(rb"stream\r?\n(x.*?)\r?\nendstream", pdf, re.S)
    ]
    in_pdf = {float(size) for s in streams for size in re.findall(rb"/F\d+ ([\d.]+) Tf", s)}
    assert in_svg
    assert in_pdf
    assert all(7 <= size <= 9 for size in in_svg | in_pdf)


@pytest.mark.parametrize("k", range(len(VIEWS)))
def test_there_is_no_title_and_fonts_are_in_the_file(k):
    drawing, pdf = printed(k, COLUMN)
    titles = [m for m in drawing.marks if isinstance(m, Label) and m.text == VIEWS[k].title]
    assert not titles
    assert pdf.count(b"/FontFile2") >= 1
    assert pdf.count(b"/Type /FontDescriptor") == pdf.count(b"/FontFile2")


def bands(drawing):
    return [m for m in drawing.marks if isinstance(m, Outline) and m.pen.startswith("band")]


@pytest.mark.parametrize("style", [SCREEN, paper()])
def test_at_most_four_intervals_are_ribbons_and_none_is_lost(style):
    assert len(bands(draw(lines(4), style))) == 4
    many = draw(lines(5), style)
    assert not bands(many)
    whiskers = [m for m in many.marks if isinstance(m, Outline) and m.pen.startswith("error")]
    assert len(whiskers) == 5 * len(X)
    assert all(len({x for x, _ in mark.points}) == 1 for mark in whiskers)
    assert len({mark.points[0][0] for mark in whiskers}) == 5 * len(X), "none hides another"


def pens_of_lines(drawing):
    """The pens of lines through all points, in the order they are drawn."""
    return [m.pen for m in drawing.marks if isinstance(m, Outline) and len(m.points) == len(X)]


def test_lines_on_paper_differ_in_their_dashes():
    pens = pens_of_lines(draw(lines(6, interval=0), paper()))
    patterns = [PENS[pen].dashes for pen in pens]
    assert len(set(patterns)) == 6
    assert len(set(DASHES)) == len(DASHES)


def test_lines_that_coincide_are_told_apart_on_the_screen_too():
    apart, same = (draw(lines(2, apart=d, interval=0), SCREEN) for d in (0.1, 0.0))
    assert [PENS[pen].dashes for pen in pens_of_lines(apart)] == [(), ()]
    below, above = pens_of_lines(same)
    assert PENS[below].dashes == ()
    assert PENS[above].dashes != ()
    radii = {m.pen: m.radius for m in same.marks if isinstance(m, Circle)}
    assert radii, "the first line has round markers"


def test_panels_that_are_compared_have_one_scale():
    low, high = (lines(1, interval=0) for _ in range(2))
    high = Curve(high.title, high.x_label, high.y_label, (Series("series 0", X, (0.9,) * 6),))
    drawing = draw(Panels("p", (low, high)), paper())
    ticks = [m.text for m in drawing.marks if isinstance(m, Label) and m.anchor == "end"]
    half = len(ticks) // 2
    assert ticks[:half] == ticks[half:]


def test_figures_alone_are_written_alone(page, tmp_path):
    paths = write_figures(page, tmp_path / "figures", paper())
    assert sorted(tmp_path.rglob("*.*")) == sorted(paths)
    stems = {path.stem for path in paths}
    assert len(paths) == 3 * len(stems)
    assert {path.suffix for path in paths} == {".svg", ".pdf", ".csv"}
    assert len(stems) == 9, "every figure once, and no table"
    first = {path.name: path.read_bytes() for path in paths}
    write_figures(page, tmp_path / "figures", paper())
    assert first == {path.name: path.read_bytes() for path in paths}
