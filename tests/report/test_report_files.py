"""A report is whole, the same every time, loads nothing, and shows no number of its own."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import shutil
import sys
import xml.dom.minidom
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from microtome.errors import MissingExtra, StorageError
from microtome.report import html_of, write
from microtome.report.csvs import unguarded
from microtome.report.drawing import Drawing
from microtome.report.pdf import pdf_file
from microtome.report.text import plain, sentences
from microtome.views import (
    Bars,
    BarSeries,
    Curve,
    HeatMap,
    Level,
    Panels,
    Sentences,
    Series,
    Table,
)

# Everything that can make a browser fetch, run or leave.
ADDRESSES = {
    "src",
    "href",
    "xlink:href",
    "action",
    "srcset",
    "poster",
    "data",
    "background",
    "ping",
}


@pytest.fixture(autouse=True, scope="module")
def pdf_files():
    """Reports have them here."""


class Seen(HTMLParser):
    """Tags with their attributes, text by tag, and what stands in script and style."""

    VOID = frozenset({"meta", "link", "br", "img", "input"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]].append(data)
        else:
            self.text.append(data)


def seen(path: Path) -> Seen:
    found = Seen(path.read_text(encoding="utf-8"))
    assert not found.open, "every tag is closed"
    return found


def texts_of(page) -> list[str]:
    """Every text of a page that a person is to read."""
    found = [page.title, page.model, page.task, *(s for a in page.answers for s in sentences(a))]
    for section in page.sections:
        found += [section.name, section.question, section.source, section.problem]
        if section.status == "done":
            found += sentences(section.finding)
        for one in section.reported:
            found += [one.what, one.paper, one.measured, one.source]
        found += [view.title for view in section.views]
        for view in section.views:
            if isinstance(view, Sentences):
                found += [*view.tokens, *(t for _, row in view.decoded for t in row)]
    found += [
        s for sentence in (page.headline.sentence, page.headline.sure) for s in sentences(sentence)
    ]
    found += [text for card in page.headline.cards for text in (card.label, card.value, card.note)]
    return [*found, page.front[0].title, *(row[0] for row in page.front[0].rows)]


def spaced(text: str) -> str:
    """The text with single spaces: a paragraph of the page may have line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize("kind", ["page", "hostile_page"])
def test_every_text_is_shown_and_none_becomes_markup(kind, written, request):
    page = request.getfixturevalue(kind)
    found = seen(written[kind])
    shown = spaced(" ".join(found.text))
    for text in texts_of(page):
        assert spaced(plain(text)) in shown
    known = {tag for tag, _ in seen(written["page"]).tags}
    assert {tag for tag, _ in found.tags} == known
    assert "img" not in known
    names = {name for _, attributes in found.tags for name in attributes}
    assert not [name for name in names if name.startswith("on")]
    assert "style" not in names


@pytest.mark.parametrize("kind", ["page", "hostile_page"])
def test_nothing_points_outside_the_folder(kind, written):
    path = written[kind]
    found = seen(path)
    for tag, attributes in found.tags:
        for name in ADDRESSES & attributes.keys():
            target = attributes[name] or ""
            assert target.startswith(("#", "figures/", "tables/")) or target == "data:,", (
                tag,
                target,
            )
            if target.startswith(("figures/", "tables/")):
                assert (path.parent / target).is_file()
            if target.startswith("#"):
                assert any(a.get("id") == target[1:] for _, a in found.tags), target
    sheet = "".join(found.raw["style"])
    assert "url(" not in sheet
    assert "@import" not in sheet
    assert "://" not in "".join(found.raw["script"]) + sheet


def test_the_policy_allows_this_script_and_this_style_alone(written):
    found = seen(written["hostile_page"])
    policy = next(a["content"] for _, a in found.tags if a.get("http-equiv"))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for tag in ("script", "style"):
        assert len([1 for name, _ in found.tags if name == tag]) == 1
        digest = hashlib.sha256("".join(found.raw[tag]).encode()).digest()
        assert rules[f"{tag}-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_the_same_page_gives_the_same_bytes_and_leaves_nothing_else(
    hostile_page, written, tmp_path, monkeypatch
):
    """That PDF files are the same is in test_report_paper.py: those of this page take seconds."""
    folder = shutil.copytree(written["hostile_page"].parent, tmp_path / "report")
    first = files_in(folder)
    monkeypatch.setattr("microtome.report.writing.pdf_file", lambda drawing: b"%PDF")
    write(hostile_page, folder)  # over the older one
    second = files_in(folder)
    assert first.keys() == second.keys()
    for name, content in second.items():
        assert content == (b"%PDF" if name.endswith(".pdf") else first[name]), name
    assert {Path(name).suffix for name in first} == {".html", ".svg", ".pdf", ".csv"}
    assert all(re.fullmatch(r"[a-z0-9/-]+\.[a-z]+", name) for name in first)


def test_every_number_of_a_table_is_in_its_rows(page):
    """Each cell, read back, is the row's value to the digits shown."""
    for table in (page.front[0], page.sections[0].views[1]):
        html = html_of(table)
        body = unescape(html[html.index("<tbody>") : html.index("</tbody>")])
        shown = iter(re.findall(r'<td(?: class="n")? data-v="([^"]+)">([^/]+)</td>', body))
        for row in table.rows:
            for column, given in zip(table.columns, row, strict=True):
                if not isinstance(given, (int, float)):
                    continue
                value, text = next(shown)
                assert float(value) == given
                number = float(re.sub("[<,]", "", text).replace("−", "-"))
                digits = len(text.partition(".")[2])
                factor = 100 if column in table.percent else 1
                room = 1.0 if text.startswith("<") else 0.5
                assert abs(number - factor * given) <= room * 10**-digits + 1e-9, (value, text)
        assert next(shown, None) is None


def test_a_doctored_value_changes_the_figure(page):
    heat = page.sections[0].views[0]
    doctored = replace(heat, values=((0.999, *heat.values[0][1:]), *heat.values[1:]))
    assert "+99.9" in html_of(doctored)
    assert "+99.9" not in html_of(heat)


def spelled(value: object) -> str:
    """A value as UTF-8 can hold it: half a character is spelled out."""
    text = value if isinstance(value, str) else repr(value)
    return text.encode("utf-8", "backslashreplace").decode()


def test_csv_files_give_the_rows_back(hostile_page, written):
    folder = written["hostile_page"].parent
    section = hostile_page.sections[1]
    name = next(p for p in (folder / "tables").glob("decoding*rows*.csv"))
    text = name.read_bytes().decode("utf-8")
    assert text.count("\r\n") == len(section.rows) + 1
    header, *lines = list(csv.reader(io.StringIO(text, newline="")))
    for line, row in zip(lines, section.rows, strict=True):
        back = dict(zip(map(unguarded, header), map(unguarded, line), strict=True))
        stored = {column: text for column, text in back.items() if text}
        assert stored == {spelled(column): spelled(value) for column, value in row.items()}


def test_every_figure_is_a_well_formed_svg_file_with_its_text_escaped(written):
    figures = sorted((written["hostile_page"].parent / "figures").glob("*.svg"))
    assert len(figures) == 9
    for path in figures:
        tree = xml.dom.minidom.parse(str(path))
        assert not tree.getElementsByTagName("script")
        assert not tree.getElementsByTagName("img")
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    text = " ".join(path.read_text(encoding="utf-8") for path in figures)
    assert "onerror" in unescape(text), "hostile labels are there, as text"


def test_without_matplotlib_everything_but_the_pdfs_is_written(
    page, written, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # Python's mark for "can't be imported"
    path = write(page, tmp_path)
    complete = files_in(written["page"].parent)
    assert files_in(tmp_path).keys() == {name for name in complete if not name.endswith(".pdf")}
    links = [attributes.get("href") or "" for _, attributes in seen(path).tags]
    assert not [link for link in links if link.endswith(".pdf")]
    line = "pip install 'microtome-lab[pdf]'"
    assert line in " ".join(seen(path).text)
    assert line not in " ".join(seen(written["page"]).text)


def test_a_pdf_without_matplotlib_is_an_error_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra) as caught:
        pdf_file(Drawing(10, 10, (), "empty"))
    assert caught.value.message == "matplotlib is not installed"
    assert caught.value.hint == "pip install 'microtome-lab[pdf]'"


def test_a_failed_and_a_left_out_part_say_so(written):
    text = " ".join(seen(written["page"]).text)
    assert "This part failed" in text
    assert "remove(0): out of memory" in text
    assert "This part was left out of the run" in text


def test_headings_come_in_order_and_figures_have_words(written):
    found = seen(written["page"])
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert next(a for tag, a in found.tags if tag == "html")["lang"] == "en"
    for tag, attributes in found.tags:
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]


EMPTY = [
    Table("t", (), ()),
    Table("t", ("a",), ()),
    Curve("c", "x", "y", ()),
    Curve("c", "x", "y", (Series("s", (), ()),)),
    Curve("c", "x", "y", (Series("s", (1.0,), (None,)),)),
    Curve("c", "x", "y", (Series("s", (1.0, 2.0), (float("nan"), 0.5)),), percent=False),
    Curve("c", "x", "y", (Series("s", (0.5, 0.5), (0.5, 0.5), (0.5,), (0.5,)),)),
    HeatMap("h", "r", "c", (), (), (), "v"),
    HeatMap("h", "r", "c", ("0",), ("0",), ((None,),), "v", diverging=True),
    HeatMap("h", "r", "c", ("0",), ("0",), ((0.0,),), "v", diverging=True),
    Bars("b", "x", "y", (), ()),
    Bars("b", "x", "y", ("g",), ()),
    Bars("b", "x", "y", ("g",), (BarSeries("s", (None,)),), stacked=True),
    Bars("b", "x", "y", ("g",), (BarSeries("s", (float("nan"),), (None,), (0.5,)),), percent=False),
    Panels("p", ()),
    Panels("p", (HeatMap("h", "r", "c", (), (), (), "v"),)),
    Panels("p", (Curve("c", "x", "y", ()), Curve("c", "x", "y", (), levels=(Level("a", 0.1),)))),
    Panels("p", (Bars("b", "x", "y", (), ()),)),
    Sentences("s", (), ()),
    Sentences("s", ("a",), (("depth 0", ("a", "b", "c")), ("depth 1", ()))),
]


def test_views_with_little_or_nothing_in_them_are_drawn(page, tmp_path):
    for view in EMPTY:
        assert not Seen(html_of(view)).open, view
    assert not seen(write(replace(page, front=tuple(EMPTY), sections=()), tmp_path)).open


def test_wrong_tokens_are_marked_and_right_ones_are_not():
    html = html_of(Sentences("s", ("a", "b"), (("depth 0", ("a", "x")),)))
    assert "<mark><bdi>x</bdi></mark>" in html
    assert "<mark><bdi>a</bdi></mark>" not in html


def test_significant_cells_differ_in_shape():
    plain_map = HeatMap("h", "r", "c", ("0",), ("0", "1"), ((0.1, -0.1),), "points", diverging=True)
    marked = replace(plain_map, marked=((0, 1),))
    added = html_of(marked).count("<path") - html_of(plain_map).count("<path")
    assert added == 2 * 2  # a diamond in the cell and one in the legend, at both widths
    assert "significant" in html_of(marked)


def test_a_diamond_says_what_it_marks():
    marked = HeatMap("h", "r", "c", ("0",), ("0", "1"), ((0.1, 0.2),), "share", ((0, 1),))
    html = html_of(replace(marked, mark_label="its most frequent pattern"))
    assert "its most frequent pattern" in html
    assert "significant" not in html
    assert "significant" not in html_of(replace(marked, marked=()))


def colour_ends(html: str) -> set[str]:
    """The values at the ends of the colour scales."""
    return set(re.findall(r">([+−]?\d+\.\d)</text>", html))


def test_heat_maps_of_the_same_value_have_one_scale_within_a_section(page, tmp_path):
    def heat(title, value, **options):
        options = {"value_label": "share", **options}
        return HeatMap(title, "layer", "head", ("0",), ("0", "1"), ((0.0, value),), **options)

    maps = (heat("one", 0.1), heat("two", 0.4), heat("other", 0.9, value_label="entropy"))
    section = replace(page.sections[0], views=maps, reported=(), rows=())
    write(replace(page, front=(), sections=(section,)), tmp_path)
    figures = {file.stem.split("-")[-1]: file.read_text() for file in tmp_path.glob("*/*.svg")}
    assert "40.0" in colour_ends(figures["one"])
    assert "40.0" in colour_ends(figures["two"])
    assert "90.0" in colour_ends(figures["other"])
    assert "40.0" not in colour_ends(figures["other"])
    assert "40.0" in colour_ends(html_of(maps[0], maps[1]).split("two")[0])
    assert "40.0" not in colour_ends(html_of(maps[0]))


def test_names_of_files_are_made_of_whole_words(page, tmp_path):
    titles = [
        "Every depth, and the change against the whole encoder on the same rows",
        "Donaudampfschifffahrtsgesellschaftskapitaensmuetze",
        "?!",
    ]
    tables = tuple(Table(title, ("a",), ((1,),)) for title in titles)
    write(replace(page, front=tables, sections=(), picture=None), tmp_path)
    names = {file.stem for file in (tmp_path / "tables").iterdir()}
    assert names == {
        "front-every-depth-and-the-change-against-the",
        "front-donaudampfschifffahrtsgesellschaftskapit",
        "front",
    }


def test_a_folder_that_cannot_be_written_is_named(page, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StorageError, match="taken"):
        write(page, tmp_path / "taken")
