"""``microtome report``: the page again, figures for a paper, and what is refused."""

from __future__ import annotations

import json
import re

import pytest

from microtome.cli import run
from support.tiny import save_tiny


@pytest.fixture(autouse=True, scope="module")
def pdf_files():
    """Reports have them here."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A run of decoding."""
    folder = tmp_path_factory.mktemp("report")
    model = save_tiny(folder / "model", with_tokenizer=True)
    asked = ["run", "decoding", "--model", str(model), "--task", "micro-topics", "--limit", "8"]
    assert run([*asked, "--workers", "0", "--quiet", "--out", str(folder / "run")]) == 0
    return folder / "run"


def widths(folder) -> set[str]:
    return {re.search(r'width="([^"]+)"', f.read_text())[1] for f in folder.glob("*.svg")}


def test_figures_alone_leave_the_page_as_it_is(stored, tmp_path, capsys):
    out = tmp_path / "figures"
    (stored / "report.html").unlink()
    asked = ["report", str(stored), "--figures-only", "--style", "paper", "--out", str(out)]
    assert run([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "schema_version": 1, "run": str(stored), "report": None, "figures": str(out),
    }  # fmt: skip
    assert not (stored / "report.html").exists()
    assert widths(out) == {"3.3in"}
    assert {path.suffix for path in out.iterdir()} == {".svg", ".pdf", ".csv"}


@pytest.mark.parametrize("has_pdf", [True, False])
def test_people_are_told_which_figures_there_are(stored, tmp_path, capsys, monkeypatch, has_pdf):
    for module in ("pdf", "writing"):
        monkeypatch.setattr(f"microtome.report.{module}.can_write_pdf", lambda: has_pdf)
    assert run(["report", str(stored), "--figures-only", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    made = sorted(path.name for path in tmp_path.iterdir())
    assert re.findall(r"[\w-]+\.(?:svg|pdf|csv)", printed.out) == made
    assert any(name.endswith(".pdf") for name in made) == has_pdf
    assert ("microtome-lab[pdf]" in printed.err) != has_pdf


def test_the_page_again_with_figures_as_wide_as_asked(stored, capsys):
    assert run(["report", str(stored), "--style", "paper", "--width", "4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["report"] == str(stored / "report.html")
    assert document["figures"] == str(stored / "figures")
    assert widths(stored / "figures") == {"4in"}
    page = (stored / "report.html").read_bytes()
    assert run(["report", str(stored)]) == 0
    assert widths(stored / "figures") == {"800"}
    assert (stored / "report.html").read_bytes() == page, "the page has its own widths"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--style", "poster"], "--style expects screen or paper, got 'poster'"),
        (["--width", "3"], "--width goes with --style paper"),
        (["--style", "paper", "--width", "40"], "--width must be between 2 and 12 inches, got 40"),
        (["--out", "elsewhere"], "--out goes with several runs or --figures-only"),
    ],
)
def test_what_does_not_go_together_is_refused(stored, options, said, capsys):
    assert run(["report", str(stored), *options]) == 2
    assert said in capsys.readouterr().err
