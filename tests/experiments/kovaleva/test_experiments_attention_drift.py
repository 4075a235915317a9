"""Attention drift: rows against eager maps, floors, fine-tuning first, words against rows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from microtome import load, load_tokenizer, parse, save
from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kovaleva.attention_drift.claims import claims
from microtome.runs import run_here
from microtome.tasks import DataSpec
from support.eager_maps import eager_maps
from support.experiment_rows import study_here
from support.tiny import tiny_model
from support.training_rows import checkpoint, rows, tokenizer_for

NAMES = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}
EXPERIMENT = find_experiment("attention-drift")


@pytest.fixture
def case(tmp_path):
    """A fine-tuned model, another one, their base, and rows of many lengths."""
    folders = []
    for number, head in enumerate(("classification", "classification", "none")):
        folder = tmp_path / f"model-{number}"
        extra = NAMES if head == "classification" else {}
        tiny_model("bert", head, seed=number, **extra).save_pretrained(folder)
        tokenizer_for("bert").save_pretrained(folder)
        folders.append(folder)
    data = rows(tmp_path / "data", "pair", n=12)
    return folders, data._source.path


def wanted(data):
    return DataSpec(path=data, pair_column="pair", labels=("no", "yes"))


def drifted(case, **settings):
    (model, *_), data = case
    subject = subject_of(str(model), wanted(data))
    (trial,) = EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))
    return run_here(trial).rows


def texts_of(data):
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    return [(line["text"], line["pair"]) for line in lines]


def cosines(one, two):
    """(layers, heads, heads): every map of one model with every map of the other's same layer."""
    ours, theirs = (maps.reshape(*maps.shape[:2], -1) for maps in (one, two))
    norms = np.linalg.norm(ours, axis=-1)[..., None] * np.linalg.norm(theirs, axis=-1)[:, None]
    return np.einsum("lhx,lgx->lhg", ours, theirs) / norms


def maps_of(folder, data):
    tokenizer = load_tokenizer(folder)
    model = load(folder, head="none")
    return [eager_maps(model, tokenizer, *pair) for pair in texts_of(data)]


def entropy(maps):
    return -(maps * np.log(np.maximum(maps, 1e-300))).sum(-1)


def divergence(one, two):
    """(layers, heads): Jensen–Shannon, the mean over queries."""
    return (entropy((one + two) / 2) - (entropy(one) + entropy(two)) / 2).mean(-1)


def check_equal(rows, ours, bases, others):
    """Every column of every head and layer; ``ours`` and the others are lists of texts' maps."""
    drift = np.mean([cosines(a, b) for a, b in zip(ours, bases, strict=True)], axis=0)
    seeds = np.mean([cosines(a, b) for a, b in zip(ours, others, strict=True)], axis=0)
    n_layers, n_heads = drift.shape[:2]
    wanted = {
        "cosine": [[drift[i, j, j] for j in range(n_heads)] for i in range(n_layers)],
        "seed_cosine": [[seeds[i, j, j] for j in range(n_heads)] for i in range(n_layers)],
        "other_heads_cosine": [
            [np.mean([drift[i, j, k] for k in range(n_heads) if k != j]) for j in range(n_heads)]
            for i in range(n_layers)
        ],
        "jensen_shannon": np.mean(
            [divergence(a, b) for a, b in zip(ours, bases, strict=True)], axis=0
        ),
    }
    assert len(rows) == n_layers * (n_heads + 1)
    for row in rows:
        for name, table in wanted.items():
            heads = table[row["layer"]]
            one = np.mean(heads) if row["head"] is None else heads[row["head"]]
            assert row[name] == pytest.approx(one, abs=1e-5)
        assert row["low"] <= row["cosine"] <= row["high"]
        assert row["n"] == len(ours)


def test_every_number_equals_one_computed_from_eager_maps(case):
    (model, again, base), data = case
    found = drifted(case, base=str(base), again=str(again))
    check_equal(found, *(maps_of(folder, data) for folder in (model, base, again)))


def test_a_model_compared_with_itself_has_not_drifted(case):
    (model, *_), _ = case
    for row in drifted(case, base=str(model)):
        assert row["cosine"] == pytest.approx(1.0, abs=1e-6)
        assert row["jensen_shannon"] == pytest.approx(0.0, abs=1e-6)
        assert row["seed_cosine"] is None


def test_a_fine_tuned_model_needs_its_base(case):
    with pytest.raises(RequestError, match="pre-trained") as caught:
        drifted(case)
    assert "--base" in caught.value.hint


def test_a_model_without_a_head_is_fine_tuned_and_compared_with_itself(tmp_path):
    folder = checkpoint(tmp_path / "base")
    data = rows(tmp_path / "data", n=40)._source.path
    subject = subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))
    settings = {"epochs": 4, "learning_rate": 1e-3}
    (part,) = study_here("attention-drift", subject, tmp_path / "run", **settings).parts
    assert {row["seed"] for row in part.rows} == {0, 1}
    for row in part.rows:
        assert 0 < row["cosine"] < 1 + 1e-6
        assert row["seed_cosine"] is not None
    assert min(row["cosine"] for row in part.rows) < 0.999  # a rate of 1e-3 moves something
    by_seed = {
        seed: [row["seed_cosine"] for row in part.rows if row["seed"] == seed] for seed in (0, 1)
    }
    assert by_seed[0] == pytest.approx(by_seed[1])  # a cosine is symmetric
    assert "differ by the seed" in part.finding
    heat_map, *_ = part.experiment.views(part.rows)
    assert (len(heat_map.rows), len(heat_map.columns)) == (3, 4)


def layer(number, cosine, spread=0.01, seed=None):
    return {
        "layer": number, "head": None, "cosine": cosine, "low": cosine - spread,
        "high": cosine + spread, "n": 100, "seed": seed, "seed_cosine": None,
        "other_heads_cosine": 0.6, "jensen_shannon": 0.1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cosines", "spread", "verdict"),
    [
        ((0.9, 0.8, 0.5, 0.4), 0.01, "holds"),
        ((0.3, 0.8, 0.5, 0.4), 0.01, "doesn't hold"),
        ((0.9, 0.52, 0.5, 0.4), 0.05, "can't tell"),
        ((0.5, 0.4), 0.01, "can't tell"),
    ],
)
def test_the_claim_is_judged_by_intervals(cosines, spread, verdict):
    made = [layer(i, cosine, spread) for i, cosine in enumerate(cosines)]
    assert str(claims(made)["layers"]).startswith(verdict)


def test_fine_tunings_that_disagree_decide_nothing():
    falling = [layer(i, cosine, seed=0) for i, cosine in enumerate((0.9, 0.8, 0.5, 0.4))]
    rising = [layer(i, cosine, seed=1) for i, cosine in enumerate((0.4, 0.5, 0.8, 0.9))]
    assert str(claims([*falling, *rising])["layers"]).startswith(
        "can't tell: fine-tunings disagree"
    )


def test_rows_come_seed_by_seed(tmp_path):
    """The first seed is what pictures and words show: it may not depend on trials' hashes."""
    folder = checkpoint(tmp_path / "base")
    data = rows(tmp_path / "data", n=20)._source.path
    subject = subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))
    settings = {"epochs": 1, "seeds": [2, 0, 1]}
    (part,) = study_here("attention-drift", subject, tmp_path / "run", **settings).parts
    assert list(dict.fromkeys(row["seed"] for row in part.rows)) == [0, 1, 2]


def test_shapes_that_differ_are_refused_in_one_line(case, tmp_path, capsys):
    (model, *_), data = case
    small = tmp_path / "small"
    tiny_model("bert", "none", num_hidden_layers=2).save_pretrained(small)
    tokenizer_for("bert").save_pretrained(small)
    arguments = ["run", "attention-drift", "--model", model, "--data", data, "--labels", "no,yes"]
    arguments += ["--pair-column", "pair", "--base", small, "--out", tmp_path / "run"]
    assert run([str(a) for a in arguments] + ["--workers", "0"]) == 2
    message = capsys.readouterr().err
    assert f"--base {small}" in message
    assert "layers 3" in message
    assert "got 2" in message
    assert not (tmp_path / "run").exists()  # nothing was begun


@pytest.mark.real
def test_minilm_compared_with_edited_copies_equals_eager_maps(tmp_path, shared_data):
    source = shared_data("data/glue/MRPC")
    models = [load("minilm", head="none")]
    for seed, name in enumerate(("edited", "again")):
        save(parse(f"reinit(top=1, seed={seed})")(load("minilm")), tmp_path / name)
        models.append(load(tmp_path / name, head="none"))
    subject = subject_of("minilm", DataSpec(task="mrpc", path=source, split="dev", limit=8))
    subject = replace(subject, head="classification")  # its encoder is all that is looked at
    settings = {"base": str(tmp_path / "edited"), "again": str(tmp_path / "again")}
    (trial,) = EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))
    rows = run_here(trial).rows
    tokenizer = load_tokenizer("minilm")
    pairs = [(row.text, row.pair) for row in subject.dataset.rows()]
    check_equal(
        rows,
        *([eager_maps(model, tokenizer, *pair, max_length=128) for pair in pairs]
          for model in models),
    )  # fmt: skip
    whole = {row["layer"]: row for row in rows if row["head"] is None}
    for name in ("cosine", "seed_cosine"):  # both copies differ from it in the last layer alone
        assert whole[5][name] < 0.99 < whole[4][name]
