"""A run's folder: whole files, one driver, schemas read or refused, requests compared."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from toy_trials import sweep, toy

from microtome import files
from microtome.errors import RequestError, RunError, StorageError
from microtome.runs import open_run, run, run_here
from microtome.runs.store import FolderLock, Store

REQUEST = {"seeds": list(range(8))}


def finished_run(folder: Path, n_trials: int = 8):
    return run(sweep(n_trials), folder, REQUEST, workers=0, progress=False)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_folder_is_laid_out_as_documented(tmp_path):
    result = finished_run(tmp_path)
    trials = sweep(8)
    assert {path.name for path in tmp_path.iterdir()} == {
        ".lock", "run.json", "records", "arrays", "checkpoints", "results.parquet",
    }  # fmt: skip
    names = {path.name for path in (tmp_path / "records").iterdir()}
    assert names == {f"{trial.hash}.json" for trial in trials}
    with_arrays = {t.hash for t in trials if t.request["seed"] % 2}
    assert {path.stem for path in (tmp_path / "arrays").iterdir()} == with_arrays
    for trial in (trials[0], trials[5]):
        weights = result.checkpoint(trial.hash) / "deep" / "weights.bin"
        assert weights.read_text() == trial.hash
    described = json.loads((tmp_path / "run.json").read_text())
    assert described["schema_version"] == 1
    assert described["request"] == REQUEST
    assert described["trials"] == [trial.hash for trial in trials]
    assert set(described) >= {"versions", "commit", "machine", "threads", "sources"}


def test_a_record_holds_what_the_function_gives_alone(tmp_path):
    result = finished_run(tmp_path)
    trial = sweep(8)[3]
    alone = run_here(trial)
    assert result.records[trial.hash].rows == list(alone.rows)
    assert result.records[trial.hash].summary == alone.summary
    np.testing.assert_array_equal(result.arrays(trial.hash)["values"], alone.arrays["values"])


def test_opening_a_run_gives_what_the_run_gave_and_touches_nothing(tmp_path):
    result = finished_run(tmp_path)
    before = contents(tmp_path)
    opened = open_run(tmp_path)
    assert opened.rows == result.rows
    assert opened.records == result.records
    assert opened.ok
    assert contents(tmp_path) == before


def test_a_folder_without_run_json_is_no_run(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(RequestError, match="not a run"):
            open_run(place)


def test_a_folder_with_files_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "report.html").write_text("my thesis")
    with pytest.raises(RequestError, match="is not empty and holds no run"):
        finished_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "my thesis"


def test_temporary_files_of_a_kill_are_removed_and_never_read(tmp_path):
    finished_run(tmp_path)
    strays = [
        tmp_path / "records" / ".tmp-abc.json",
        tmp_path / "arrays" / ".tmp-abc.npz",
        tmp_path / ".tmp-run.json",
    ]
    for stray in strays:
        stray.write_text('{"half": ')
    folder = tmp_path / "checkpoints" / ".tmp-abc"
    folder.mkdir()
    (folder / "weights").write_text("half")
    assert len(open_run(tmp_path).records) == 8
    assert finished_run(tmp_path).n_run == 0
    assert not any(path.exists() for path in [*strays, folder])


@pytest.mark.parametrize("content", ["", '{"half": ', "[]", '{"schema_version": 1}', "\xff"])
def test_a_record_that_cannot_be_read_is_named_not_run_again(tmp_path, content):
    finished_run(tmp_path)
    broken = tmp_path / "records" / f"{sweep(8)[2].hash}.json"
    broken.write_text(content, encoding="latin-1")
    with pytest.raises(StorageError, match=broken.name):
        finished_run(tmp_path)
    with pytest.raises(StorageError, match=broken.name):
        open_run(tmp_path)
    assert broken.read_text(encoding="latin-1") == content


def test_a_record_of_another_trial_is_noticed(tmp_path):
    finished_run(tmp_path)
    first, second = (tmp_path / "records" / f"{trial.hash}.json" for trial in sweep(2))
    second.write_bytes(first.read_bytes())
    with pytest.raises(StorageError, match=second.name):
        open_run(tmp_path)


@pytest.mark.parametrize(
    ("version", "words"), [(2, "reads up to 1"), (0, "no Microtome"), ("1", "no Micro")]
)
@pytest.mark.parametrize("where", ["run.json", "record"])
def test_a_foreign_schema_version_is_refused_in_words(tmp_path, version, words, where):
    finished_run(tmp_path)
    path = tmp_path / "run.json"
    if where == "record":
        path = next((tmp_path / "records").iterdir())
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "schema_version": version}))
    with pytest.raises(StorageError, match=words):
        finished_run(tmp_path)


def test_a_second_driver_is_refused_and_told_the_pid(tmp_path):
    store = Store(tmp_path)
    store.lock()
    with pytest.raises(StorageError, match=f"pid {os.getpid()}"):
        finished_run(tmp_path)
    store.release()
    assert finished_run(tmp_path).ok


def test_the_lock_of_a_killed_driver_is_free(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from microtome.runs.store import FolderLock;"
        "lock = FolderLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StorageError, match=f"pid {holder.pid}"):
            FolderLock(tmp_path)
        holder.kill()
    FolderLock(tmp_path).release()


def test_a_wider_request_goes_on_and_runs_only_what_is_new(tmp_path):
    log = tmp_path / "log"
    run(sweep(6, log=log), tmp_path / "run", {"seeds": [*range(6)]}, workers=0, progress=False)
    wider = run(
        sweep(9, log=log), tmp_path / "run", {"seeds": [*range(9)]}, workers=0, progress=False
    )
    assert wider.n_run == 3
    assert sorted(log.read_text().split()) == sorted(trial.hash for trial in sweep(9))
    assert wider.rows == finished_rows(tmp_path / "other", 9)
    assert open_run(tmp_path / "run").request == {"seeds": [*range(9)]}


def finished_rows(folder: Path, n_trials: int):
    result = run(sweep(n_trials), folder, {"seeds": [*range(n_trials)]}, workers=0, progress=False)
    return result.rows


def test_a_different_request_is_refused_and_nothing_is_touched(tmp_path):
    finished_run(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(RequestError, match=r"seeds: \[0,1,2,3,4,5,6,7\] stored, \[9\] requested"):
        run(sweep(3), tmp_path, {"seeds": [9]}, workers=0, progress=False)
    assert contents(tmp_path) == before


def test_data_that_changed_under_the_same_path_is_refused(tmp_path):
    def trial(content: str):
        from microtome.runs import Trial

        request, where = {"seed": 1}, {"data": "train.tsv"}
        return Trial("toy_trials:measure", request, content={"data": content}, where=where)

    run([trial("aaaa")], tmp_path, {}, workers=0, progress=False)
    with pytest.raises(RequestError, match=r"data in train\.tsv has changed"):
        run([trial("bbbb")], tmp_path, {}, workers=0, progress=False)


def full_disk_after(n_files: int, monkeypatch) -> dict[str, int]:
    """After ``n_files`` fsyncs there is no room; the returned count can be raised."""
    room = {"left": n_files}
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if room["left"] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room["left"] -= 1
        real(descriptor)

    monkeypatch.setattr(files.os, "fsync", fsync)
    return room


@pytest.mark.parametrize("n_files", [0, 1, 3, 9, 10, 11, 12, 20, 35])
def test_a_full_disk_stops_clearly_and_the_run_goes_on_when_there_is_room(
    tmp_path, monkeypatch, n_files
):
    room = full_disk_after(n_files, monkeypatch)
    log, folder = tmp_path / "log", tmp_path / "run"

    def sweep_once():
        return run(sweep(8, log=log), folder, REQUEST, workers=0, progress=False)

    with pytest.raises(StorageError, match="no space left") as stop:
        sweep_once()
    assert "resume" in stop.value.hint
    n_stored = len(Store(folder).read_records())  # every record there is whole
    assert not list(folder.rglob(".tmp-*.json"))
    assert not list(folder.rglob(".tmp-*.npz"))
    room["left"] = 10_000
    result = sweep_once()
    assert result.ok
    assert result.n_run == 8 - n_stored
    assert result.rows == finished_run(tmp_path / "undisturbed").rows


def test_a_batch_keeps_the_files_that_had_room(tmp_path, monkeypatch):
    real = os.write

    def write(descriptor: int, content) -> int:
        if bytes(content[:3]) == b"big":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content)

    monkeypatch.setattr(files.os, "write", write)
    with pytest.raises(StorageError, match="no space left"):
        files.write_all(tmp_path, {"a": b"small", "b": b"big one", "c": b"small"})
    assert {path.name for path in tmp_path.iterdir()} == {"a", "c"}


def test_a_trial_that_meets_the_full_disk_stops_the_run_and_is_not_recorded(tmp_path):
    full = tmp_path / "full"
    full.touch()
    trials = [*sweep(1), toy("fill_the_disk", where={"full": full}, label="greedy")]
    with pytest.raises(StorageError, match="no space left while trial greedy"):
        run(trials, tmp_path / "run", {}, workers=0, progress=False)
    assert len(open_run(tmp_path / "run").records) == 1
    full.unlink()
    result = run(trials, tmp_path / "run", {}, workers=0, progress=False)
    assert (result.ok, result.n_run) == (True, 1)


def test_on_a_small_disk_nothing_is_torn_and_it_goes_on_when_there_is_room(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)]
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root on Linux")
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"mounting isn't allowed here: {mounted.stderr.strip()}")
    try:
        with pytest.raises(StorageError, match="no space left"):
            run(sweep(60), disk / "run", {}, workers=1, progress=False)
        stored = Store(disk / "run").read_records()
        assert 0 < len(stored) < 60
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        result = run(sweep(60), disk / "run", {}, workers=1, progress=False)
        assert (result.ok, result.n_run) == (True, 60 - len(stored))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_cannot_be_made_is_said_in_words(tmp_path):
    (tmp_path / "file").write_text("I am no folder")
    with pytest.raises(RunError, match="can't write"):
        run(sweep(1), tmp_path / "file" / "run", {}, workers=0, progress=False)
