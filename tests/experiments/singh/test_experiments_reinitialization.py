"""Partial re-initialisation as an experiment: arms against the edit by hand, curves, words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from microtome.cli import run
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kit.seed_curves import size_name
from microtome.experiments.kit.wording import percent, points
from microtome.experiments.singh.reinitialization.plan import CONCAVITY
from microtome.tasks import DataSpec, open_training
from microtome.training.finetune import finetune
from microtome.training.recipe import recipe_for
from support.experiment_rows import study_here
from support.training_rows import checkpoint, rows

NAME = "reinitialization"


@pytest.fixture
def data(tmp_path):
    rows(tmp_path, n=60)
    return tmp_path / "single-60-0.jsonl"


@pytest.fixture
def learnable(tmp_path):
    """Enough rows to learn from, and what learns from them."""
    rows(tmp_path, n=200)
    return tmp_path / "single-200-0.jsonl", {"epochs": 6, "learning_rate": 3e-3, "batch_size": 16}


def studied(model, data, out, **settings):
    subject = subject_of(str(model), DataSpec(path=data, labels=("no", "yes")))
    return study_here(NAME, subject, out, **{"epochs": 1, "seeds": [0]} | settings)


def accuracies(part):
    return [row for row in part.rows if row["metric"] == "accuracy"]


def command(model, data, *options):
    return ["run", NAME, "--model", str(model), "--data", str(data), "--labels", "no,yes",
            "--workers", "0", *map(str, options)]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "first"), [("bert", ""), ("albert", "unshare() | "), ("modernbert", "")]
)
def test_every_arm_equals_the_fine_tuning_of_the_edit_by_hand(family, first, tmp_path, data):
    model = checkpoint(tmp_path / "model", family)
    done = studied(model, data, tmp_path / "run", counts=[0, 2], seeds=[3], fractions=[24.0])
    found = {row["reinitialized"]: row for row in accuracies(done.parts[0])}
    assert found[2]["edit"] == f"{first}reinit(top=2, seed=3)"
    assert found[0]["edit"] == first.removesuffix(" | ")
    train, dev = open_training(DataSpec(path=data, labels=("no", "yes")))
    for row in found.values():
        by_hand = finetune(
            str(model), train, dev, edits=row["edit"] or None, seed=3, fraction=24,
            recipe=recipe_for(train.task).but(epochs=1),
        )  # fmt: skip
        assert row["value"] == by_hand.scores["accuracy"].value
        stored = next(
            done.result.arrays(record.needs[0])["logits"]
            for record in done.result.records.values()
            if record.rows[0].get("reinitialized") == row["reinitialized"]
        )
        np.testing.assert_array_equal(stored, by_hand.logits)
        assert (row["fraction"], row["n_train"], row["seed"]) == (24, 24, 3)
        assert row["low"] <= row["value"] <= row["high"]
        assert row["n"] == len(dev)


def test_the_edits_seed_follows_the_arms_and_a_wider_request_resumes(tmp_path, data):
    model = checkpoint(tmp_path / "model")
    first = studied(model, data, tmp_path / "run", seeds=[0], counts=[1])
    assert first.result.n_run == 2  # the training, and its rows
    wider = studied(model, data, tmp_path / "run", seeds=[0, 1], counts=[1, 2, 3], side="top")
    edits = {row["edit"] for row in wider.parts[0].rows if row["edit"]}
    assert edits == {f"reinit(top={k}, seed={s})" for k in (1, 2, 3) for s in (0, 1)}
    # Trainings and their rows, and two shapes, without the arm that was there.
    assert wider.result.n_run == 2 * 3 * 2 + 2 - 2
    again = studied(model, data, tmp_path / "run", seeds=[0, 1], counts=[1, 2, 3])
    assert again.result.n_run == 0
    assert again.parts[0].finding == wider.parts[0].finding


def test_few_rows_get_the_updates_asked_for_at_least(tmp_path, data):
    model = checkpoint(tmp_path / "model")
    found = subject_of(str(model), DataSpec(path=data, labels=("no", "yes")))
    experiment = find_experiment(NAME)
    given = {"seeds": [0], "counts": [1], "fractions": [1.0, 20.0], "batch_size": 10, "epochs": 3}
    trials = [
        trial
        for trial in experiment.plan(found, experiment.settings(given | {"least_steps": 14}))
        if trial.name == "finetuning.train"
    ]
    # 48 rows are 5 batches: 15 updates in 3 epochs. 20 rows are 2, so 6 updates.
    assert [trial.request["recipe"].get("steps") for trial in trials] == [None, 14]
    assert {trial.request["recipe"]["epochs"] for trial in trials} == {3}


def test_single_layers_bottoms_and_all_parts(tmp_path, learnable):
    model, (data, recipe) = checkpoint(tmp_path / "model"), learnable
    each = studied(model, data, tmp_path / "each", side="each", parts="all", **recipe).parts[0]
    assert [(r["layer"], r["reinitialized"], r["edit"]) for r in accuracies(each)] == [
        (None, 0, ""), *((i, 1, f"reinit({i}, seed=0, parts=all)") for i in range(3)),
    ]  # fmt: skip
    assert "is lowest with layer" in each.finding
    bottom = studied(model, data, tmp_path / "bottom", side="bottom", counts=[0, 1]).parts[0]
    assert [row["edit"] for row in accuracies(bottom)] == ["", "reinit(bottom=1, seed=0)"]
    for part in (each, bottom):
        assert part.experiment.views(part.rows)


def test_the_shape_of_a_curve_is_the_area_of_its_own_scores(tmp_path, data):
    model = checkpoint(tmp_path / "model")
    part = studied(model, data, tmp_path / "run", learning_rate=3e-3, epochs=3).parts[0]
    scores = {row["reinitialized"]: row["value"] for row in accuracies(part)}
    assert sorted(scores) == [0, 1, 2, 3]
    bent = next(row for row in part.rows if row["metric"] == "concavity")
    y = [scores[k] for k in range(4)]
    above = [y[k] - (y[0] + (y[3] - y[0]) * k / 3) for k in range(4)]
    assert bent["signed"] == pytest.approx((above[1] + above[2]) / 3)  # trapezia, both ends 0
    assert bent["signed_low"] <= bent["signed"] <= bent["signed_high"]
    assert bent["low"] <= bent["value"] <= bent["high"]
    assert bent["value"] >= abs(bent["signed"]) - 1e-12


def made(values, *, task="sst2", fraction=1.0, n_train=1000, n_layers=12):
    """Rows of a curve per seed: ``values[seed][count]``."""
    common = {"side": "top", "layer": None, "layers": n_layers, "task": task, "model": "m",
              "parts": "weights", "primary": "accuracy", "fraction": fraction, "n_train": n_train,
              "metric": "accuracy", "edit": "", "n": 500}  # fmt: skip
    return [
        {**common, "seed": seed, "reinitialized": k, "value": v, "low": v - 0.02, "high": v + 0.02}
        for seed, curve in enumerate(values)
        for k, v in curve.items()
    ]


def curves(fall, noise=(0.0, 0.001, -0.001)):
    return [{k: 0.9 - fall(k) + one for k in range(13)} for one in noise]


def answer(rows, key):
    return str(find_experiment(NAME).claims(rows)[key])


def test_claims_are_judged_from_rows():
    flat = made(curves(lambda k: 0.0 if k < 9 else 0.1 * (k - 8)))
    assert answer(flat, "last layers").startswith(
        "holds: the top 2 change the score by +0.0 points"
    )
    steep = made(curves(lambda k: 0.03 * k))
    assert answer(steep, "last layers").startswith(
        "doesn't hold: the top 2 change the score by −6.0 points"
    )
    once = made(curves(lambda k: 0.03 * k, noise=(0.0,)))
    assert answer(once, "last layers").startswith("can't tell")
    assert "can't separate the edit from the seed" in answer(once, "last layers")
    five = made(curves(lambda k: 0.05 * min(max(k - 4, 0), 4) / 4))
    assert answer(five, "middle layers").startswith("holds: ")
    assert answer(flat, "middle layers").startswith("doesn't hold: ")
    assert answer(once, "middle layers").startswith("can't tell: ")
    # Few rows teach the whole model and nothing without its top third: it isn't compared.
    constant = {"constant_value": 0.5, "one_answer": False}
    few = made([{k: 0.6 if k == 0 else 0.5 for k in range(13)}] * 3, fraction=67.0, n_train=67)
    both = [{**row, **constant} for row in five + few]
    assert answer(both, "middle layers").startswith("holds: with all rows")
    alone = [{**row, **constant} for row in few]
    assert answer(alone, "middle layers").startswith("can't tell: With 4 re-initialised layers it")
    sharp = made(curves(lambda k: 0.2 * (k > 8)), task="qnli")
    assert answer(sharp, "qnli").startswith("holds: all rows: most when layer 3 goes (−20.0")
    assert answer(made(curves(lambda k: 0.2 * (k > 3)), task="qnli"), "qnli").startswith("doesn't")
    assert answer(made(curves(lambda k: 0.2 * (k > 8))), "qnli").startswith("on sst2: ")
    alone = made(curves(lambda k: 0.2 * (k > 8), noise=(0.0,)), task="qnli")
    assert answer(alone, "qnli").startswith("can't tell: ")
    level = made(curves(lambda k: 0.001 * (k > 8)), task="qnli")  # no fall to speak of
    assert answer(level, "qnli").startswith("can't tell: ")
    shallow = [{k: 0.9 - 0.2 * (k > 1) + one for k in range(5)} for one in (0.0, 0.001, -0.001)]
    assert answer(made(shallow, task="qnli", n_layers=4), "qnli").startswith("can't tell: ")


@pytest.mark.parametrize(
    ("away", "task", "words"),
    [
        ((0.01, 0.012, 0.008), "cola", "holds: +1.0 points from the chord on average"),
        ((0.1, 0.102, 0.098), "cola", "doesn't hold: +10.0 points from the chord"),
        ((0.1, -0.1, 0.0), "cola", "can't tell: "),
        ((0.01,), "cola", "can't tell: "),
        ((0.01, 0.012, 0.008), "sst2", "on sst2: "),
    ],
)
def test_a_curve_near_its_chord_is_a_straight_line(away, task, words):
    rows = made(curves(lambda k: 0.03 * k, noise=(0.0,) * len(away)), task=task)
    whole = {**rows[0], "metric": CONCAVITY, "reinitialized": None, "n_counts": 13}
    rows += [{**whole, "seed": seed, "signed": one} for seed, one in enumerate(away)]
    assert answer(rows, "cola").startswith(words)


def test_little_data_with_pretraining_against_much_without():
    small = made(curves(lambda k: 0.02 * k), fraction=0.01, n_train=10)
    large = made([{0: 0.95 + d, 12: 0.7 + d} for d in (0.0, 0.01, -0.01)])
    assert answer(large + small, "little data").startswith("holds: pre-trained on 1 % of the rows")
    better = made([{0: 0.95 + d, 12: 0.93 + d} for d in (0.0, 0.01, -0.01)])
    assert answer(better + small, "little data").startswith("doesn't hold")


def test_the_words_follow_the_rows():
    experiment = find_experiment(NAME)
    words = experiment.finding(made(curves(lambda k: 0.03 * k)))
    assert "re-initialising 12 of 12 layers takes the accuracy from 90.0 % to 54.0 %" in words
    assert "54.0 %: −36.0 points (" in words
    assert "The 2 top layers alone change it by −6.0 points" in words
    assert experiment.summary(made(curves(lambda k: 0.03 * k)))["1"]["last"] == pytest.approx(0.54)
    alone = experiment.finding(made(curves(lambda k: 0.03 * k, noise=(0.0,))))
    assert alone.count("can't separate the edit from the seed") == 1  # of two differences
    assert "change it by −6.0 points." in alone


def test_numbers_have_a_minus_sign_and_zero_has_none():
    assert [percent(value) for value in (-0.023, -0.0001, 0.5)] == ["−2.3 %", "0.0 %", "50.0 %"]
    assert [points(value) for value in (-0.023, -0.0001, 0.5)] == ["−2.3", "+0.0", "+50.0"]


def test_sizes_are_said_as_people_say_them():
    assert [size_name(f) for f in (1.0, 0.1, 0.006, 640.0)] == [
        "all rows", "10 % of the rows", "0.6 % of the rows", "640 rows",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--counts", "0-4"], ["at most 3", "got 4"]),
        (["--counts", "two"], ["two", "0-12"]),
        (["--side", "left"], ["left", "top or bottom or each"]),
        (["--side", "each", "--counts", "1"], ["--side each"]),
        (["--parts", "bias"], ["bias", "weights or all"]),
        (["--fractions", "0"], ["0", "1,0.1,640"]),
        (["--fractions", "5000"], ["at most 48", "5,000"]),
        (["--fractions", "0.001"], ["1 of 48 rows"]),
        (["--epochs", "0"], ["epochs must be", "got 0"]),
        (["--learning-rate", "-1"], ["learning_rate must be above 0", "got -1"]),
    ],
)
def test_wrong_requests_are_one_line(options, words, tmp_path, data, capsys):
    model = checkpoint(tmp_path / "model")
    assert run(command(model, data, *options, "--out", tmp_path / "run")) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "→" not in line]
    assert len(lines) == 1
    assert all(word in lines[0] for word in words), lines[0]


def test_the_command_gives_rows_and_a_report(tmp_path, learnable, capsys):
    model, (data, recipe) = checkpoint(tmp_path / "model"), learnable
    options = ["--counts", "0-3", "--seeds", "0", "--fractions", "1,0.75"]
    for name, value in recipe.items():
        options += [f"--{name.replace('_', '-')}", str(value)]
    given = command(model, data, *options, "--out", tmp_path / "run", "--json")
    assert run(given) == 0
    document = json.loads(capsys.readouterr().out)
    columns = {"reinitialized", "fraction", "seed", "metric", "value", "low", "high", "n"}
    assert all(columns <= set(row) for row in document["rows"])
    assert {row["fraction"] for row in document["rows"]} == {1.0, 0.75}
    assert "not over seeds" in document["finding"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "can&#39;t separate the edit from the seed" in page or "can't separate" in page
