"""``microtome evaluate``: official scores of any checkpoint with a fitting head."""

from __future__ import annotations

import csv
import gzip
import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from microtome.cli import run
from support.tiny import WORDS, save_tiny, tiny_tokenizer


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


def sentences(n):
    return [" ".join(WORDS[(7 * i + j) % len(WORDS)] for j in range(2 + i % 6)) for i in range(n)]


def write_csv(path, rows, header=("review", "stars")):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


@pytest.fixture
def model(tmp_path):
    names = {0: "bad", 1: "good"}
    return save_tiny(
        tmp_path / "model", "bert", "classification", with_tokenizer=True,
        id2label=names, label2id={v: k for k, v in names.items()},
    )  # fmt: skip


@pytest.fixture
def reviews(tmp_path):
    return write_csv(
        tmp_path / "mine.csv", [(t, ("bad", "good")[i % 2]) for i, t in enumerate(sentences(30))]
    )


def evaluated(capsys, *arguments):
    assert run(["evaluate", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def predicted_by_plain_transformers(folder, texts):
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = tiny_tokenizer("bert")
    with torch.no_grad():
        return [
            int(model(**tokenizer(text, return_tensors="pt")).logits.argmax()) for text in texts
        ]


COLUMNS = ("--text-column", "review", "--label-column", "stars")


def test_scores_of_own_data_equal_plain_transformers(model, reviews, capsys):
    document = evaluated(capsys, model, "--data", reviews, *COLUMNS)
    answers = predicted_by_plain_transformers(model, sentences(30))
    right = sum(answer == i % 2 for i, answer in enumerate(answers))
    accuracy = document["scores"]["accuracy"]
    assert accuracy["value"] == pytest.approx(right / 30)
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    assert document["primary"] == "accuracy"
    assert {"schema_version", "model", "task", "edits", "seed", "scores", "primary"} <= set(
        document
    )


def test_the_constant_answer_is_next_to_the_scores(model, tmp_path, capsys):
    """Two of three rows are bad: who always says so is right as often."""
    rows = [(text, "bad" if i % 3 else "good") for i, text in enumerate(sentences(30))]
    file = write_csv(tmp_path / "rows.csv", rows)
    document = evaluated(capsys, model, "--data", file, *COLUMNS)
    # F1 is of the good ones: to call all rows good has precision 1/3 and recall 1.
    by_hand = {"accuracy": 2 / 3, "f1": 0.5, "matthews": 0.0}
    assert document["constant_scores"] == pytest.approx(by_hand)
    assert run(["evaluate", str(model), "--data", str(file), *COLUMNS]) == 0
    assert (
        "one constant answer: accuracy 66.67, f1 50.00, matthews 0.00\n" in capsys.readouterr().out
    )


def test_labels_are_matched_by_name_whatever_their_order(tmp_path, reviews, capsys):
    """The same weights under swapped names give the opposite answers."""
    scores = {}
    for name, labels in (("straight", ("bad", "good")), ("swapped", ("good", "bad"))):
        folder = save_tiny(
            tmp_path / name, "bert", "classification", with_tokenizer=True,
            id2label=dict(enumerate(labels)), label2id={v: k for k, v in enumerate(labels)},
        )  # fmt: skip
        document = evaluated(capsys, folder, "--data", reviews, *COLUMNS)
        scores[name] = document["scores"]["accuracy"]["value"]
    assert scores["straight"] + scores["swapped"] == pytest.approx(1.0)
    assert scores["straight"] != pytest.approx(0.5)


def test_a_tasks_native_folder_is_read(model, tmp_path, capsys):
    folder = tmp_path / "SST-2"
    folder.mkdir()
    lines = [f"{text}\t{i % 2}" for i, text in enumerate(sentences(12))]
    (folder / "dev.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    document = evaluated(capsys, model, "--task", "sst2", "--data", folder)
    answers = predicted_by_plain_transformers(model, sentences(12))
    right = sum(answer == i % 2 for i, answer in enumerate(answers))
    assert document["scores"]["accuracy"]["value"] == pytest.approx(right / 12)
    assert document["task"] == "sst2"


def test_limit_measures_so_many_rows(model, reviews, capsys):
    assert run(["evaluate", str(model), "--data", str(reviews), *COLUMNS, "--limit", "7"]) == 0
    assert "7 rows" in capsys.readouterr().err


def test_people_see_a_table(model, reviews, capsys):
    assert run(["evaluate", str(model), "--data", str(reviews), *COLUMNS]) == 0
    printed = capsys.readouterr().out
    assert "accuracy *" in printed
    assert "95 % interval" in printed


def refused(capsys, arguments):
    assert run([str(a) for a in arguments]) == 2
    seen = capsys.readouterr()
    lines = [line for line in seen.err.splitlines() if not line.startswith("evaluating")]
    assert len(lines) == 1, seen.err
    return lines[0]


def test_bad_data_is_one_clear_line(model, reviews, tmp_path, capsys):
    base = ["evaluate", model, "--data"]
    line = refused(capsys, [*base, reviews, "--text-column", "nope", "--label-column", "stars"])
    assert "nope" in line
    assert "review" in line
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert "empty" in refused(capsys, [*base, empty, *COLUMNS])
    packed = tmp_path / "mine.csv.gz"
    packed.write_bytes(gzip.compress(reviews.read_bytes()))
    assert "gz" in refused(capsys, [*base, packed, *COLUMNS])
    broken = tmp_path / "broken.csv"
    broken.write_text('review,stars\nfine,good\n"never closed,good\n')
    assert "line 3" in refused(capsys, [*base, broken, *COLUMNS])
    assert "split" in refused(capsys, [*base, reviews, *COLUMNS, "--split", "dev"])
    assert "sst2" in refused(capsys, ["evaluate", model, "--task", "sts2", "--data", tmp_path])
    assert "no file or folder" in refused(capsys, [*base, tmp_path / "gone.csv", *COLUMNS])


def test_a_head_that_does_not_fit_is_one_clear_line(tmp_path, reviews, capsys):
    three = save_tiny(
        tmp_path / "three", "bert", "classification", with_tokenizer=True, num_labels=3
    )
    line = refused(capsys, ["evaluate", three, "--data", reviews, *COLUMNS])
    assert "3" in line
    assert "2" in line
    headless = save_tiny(tmp_path / "headless", "bert", "mlm", with_tokenizer=True)
    line = refused(capsys, ["evaluate", headless, "--data", reviews, *COLUMNS])
    assert "finetune" in line


def test_a_model_without_a_tokenizer_is_one_clear_line(tmp_path, reviews, capsys):
    bare = save_tiny(tmp_path / "bare", "bert", "classification", id2label={0: "bad", 1: "good"})
    assert "tokenizer" in refused(capsys, ["evaluate", bare, "--data", reviews, *COLUMNS])


def test_the_cache_is_shown_and_cleared(model, reviews, capsys):
    evaluated(capsys, model, "--data", reviews, *COLUMNS)
    assert run(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] > 0
    assert run(["cache", "--clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == 0


BEIR = {
    "corpus.jsonl": '{"_id": "d1", "text": "the cat"}',
    "queries.jsonl": '{"_id": "q1", "text": "cat"}',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td7\t1\n",
}


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        ({"a.conll": "the NOUN\n"}, ["a.conll"], "line 1: expected a tag like O, B-PER or I-PER"),
        ({"a.conll": "the O\n\ncat\n"}, ["a.conll"], "line 3: expected a word and its tag"),
        (BEIR, ["."], "line 2: names the document 'd7', which corpus.jsonl doesn't have"),
        ({"a.csv": "text,label\nx,0.5\n"}, ["a.csv", "--kind", "similarity"], "needs pairs"),
        ({"a.csv": "text,label\nx,y\n"}, ["a.csv", "--kind", "span"], "no data is of kind 'span'"),
        (
            {"a.csv": "text,a,b\nx,1,2\n"},
            ["a.csv", "--label-column", "a,b"],
            "line 2: expected 0 or 1 in 'b', got '2'",
        ),
        ({"a.csv": "text,label\nx,y\n"}, ["a.csv", "--candidates", "run"], "corpus.jsonl"),
    ],
)
def test_data_of_another_kind_than_it_says_is_one_line(
    model, tmp_path, capsys, files, options, said
):
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    command = ["evaluate", model, "--data", folder / options[0], *options[1:]]
    assert said in refused(capsys, command)
