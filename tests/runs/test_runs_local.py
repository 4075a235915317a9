"""Local workers: what dies, hangs or raises is recorded; the sweep continues."""

from __future__ import annotations

import os

import pytest
from toy_trials import sweep, toy

from microtome.errors import RequestError, RunError
from microtome.runs import run, run_here, worker_process
from microtome.runs.local import LocalExecutor, default_workers
from microtome.threads import COUNTS, POLICIES, n_cores


def run_local(trials, folder, *, workers=2, **options):
    return run(trials, folder, {}, workers=workers, progress=False, **options)


def test_local_workers_and_this_process_give_the_same_table(tmp_path):
    there = run_local(sweep(20), tmp_path / "there")
    here = run(sweep(20), tmp_path / "here", {}, workers=0, progress=False)
    assert there.rows == here.rows
    tables = [(tmp_path / name / "results.parquet").read_bytes() for name in ("there", "here")]
    assert tables[0] == tables[1]


def test_raising_nan_hanging_and_nonsense_are_recorded_and_the_sweep_goes_on(tmp_path):
    bad = {
        "raise": toy("fail"),
        "nan": toy("give_nan"),
        "diverge": toy("diverge"),
        "hang": toy("hang", limit=1.0),
        "nonsense": toy("give_nonsense"),
        "absent": toy("no_such_function"),
    }
    result = run_local([*sweep(4), *bad.values(), *sweep(8)], tmp_path)
    assert result.n_ok == 8
    records = {name: result.records[trial.hash] for name, trial in bad.items()}
    assert {name: record.status for name, record in records.items()} == {
        "raise": "failed",
        "nan": "diverged",
        "diverge": "diverged",
        "hang": "timeout",
        "nonsense": "failed",
        "absent": "failed",
    }
    assert records["raise"].error == "ValueError: no such luck"
    assert 'raise ValueError("no such luck")' in records["raise"].traceback
    assert records["nan"].error == "not a finite number: rows.1.value, summary.value"
    assert records["nan"].rows == [{"value": 1.0}, {"value": None}]
    assert records["diverge"].error == "the loss is NaN at step 30"
    assert "its limit is 1 s" in records["hang"].error
    assert records["hang"].seconds >= 1.0
    assert "got object" in records["nonsense"].error
    assert "no_such_function" in records["absent"].error
    assert len(result.rows) == 24  # rows of failed trials aren't in the table


def test_a_worker_killed_mid_trial_is_replaced_and_the_trial_gives_the_same_result(tmp_path):
    trial = toy("kill_own_worker", seed=1, times=2, where={"log": tmp_path / "log"})
    result = run_local([*sweep(6), trial], tmp_path / "run")
    assert result.ok
    record = result.records[trial.hash]
    assert record.attempts == 3
    assert record.rows[0]["value"] == value_of(trial)
    assert not (tmp_path / "run" / "checkpoints" / f".tmp-{trial.hash}").exists()


def value_of(trial) -> float:
    """What ``measure`` gives for a trial without needs: one draw from its own seed."""
    import random

    from microtome.runs import seed_for

    return random.Random(seed_for(trial, "data")).random()


def test_a_trial_that_kills_every_worker_is_recorded_as_failed(tmp_path):
    trial = toy("kill_own_worker", seed=1, times=99, where={"log": tmp_path / "log"})
    result = run_local([trial, *sweep(6)], tmp_path / "run")
    record = result.records[trial.hash]
    assert (record.status, record.attempts) == ("failed", 3)
    assert "its worker died 3 times, last by SIGKILL" in record.error
    assert result.n_ok == 6
    assert len((tmp_path / "log").read_text().split()) == 3


def test_failed_trials_are_kept_and_run_again_only_when_asked(tmp_path):
    mended, log = tmp_path / "mended", tmp_path / "log"
    trial = toy("fail_until_mended", where={"mended": mended, "log": log})
    folder = tmp_path / "run"
    assert run_local([trial], folder, workers=0).failed[0].status == "failed"
    mended.touch()
    assert run_local([trial], folder, workers=0).n_run == 0
    result = run_local([trial], folder, workers=0, retry_failed=True)
    assert (result.ok, result.n_run) == (True, 1)
    assert run_local([trial], folder, workers=0, retry_failed=True).n_run == 0
    assert len(log.read_text().split()) == 2


def test_workers_get_their_share_of_threads_and_their_noise_stays_out(tmp_path, capfd, monkeypatch):
    for name in (*COUNTS, *POLICIES):
        monkeypatch.delenv(name, raising=False)
    result = run_local([toy("environment", i=i) for i in range(4)], tmp_path, workers=2)
    assert {row["threads"] for row in result.rows} == {str(max(1, n_cores() // 2))}
    assert {row["device"] for row in result.rows} == {"cpu"}
    assert {row["waiting"] for row in result.rows} == {"None 2000"}
    assert os.getpid() not in {row["pid"] for row in result.rows}
    assert "noise" not in "".join(capfd.readouterr())


def test_workers_take_the_threads_and_the_waiting_that_a_user_has_set(tmp_path, monkeypatch):
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    result = run_local([toy("environment")], tmp_path, workers=2)
    assert (result.rows[0]["threads"], result.rows[0]["waiting"]) == ("3", "ACTIVE None")
    assert result.facts["threads"] == 3


def test_short_trials_behind_a_long_one_are_taken_back(tmp_path, monkeypatch):
    # Trials so short that they are handed out in piles, and a long one in the midst of them.
    monkeypatch.setattr(worker_process, "LONG_SECONDS", 0.1)
    short = [toy("trivial", i=i) for i in range(300)]
    long = toy("measure", seed=0, seconds=4.0)
    trials = [*short[:200], long, *short[200:]]
    finished_before_long = []

    class Watching(LocalExecutor):
        def next_finished(self, timeout):
            events = super().next_finished(timeout)
            finished_before_long.extend(event.hash for event in events)
            return events

    result = run(trials, tmp_path, {}, executor=Watching(workers=2), progress=False)
    assert result.ok
    assert finished_before_long[-1] == long.hash


def test_needed_files_reach_those_who_need_them(tmp_path):
    source = toy("measure", seed=5, checkpoint=True)
    reader = toy("read_need", needs=[source.hash])
    result = run_local([reader, source], tmp_path)
    value = value_of(source)
    (row,) = [row for row in result.rows if row.get("weights")]
    assert row["weights"] == source.hash
    assert row["total"] == pytest.approx(4 * value + 6)
    alone = run_here(reader, needs=result)
    assert alone.rows[0]["weights"] == source.hash
    with pytest.raises(RequestError, match="needs 1 other"):
        run_here(reader)


def test_workers_that_cannot_start_stop_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "microtome.runs.worker_process._BOOT", "raise SystemExit('no worker today')"
    )
    with pytest.raises(RunError, match="workers can't be started") as stop:
        run_local(sweep(2), tmp_path)
    assert "no worker today" in stop.value.hint


def test_one_slot_per_device_and_its_number_in_the_environment(monkeypatch):
    from microtome.runs.worker_process import _environment

    assert default_workers(["cuda:0", "cuda:1"]) == 2
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    variables, device = _environment("cuda:1", 3)
    assert (variables["CUDA_VISIBLE_DEVICES"], device) == ("1", "cuda")
    assert variables["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize("workers", [-1])
def test_a_negative_number_of_workers_is_refused(tmp_path, workers):
    with pytest.raises(RequestError, match="workers must be 1 or more"):
        run_local(sweep(1), tmp_path, workers=workers)
