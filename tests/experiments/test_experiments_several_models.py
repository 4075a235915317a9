"""Several models in one run, and several runs on one page: each as by itself, figures of all."""

from __future__ import annotations

import csv
import json
import shutil

import pytest

from microtome.cli import run
from microtome.errors import RequestError
from microtome.examination import rebuild
from microtome.experiments import subject_of
from microtome.runs import open_run
from microtome.study import Wanted, Workers, stored_parts, study
from microtome.tasks import DataSpec
from support.training_rows import checkpoint

pytestmark = pytest.mark.usefixtures("own_folder")

SENTIMENT, ACCEPTABILITY = "micro-sentiment", "micro-acceptability"
DECODING = ["run", "decoding", "--readout", "tied", "--limit", "5"]
HERE = Workers(n_workers=0, progress=False)


def refused(capsys, *arguments):
    assert run([str(one) for one in arguments]) == 2
    return capsys.readouterr().err.splitlines()[-1]


def ran(capsys, *arguments):
    code = run([str(one) for one in (*arguments, "--workers", "0", "--json")])
    found = capsys.readouterr()
    assert code == 0, found.err
    return json.loads(found.out)


@pytest.fixture
def models(tmp_path):
    """Two families of different depth."""
    return [
        str(checkpoint(tmp_path / "one")),
        str(checkpoint(tmp_path / "two", "albert", num_hidden_layers=4)),
    ]


def series(folder, pattern):
    (table,) = folder.glob(f"tables/{pattern}.csv")
    return list(csv.DictReader(table.read_text().splitlines()))


def test_every_model_is_measured_on_every_task_as_by_itself(models, tmp_path, capsys):
    tasks = [SENTIMENT, ACCEPTABILITY]
    out = tmp_path / "all"
    every = ran(
        capsys, *DECODING, "--model", ",".join(models), "--tasks", ",".join(tasks), "--out", out
    )
    assert every["models"] == models
    assert every["model"] == ",".join(models)
    assert every["tasks"] == tasks
    page = (out / "report.html").read_text()
    for model, name in zip(models, ("one", "two"), strict=True):
        for task in tasks:
            alone = ran(
                capsys, *DECODING, "--model", model, "--task", task, "--out", tmp_path / name / task
            )
            rows = [r for r in every["rows"] if (r["model"], r["task"]) == (model, task)]
            assert rows
            assert rows == alone["rows"]
            assert every["summary"][model][task] == alone["summary"]
            assert f"{name} on {task}: {alone['finding']}" in every["finding"]
            assert f"decoding of {name} on {task}" in page
    panels = series(out, "front-model-by-model-task-by-task*")
    assert {row["panel"] for row in panels} == set(tasks)
    assert {row["series"].split(":")[0] for row in panels} == {"one", "two"}
    of_rows = {
        (row["model"][-3:], row["task"], float(row["depth"]), row[column])
        for row in every["rows"]
        for column in ("accuracy", "first_token_accuracy")
    }
    shown = {
        (row["series"][:3], row["panel"], float(row["depth"]), float(row["token accuracy"]))
        for row in panels
    }
    assert shown <= of_rows


def test_one_task_of_several_models_has_one_picture(models, tmp_path, capsys):
    out = tmp_path / "run"
    found = ran(capsys, *DECODING, "--model", ",".join(models), "--task", SENTIMENT, "--out", out)
    assert set(found["summary"]) == set(models)
    assert found["task"] == SENTIMENT
    assert "tasks" not in found
    lines = {row["series"].split(":")[0] for row in series(out, "front-model-by-model*")}
    assert lines == {"one", "two"}


def test_more_models_in_the_same_folder_resume_it(models, tmp_path):
    data = DataSpec(SENTIMENT, limit=5)
    three = [*models, str(checkpoint(tmp_path / "three", num_hidden_layers=2))]
    subjects = [subject_of(model, data) for model in three]
    wanted = [Wanted("decoding", {"readout": "tied"})]
    first = study(subjects[:2], wanted, tmp_path / "run", workers=HERE)
    more = study(subjects, wanted, tmp_path / "run", workers=HERE)
    assert (first.result.n_run, more.result.n_run) == (2, 1)
    assert [part.model for part in more.parts] == three
    for model in models:
        assert more.part("decoding", model=model).rows == first.part("decoding", model=model).rows
    assert more.rows("decoding") == tuple(row for part in more.parts for row in part.rows)
    assert {row["model"] for row in more.rows("decoding")} == set(three)
    with pytest.raises(RequestError, match="of a different request: models"):
        study(subjects[1:], wanted, tmp_path / "run", workers=HERE)


def test_stored_parts_are_those_of_the_study(models, tmp_path):
    subjects = [subject_of(model, DataSpec(SENTIMENT, limit=5)) for model in models]
    done = study(subjects, [Wanted("decoding", {"readout": "tied"})], tmp_path / "r", workers=HERE)
    assert stored_parts(open_run(tmp_path / "r")) == done.parts


def test_a_copy_of_a_model_is_refused(models, tmp_path, capsys):
    copy = shutil.copytree(models[0], tmp_path / "copy")
    words = refused(capsys, *DECODING, "--model", f"{models[0]},{copy}", "--task", SENTIMENT)
    assert "copy, its copy on micro-sentiment" in words
    words = refused(capsys, *DECODING, "--model", f"{models[0]},{models[0]}", "--task", SENTIMENT)
    assert "one twice on micro-sentiment" in words
    with pytest.raises(RequestError, match="expected a model, got none"):
        study([], [Wanted("decoding")], tmp_path / "run")


def test_a_task_has_the_checkpoint_that_is_named_for_it(models, tmp_path, capsys):
    tasks = f"{SENTIMENT},{ACCEPTABILITY}"
    options = ["--tasks", tasks, "--out", tmp_path / "run"]
    found = ran(
        capsys, *DECODING, "--model", models[0], "--model-for", f"{ACCEPTABILITY}={models[1]}",
        *options,
    )  # fmt: skip
    assert {(row["model"], row["task"]) for row in found["rows"]} == {
        (models[0], SENTIMENT), (models[1], ACCEPTABILITY),
    }  # fmt: skip
    page = (tmp_path / "run" / "report.html").read_text()
    assert "decoding of two on micro-acceptability" in page
    assert "decoding of one on micro-acceptability" not in page
    assert "decoding of two on micro-sentiment" not in page
    without = ran(
        capsys, *DECODING, "--model-for", f"{SENTIMENT}={models[0]}",
        "--model-for", f"{ACCEPTABILITY}={models[1]}", *options,
    )  # fmt: skip
    assert without["rows"] == found["rows"]


def test_of_several_models_each_has_its_checkpoint_for_a_task(models, tmp_path, capsys):
    third = checkpoint(tmp_path / "three", num_hidden_layers=2)
    found = ran(
        capsys, *DECODING, "--model", ",".join(models), "--tasks", f"{SENTIMENT},{ACCEPTABILITY}",
        "--model-for", f"{ACCEPTABILITY}={third},{models[1]}", "--out", tmp_path / "run",
    )  # fmt: skip
    assert list(dict.fromkeys((row["model"], row["task"]) for row in found["rows"])) == [
        (models[0], SENTIMENT), (str(third), ACCEPTABILITY),
        (models[1], SENTIMENT), (models[1], ACCEPTABILITY),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model-for", "micro-sentiment"], "expects TASK=CHECKPOINT"),
        (["--model-for", "rte=./x"], "the tasks of this run are micro-sentiment"),
        (["--model-for", "micro-sentiment=a,b"], "expects 1 checkpoint, one for each model, got 2"),
        (
            ["--model-for", "micro-sentiment=a", "--model-for", "micro-sentiment=b"],
            "names a task twice",
        ),
        (["--model", "a,,b"], "names with a comma between them"),
    ],
)
def test_wrong_lists_of_models_are_refused(capsys, options, words):
    assert words in refused(capsys, *DECODING, "--task", SENTIMENT, *options)


def test_a_best_head_is_one_models(models, tmp_path, capsys):
    words = refused(
        capsys, "run", "head-disabling", "--model", ",".join(models), "--task", SENTIMENT,
        "--save-best", tmp_path / "best",
    )  # fmt: skip
    assert "a best head is one model's on one task" in words


def test_an_experiment_may_be_on_some_tasks_and_leave_a_model_out(models, tmp_path):
    deep = str(checkpoint(tmp_path / "deep", num_hidden_layers=5))  # more than 4: can't be 4
    subjects = [
        subject_of(model, DataSpec(task, limit=5))
        for model in (models[0], deep)
        for task in (SENTIMENT, ACCEPTABILITY)
    ]
    wanted = [
        Wanted("decoding", {"readout": "tied", "layers": "4"}, optional=True),
        Wanted("attention-patterns", {"epochs": 1, "fraction": 16.0}, tasks=(ACCEPTABILITY,)),
    ]
    done = study(subjects, wanted, tmp_path / "run", workers=HERE)
    found = [(part.experiment.name, part.model, part.task) for part in done.parts]
    assert found == [
        ("decoding", models[0], SENTIMENT), ("decoding", models[0], ACCEPTABILITY),
        ("attention-patterns", models[0], ACCEPTABILITY),
        ("attention-patterns", deep, ACCEPTABILITY),
    ]  # fmt: skip
    assert all(part.status == "done" for part in done.parts)
    left_out = [note for note in done.result.notes if "left out" in note]
    assert [note.partition(" is left out")[0] for note in left_out] == [
        f"decoding of deep on {task}" for task in (SENTIMENT, ACCEPTABILITY)
    ]
    assert {part.name for part in stored_parts(done.result)} == {part.name for part in done.parts}


def test_several_runs_on_one_page_have_the_figures_of_one_run_of_all(models, tmp_path, capsys):
    common = [*DECODING, "--task", SENTIMENT]
    runs = [tmp_path / "a", tmp_path / "b"]
    for model, out in zip(models, runs, strict=True):
        ran(capsys, *common, "--model", model, "--out", out)
    ran(capsys, *common, "--model", ",".join(models), "--out", tmp_path / "all")
    assert run(["report", *map(str, runs), "--out", str(tmp_path / "page"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["runs"] == [str(one) for one in runs]
    assert found["report"] == str(tmp_path / "page" / "report.html")
    fronts = [
        {file.name: file.read_bytes() for file in folder.glob("tables/front-*.csv")}
        for folder in (tmp_path / "page", tmp_path / "all")
    ]
    assert fronts[0]
    assert fronts[0] == fronts[1]
    page = (tmp_path / "page" / "report.html").read_text()
    assert "decoding of one on micro-sentiment" in page
    assert str(open_run(runs[0]).facts["content"]["model"]) in page


def test_runs_of_one_model_and_task_are_named(models, tmp_path, capsys):
    for limit in ("5", "7"):
        ran(
            capsys, "run", "decoding", "--readout", "tied", "--model", models[0],
            "--task", SENTIMENT, "--limit", limit, "--out", tmp_path / f"rows{limit}",
        )  # fmt: skip
    runs = [str(tmp_path / "rows5"), str(tmp_path / "rows7")]
    assert run(["report", *runs, "--out", str(tmp_path / "page")]) == 0
    lines = {row["series"].split(":")[0] for row in series(tmp_path / "page", "front-run-by-run*")}
    assert lines == {"rows5, one", "rows7, one"}


def test_comparisons_and_experiments_share_a_page(models, tmp_path, capsys):
    ran(capsys, *DECODING, "--task", SENTIMENT, "--model", models[0], "--out", tmp_path / "a")
    heads = [
        checkpoint(tmp_path / name, head="classification", num_labels=2, num_hidden_layers=n)
        for name, n in (("x", 2), ("y", 3))
    ]
    ran(capsys, "compare", *heads, "--task", SENTIMENT, "--limit", "9", "--out", tmp_path / "c")
    runs = [str(tmp_path / "a"), str(tmp_path / "c")]
    assert run(["report", *runs, "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "report.html").read_text()
    assert "decoding of one on micro-sentiment" in page
    assert "Comparison of x and y" in page


def test_wrong_pages_of_several_runs_are_refused(models, tmp_path, capsys):
    out = tmp_path / "a"
    ran(capsys, *DECODING, "--task", SENTIMENT, "--model", models[0], "--out", out)
    assert "needs a folder" in refused(capsys, "report", out, tmp_path / "b")
    assert "twice" in refused(capsys, "report", out, out, "--out", tmp_path / "p")
    assert "whose page is there" in refused(capsys, "report", out, tmp_path / "b", "--out", out)
    assert "goes with several runs" in refused(capsys, "report", out, "--out", tmp_path / "p")


def test_ensembles_of_a_run_of_several_models_are_one_models(models, tmp_path, capsys):
    two = [models[0], str(checkpoint(tmp_path / "deep", num_hidden_layers=4))]
    small = ["--limit", "40", "--layers", "4-5", "--fraction", "32", "--epochs", "1"]
    common = ["run", "duplication", *small, "--task", SENTIMENT]
    ran(capsys, *common, "--model", ",".join(two), "--out", tmp_path / "both")
    ran(capsys, *common, "--model", two[1], "--out", tmp_path / "alone")
    asked = ["run", "ensembling", "--halves", "3", "--from"]
    assert "name one: --model" in refused(capsys, *asked, tmp_path / "both")
    found = ran(capsys, *asked, tmp_path / "both", "--model", two[1], "--out", tmp_path / "e")
    alone = ran(capsys, *asked, tmp_path / "alone", "--out", tmp_path / "f")
    assert found["rows"] == alone["rows"]


def test_a_run_without_lists_still_opens(models, tmp_path, capsys):
    """The shape that runs of one model and one task have always had."""
    out = tmp_path / "run"
    found = ran(capsys, *DECODING, "--task", SENTIMENT, "--model", models[0], "--out", out)
    asked = json.loads((out / "run.json").read_text())["request"]
    assert not {"models", "tasks", "subjects"} & asked.keys()
    assert (asked["model"], asked["task"]) == (models[0], SENTIMENT)
    assert "models" not in found
    before = (out / "report.html").read_bytes()
    assert rebuild(out).read_bytes() == before
