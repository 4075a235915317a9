"""``microtome report`` on a run made with ``microtome.runs`` alone: statuses, and rows by name."""

from __future__ import annotations

from html import unescape

from toy_trials import sweep, toy

from microtome.cli import run as command
from microtome.runs import run


def page_of(folder, capsys) -> str:
    assert command(["report", str(folder)]) == 0
    capsys.readouterr()
    return unescape((folder / "report.html").read_text())


def test_a_run_of_own_trials_has_a_plain_page(tmp_path, capsys):
    folder = tmp_path / "demo"
    trials = [*sweep(3), toy("fail"), toy("diverge")]
    result = run(trials, folder, {"seeds": [0, 1, 2]}, workers=0, progress=False)
    html = page_of(folder, capsys)
    assert "Run demo" in html
    assert "5 trials: 3 done, 1 failed, 1 diverged." in html
    for record in result.records.values():
        assert (record.name or record.function) in html
        assert record.title in html
    for record in result.failed:
        assert record.error in html
    (table,) = (folder / "tables").glob("*measure-rows.csv")
    n_rows = len(table.read_text().splitlines()) - 1
    assert n_rows == sum(len(record.rows) for record in result.records.values() if record.ok)


def test_a_run_that_was_stopped_says_what_is_left(tmp_path, capsys):
    folder = tmp_path / "demo"
    run(sweep(3), folder, {}, workers=0, progress=False)
    next((folder / "records").glob("*.json")).unlink()
    assert "3 trials: 2 done, 1 not run yet." in page_of(folder, capsys)


def test_hostile_names_and_notes_are_text(tmp_path, capsys):
    folder = tmp_path / "demo"
    notes = ["<script>alert(1)</script>: 3 rows left out"]
    run(sweep(1), folder, {"model": "<b>"}, workers=0, progress=False, notes=notes)
    assert command(["report", str(folder)]) == 0
    html = (folder / "report.html").read_text()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: 3 rows left out" in html


def test_notes_of_several_passes_are_kept_once_each(tmp_path):
    for notes in (["a"], ["a", "b"], []):
        result = run(sweep(1), tmp_path, {}, workers=0, progress=False, notes=notes)
    assert result.notes == ("a", "b")
    assert result.facts["notes"] == ["a", "b"]
