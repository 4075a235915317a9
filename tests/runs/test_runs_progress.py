"""What people see: a bar on a terminal, few lines elsewhere, all of it on stderr."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from types import ModuleType

import pytest
from toy_trials import sweep, toy

from microtome.errors import MissingExtra, RequestError
from microtome.runs import progress, run
from microtome.runs.interrupts import how_to_resume
from microtome.runs.progress import Progress, in_words
from microtome.runs.record import Record
from microtome.runs.trackers import TRACKERS, make_tracker, scores_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def record(number: int, status="ok", **fields) -> Record:
    fields = {"label": f"trial {number}", "summary": {"accuracy": number / 10}, **fields}
    return Record(
        hash=str(number), status=status, function="m:f", request={}, content={}, needs=[], **fields
    )


def shown(stream: io.StringIO, records, *, n_trials: int, before=()) -> str:
    trials = {str(number): toy("trivial", i=number) for number in range(n_trials)}
    stored = {one.hash: one for one in before}
    with Progress(stream=stream).over(trials, stored, retry_failed=False) as bar:
        for one in records:
            bar.finished(one)
    return stream.getvalue()


def test_lines_tell_counts_failures_and_the_latest_scores(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    text = shown(io.StringIO(), [record(1), record(2, "failed", error="oh\nno")], n_trials=4)
    lines = text.splitlines()
    assert lines[0] == "microtome: 4 trials"
    assert lines[1].startswith("microtome: 1/4 trials, about 0 s left, trial 1 accuracy=0.1")
    assert lines[2].startswith(
        "microtome: 2/4 trials, 1 failed, about 0 s left, trial 2 failed: oh no"
    )
    assert len(lines) == 4


def test_the_time_left_falls_until_the_next_trial_ends(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    trials = {str(number): toy("trivial", i=number) for number in range(5)}
    with Progress(stream=stream).over(trials, {}, retry_failed=False) as bar:
        now[0] = 60.0
        bar.finished(record(1))  # 4 trials of 60 seconds left
        for now[0] in (80.0, 100.0, 400.0):
            bar.report("trial 2", "half of it", {})
        now[0] = 420.0
        bar.finished(record(2))  # 3 of 210
    left = re.findall(r"about (.+?) left", stream.getvalue())
    assert left == ["4 min", "4 min", "3 min", "10 min"]  # none while a trial is overdue


@pytest.mark.parametrize("terminal", [io.StringIO, Terminal])
def test_the_time_left_never_rises_where_trials_take_what_their_work_says(terminal, monkeypatch):
    """Short trials first: their mean would promise the end before the long ones have begun."""
    now, work = [0.0], [30, 1, 1, 1, 60, 5, 90, 10]
    monkeypatch.setattr(progress, "_BAR_SECONDS", 0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    trials = {
        str(place): replace(toy("trivial", i=place), work=one) for place, one in enumerate(work)
    }
    told: list[str] = []
    monkeypatch.setattr(progress, "in_words", lambda left: told.append(left) or f"{left:.0f} s")
    stream = terminal()
    with Progress(stream=stream).over(trials, {}, retry_failed=False) as bar:
        for place, one in enumerate(work):
            for _ in range(one):
                now[0] += 6.0
                bar.report("trial", "under way", {})
            bar.finished(record(place))
    left = told[:-1] if terminal is io.StringIO else told  # lines end with the time spent
    assert len(left) > 100
    assert left == sorted(left, reverse=True)
    assert left[0] == pytest.approx(6 * sum(work[1:]) - 6, abs=6)


def test_lines_are_few_however_many_trials_there_are():
    text = shown(io.StringIO(), [record(n) for n in range(500)], n_trials=500)
    assert len(text.splitlines()) == 2
    assert "500/500" in text.splitlines()[1]


def test_what_was_done_before_is_counted():
    text = shown(io.StringIO(), [], n_trials=3, before=[record(0), record(1, "timeout")])
    assert text.splitlines()[0] == "microtome: 3 trials, 2 of them done before"
    assert "2/3 trials, 1 failed" in text


def test_a_terminal_gets_a_bar_and_hostile_labels_are_only_text():
    hostile = record(1, label="[red]not markup[/blue] \x1b[2J")
    text = shown(Terminal(), [hostile, record(2, "failed", error="x")], n_trials=2)
    assert "2/2" in text
    assert "1 failed" in text
    assert "\x1b[2J" not in text


def test_progress_goes_to_stderr_and_stdout_stays_clean(tmp_path, capsys):
    run(sweep(3), tmp_path, {}, workers=0)
    said = capsys.readouterr()
    assert said.out == ""
    assert "3/3 trials" in said.err


def test_a_silent_run_says_nothing(tmp_path, capsys):
    run(sweep(3), tmp_path, {}, workers=0, progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (61, "61 s"), (180, "3 min"), (7500, "2 h 5 min")]
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_the_way_to_go_on_is_the_command_that_was_typed(monkeypatch, tmp_path):
    typed = ["/usr/bin/microtome", "run", "decoding", "--model", "my model", "--out", "r"]
    monkeypatch.setattr(sys, "argv", typed)
    expected = "to resume: microtome run decoding --model 'my model' --out r"
    assert how_to_resume(tmp_path) == expected


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_that_is_not_installed_says_how_to_install_it(name, tmp_path, monkeypatch):
    for module in ("tensorboard", "tensorboard.compat.proto.event_pb2", "wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=f"{name} is not installed; pip install {name}"):
        run(sweep(1), tmp_path, {}, workers=0, progress=False, track=name)


def test_an_unknown_tracker_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(RequestError, match="tensorboard, wandb, mlflow"):
        make_tracker("abacus", tmp_path, {})


def test_a_tracker_is_told_every_finished_trial(tmp_path, monkeypatch):
    """wandb is stood in for by a module with the three calls that we make."""
    calls: list = []

    class Run:
        def log(self, scores, step):
            calls.append((step, scores))

        def finish(self):
            calls.append("finished")

    wandb = ModuleType("wandb")
    wandb.init = lambda **settings: calls.append(settings["config"]) or Run()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    result = run(sweep(2), tmp_path, {"n": 2}, workers=0, progress=False, track="wandb")
    values = {one.label: one.summary["value"] for one in result.records.values()}
    assert calls == [
        {"n": 2},
        (1, {"seed 0/value": values["seed 0"]}),
        (2, {"seed 1/value": values["seed 1"]}),
        "finished",
    ]


def test_scores_are_the_numbers_of_a_summary():
    summary = {"accuracy": 0.5, "n": 3, "best": "x", "done": True, "none": None}
    assert scores_of(record(1, summary=summary)) == {"accuracy": 0.5, "n": 3.0}
