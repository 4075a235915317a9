"""One experiment on several tasks: each as by itself, all in one run, curves in one picture."""

from __future__ import annotations

import csv
import json

import pytest

from microtome.cli import run
from microtome.errors import RequestError, RunError
from microtome.examination import rebuild
from microtome.runs import open_run
from microtome.study import Study, parts_of
from microtome.tasks import DataSpec
from microtome.tasks.data_spec import each_task
from support.training_rows import checkpoint

pytestmark = pytest.mark.usefixtures("own_folder")

OPTIONS = ["--limit", "40", "--counts", "0,3", "--fractions", "64", "--epochs", "1", "--seeds", "0"]


def ran(capsys, *arguments):
    code = run([str(one) for one in (*arguments, "--workers", "0", "--json")])
    found = capsys.readouterr()
    assert code == 0, found.err
    return json.loads(found.out)


def test_every_task_is_measured_as_by_itself(tmp_path, capsys):
    model = checkpoint(tmp_path / "model")
    common = ["run", "reinitialization", "--model", model, *OPTIONS]
    both = ran(
        capsys, *common, "--tasks", "micro-sentiment,micro-acceptability", "--out", tmp_path / "b"
    )
    assert both["task"] == "micro-sentiment,micro-acceptability"
    assert set(both["summary"]) == {"micro-sentiment", "micro-acceptability"}
    for task in both["summary"]:
        alone = ran(capsys, *common, "--task", task, "--out", tmp_path / task)
        assert [row for row in both["rows"] if row["task"] == task] == alone["rows"]
        assert both["summary"][task] == alone["summary"]
        assert f"{task}: {alone['finding']}" in both["finding"]


def test_the_report_has_a_section_per_task_and_one_picture_of_all(tmp_path, capsys):
    model = checkpoint(tmp_path / "model")
    out = tmp_path / "run"
    found = ran(
        capsys, "run", "reinitialization", "--model", model, *OPTIONS,
        "--tasks", "micro-sentiment,micro-acceptability", "--out", out,
    )  # fmt: skip
    page = (out / "report.html").read_text()
    for task in found["summary"]:
        assert f"reinitialization on {task}" in page
    (table,) = out.glob("tables/front-task-by-task*.csv")
    lines = {row["series"] for row in csv.DictReader(table.read_text().splitlines())}
    assert lines == {
        f"{task}: re-initialised, 64 rows" for task in ("micro-sentiment", "micro-acceptability")
    }


def test_each_task_has_its_folder_whatever_its_spelling(tmp_path):
    for name in ("SST-2", "CoLA", "sst2_sentence"):
        (tmp_path / name).mkdir()
    tasks = ["sst2", "cola", "sst2-sentence", "micro-sentiment"]
    found = each_task(DataSpec(path=tmp_path, limit=3), ",".join(tasks))
    assert [one.task for one in found] == tasks
    places = [tmp_path / "SST-2", tmp_path / "CoLA", tmp_path / "sst2_sentence", None]
    assert [one.path for one in found] == places
    assert {one.limit for one in found} == {3}
    with pytest.raises(RequestError, match="no folder for mrpc"):
        each_task(DataSpec(path=tmp_path), "sst2,mrpc")


@pytest.mark.parametrize(
    ("text", "words"),
    [("sst2", "two tasks"), ("sst2,sst2", "twice"), ("sst2,sst3", "no task is called")],
)
def test_wrong_lists_of_tasks_are_refused(text, words):
    with pytest.raises(RequestError, match=words):
        each_task(DataSpec(), text)


@pytest.mark.parametrize(
    ("tasks", "more", "words"),
    [
        ("sst2,cola", ["--task", "sst2"], "options of own data"),
        ("sst2,cola", ["--labels", "no,yes"], "options of own data"),
        ("sst2,cola", ["--pair-column", "b"], "options of own data"),
        ("sst2,cola", ["--data", "rows.csv"], "expected --data to be a folder"),
        ("sst2,cola", ["--save-best", "best"], "has no option"),
        ("micro-sentiment,micro-entailment", ["--data", "rows.csv"], "are embedded"),
    ],
)
def test_several_tasks_are_named_ones(tmp_path, capsys, tasks, more, words):
    arguments = ["run", "reinitialization", "--model", checkpoint(tmp_path / "model")]
    arguments += ["--tasks", tasks, *more]
    assert run([str(one) for one in arguments]) == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_a_best_head_is_one_tasks(tmp_path, capsys):
    arguments = ["run", "head-disabling", "--model", checkpoint(tmp_path / "model")]
    arguments += ["--tasks", "micro-sentiment,micro-acceptability", "--save-best", tmp_path / "b"]
    assert run([str(one) for one in arguments]) == 2
    assert "a best head is one model's on one task" in capsys.readouterr().err.splitlines()[-1]


def test_a_task_without_results_yet_has_a_section_that_says_so(tmp_path, capsys):
    model, out = checkpoint(tmp_path / "model"), tmp_path / "run"
    found = ran(
        capsys, "run", "decoding", "--model", model, "--readout", "tied", "--limit", "5",
        "--tasks", "micro-sentiment,micro-acceptability", "--out", out,
    )  # fmt: skip
    of_second = [row for row in found["rows"] if row["task"] == "micro-acceptability"]
    assert of_second
    for file in (out / "records").iterdir():
        if json.loads(file.read_text())["columns"]["task"] == "micro-acceptability":
            file.unlink()
    rebuild(out)
    page = (out / "report.html").read_text()
    assert "micro-acceptability: not measured yet" in page
    assert "Task by task" not in page
    stored = open_run(out)
    parts = parts_of("decoding", stored)
    with pytest.raises(RunError, match="decoding on micro-acceptability has no rows yet"):
        Study(None, out, tuple(parts), stored).check()


def test_ensembles_of_a_run_of_several_tasks_are_one_tasks(tmp_path, capsys):
    model, run_of_two = checkpoint(tmp_path / "model"), tmp_path / "two"
    small = ["--limit", "40", "--layers", "3-4", "--fraction", "32", "--epochs", "1"]
    common = ["run", "duplication", "--model", model, *small]
    tasks = "micro-sentiment,micro-acceptability"
    ran(capsys, *common, "--tasks", tasks, "--out", run_of_two)
    ran(capsys, *common, "--task", "micro-acceptability", "--out", tmp_path / "one")
    asked = ["run", "ensembling", "--halves", "3", "--from"]
    assert run([str(one) for one in (*asked, run_of_two)]) == 2
    assert "holds micro-acceptability, micro-sentiment" in capsys.readouterr().err
    chosen = ["--task", "micro-acceptability", "--out", tmp_path / "ensembles"]
    found = ran(capsys, *asked, run_of_two, *chosen)
    alone = ran(capsys, *asked, tmp_path / "one", "--out", tmp_path / "alone")
    assert found["rows"] == alone["rows"]
