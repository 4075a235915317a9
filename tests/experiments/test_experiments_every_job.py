"""Every experiment on every kind of data: it works, or refuses in a line before anything runs."""

from __future__ import annotations

import json

import pytest

from microtome.cli import run
from microtome.tasks.embedded import ROLE_TAGS, TOPICS
from support.sentence_folders import sentence_folder
from support.tiny import save_tiny

pytestmark = pytest.mark.usefixtures("own_folder")

TASKS = {
    "tokens": "micro-tagging",
    "multilabel": "micro-topics",
    "similarity": "micro-similarity",
    "retrieval": "micro-retrieval",
    "reranking": "micro-reranking",
}
# Of 16 rows; a question of reranking has four of them.
N_UNITS = {"tokens": 16, "multilabel": 16, "similarity": 16, "retrieval": 16, "reranking": 4}
TRAINED = ("--epochs", "1", "--least-steps", "3")
OPTIONS = {
    "duplication": (*TRAINED, "--fraction", "16", "--layers", "4", "--seeds", "0,1"),
    "reinitialization": (*TRAINED, "--fractions", "16", "--counts", "0-2", "--seeds", "0"),
    "weight-drift": (*TRAINED, "--fractions", "16", "--seeds", "0"),
    "attention-drift": (*TRAINED, "--fraction", "16", "--seeds", "0"),
    "attention-patterns": (*TRAINED, "--fraction", "16", "--examples", "8"),
    "initialization": (*TRAINED, "--fraction", "16", "--seeds", "0", "--heads", "2"),
    "frozen-probing": ("--epochs", "1", "--fractions", "16", "--seeds", "0"),
    "decoding": (),
}
ENCODER, OWN = "an encoder", "a model of the job"
REFUSED = {  # all jobs that aren't named here work
    ("frozen-probing", OWN): "one label or number per text",
    ("attention-drift", OWN): "name that one: --base",
    ("initialization", OWN): "is fine-tuned already",
}
SCORED = ("duplication", "reinitialization", "initialization")
LOOKED_AT_AS_IS = ("frozen-probing", "attention-drift", "initialization")
CASES = [
    (experiment, kind, which)
    for experiment in OPTIONS
    for kind in TASKS
    for which in ((ENCODER, OWN) if experiment in LOOKED_AT_AS_IS else (OWN,))
    # A probe of an encoder reads similarity as regression, and refuses the others alike.
    if (experiment, which) != ("frozen-probing", ENCODER)
]


def named(labels):
    names = dict(enumerate(labels))
    return {"id2label": names, "label2id": {name: index for index, name in names.items()}}


def model_of(kind, folder):
    """A tiny model that does the job as it is."""
    if kind in ("similarity", "retrieval"):
        return sentence_folder(folder)
    head, config = "classification", {"num_labels": 1}
    if kind == "tokens":
        head, config = "token-classification", named(ROLE_TAGS)
    if kind == "multilabel":
        config = {"problem_type": "multi_label_classification", **named(TOPICS)}
    return save_tiny(folder, "bert", head, with_tokenizer=True, **config)


def asked(capsys, *arguments):
    code = run([*map(str, arguments), "--workers", "0", "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("experiment", "kind", "which"), CASES)
def test_an_experiment_works_or_refuses_in_a_line(tmp_path, capsys, experiment, kind, which):
    if which == OWN:
        model = model_of(kind, tmp_path / "model")
    else:
        model = save_tiny(tmp_path / "model", "bert", "none", with_tokenizer=True)
    out = tmp_path / "run"
    code, document = asked(
        capsys, "run", experiment, "--model", model, "--task", TASKS[kind], "--limit", "16",
        *OPTIONS[experiment], "--out", out,
    )  # fmt: skip
    if (experiment, which) in REFUSED:
        assert code == 2
        told = f"{document['error']['message']}; {document['error']['hint']}"
        assert REFUSED[experiment, which] in told
        assert "\n" not in told
        assert not out.exists()
        return
    assert code == 0, document
    rows = document["rows"]
    assert rows
    scores = [row for row in rows if experiment in SCORED and row.get("primary") == row["metric"]]
    assert {row["n"] for row in scores if row["seed"] is not None} <= {N_UNITS[kind]}
    if experiment == "weight-drift":
        assert all(row["distance"] > 0 for row in rows)
    if experiment == "attention-drift":
        assert min(row["cosine"] for row in rows) < 1
    if experiment == "duplication":
        tuned = {row["layers"] for row in rows if row["stage"] == "finetuned"}
        assert tuned == {3, 4}
        code, document = asked(
            capsys, "run", "ensembling", "--from", out, "--halves", "4", "--out", tmp_path / "e"
        )
        assert code == 0, document
        assert {row["n"] for row in document["rows"]} == {N_UNITS[kind]}


@pytest.mark.parametrize("head", ["none", "mlm"])
def test_an_encoder_that_is_pooled_trains_as_the_embedder_it_is_scored_as(tmp_path, capsys, head):
    model = save_tiny(tmp_path / "model", "bert", head, with_tokenizer=True)
    code, document = asked(
        capsys, "run", "reinitialization", "--model", model, "--task", "micro-similarity",
        "--pooling", "cls", "--limit", "16", *OPTIONS["reinitialization"], "--out", tmp_path / "r",
    )  # fmt: skip
    assert code == 0, document
    assert {row["primary"] for row in document["rows"]} == {"cosine_spearman"}
