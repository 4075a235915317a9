"""The gallery: its page is what the tool writes, its pictures and pages are small and whole."""

from __future__ import annotations

import re

import pytest
from PIL import Image

import gallery
from gallery import MOST_BYTES, MOST_HTML, PICTURES, REPORTS, WIDTH

PAGE = gallery.DOCS / "gallery.md"


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_every_report_has_its_picture(report):
    picture = PICTURES / f"{report.name}.png"
    assert picture.stat().st_size <= MOST_BYTES
    with Image.open(picture) as image:
        assert image.mode == "P"
        assert image.width == WIDTH
        assert len(set(image.get_flattened_data())) > 8, "an empty picture"


def test_the_page_is_what_the_tool_writes(monkeypatch, tmp_path):
    """Without any run: what the reports said is kept, the rest follows from the list."""
    monkeypatch.setattr(gallery, "RUNS", tmp_path)
    written = PAGE.read_text(encoding="utf-8")
    assert gallery.gallery_page(written) == written
    answers = re.findall(r"^!\[(.*)\]\(gallery/", written, re.MULTILINE)
    assert len(answers) == len(REPORTS)
    assert not {report.heading for report in REPORTS} & set(answers), "a report was never made"


@pytest.mark.parametrize("report", [r for r in REPORTS if r.is_kept], ids=lambda r: r.name)
def test_a_page_that_is_kept_is_whole_by_itself(report):
    html = (PICTURES / f"{report.name}.html").read_text(encoding="utf-8")
    assert len(html.encode()) <= MOST_HTML
    assert html.rstrip().endswith("</html>")
    links = re.findall(r'(?:href|src)="([^"]*)"', html)
    assert links
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    assert str(gallery.ROOT) not in html


@pytest.mark.parametrize("report", [r for r in REPORTS if r.is_kept], ids=lambda r: r.name)
def test_the_gallery_says_what_the_kept_page_says(report):
    html = (PICTURES / f"{report.name}.html").read_text(encoding="utf-8")
    assert f"![{gallery.lead_of(html)}](gallery/{report.name}.png)" in PAGE.read_text("utf-8")


def test_a_report_that_is_there_is_only_written_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(gallery, "RUNS", tmp_path)
    started = []

    def made(command, *, cwd, check):
        started.append(command)
        if "--out" in command:
            folder = cwd / command[command.index("--out") + 1]
            folder.mkdir()
            name = "config.json" if "finetune" in command else "report.html"
            (folder / name).write_text("")

    monkeypatch.setattr(gallery.subprocess, "run", made)
    report = next(report for report in REPORTS if report.name == "examine")
    assert gallery.make(report)
    assert len(started) == 2  # a classifier to examine, and the examination
    assert gallery.make(report)
    assert len(started) == 3
    assert started[2][-3:] == ["report", "examine", "--quiet"]  # as today's code writes it
    monkeypatch.setattr(gallery, "SHARED", tmp_path / "nowhere")
    assert not gallery.make(next(report for report in REPORTS if report.name == "trim"))
    assert len(started) == 3
