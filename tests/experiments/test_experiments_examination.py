"""The examination as a whole: parts that fail or are left out, resumption, requests."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from html import escape, unescape
from pathlib import Path

import pytest

from microtome import examination
from microtome.cli import run
from microtome.examination import Examination
from microtome.experiments import all_experiments, find_experiment, subject_of
from microtome.report import Page
from microtome.study import Study, StudyPart, Wanted, Workers, study
from microtome.tasks import DataSpec, open_data
from microtome.views import Table
from support.labelled_texts import write_cats
from support.tiny import save_tiny
from support.training_rows import checkpoint, rows

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def data(tmp_path):
    return write_cats(tmp_path / "rows.csv")


def examined(capsys, *arguments, code=0):
    assert run(["examine", *map(str, arguments), "--workers", "0", "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_model_without_a_head_is_fine_tuned_first_and_examined(tmp_path, data, capsys):
    model = save_tiny(tmp_path / "base", "bert", with_tokenizer=True)
    document = examined(capsys, model, "--data", data, "--out", tmp_path / "run")
    assert {"model", "task", "run", "report", "parts"} <= set(document)
    assert {part["experiment"]: part["status"] for part in document["parts"]} == {
        "trim": "done",
        "layer-removal": "done",
        "head-disabling": "done",
        "decoding": "done",
    }
    parts = [part["experiment"] for part in document["parts"]]
    assert parts.index("layer-removal") < parts.index("head-disabling")
    assert (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "run" / "results.parquet").exists()
    first = (tmp_path / "run" / "report.html").read_bytes()
    assert run(["report", str(tmp_path / "run")]) == 0
    assert (tmp_path / "run" / "report.html").read_bytes() == first


def test_a_page_leads_to_a_checkpoint(tmp_path, capsys, monkeypatch):
    """What was trained and where it is; the lines to type work as they are printed."""
    monkeypatch.chdir(tmp_path)
    rows(tmp_path, n=200)
    recipe = ["--epochs", 6, "--learning-rate", 3e-3, "--batch-size", 16, "--fraction", 150]
    given = ["--data", "single-200-0.jsonl", "--labels", "yes,no", "--out", "run", *recipe]
    leave = ["--without", "head-disabling", "--without", "decoding"]
    examined(capsys, checkpoint(tmp_path / "base"), *given, *leave)
    page = unescape((tmp_path / "run" / "report.html").read_text())
    assert "it was fine-tuned here on 150 rows (seed 0)" in page
    assert "accuracy on 40 rows" in page
    (tuned,) = set(re.findall(r"checkpoints/\w+/model", page))
    (operate,) = set(re.findall(r"microtome operate [^<]*", page))
    assert tuned in operate
    (finetune,) = set(re.findall(r"microtome finetune my-smaller-model [^<]*", page))
    monkeypatch.chdir("run")
    (trim,) = set(re.findall(r"microtome trim [^<]*", page))
    for line in (operate, finetune, f"{trim} --steps 1 --layers 1 --lose 99"):
        assert run(shlex.split(line)[1:]) == 0
    assert trim.split()[2] == tuned
    assert Path("my-trimmed-model", "config.json").exists()
    card = Path("my-smaller-model", "README.md").read_text()
    assert "Its weights were fine-tuned on `single-200-0.jsonl`." in card
    first, again = (
        json.loads(Path(folder, "finetuning.json").read_text())["request"]
        for folder in (tuned, "my-smaller-model-tuned")
    )
    for same in ("rows", "dev_rows", "epochs", "learning_rate", "batch_size"):
        assert first[same] == again[same]


def test_without_a_training_the_lines_are_for_where_the_run_was_started(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows(tmp_path, n=80)
    tuned = ["finetune", checkpoint(tmp_path / "base"), "--data", "single-80-0.jsonl"]
    tuned += ["--epochs", 6, "--learning-rate", 3e-3, "--out", "tuned"]
    assert run([str(word) for word in tuned]) == 0
    capsys.readouterr()
    leave = ["--without", "head-disabling", "--without", "decoding", "--without", "trim"]
    examined(capsys, "tuned", "--data", "single-80-0.jsonl", "--out", "run", *leave)
    page = unescape((tmp_path / "run" / "report.html").read_text())
    assert "(where this run was started)" in page
    for command in ("operate tuned", "finetune my-smaller-model"):
        (line,) = set(re.findall(rf"microtome {command} [^<]*", page))
        assert run(shlex.split(line)[1:]) == 0


def test_parts_can_be_left_out(tmp_path, data, capsys):
    model = save_tiny(
        tmp_path / "base", "bert", "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )  # fmt: skip
    out = tmp_path / "run"
    leave = ["--without", "layer-removal", "--without", "head-disabling"]
    document = examined(capsys, model, "--data", data, "--out", out, *leave)
    statuses = {part["experiment"]: part["status"] for part in document["parts"]}
    assert statuses["decoding"] == "done"
    assert statuses["layer-removal"] == statuses["head-disabling"] == "left out"


def test_a_failing_part_is_reported_and_the_rest_goes_on(tmp_path, data, capsys, monkeypatch):
    model = save_tiny(
        tmp_path / "base", "bert", "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )  # fmt: skip

    def broken(*arguments, **options):
        raise ValueError("made to fail")

    monkeypatch.setattr("microtome.experiments.kao.layer_removal.measure.cuts_of", broken)
    document = examined(capsys, model, "--data", data, "--out", tmp_path / "run")
    parts = {part["experiment"]: part for part in document["parts"]}
    assert parts["layer-removal"]["status"] == "failed"
    assert "made to fail" in parts["layer-removal"]["finding"]
    assert parts["head-disabling"]["status"] == parts["decoding"]["status"] == "done"


def test_wrong_requests_are_one_line(tmp_path, data, capsys):
    model = save_tiny(tmp_path / "base", "bert", with_tokenizer=True)
    for options, word in (
        (["--profile", "slow"], "quick"),
        (["--without", "nothing"], "head-disabling"),
        (["--data", "gone.csv"], "gone.csv"),
    ):
        given = options if "--data" in options else ["--data", str(data), *options]
        assert run(["examine", str(model), *given]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert word in lines[0]
    assert run(["run", "magic", "--model", str(model), "--data", str(data)]) == 2
    assert "decoding" in capsys.readouterr().err


def test_experiments_are_listed_with_their_columns(capsys):
    assert run(["list", "experiments", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [item["name"] for item in items] == [one.name for one in all_experiments()]
    for item in items:
        assert {"section", "columns", "options"} <= set(item)


HOSTILE = "<script>alert(1)</script>"


def decoded_part(problems=()):
    """A part with rows made here: three depths of a text that is hostile."""
    rows = [
        {
            "layers": 2, "depth": depth, "accuracy": share, "first_token_accuracy": share,
            "low": share - 0.1, "high": share + 0.05, "control": 0.25, "readout": "mlm", "n": 40,
            "input": f"a {HOSTILE}", "decoded": f"b {HOSTILE}",
        }
        for depth, share in enumerate((0.95, 0.875, 0.75))
    ]  # fmt: skip
    return StudyPart(find_experiment("decoding"), tuple(rows), problems)


def test_a_part_shows_itself_in_a_notebook(tmp_path):
    part = decoded_part()
    html = part._repr_html_()
    assert escape(part.experiment.question) in html
    assert escape(part.finding) in html
    assert html.count("<svg") >= 1
    assert "Tokens that come back at every depth" in html
    assert HOSTILE not in html
    assert escape(HOSTILE) in html
    both = Study(None, tmp_path, (part, part), None)._repr_html_()
    assert both == html + html


def test_a_part_that_failed_shows_why(tmp_path):
    html = decoded_part(problems=(f"decode: {HOSTILE}",))._repr_html_()
    assert escape(f"not measured: decode: {HOSTILE}") in html
    assert "<svg" not in html


def test_an_examination_shows_its_front_page_in_a_notebook(tmp_path):
    part = decoded_part()
    table = Table("What may be cut", ("variant", "score"), ((HOSTILE, 0.8125),), ("score",))
    page = Page("Examination of m on t", "m", "t", ("An answer & more.",), (), (table,))
    study = Study(None, tmp_path, (part,), None)
    html = Examination(study, page, tmp_path / "report.html")._repr_html_()
    for text in ("Examination of m on t", "An answer &amp; more.", "What may be cut", "81.2"):
        assert text in html
    assert HOSTILE not in html


def test_more_rows_are_measured_where_a_pass_over_them_is_cheap(tmp_path):
    small = examination.request("nano-bert", DataSpec("micro-entailment"))
    assert len(small.subject.dataset) == min(2000, len(open_data(DataSpec("micro-entailment"))))
    asked = examination.request("nano-bert", DataSpec("micro-entailment", limit=50))
    assert len(asked.subject.dataset) == 50
    wide = save_tiny(
        tmp_path / "wide", "bert", with_tokenizer=True, hidden_size=1024, intermediate_size=4096
    )
    assert len(examination.request(str(wide), DataSpec("micro-entailment")).subject.dataset) == 400


def test_heads_are_disabled_on_as_many_rows_as_their_work_pays_for(tmp_path, monkeypatch):
    """Two layers of 2 heads: 4 heads take 6 layers, three passes of the model over a row."""
    model = save_tiny(tmp_path / "base", "bert", "classification", with_tokenizer=True)
    data = DataSpec(path=write_cats(tmp_path / "cats.csv", 600), label_column="label")

    def rows_for(work):
        quick = replace(examination.PROFILES["quick"], head_work=work)
        monkeypatch.setitem(examination.PROFILES, "quick", quick)
        wanted = examination.request(str(model), data).wanted
        (heads,) = (one for one in wanted if one.name == "head-disabling")
        return heads.rows_at_most

    assert rows_for(0.0) == examination.LEAST_HEAD_ROWS
    assert rows_for(None) is None
    many, twice = rows_for(1e10), rows_for(2e10)
    assert many > examination.LEAST_HEAD_ROWS
    assert twice == pytest.approx(2 * many, abs=1)


def test_an_experiment_may_read_fewer_rows_than_are_measured(tmp_path):
    subject = subject_of("nano-bert", DataSpec("micro-sentiment", limit=60))
    few = subject_of("nano-bert", DataSpec("micro-sentiment", limit=20))
    workers = Workers(n_workers=0, progress=False)
    fewer = study(subject, [Wanted("decoding", rows_at_most=20)], tmp_path / "a", workers=workers)
    same = study(few, [Wanted("decoding")], tmp_path / "b", workers=workers)
    assert fewer.parts[0].rows == same.parts[0].rows
