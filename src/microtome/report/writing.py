"""Writing a report: the page, every figure as SVG and PDF, every view and all rows as CSV.

PDF files need matplotlib (extra ``pdf``); without it the page says how to get them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from microtome import files
from microtome.report.csvs import rows_csv, view_csv
from microtome.report.drawing import SCREEN, Style
from microtome.report.heatmaps import on_one_scale
from microtome.report.page import Page, Picture
from microtome.report.pdf import can_write_pdf, pdf_file
from microtome.report.rendering import Shown, ShownSection, draw, notebook_html, page_html
from microtome.report.svg import svg_file
from microtome.views import View

PAGE, FIGURES, TABLES = "report.html", "figures", "tables"


@dataclass(frozen=True)
class Content:
    """What a page shows, with the names of its files; of every view, heat maps on one scale."""

    picture: Shown | None
    front: tuple[Shown, ...]
    sections: tuple[ShownSection, ...]

    @classmethod
    def of(cls, page: Page) -> Content:
        """The picture is named after the section that it is of, which doesn't show it again."""
        names = _Names()
        front = [(v, names.stem("front", v.title)) for v in page.front if not _is_of(v, page)]
        picture: Shown | None = None
        sections = []
        for section in page.sections:
            rows_name = names.stem(section.name, "rows") if section.rows else ""
            shown, is_led = [], False
            for given, view in zip(section.views, on_one_scale(section.views), strict=True):
                stem = names.stem(section.name, view.title)
                if picture is None and isinstance(view, Picture) and _is_same(given, page.picture):
                    said = "" if page.picture is None else page.picture.says
                    picture, is_led = Shown(replace(view, says=said), stem), True
                else:
                    shown.append(Shown(view, stem))
            sections.append(ShownSection(section, rows_name, tuple(shown), is_led))
        if picture is None and page.picture is not None:
            picture = Shown(page.picture, names.stem("front", page.picture.title))
        return cls(picture, tuple(Shown(*each) for each in front), tuple(sections))

    @property
    def views(self) -> list[Shown]:
        """Every view once, the picture first."""
        first = [] if self.picture is None else [self.picture]
        return [*first, *self.front, *(view for each in self.sections for view in each.views)]


def _is_same(view: View, picture: Picture | None) -> bool:
    """Whether a view is the page's picture; what it says may be of a wish that the page knows."""
    if picture is None or not isinstance(view, Picture):
        return False
    return replace(view, says="") == replace(picture, says="")


def _is_of(view: View, page: Page) -> bool:
    """Whether a view of the front is shown elsewhere: as the picture, or in a section."""
    return _is_same(view, page.picture) or any(view in section.views for section in page.sections)


def write(page: Page, folder: str | Path, style: Style = SCREEN) -> Path:
    """Write the report into a folder and return the page's path.

    ``folder/report.html`` is the page, ``figures`` and ``tables`` hold its parts as files; the
    figures' files are drawn in a ``style``. The same page gives the same bytes. Each file is whole
    or absent; the page comes last. For example
    ``write(Page("Mine", "my-model", "my-task", ("It works.",), sections=()), "out")``.
    """
    folder, has_pdf = Path(folder), can_write_pdf()
    content = Content.of(page)
    tables = {
        f"{each.rows_name}.csv": rows_csv(each.section.rows)
        for each in content.sections
        if each.rows_name
    }
    tables |= {f"{shown.stem}.csv": view_csv(shown.view) for shown in content.views}
    _store(folder / FIGURES, _figures(content.views, style, has_pdf=has_pdf))
    _store(folder / TABLES, tables)
    html = page_html(page, content.picture, content.front, content.sections, has_pdf=has_pdf)
    _store(folder, {PAGE: html.encode("utf-8", "backslashreplace")})
    return folder / PAGE


def write_figures(page: Page, folder: str | Path, style: Style = SCREEN) -> list[Path]:
    """Write a page's figures alone, each as SVG, PDF and CSV, and return the paths.

    ``write_figures(page, "figures-for-my-paper", paper(3.3))``
    """
    views = [shown for shown in Content.of(page).views if shown.kind == "figure"]
    contents = _figures(views, style, has_pdf=can_write_pdf())
    contents |= {f"{shown.stem}.csv": view_csv(shown.view) for shown in views}
    _store(Path(folder), contents)
    return [Path(folder) / name for name in sorted(contents)]


def html_of(*views: View, title: str = "", texts: Sequence[str] = ()) -> str:
    """Views as HTML by themselves, for notebooks, below a title and paragraphs if given.

    ``IPython.display.HTML(html_of(view))`` shows one.
    """
    return notebook_html(on_one_scale(views), title=title, texts=texts)


def _figures(views: Iterable[Shown], style: Style, *, has_pdf: bool) -> dict[str, bytes]:
    figures = {}
    for shown in views:
        drawing = draw(shown.view, style)
        if drawing is not None:
            svg = svg_file(drawing, in_inches=style.is_paper)
            figures[f"{shown.stem}.svg"] = svg.encode("utf-8", "backslashreplace")
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
        title = title.removeprefix(f"{part}: ")  # as exhibits of a paper are called
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
