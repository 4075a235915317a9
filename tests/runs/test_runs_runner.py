"""The runner over a mock executor: order, needs, skipping, what is handed on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from toy_trials import sweep, toy

import microtome.runs
from microtome.errors import RequestError
from microtome.runs import Trial, open_run, run
from microtome.runs.executor import InlineExecutor, Outcome, ReadyTrial, Report
from microtome.runs.local import LocalExecutor
from microtome.runs.order import check_acyclic

SOURCES = sorted(Path(microtome.runs.__file__).parent.glob("*.py"))


class MockExecutor:
    """Finishes tasks in a chosen order, with canned statuses; notes what it was asked."""

    threads = 1

    def __init__(self, statuses=None, *, last_first=False) -> None:
        self.statuses = statuses or {}
        self.last_first = last_first
        self.submitted: list[Trial] = []
        self.waiting: list = []
        self.closed = False

    def submit(self, task) -> None:
        self.submitted.append(task.trial)
        self.waiting.append(task)

    def next_finished(self, timeout):
        task = self.waiting.pop(-1 if self.last_first else 0)
        status = self.statuses.get(task.trial.hash, "ok")
        total = sum(need.summary["n"] for need in task.needs) + 1
        return [Outcome(task.trial.hash, status, [{"n": total}], {"n": total})]

    def close(self) -> None:
        self.closed = True


def chain(length: int) -> list[Trial]:
    """Each trial needs the one before."""
    trials: list[Trial] = []
    for i in range(length):
        trials.append(toy("trivial", i=i, needs=[trials[-1].hash] if trials else []))
    return trials


def run_mock(trials, folder, executor, **options):
    return run(trials, folder, {}, executor=executor, progress=False, **options)


def test_what_is_needed_runs_first_whatever_the_order_given(tmp_path):
    trials, executor = chain(6), MockExecutor()
    result = run_mock(reversed(trials), tmp_path, executor)
    assert executor.submitted == trials
    assert executor.closed
    assert [row["n"] for row in result.rows] == [6, 5, 4, 3, 2, 1]  # in the order given


def test_rows_stand_in_the_order_of_trials_not_of_finishing(tmp_path):
    trials = [toy("trivial", i=i) for i in range(5)]
    first = run_mock(trials, tmp_path / "a", MockExecutor())
    second = run_mock(trials, tmp_path / "b", MockExecutor(last_first=True))
    assert list(first.records) == list(second.records) == [trial.hash for trial in trials]


def test_equal_trials_run_once(tmp_path):
    executor = MockExecutor()
    run_mock([*sweep(1), *sweep(1)], tmp_path, executor)
    assert len(executor.submitted) == 1


@pytest.mark.parametrize("status", ["failed", "diverged", "timeout"])
def test_what_needs_a_failed_trial_is_blocked_and_runs_when_it_succeeds(tmp_path, status):
    trials = chain(4)
    bad = MockExecutor({trials[1].hash: status})
    result = run_mock(trials, tmp_path, bad)
    statuses = [result.records[trial.hash].status for trial in trials]
    assert statuses == ["ok", status, "blocked", "blocked"]
    assert result.records[trials[2].hash].error == f"needs {trials[1].hash}, which is {status}"
    assert result.records[trials[3].hash].error == f"needs {trials[2].hash}, which is blocked"
    again = run_mock(trials, tmp_path, MockExecutor())
    assert again.n_run == 0  # failed trials are kept, and block as before
    assert again.records == result.records
    mended = MockExecutor()
    assert run_mock(trials, tmp_path, mended, retry_failed=True).ok
    assert mended.submitted == trials[1:]


def test_a_need_may_be_stored_already(tmp_path):
    trials = chain(3)
    run_mock(trials[:2], tmp_path, MockExecutor())
    executor = MockExecutor()
    result = run_mock(trials[2:], tmp_path, executor)
    assert executor.submitted == trials[2:]
    assert result.records[trials[2].hash].summary == {"n": 3}
    assert len(result.records) == 3  # the earlier trials still belong to the run
    whole = run_mock(trials[1:], tmp_path, MockExecutor(), whole=True)
    assert [*whole.records] == [trial.hash for trial in trials[1:]]
    assert [*open_run(tmp_path).records] == [*whole.records]
    assert run_mock(trials, tmp_path, MockExecutor()).n_run == 0  # their records are kept


def test_a_need_that_nobody_gives_is_refused(tmp_path):
    with pytest.raises(RequestError, match="neither among the 1 trials nor in the run"):
        run_mock(chain(2)[1:], tmp_path, MockExecutor())


def test_a_circle_of_needs_is_refused():
    with pytest.raises(RequestError, match=r"circle: (a|b|c) → "):
        check_acyclic({"a": ["b"], "b": ["c"], "c": ["a"]})
    check_acyclic({"a": ["b", "c"], "b": ["c"], "c": []})


def test_a_need_among_two_is_not_enough(tmp_path):
    first, second = toy("trivial", i=1), toy("trivial", i=2)
    both = toy("trivial", i=3, needs=[first.hash, second.hash])
    executor = MockExecutor({second.hash: "failed"})
    result = run_mock([both, first, second], tmp_path, executor)
    assert both not in executor.submitted
    assert result.records[both.hash].status == "blocked"


def test_a_trial_blocked_twice_counts_once(tmp_path, capsys):
    first, second = toy("trivial", i=1), toy("trivial", i=2)
    both = toy("trivial", i=3, needs=[first.hash, second.hash])
    executor = MockExecutor({first.hash: "failed", second.hash: "timeout"})
    result = run([both, first, second], tmp_path, {}, executor=executor)
    assert result.records[both.hash].error == f"needs {first.hash}, which is failed"
    assert "3/3 trials, 3 failed" in capsys.readouterr().err


def test_a_function_of_a_notebook_is_refused_where_workers_must_import_it(tmp_path):
    with pytest.raises(RequestError, match="notebook"):
        run([Trial("__main__:measure")], tmp_path, {}, workers=1)
    assert not tmp_path.joinpath("run.json").exists()


def test_an_unknown_executor_is_refused_by_name(tmp_path):
    with pytest.raises(RequestError, match="executor must be local or ray, got 'slurm'"):
        run([], tmp_path, {}, executor="slurm")


def test_no_trials_make_an_empty_run(tmp_path):
    result = run([], tmp_path, {}, workers=0, progress=False)
    assert (result.ok, result.rows) == (True, [])
    assert (tmp_path / "results.parquet").exists()


@pytest.mark.parametrize(
    "make", [lambda: InlineExecutor(threads=1), lambda: LocalExecutor(workers=1)]
)
def test_executors_hand_on_what_a_trial_reports_before_its_outcome(make, tmp_path):
    executor, events = make(), []
    trial = toy("report", seconds=0.1)
    executor.submit(ReadyTrial(trial, [], tmp_path / "scratch"))
    while len(events) < 2:
        events += executor.next_finished(1.0)
    executor.close()
    assert events[0] == Report(trial.hash, "step 1", {"loss": 0.5})
    assert events[1].status == "ok"
    assert executor.next_finished(0.0) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_ray_is_imported_in_one_file_and_no_model_library_anywhere(path):
    tree = ast.parse(path.read_text())
    imported = {
        alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names
    }
    imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) if n.module}
    roots = {name.split(".")[0] for name in imported}
    assert not roots & {"torch", "transformers", "joblib"}
    assert ("ray" in roots) == (path.name == "ray_executor.py")
    ours = {name for name in imported if name.startswith("microtome.")}
    parts = {".".join(name.split(".")[:2]) for name in ours}
    assert parts <= {
        f"microtome.{part}" for part in ("runs", "errors", "files", "requests", "threads")
    }


def test_the_public_names_are_these():
    assert sorted(microtome.runs.__all__) == [
        "Context", "Diverged", "Executor", "Need", "Record", "Result", "RunResult", "Stopped",
        "Trial", "open_run", "run", "run_here", "seed_for",
    ]  # fmt: skip
    assert all(getattr(microtome.runs, name).__doc__ for name in microtome.runs.__all__)
