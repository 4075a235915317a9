"""kill -9 of the driver, again and again: nothing torn, nothing done twice, the same table."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from toy_trials import sweep

from microtome.errors import StorageError
from microtome.runs import open_run, run
from microtome.runs.store import Store

N_TRIALS, N_KILLS = 64, 20
SECONDS = 0.05  # what a trial takes: 20 kills must find it unfinished

DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from toy_trials import sweep
from microtome.runs import run
trials = sweep(int(sys.argv[4]), log=Path(sys.argv[3]), seconds=float(sys.argv[5]))
run(trials, sys.argv[2], {"n": int(sys.argv[4])}, workers=2)
"""


def start_driver(folder: Path, log: Path, **options) -> subprocess.Popen:
    here = str(Path(__file__).parent)
    arguments = [here, str(folder), str(log), str(N_TRIALS), str(SECONDS)]
    return subprocess.Popen([sys.executable, "-c", DRIVER, *arguments], text=True, **options)


def stored(folder: Path) -> set[str]:
    """The hashes of the records, each of which must be whole."""
    return set(Store(folder).read_records())


def begun(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def wait_for(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.002)


def kill_at_a_moment(
    folder: Path, log: Path, draw: random.Random
) -> tuple[set[str], list[psutil.Process]]:
    """Start a driver, kill -9 it a little after a random piece of progress; what it had stored.

    The moment follows what the driver has done, so that a slow machine gets as far as a fast one.
    Its workers, given back too, may live a little longer.
    """
    n_begun, n_more = len(begun(log)), draw.choice([0, 1, 1, 2, 3])
    driver = start_driver(folder, log, stderr=subprocess.DEVNULL)
    with driver:
        if n_more:
            wait_for(lambda: len(begun(log)) >= n_begun + n_more or driver.poll() is not None)
        else:  # while it comes up
            time.sleep(draw.uniform(0.0, 0.3))
        time.sleep(draw.uniform(0.0, 1.5 * SECONDS))
        workers = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
    return stored(folder), workers


def test_twenty_kills_tear_nothing_repeat_nothing_and_change_nothing(tmp_path):
    folder, log = tmp_path / "run", tmp_path / "log"
    draw = random.Random(20)
    for _ in range(N_KILLS):
        n_begun, before = len(begun(log)), stored(folder)
        after, workers = kill_at_a_moment(folder, log, draw)
        assert before <= after, "a stored record is gone"
        assert not before & set(begun(log)[n_begun:]), "a finished trial was run again"
    assert len(stored(folder)) < N_TRIALS, "the kills came too late to mean anything"
    assert not psutil.wait_procs(workers, timeout=20)[1]  # one of them may have begun another trial
    n_begun, before = len(begun(log)), stored(folder)
    with start_driver(folder, log, stderr=subprocess.DEVNULL) as driver:
        assert driver.wait() == 0
    last = begun(log)[n_begun:]
    assert sorted(last) == sorted({t.hash for t in all_trials()} - before)

    run(all_trials(), tmp_path / "undisturbed", {"n": N_TRIALS}, workers=2, progress=False)
    table, undisturbed = (tmp_path / d / "results.parquet" for d in ("run", "undisturbed"))
    assert table.read_bytes() == undisturbed.read_bytes()
    for one in ("arrays", "checkpoints"):
        assert files(folder / one) == files(tmp_path / "undisturbed" / one)


def all_trials():
    return sweep(N_TRIALS, seconds=SECONDS)


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_workers_of_a_killed_driver_go_with_it(tmp_path):
    folder, log = tmp_path / "run", tmp_path / "log"
    driver = start_driver(folder, log, stderr=subprocess.DEVNULL)
    with driver:
        wait_for(lambda: len(begun(log)) >= 3)
        workers = psutil.Process(driver.pid).children(recursive=True)
        assert len(workers) == 2
        driver.kill()
    assert not psutil.wait_procs(workers, timeout=20)[1]


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_ctrl_c_stops_cleanly_and_says_how_to_resume(tmp_path, number, name):
    folder, log = tmp_path / "run", tmp_path / "log"
    driver = start_driver(folder, log, stderr=subprocess.PIPE)
    with driver:
        wait_for(lambda: len(stored(folder)) >= 3)
        workers = psutil.Process(driver.pid).children(recursive=True)
        os.kill(driver.pid, number)
        _, said = driver.communicate(timeout=60)
    assert driver.returncode == 1
    assert f"Stopped: stopped by {name}: " in said
    assert f"of {N_TRIALS} trials are stored in {folder}" in said
    assert f"to resume: call run() again with the same request and folder='{folder}'" in said
    assert 3 <= len(stored(folder)) < N_TRIALS
    assert not psutil.wait_procs(workers, timeout=20)[1]
    assert not list(folder.rglob(".tmp-*.json"))


def test_while_a_driver_works_a_second_one_is_refused(tmp_path):
    folder, log = tmp_path / "run", tmp_path / "log"
    driver = start_driver(folder, log, stderr=subprocess.DEVNULL)
    with driver:
        wait_for(lambda: len(begun(log)) >= 1)
        with pytest.raises(StorageError, match=f"in use by another process .pid {driver.pid}"):
            run(all_trials(), folder, {"n": N_TRIALS}, progress=False)
        assert open_run(folder).n_trials == N_TRIALS  # reading is allowed
        driver.kill()


def test_records_name_their_worker_and_versions(tmp_path):
    run(sweep(2), tmp_path, {}, workers=1, progress=False)
    record = json.loads(next((tmp_path / "records").iterdir()).read_text())
    assert record["worker"] == "local-0"
    assert record["versions"]["python"].split(".")[0] == "3"
    assert record["seconds"] >= 0
