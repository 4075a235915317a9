"""Pages and views as HTML. The template escapes every text; a policy lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from microtome.errors import install_command
from microtome.report.bars import draw_bars
from microtome.report.csvs import labels_above
from microtome.report.curves import draw_curve
from microtome.report.drawing import Drawing
from microtome.report.heatmaps import draw_heat_map
from microtome.report.intervals import ESTIMATES, change_columns, draw_intervals
from microtome.report.page import Page, Section
from microtome.report.palette import DARK, LIGHT, pen_rules, variables
from microtome.report.panels import draw_panels
from microtome.report.svg import FONTS, inline_svg
from microtome.report.text import column_texts, heading, is_number, paragraphs, plain
from microtome.views import Bars, Cell, Curve, HeatMap, Panels, Sentences, Table, View

WIDE, NARROW = 800.0, 326.0  # drawn twice: text keeps its size on a telephone


@dataclass(frozen=True)
class Shown:
    """A view and the name of its files; without a name it has none."""

    view: View
    stem: str = ""

    @property
    def kind(self) -> str:
        """The macro that shows it."""
        kinds = {Table: "table", Sentences: "sentences"}
        return kinds.get(type(self.view), "figure")


def draw(view: View, *, width: float = WIDE) -> Drawing | None:
    """The drawing of a view that is drawn; tables and sentences aren't."""
    if isinstance(view, Curve):
        return draw_curve(view, width=width)
    if isinstance(view, HeatMap):
        return draw_heat_map(view, width=width)
    if isinstance(view, Bars):
        return draw_bars(view, width=width)
    if isinstance(view, Panels):
        return draw_panels(view, width=width)
    return None


def drawn(view: View) -> str:
    """A figure at both widths, as SVG inside the page; every text in it is escaped."""
    parts = []
    for kind, width in (("wide", WIDE), ("narrow", NARROW)):
        drawing = draw(view, width=width)
        assert drawing is not None
        fits = " fits" if drawing.width <= width else ""  # else it scrolls in its box
        parts.append(inline_svg(drawing, kind=kind + fits))
    return "".join(parts)


def interval_drawings(table: Table) -> list[str]:
    """The intervals of a table, drawn: the head of their column, then one for every row."""
    return [inline_svg(drawing, kind="interval") for drawing in draw_intervals(table)]


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: what is shown, what it is sorted by, and how it compares to a baseline.

    ``mark`` is "better", "worse" or "", and None where no cell of the column is marked.
    """

    text: str
    value: str
    is_number: bool
    mark: str | None


def table_rows(table: Table) -> list[list[TableCell]]:
    """The cells of a table, row by row; digits are chosen by column."""
    columns = []
    with_signs = signed_columns(table)
    marks = dict.fromkeys(table.better, "better") | dict.fromkeys(table.worse, "worse")
    for j, name in enumerate(table.columns):
        cells: list[Cell] = [row[j] for row in table.rows]
        texts = column_texts(cells, percent=name in table.percent, plus=name in with_signs)
        columns.append(
            [
                TableCell(
                    text,
                    repr(v) if is_number(v) else "",
                    is_number(v),
                    marks.get((i, j), "") if any(cell[1] == j for cell in marks) else None,
                )
                for i, (v, text) in enumerate(zip(cells, texts, strict=True))
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def signed_columns(table: Table) -> set[str]:
    """Columns that show a plus: changes, with the ends of their intervals."""
    return {name for name in ESTIMATES if name in table.columns} | set(change_columns(table))


def group_headings(table: Table) -> list[tuple[str, int]]:
    """The upper header row: labels and how many columns each spans, drawn intervals included."""
    if not table.groups:
        return []
    rest = len(table.columns) - sum(span for _, span in table.groups)
    groups = [*table.groups, ("", rest)] if rest > 0 else list(table.groups)
    drawn_after = change_columns(table)[-1:] if draw_intervals(table) else ()
    headings, first = [], 0
    for label, span in groups:
        names = table.columns[first : first + span]
        headings.append((label, span + any(name in names for name in drawn_after)))
        first += span
    return headings


def column_headings(table: Table) -> list[str]:
    """The names of the columns; what the group above one says already isn't said again."""
    return [
        heading(column.removeprefix(f"{label} ") if label else column)
        for label, column in zip(labels_above(table), table.columns, strict=True)
    ]


def numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers alone: they are set to the right."""
    return [
        any(is_number(row[j]) for row in table.rows)
        and all(row[j] is None or is_number(row[j]) for row in table.rows)
        for j in range(len(table.columns))
    ]


def sentence_rows(view: Sentences) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Each row's label, and its tokens with whether they are right."""

    def is_right(i: int, token: str) -> bool:
        return i < len(view.tokens) and token == view.tokens[i]

    return [
        (plain(label), [(plain(token), is_right(i, token)) for i, token in enumerate(tokens)])
        for label, tokens in view.decoded
    ]


def listed(facts: object, depth: int = 0) -> list[tuple[int, str, str]]:
    """Nested facts as lines: depth, name, value."""
    if not isinstance(facts, Mapping):
        return [(depth, "", plain(facts))]
    lines: list[tuple[int, str, str]] = []
    for name, value in facts.items():
        if isinstance(value, Mapping) and value:
            lines += [(depth, plain(name), ""), *listed(value, depth + 1)]
        else:
            lines.append((depth, plain(name), _fact(value)))
    return lines


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    return "–" if value in (None, "", {}) else plain(value)


@cache
def environment() -> Environment:
    """The templates; every expression is escaped."""
    templates = Environment(
        loader=PackageLoader("microtome.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["plain"] = plain
    templates.filters["paragraphs"] = paragraphs
    templates.globals.update(
        drawn=drawn, table_rows=table_rows, numeric_columns=numeric_columns,
        sentence_rows=sentence_rows, listed=listed, interval_drawings=interval_drawings,
        change_columns=change_columns, group_headings=group_headings,
        column_headings=column_headings,
    )  # fmt: skip
    return templates


def asset(name: str) -> str:
    """A file that goes into the page."""
    return files("microtome.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def style() -> str:
    """The page's style sheet: colours for light and dark, pens, and the rest."""
    dark = f"@media screen and (prefers-color-scheme:dark){{.mt{{{variables(DARK)}}}}}"
    fonts = f".mt{{--fonts:{FONTS};{variables(LIGHT)}}}"
    return f"{fonts}{dark}{pen_rules('.mt')}\n{asset('views.css')}{asset('page.css')}"


@cache
def notebook_style() -> str:
    """The style of a view outside the page: light, since the notebook's colours aren't known."""
    colours = "background:var(--paper);color:var(--ink)"
    fonts = f".mt{{--fonts:{FONTS};{variables(LIGHT)};{colours};font:15px/1.5 var(--fonts)}}"
    return f"{fonts}{pen_rules('.mt')}{asset('views.css')}"


def digest(text: str) -> str:
    """The hash by which a content security policy knows an inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def policy(script: str, sheet: str) -> str:
    """Nothing may be loaded; only this script and this style may run."""
    return (
        "default-src 'none'; img-src data:; "
        f"script-src '{digest(script)}'; style-src '{digest(sheet)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def page_html(
    page: Page,
    front: list[Shown],
    sections: list[tuple[Section, str, list[Shown]]],
    *,
    has_pdf: bool,
) -> str:
    """The whole page; each section comes with the name of its CSV file and its views.

    Without PDF files (``has_pdf``) the page says how to get them.
    """
    script, sheet = asset("page.js"), style()
    asked = {section.finding: (i, section) for i, (section, _, _) in enumerate(sections, 1)}
    context: dict[str, Any] = {
        "page": page,
        "front": front,
        "sections": sections,
        "answers": [(answer, asked.get(answer)) for answer in page.answers],
        "policy": policy(script, sheet),
        "script": script,
        "style": sheet,
        "has_pdf": has_pdf,
        "pdf_command": install_command("pdf"),
    }
    return environment().get_template("page.html").render(context)


def notebook_html(views: Sequence[View], *, title: str = "", texts: Sequence[str] = ()) -> str:
    """Views with some words above them, for a notebook."""
    context: dict[str, Any] = {
        "title": title,
        "texts": texts,
        "views": [Shown(view) for view in views],
        "style": notebook_style(),
    }
    return environment().get_template("view.html").render(context)
