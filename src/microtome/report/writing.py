"""Writing a report: the page, every figure as SVG and PDF, every view and all rows as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from microtome.report.page import Page
from microtome.views import View

PAGE, FIGURES, TABLES = "report.html", "figures", "tables"


def write(page: Page, folder: str | Path) -> Path:
    """Write the report into a folder and return the page's path.

    The same page gives the same bytes. Each file is whole or absent; the page comes last.
    """
    from microtome.report.csvs import rows_csv, view_csv
    from microtome.report.rendering import Shown, page_html

    folder = Path(folder)
    names = _Names()
    front = [Shown(view, names.stem("front", view.title)) for view in page.front]
    sections = []
    tables: dict[str, bytes] = {}
    for section in page.sections:
        rows_name = names.stem(section.name, "rows") if section.rows else ""
        shown = [Shown(view, names.stem(section.name, view.title)) for view in section.views]
        sections.append((section, rows_name, shown))
        if rows_name:
            tables[f"{rows_name}.csv"] = rows_csv(section.rows)
    every = front + [one for _, _, shown in sections for one in shown]
    tables |= {f"{one.stem}.csv": view_csv(one.view) for one in every}
    _store(folder / FIGURES, _figures((one.stem, one.view) for one in every))
    _store(folder / TABLES, tables)
    html = page_html(page, front, sections)
    _store(folder, {PAGE: html.encode("utf-8", "backslashreplace")})
    return folder / PAGE


def html_of(*views: View, title: str = "", texts: Sequence[str] = ()) -> str:
    """Views as HTML on their own, for notebooks; a title and paragraphs may stand above them."""
    from microtome.report.rendering import notebook_html

    return notebook_html(views, title=title, texts=texts)


def _figures(views: Iterable[tuple[str, View]]) -> dict[str, bytes]:
    from microtome.report.pdf import pdf_file
    from microtome.report.rendering import draw
    from microtome.report.svg import svg_file

    made = {}
    for stem, view in views:
        drawing = draw(view)
        if drawing is not None:
            made[f"{stem}.svg"] = svg_file(drawing).encode("utf-8", "backslashreplace")
            made[f"{stem}.pdf"] = pdf_file(drawing)
    return made


def _store(folder: Path, contents: dict[str, bytes]) -> None:
    from microtome.runs import atomic

    if not contents:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise atomic.storage_error(error, folder) from error
    atomic.write_all(folder, contents)


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
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest].strip("-")
