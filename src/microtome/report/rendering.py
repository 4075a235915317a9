"""Pages and views as HTML. The template escapes every text; a policy lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from microtome.errors import install_command
from microtome.papers.comparison import Reported
from microtome.report.bars import draw_bars
from microtome.report.curves import draw_curve
from microtome.report.drawing import SCREEN, Drawing, Style
from microtome.report.heatmaps import draw_heat_map
from microtome.report.intervals import change_columns, draw_intervals
from microtome.report.page import Page, Section
from microtome.report.palette import DARK, LIGHT, pen_rules, variables
from microtome.report.panels import draw_panels
from microtome.report.svg import FONTS, inline_svg
from microtome.report.tables import (
    column_headings,
    column_units,
    group_headings,
    n_shown,
    numeric_columns,
    table_rows,
)
from microtome.report.text import paragraphs, plain, sentences
from microtome.views import Bars, Curve, Headline, HeatMap, Panels, Sentences, Table, View

NOTHING = "Nothing was measured."
DETAILS = ("request", "content")  # facts that are folded: what was asked for, what was read
WIDE, NARROW = SCREEN.width, 326.0  # drawn twice: text keeps its size on a telephone


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


def draw(view: View, style: Style = SCREEN) -> Drawing | None:
    """The drawing of a view that is drawn; tables and sentences aren't."""
    if isinstance(view, Curve):
        return draw_curve(view, style)
    if isinstance(view, HeatMap):
        return draw_heat_map(view, style)
    if isinstance(view, Bars):
        return draw_bars(view, style)
    if isinstance(view, Panels):
        return draw_panels(view, style)
    return None


def drawn(view: View) -> str:
    """A figure at both widths, as SVG inside the page; every text in it is escaped."""
    parts = []
    for kind, width in (("wide", WIDE), ("narrow", NARROW)):
        drawing = draw(view, Style(width))
        assert drawing is not None
        fits = " fits" if drawing.width <= width else ""  # else it scrolls in its box
        parts.append(inline_svg(drawing, kind=kind + fits))
    return "".join(parts)


def interval_drawings(table: Table) -> list[str]:
    """The intervals of a table, drawn: the head of their column, then one for every row."""
    return [inline_svg(drawing, kind="interval") for drawing in draw_intervals(table)]


def sentence_rows(view: Sentences) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Each row's label, and its tokens with whether they are right."""

    def is_right(i: int, token: str) -> bool:
        return i < len(view.tokens) and token == view.tokens[i]

    return [
        (plain(label), [(plain(token), is_right(i, token)) for i, token in enumerate(tokens)])
        for label, tokens in view.decoded
    ]


def by_claim(checks: Sequence[Reported]) -> list[tuple[Reported, list[Reported]]]:
    """The checks of every claim, one per model and task, after the first of them."""
    groups: dict[tuple[str, str, str], list[Reported]] = {}
    for line in checks:
        groups.setdefault((line.what, line.paper, line.source), []).append(line)
    return [(lines[0], lines) for lines in groups.values()]


class Fact(NamedTuple):
    """A line of the facts of a run, or of one of several runs."""

    depth: int
    name: str
    value: str
    is_detail: bool  # of what was asked for, or read


def listed(facts: Mapping[str, Any], depth: int = 0, *, are_details: bool = False) -> list[Fact]:
    """Nested facts as lines. What wasn't set has no line."""
    lines: list[Fact] = []
    for name, value in facts.items():
        is_detail = are_details or name in DETAILS
        if isinstance(value, Mapping):
            if inner := listed(value, depth + 1, are_details=is_detail):
                lines += [Fact(depth, plain(name), "", is_detail), *inner]
        elif shown := _fact(value):
            lines.append(Fact(depth, plain(name), shown, is_detail))
    return lines


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    return "" if value in (None, "") else plain(value)


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
    templates.filters["sentences"] = sentences
    templates.globals.update(
        drawn=drawn, table_rows=table_rows, numeric_columns=numeric_columns,
        sentence_rows=sentence_rows, interval_drawings=interval_drawings,
        change_columns=change_columns, group_headings=group_headings,
        column_headings=column_headings, column_units=column_units, n_shown=n_shown,
        by_claim=by_claim,
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


@dataclass(frozen=True)
class ShownSection:
    """A section with the name of its CSV file and its views.

    ``is_led`` where its first figure is on the front page, and not shown again.
    """

    section: Section
    rows_name: str
    views: tuple[Shown, ...]
    is_led: bool = False


def page_html(
    page: Page,
    picture: Shown | None,
    front: Sequence[Shown],
    sections: Sequence[ShownSection],
    *,
    has_pdf: bool,
) -> str:
    """The whole page: its front with the ``picture``, the ``front`` views, the sections.

    Without PDF files (``has_pdf``) the page says how to get them.
    """
    script, sheet = asset("page.js"), style()
    headline = page.headline or Headline(page.answers[0] if page.answers else NOTHING, (), "")
    lead, *rest = sentences(headline.sentence) or [NOTHING]
    of_sections = {shown.section.finding for shown in sections}
    facts = listed(page.facts)
    context: dict[str, Any] = {
        "page": page,
        "lead": lead,
        "rest": rest,
        "headline": headline,
        "picture": picture,
        "front": front,
        "sections": sections,
        "facts": [(fold, list(lines)) for fold, lines in groupby(facts, lambda f: f.is_detail)],
        "n_folded": sum(fact.is_detail for fact in facts),
        # What no section and not the front says already.
        "answers": [
            answer
            for answer in page.answers
            if answer not in of_sections and not answer.startswith(headline.sentence)
        ],
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
