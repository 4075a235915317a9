"""Writing a report: the page, every figure as SVG and PDF, every view and all rows as CSV.

PDF files need matplotlib (extra ``pdf``); without it the page says how to get them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from microtome import files
from microtome.report.csvs import rows_csv, view_csv
from microtome.report.heatmaps import on_one_scale
from microtome.report.page import Page
from microtome.report.pdf import can_write_pdf, pdf_file
from microtome.report.rendering import Shown, draw, notebook_html, page_html
from microtome.report.svg import svg_file
from microtome.views import View

PAGE, FIGURES, TABLES = "report.html", "figures", "tables"


def write(page: Page, folder: str | Path) -> Path:
    """Write the report into a folder and return the page's path.

    ``folder/report.html`` is the page, ``figures`` and ``tables`` hold its parts as files. The same
    page gives the same bytes. Each file is whole or absent; the page comes last. For example
    ``write(Page("Mine", "my-model", "my-task", ("It works.",), sections=()), "out")``.
    """
    folder, has_pdf = Path(folder), can_write_pdf()
    names = _Names()
    front = [Shown(view, names.stem("front", view.title)) for view in page.front]
    sections = []
    tables: dict[str, bytes] = {}
    for section in page.sections:
        rows_name = names.stem(section.name, "rows") if section.rows else ""
        views = on_one_scale(section.views)
        shown = [Shown(view, names.stem(section.name, view.title)) for view in views]
        sections.append((section, rows_name, shown))
        if rows_name:
            tables[f"{rows_name}.csv"] = rows_csv(section.rows)
    all_views = front + [view for _, _, shown in sections for view in shown]
    tables |= {f"{shown.stem}.csv": view_csv(shown.view) for shown in all_views}
    _store(folder / FIGURES, _figures(all_views, has_pdf=has_pdf))
    _store(folder / TABLES, tables)
    html = page_html(page, front, sections, has_pdf=has_pdf)
    _store(folder, {PAGE: html.encode("utf-8", "backslashreplace")})
    return folder / PAGE


def html_of(*views: View, title: str = "", texts: Sequence[str] = ()) -> str:
    """Views as HTML by themselves, for notebooks, below a title and paragraphs if given.

    ``IPython.display.HTML(html_of(view))`` shows one.
    """
    return notebook_html(on_one_scale(views), title=title, texts=texts)


def _figures(views: Iterable[Shown], *, has_pdf: bool) -> dict[str, bytes]:
    figures = {}
    for shown in views:
        drawing = draw(shown.view)
        if drawing is not None:
            figures[f"{shown.stem}.svg"] = svg_file(drawing).encode("utf-8", "backslashreplace")
            if has_pdf:
                figures[f"{shown.stem}.pdf"] = pdf_file(drawing)
    return figures


def _store(folder: Path, contents: dict[str, bytes]) -> None:
    if not contents:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.storage_error(error, folder) from error
    files.write_all(folder, contents)


class _Names:
    """File names from titles: plain letters, and none twice."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def stem(self, part: str, title: str) -> str:
        words = "-".join(filter(None, (_slug(part, 30), _slug(title, 40)))) or "view"
        stem, n = words, 1
        while stem in self.used:
            n += 1
            stem = f"{words}-{n}"
        self.used.add(stem)
        return stem


def _slug(text: str, longest: int) -> str:
    """Whole words of a text, as many as there is room for; a single long one is cut."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    n_fitting = sum(end <= longest + 1 for end in accumulate(len(word) + 1 for word in words))
    return "-".join(words[: max(1, n_fitting)])[:longest]
