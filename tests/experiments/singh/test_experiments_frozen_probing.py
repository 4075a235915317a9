"""Frozen probing as an experiment: rows against truncating, freezing and training by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from microtome import load, parse
from microtome.cli import run
from microtome.experiments import find_experiment, subject_of
from microtome.models import load_tokenizer
from microtome.observe.evaluation import encode_for
from microtome.tasks import DataSpec, open_training
from microtome.training.probe.states import cache_states
from microtome.training.recipe import Seeds
from support.experiment_rows import study_here
from support.training_rows import checkpoint, rows, tokenizer_for

NAME = "frozen-probing"


@pytest.fixture
def data(tmp_path):
    rows(tmp_path, n=60)
    return tmp_path / "single-60-0.jsonl"


def subject(model, data):
    return subject_of(str(model), DataSpec(path=data, labels=("no", "yes")))


def studied(model, data, out, name=NAME, **settings):
    return study_here(name, subject(model, data), out, **settings)


def command(model, data, *options):
    return ["run", NAME, "--model", str(model), "--data", str(data), "--labels", "no,yes",
            "--workers", "0", *map(str, options)]  # fmt: skip


class Naive:
    """The long way: cut the model, run it on every batch again, train a linear layer on [CLS]."""

    def __init__(self, folder, depth, family="bert"):
        whole = load(str(folder), head="none")
        self.depth = depth
        self.cut = parse(f"keep(0-{depth - 1})")(whole).eval() if depth else whole
        self.tokenizer = tokenizer_for(family)
        for parameter in self.cut.parameters():
            parameter.requires_grad_(False)

    def states(self, texts):
        batch = self.tokenizer(list(texts), return_tensors="pt", padding=True)
        if self.depth == 0:
            return self.cut(**batch, output_hidden_states=True).hidden_states[0][:, 0]
        return self.cut(**batch).last_hidden_state[:, 0]


def order(seed, n_rows, step, batch_size):
    """The rows of a step, as the training plan documents: an own order for every pass."""
    per_pass = -(-n_rows // batch_size)
    shuffled = np.random.default_rng([seed, step // per_pass]).permutation(n_rows)
    return shuffled[(step % per_pass) * batch_size : (step % per_pass + 1) * batch_size]


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_cached_states_train_as_truncating_and_freezing_with_sgd(family, tmp_path, data):
    folder = checkpoint(tmp_path / "model", family)
    train, _ = open_training(DataSpec(path=data, labels=("no", "yes")))
    texts, wanted = [row.text for row in train.rows()], torch.from_numpy(train.targets)
    encoder = load(str(folder), head="none")
    encoded = encode_for(encoder, load_tokenizer(str(folder)), train)
    cached = cache_states(encoder, encoded, tmp_path / "states", features=("cls",))["cls"]
    for depth in range(4):
        naive, weights, answers = Naive(folder, depth, family), [], []
        for way in ("naive", "cached"):
            torch.manual_seed(0)
            linear = torch.nn.Linear(32, 2)
            sgd = torch.optim.SGD(linear.parameters(), lr=0.05)
            for step in range(12):
                chosen = order(7, len(texts), step, 16)
                states = (
                    naive.states([texts[i] for i in chosen])
                    if way == "naive"
                    else torch.from_numpy(cached[depth][chosen])
                )
                sgd.zero_grad()
                torch.nn.functional.cross_entropy(linear(states), wanted[chosen]).backward()
                sgd.step()
            weights.append(linear.weight.detach())
            answers.append(linear(torch.from_numpy(cached[depth])).argmax(1))
        assert float((weights[0] - weights[1]).norm() / weights[0].norm()) < 1e-4
        assert torch.equal(answers[0], answers[1])


def test_every_row_equals_the_long_way(tmp_path, data):
    """AdamW, warm-up over 2 of 18 steps, decay to 0, clipping at 1: written out once more."""
    folder = checkpoint(tmp_path / "model")
    settings = {"recipes": ["paper"], "learning_rate": 0.02, "batch_size": 8, "seeds": [1]}
    part = studied(folder, data, tmp_path / "run", **settings).parts[0]
    found = {
        row["removed"]: row
        for row in part.rows
        if row["encoder"] == "pretrained" and row["metric"] == "accuracy"
    }
    assert sorted(found) == [0, 1, 2, 3]
    train, dev = open_training(DataSpec(path=data, labels=("no", "yes")))
    texts = [[row.text for row in some.rows()] for some in (train, dev)]
    wanted, gold = torch.from_numpy(train.targets), torch.from_numpy(dev.targets)
    seeds, n_steps = Seeds.of(1), 18
    for removed, row in found.items():
        naive = Naive(folder, 3 - removed)
        linear = torch.nn.Linear(32, 2)
        start = 0.02 * torch.randn(32, 2, generator=torch.Generator().manual_seed(seeds.init))
        with torch.no_grad():
            linear.weight.copy_(start.T)
            linear.bias.zero_()
        adamw = torch.optim.AdamW(
            [{"params": [linear.weight], "weight_decay": 0.01},
             {"params": [linear.bias], "weight_decay": 0.0}], lr=0.02,
        )  # fmt: skip
        warm = round(0.1 * n_steps)
        for step in range(n_steps):
            chosen = order(seeds.data, len(texts[0]), step, 8)
            states = naive.states([texts[0][i] for i in chosen])
            adamw.zero_grad()
            torch.nn.functional.cross_entropy(linear(states), wanted[chosen]).backward()
            torch.nn.utils.clip_grad_norm_(linear.parameters(), 1.0)
            rate = step / warm if step < warm else (n_steps - step) / (n_steps - warm)
            for group in adamw.param_groups:
                group["lr"] = 0.02 * rate
            adamw.step()
        right = (linear(naive.states(texts[1])).argmax(1) == gold).float()
        assert row["value"] == pytest.approx(float(right.mean()))
        assert row["n"] == len(dev)


def test_baselines_fractions_and_pairs_are_what_they_say(tmp_path, data):
    folder = checkpoint(tmp_path / "model")
    done = studied(folder, data, tmp_path / "run", fractions=[1.0, 12.0], seeds=[0, 1])
    part = done.parts[0]
    train, dev = open_training(DataSpec(path=data, labels=("no", "yes")))
    common = [r for r in part.rows if r["encoder"] == "majority" and r["metric"] == "accuracy"]
    assert len(common) == 4  # two sizes, two seeds
    most = np.bincount(train.targets).argmax()
    for row in common:
        if row["fraction"] == 1:
            assert row["value"] == pytest.approx(np.mean(dev.targets == most))
    encoders = {(r["encoder"], r["recipe"]) for r in part.rows}
    assert encoders == {
        ("pretrained", "paper"), ("pretrained", "converged"), ("random", "paper"),
        ("random", "converged"), ("majority", None),
    }  # fmt: skip
    assert {r["n_train"] for r in part.rows if r["fraction"] == 12} == {12}
    primary = [r for r in part.rows if r["metric"] == r["primary"] and r["removed"] is not None]
    whole = {
        (r["encoder"], r["recipe"], r["fraction"], r["seed"]): r["value"]
        for r in primary
        if r["removed"] == 0
    }
    for row in primary:
        if row["removed"]:
            base = whole[row["encoder"], row["recipe"], row["fraction"], row["seed"]]
            assert row["delta"] == pytest.approx(row["value"] - base)
            assert row["delta_low"] <= row["delta"] <= row["delta_high"]
    wider = studied(folder, data, tmp_path / "run", fractions=[1.0, 12.0], seeds=[0, 1, 2])
    assert wider.result.n_run == 4  # two encoders, two sizes


def test_reinitialisation_is_drawn_over_it_on_the_same_axes(tmp_path, data, capsys):
    folder = checkpoint(tmp_path / "model")
    again = {"epochs": 1, "seeds": [0], "counts": [0, 3]}
    other = studied(folder, data, tmp_path / "reinit", "reinitialization", **again).parts[0]
    stored = str(tmp_path / "reinit")
    part = studied(folder, data, tmp_path / "run", beside=stored, recipes=["converged"]).parts[0]
    curve = part.experiment.views(part.rows)[0]
    theirs = other.experiment.views(other.rows)[0]
    assert (curve.x_label, curve.y_label) == (theirs.x_label, theirs.y_label)
    over = next(line for line in curve.series if line.name.startswith("re-initialised"))
    assert (over.x, over.y) == (theirs.series[0].x, theirs.series[0].y)
    frozen = next(line for line in curve.series if line.name.startswith("frozen"))
    assert frozen.x == (0.0, 1.0, 2.0, 3.0)
    assert "re-initialised" in str(part.experiment.claims(part.rows)["peak"])
    assert_hashed(folder, data, stored)
    stranger = checkpoint(tmp_path / "stranger", std=0.2)
    given = command(stranger, data, "--beside", stored, "--out", tmp_path / "no")
    assert run(given) == 2
    assert "holds no reinitialization of" in capsys.readouterr().err


def assert_hashed(folder, data, stored):
    """Rows that were stored with another value are another trial."""
    experiment = find_experiment(NAME)

    def repeated():
        settings = experiment.settings({"beside": stored})
        return experiment.plan(subject(folder, data), settings)[-1].hash

    before = repeated()
    for file in Path(stored, "records").glob("*.json"):
        record = json.loads(file.read_text())
        if record["name"] == "finetuning.repeat_rows":
            for row in record["rows"]:
                row["value"] += 0.25
            file.write_text(json.dumps(record))
    assert repeated() != before


def test_the_peaks_of_a_size_that_both_have_are_compared():
    """The largest probed size wasn't re-initialised, and a re-initialised one wasn't probed."""
    frozen = made([0.6] * 13)
    little = [{**row, "fraction": 0.1, "n_train": 100} for row in made([0.5] * 13)]
    tuned = made([0.9] * 13, encoder="reinitialized")
    both = [{**row, "fraction": 0.1, "n_train": 100} for row in tuned]
    huge = [{**row, "fraction": 5000.0, "n_train": 5000} for row in tuned]
    answer = str(find_experiment(NAME).claims([*huge, *frozen, *little, *both])["peak"])
    assert answer.startswith("holds: 50.0 %")
    alone = str(find_experiment(NAME).claims([*frozen, *little])["peak"])
    assert alone.startswith("can't tell: 60.0 %")


def test_a_regression_is_probed_too(tmp_path):
    rows(tmp_path, "regression", n=60)
    folder = checkpoint(tmp_path / "model")
    given = subject_of(str(folder), DataSpec(path=tmp_path / "regression-60-0.jsonl"))
    experiment = find_experiment(NAME)
    (part,) = study_here(NAME, given, tmp_path / "run", recipes=["converged"]).parts
    assert experiment.finding(part.rows)
    assert experiment.views(part.rows)


def made(values, *, task="qnli", encoder="pretrained", n_seeds=3):
    common = {"task": task, "model": "m", "feature": "cls", "fraction": 1.0, "n_train": 1000,
              "metric": "accuracy", "primary": "accuracy", "n": 500,
              "recipe": "paper" if encoder != "reinitialized" else None}  # fmt: skip
    return [
        {**common, "encoder": encoder, "removed": k, "depth": 12 - k, "value": v, "low": v - 0.01,
         "high": v + 0.01, "delta": v - values[0], "delta_low": v - values[0] - 0.01,
         "delta_high": v - values[0] + 0.01, "seed": seed}
        for seed in range(n_seeds)
        for k, v in enumerate(values)
    ]  # fmt: skip


def test_claims_are_judged_from_rows():
    measured = find_experiment(NAME).claims
    hurt = made([0.7, 0.75, 0.8, *[0.75] * 10])
    assert str(measured(hurt)["top layers"]).startswith("holds: without the top two +10.0 points")
    helped = made([0.8, 0.75, 0.7, *[0.6] * 10])
    assert str(measured(helped)["top layers"]).startswith("doesn't hold")
    assert str(measured(made([0.8] * 13))["top layers"]).startswith("can't tell")
    assert str(measured(made([0.8] * 13, task="mrpc"))["top layers"]).startswith("on mrpc: ")
    assert str(measured(hurt)["peak"]).startswith(
        "can't tell: 80.0 % with 2 removed; give --beside"
    )
    above = made([0.9, 0.9], encoder="reinitialized")
    assert str(measured(hurt + above)["peak"]).startswith("holds: 80.0 % with 2 removed, re-init")
    below = made([0.6, 0.6], encoder="reinitialized")
    assert str(measured(hurt + below)["peak"]).startswith("doesn't hold")
    single = made([0.7, 0.75, 0.8, *[0.75] * 10], n_seeds=1)
    assert (
        measured(single + made([0.9, 0.9], encoder="reinitialized", n_seeds=1))["peak"].verdict
        == "can't tell"
    )
    idle = measured([row | {"constant_value": 0.9} for row in hurt] + above)["peak"]
    assert (idle.verdict, idle.words[-28:]) == ("can't tell", "one constant answer (90.0 %)")
    zero = [
        row | {"metric": "matthews", "primary": "matthews"}
        for row in made([0.0] * 11 + [0.1, 0.1], task="cola")
    ]
    assert str(measured(zero)["cola"]) == "holds: 0 at 11 of 13 points (paper recipe)"
    assert measured([row for row in zero if row["removed"] < 7])["cola"].verdict == "can't tell"
    assert measured([row for row in zero if row["seed"] == 0])["cola"].verdict == "can't tell"
    micro = made([0.5] * 13, task="micro-acceptability")
    assert measured(micro)["cola"].verdict is None  # an accuracy, not Matthews
    falls = str(measured(made([0.9] * 6 + [0.6] * 7))["decline"])
    assert "the steepest step is from 5 to 6: −30.0" in falls
    assert falls.startswith("holds: ")
    assert str(measured(made([0.9] * 3 + [0.6] * 10))["decline"]).startswith("doesn't hold")
    slope = made([0.9 - 0.02 * k for k in range(13)], task="sst2")
    assert str(measured(slope)["decline"]).startswith("holds: ")
    assert str(measured(made([0.9] * 13))["decline"]).startswith("can't tell")
    assert measured(made([0.9] * 6 + [0.6] * 7, n_seeds=1))["decline"].verdict == "can't tell"
    other = [row | {"value": 0.9 - 0.02 * row["removed"]} if row["seed"] else row
             for row in made([0.9] * 6 + [0.6] * 7)]  # fmt: skip
    assert measured(other)["decline"].verdict == "can't tell"  # seeds disagree


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--recipes", "best"], ["best", "paper or converged"]),
        (["--feature", "last"], ["last", "cls or mean or pooler"]),
        (["--feature", "pooler"], ["has no pooler", "cls or mean"]),
        (["--feature", "trained-pooler"], ["trained-pooler", "has no pooler"]),
        (["--fractions", "0"], ["1,0.1,640"]),
        (["--fractions", "5000"], ["at most 48", "5,000"]),
        (["--beside", "nowhere"], ["nowhere"]),
        (["--epochs", "0"], ["epochs must be", "got 0"]),
    ],
)
def test_wrong_requests_are_one_line(options, words, tmp_path, data, capsys):
    model = checkpoint(tmp_path / "model", "distilbert")
    assert run(command(model, data, *options, "--out", tmp_path / "run")) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "→" not in line]
    assert len(lines) == 1
    assert all(word in lines[0] for word in words), lines[0]


def test_questions_are_refused_and_the_command_gives_rows(tmp_path, data, capsys):
    model = checkpoint(tmp_path / "model")
    spans = ["run", NAME, "--model", str(model), "--task", "micro-squad", "--limit", "5"]
    assert run([*spans, "--out", str(tmp_path / "spans")]) == 2
    assert "places in a passage" in capsys.readouterr().err
    assert run(command(model, data, "--out", tmp_path / "run", "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    columns = {"removed", "fraction", "metric", "value", "low", "high", "n", "seed"}
    assert all(columns <= set(row) for row in document["rows"])
    assert (tmp_path / "run" / "report.html").exists()
