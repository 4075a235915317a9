"""Every experiment on the embedded model and the embedded text: nothing else is needed."""

from __future__ import annotations

import json

import pytest

from microtome.cli import run
from microtome.experiments import all_experiments

SHORT = ["--epochs", "1", "--fraction", "32"]
TASK = ["--task", "micro-sentiment", "--limit", "16"]
CASES = {
    "attention-drift": [*TASK, *SHORT, "--seeds", "0,1"],
    "attention-patterns": [*TASK, *SHORT],
    "decoding": [*TASK, *SHORT, "--layers", "13", "--finetuned"],
    "duplication": [*TASK, *SHORT, "--layers", "13", "--seeds", "0", "--strategy", "first,last"],
    "frame-relations": ["--limit", "24"],
    "frozen-probing": [*TASK, "--fractions", "64"],
    "head-disabling": [*TASK, *SHORT],
    "head-importance": [*TASK, *SHORT],
    "initialization": [*TASK, *SHORT, "--seeds", "0", "--heads", "2"],
    "layer-removal": [*TASK, *SHORT],
    "layer-similarity": [*TASK, *SHORT, "--finetune", "--other", "nano-albert"],
    "lens": [*TASK, "--fit-rows", "16", "--lens-steps", "3"],
    "linguistic-features": [*TASK, *SHORT, "--finetune"],
    "mdl-probing": [*TASK],
    "patching": [*TASK, "--tries", "2", "--n-pairs", "3"],
    "predictors": [*TASK, *SHORT],
    "reinitialization": [*TASK, "--epochs", "1", "--fractions", "32", "--counts", "0,6,12"],
    "trim": [*TASK, *SHORT, "--steps", "2", "--layers", "3"],
    "token-links": ["--task", "micro-paraphrase", "--limit", "16", *SHORT, "--finetune"],
    "weight-drift": [*TASK, "--epochs", "1", "--fractions", "32", "--seeds", "0"],
}
FROM_ANOTHER_RUN = {"ensembling"}  # tested with a duplication's folder


@pytest.fixture(autouse=True, scope="module")
def pdf_files():
    """Reports have them here."""


def test_no_experiment_is_forgotten():
    assert {one.name for one in all_experiments()} == CASES.keys() | FROM_ANOTHER_RUN


@pytest.mark.parametrize("name", CASES)
def test_it_runs_on_nano_bert_offline(name, tmp_path, capsys):
    given = ["run", name, "--model", "nano-bert", *CASES[name]]
    assert run([*given, "--workers", "0", "--json", "--out", str(tmp_path / "run")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"]
    assert document["finding"]
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
