"""A run's files that a disk or a hand changed: refused by their names, in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from toy_trials import sweep

from microtome.errors import StorageError
from microtome.runs import Record, RunResult, open_run, run


def finished_run(folder: Path, n_trials: int = 2) -> RunResult:
    return run(sweep(n_trials), folder, {}, workers=0, progress=False)


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "change",
    [
        {"request": []}, {"request": {"a": float("nan")}}, {"trials": 3}, {"trials": [{}]},
        {"sources": []}, {"sources": {"model": 1}}, {"sources": {"model": {"a": []}}},
        {"notes": "x"}, DEEP,
    ],
    ids=str,
)  # fmt: skip
def test_a_run_json_of_another_shape_is_refused(tmp_path, change):
    finished_run(tmp_path)
    path = tmp_path / "run.json"
    stored = json.loads(path.read_text())
    path.write_text(change if isinstance(change, str) else json.dumps(stored | change))
    with pytest.raises(StorageError, match=r"run\.json can't be read"):
        open_run(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [1]}, {"columns": []}, {"summary": None}, {"needs": {}}, {"needs": [[]]},
        {"seconds": "1"}, {"arrays": 1}, {"label": 3}, {"content": {"model": 1}},
        {"rows": [{"score": float("nan")}]}, DEEP,
    ],
    ids=str,
)  # fmt: skip
def test_a_record_of_another_shape_is_refused_by_its_name(tmp_path, change):
    finished_run(tmp_path)
    path = sorted((tmp_path / "records").iterdir())[0]
    stored = json.loads(path.read_text())
    path.write_text(change if isinstance(change, str) else json.dumps(stored | change))
    with pytest.raises(StorageError, match=path.name):
        open_run(tmp_path)


def test_broken_arrays_are_refused_by_their_name(tmp_path):
    result = finished_run(tmp_path)
    path = sorted((tmp_path / "arrays").iterdir())[0]
    content = path.read_bytes()
    for broken in (b"", b"PK", content[:-30], content[:60] + b"\xff" * 20 + content[80:]):
        path.write_bytes(broken)
        with pytest.raises(StorageError, match=path.name):
            result.arrays(path.stem)


def test_blocked_records_that_name_each_other_or_nothing_have_themselves_as_the_cause(tmp_path):
    parts = {"function": "f", "request": {}, "content": {}, "status": "blocked"}
    records = {one: Record(one, needs=[other], **parts) for one, other in ("ab", "ba", "cd")}
    result = RunResult(tmp_path, {}, records)
    assert result.cause_of(records["a"]).hash in "ab"
    assert result.cause_of(records["c"]) == records["c"]
