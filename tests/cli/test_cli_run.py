"""``microtome run``: each experiment's own options, read from its list; errors in one line."""

from __future__ import annotations

import csv
import json

import pyarrow.parquet
import pytest

from microtome.cli import run
from microtome.cli.experiment_options import read_options
from microtome.errors import RequestError
from microtome.experiments import all_experiments, find_experiment, subject_of
from microtome.experiments.kit.options import Option
from microtome.tasks import DataSpec, open_training
from support.labelled_texts import write_cats
from support.tiny import WORDS, save_tiny


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def refused(capsys, *arguments):
    """The one line of a wrong request; its JSON must say the same, in the fixed shape."""
    assert run(["run", *arguments]) == 2
    heard = capsys.readouterr()
    assert heard.out == ""
    (line,) = heard.err.splitlines()
    assert run(["run", *arguments, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"schema_version", "error"}
    assert set(document["error"]) == {"kind", "message", "hint"}
    assert document["error"]["kind"] == "RequestError"
    assert document["error"]["message"] in line
    assert document["error"]["hint"] in line
    return line


WRONG = [
    (["--speed", "3"], "head-disabling has no option '--speed'", "run head-disabling --help"),
    (["--splits"], "--splits needs a value", "halves"),
    (["--splits", "many"], "--splits expects a whole number", "got 'many'"),
    (["--splits=2.5"], "--splits expects a whole number", "got '2.5'"),
    (["--learning-rate", "nan"], "--learning-rate expects a number", "got 'nan'"),
    (["stray"], "head-disabling has no option 'stray'", "--help"),
]


@pytest.mark.parametrize(("given", "problem", "remedy"), WRONG)
def test_a_wrong_option_is_named_with_what_was_wanted(capsys, given, problem, remedy):
    line = refused(capsys, "head-disabling", "--model", "nowhere", *given)
    assert problem in line
    assert remedy in line


def test_a_flag_takes_no_value(capsys):
    line = refused(capsys, "decoding", "--model", "nowhere", "--special=yes")
    assert "--special takes no value, got 'yes'" in line


def test_the_best_is_saved_by_head_disabling_alone(capsys, tmp_path):
    line = refused(capsys, "decoding", "--model", "nowhere", "--save-best", str(tmp_path / "best"))
    assert "decoding has no option '--save-best'" in line


def test_what_run_itself_needs_is_asked_for(capsys):
    assert "no experiment is named" in refused(capsys)
    assert "no model is named" in refused(capsys, "decoding", "--task", "micro-sentiment")
    assert "decoding" in refused(capsys, "magic", "--model", "nowhere")
    alone = refused(capsys, "decoding", "--model", "m", "--task", "rte", "--dev-data", "dev.csv")
    assert "--dev-data goes with a --data FILE" in alone


@pytest.mark.parametrize("experiment", all_experiments(), ids=lambda one: one.name)
def test_the_help_of_an_experiment_names_its_question_and_options(capsys, experiment):
    assert run(["run", experiment.name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--model" in text
    assert experiment.question in text
    own = text[text.index(experiment.question) :]
    for option in experiment.options:
        assert option.flag in own
        assert option.help in own


def test_options_are_read_by_kind():
    experiment = find_experiment("head-disabling")
    words = ["--how", "zero", "--splits=7", "--learning-rate", "2e-5"]
    assert read_options(experiment, words) == {"how": "zero", "splits": 7, "learning_rate": 2e-5}
    assert read_options(find_experiment("decoding"), ["--special"]) == {"special": True}
    assert read_options(experiment, []) == {}


KINDS = [
    ("numbers", "0-3,5", [0, 1, 2, 3, 5], ["x", "3-1", ""]),
    ("fractions", "1,0.1,640", [1.0, 0.1, 640.0], ["0", "-1", "1.5", "inf", "1,,2"]),
    ("words", "mrpc, rte", ["mrpc", "rte"], ["", "a,,b"]),
    ("whole", "12", 12, ["1.5", "twelve"]),
    ("number", "1e-3", 0.001, ["inf", "nan", "x"]),
]


@pytest.mark.parametrize(("kind", "text", "value", "wrong"), KINDS)
def test_every_kind_reads_its_own_and_refuses_the_rest(kind, text, value, wrong):
    option = Option("some_name", None, "says what", kind)
    assert option.flag == "--some-name"
    assert option.read(text) == value
    for bad in wrong:
        with pytest.raises(RequestError, match="--some-name expects"):
            option.read(bad)


def test_a_path_must_be_there(tmp_path):
    option = Option("frames", None, "", "path")
    with pytest.raises(RequestError, match="--frames expects a file or folder that exists, got"):
        option.read(str(tmp_path / "gone"))
    assert option.read(str(tmp_path)) == str(tmp_path)


def test_a_folder_is_no_file_and_refused_before_anything_is_trained(capsys, tmp_path):
    option = Option("classifier", None, "", "file")
    (tmp_path / "file").touch()
    assert option.read(str(tmp_path / "file")) == str(tmp_path / "file")
    files = (("attention-patterns", "--classifier"), ("decoding", "--fit-text"))
    for experiment, flag in files:
        given = ["--task", "micro-sentiment", flag, str(tmp_path), "--out", str(tmp_path / "run")]
        assert run(["run", experiment, "--model", "nano-bert", *given]) == 2
        assert f"{flag} expects a file that exists, got" in capsys.readouterr().err


def write_rows(path, first, n_rows):
    texts = [f"{WORDS[i % len(WORDS)]} {WORDS[(7 * i) % len(WORDS)]}" for i in range(n_rows)]
    rows = [(text, ("no", "yes")[i % 2]) for i, text in enumerate(texts, start=first)]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *rows])
    return path


def test_a_second_file_is_measured_and_the_first_is_for_training(tmp_path):
    model = save_tiny(tmp_path / "base", "bert", with_tokenizer=True)
    train, dev = write_rows(tmp_path / "a.csv", 0, 30), write_rows(tmp_path / "b.csv", 1, 12)
    subject = subject_of(str(model), DataSpec(path=train, dev_path=dev))
    learnt, measured = open_training(subject.data)
    assert (len(learnt), len(measured), len(subject.dataset)) == (30, 12, 12)
    assert subject.dataset.content_hash == measured.content_hash

    experiment = find_experiment("head-disabling")

    def hashes():
        again = subject_of(str(model), DataSpec(path=train, dev_path=dev))
        return [trial.hash for trial in experiment.plan(again, experiment.settings({}))]

    before = hashes()
    assert before == hashes()
    write_rows(train, 0, 31)  # other rows to learn from: every trial after it is another one
    assert not set(before) & set(hashes())


def test_rows_to_learn_from_count_where_the_measured_ones_stay_the_same(tmp_path):
    """One file, split 80/20: a changed training row changes the fine-tuning."""
    model = save_tiny(tmp_path / "base", "bert", with_tokenizer=True)
    path = write_rows(tmp_path / "a.csv", 0, 40)
    subject = subject_of(str(model), DataSpec(path=path))
    before = subject.training.content_hash
    position = open_training(subject.data)[0].positions[0]
    lines = path.read_text().splitlines()
    text, label = lines[position + 1].split(",")
    lines[position + 1] = f"{text},{'yes' if label == 'no' else 'no'}"
    path.write_text("\n".join(lines))
    changed = subject_of(str(model), DataSpec(path=path))
    assert changed.dataset.content_hash == subject.dataset.content_hash
    assert changed.training.content_hash != before


def test_examine_measures_the_second_file(tmp_path, capsys):
    model = save_tiny(
        tmp_path / "model", "bert", "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )  # fmt: skip
    train, dev = write_rows(tmp_path / "a.csv", 0, 30), write_rows(tmp_path / "b.csv", 1, 12)
    words = ["examine", model, "--data", train, "--dev-data", dev, "--out", tmp_path / "run"]
    words += ["--without", "head-disabling", "--without", "decoding", "--workers", "0", "--json"]
    assert run([str(word) for word in words]) == 0
    capsys.readouterr()
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "run" / "results.parquet")
    assert {n for n in table["n"].to_pylist() if n is not None} == {6, 12}  # a trim's half


def test_every_row_of_a_document_has_all_columns(tmp_path, capsys):
    """As results.parquet has them: null where one doesn't apply."""
    model = save_tiny(
        tmp_path / "base", "bert", "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )  # fmt: skip
    data = write_cats(tmp_path / "rows.csv", 40)
    asked = ["run", "layer-removal", "--model", str(model), "--data", str(data)]
    assert run([*asked, "--workers", "0", "--out", str(tmp_path / "run"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len({tuple(row) for row in rows}) == 1
    stored = pyarrow.parquet.read_table(tmp_path / "run" / "results.parquet").column_names
    assert set(rows[0]) <= set(stored)
