"""Disabling heads as an experiment: rows against single edits, words against rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from experiment_rows import study_here
from labelled_texts import sentences, write_rows
from microtome import load, parse
from microtome.cli import run
from microtome.experiments import Rows, find_experiment, subject_of
from microtome.experiments.comparing import compared, picked
from tiny import save_tiny, tiny_tokenizer

N_ROWS = 60


@pytest.fixture
def case(tmp_path):
    """A tiny classifier, and a file whose labels are its own answers on most rows."""
    return made(tmp_path, "bert")


def made(tmp_path, family):
    folder = save_tiny(
        tmp_path / "model", family, "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )  # fmt: skip
    answers = predictions(load(folder))
    labels = [a if i % 5 else 1 - a for i, a in enumerate(answers)]
    data = write_rows(tmp_path / "rows.csv", sentences(N_ROWS), labels)
    return folder, data, np.array(labels)


def predictions(model):
    tokenizer = tiny_tokenizer("bert")
    with torch.no_grad():
        return [
            int(model(**tokenizer(text, return_tensors="pt")).logits.argmax())
            for text in sentences(N_ROWS)
        ]


def studied(case, tmp_path, name="head-disabling", **settings):
    folder, data, _ = case
    subject = subject_of(str(folder), Rows(path=data))
    return study_here(name, subject, tmp_path / "run", **settings)


def test_every_row_equals_the_edit_applied_to_the_model_by_hand(case, tmp_path):
    folder, _, labels = case
    rows = {row["target"]: row for row in studied(case, tmp_path).parts[0].rows}
    model = load(folder)
    base = np.mean(np.array(predictions(model)) == labels)
    assert rows["baseline"]["value"] == pytest.approx(base)
    for target in ("0.0", "1.2", "2.3", "0.*", "2.*"):
        edited = parse(f"disable({target})")(model)
        score = np.mean(np.array(predictions(edited)) == labels)
        assert rows[target]["value"] == pytest.approx(score)
        assert rows[target]["delta"] == pytest.approx(score - base)
        assert rows[target]["low"] <= rows[target]["delta"] <= rows[target]["high"]
    heads = [t for t, row in rows.items() if row["head"] is not None]
    assert len(heads) == 12
    assert len([t for t, row in rows.items() if row["head"] is None and t.endswith("*")]) == 3


def test_shared_layers_are_unshared_first_in_the_baseline_too(tmp_path):
    """ALBERT: a single head of one depth is disabled, not that head at every depth."""
    case = folder, data, labels = made(tmp_path, "albert")
    rows = {row["target"]: row for row in studied(case, tmp_path).parts[0].rows}
    model = load(folder)
    base = np.mean(np.array(predictions(model)) == labels)
    assert rows["baseline"]["edit"] == "unshare()"
    assert rows["baseline"]["value"] == pytest.approx(base)
    for target in ("0.0", "1.2", "2.*"):
        assert rows[target]["edit"] == f"unshare() | disable({target})"
        edited = parse(rows[target]["edit"])(model)
        score = np.mean(np.array(predictions(edited)) == labels)
        assert rows[target]["value"] == pytest.approx(score)
    arguments = ["run", "head-disabling", "--model", folder, "--data", data, "--out"]
    arguments += [tmp_path / "run", "--workers", "0", "--save-best", tmp_path / "best"]
    assert run([str(a) for a in arguments]) == 0
    history = json.loads((tmp_path / "best" / "microtome.json").read_text())
    assert history["edits"] == ["unshare()", f"disable({rows['baseline']['honest_target']})"]
    assert history["certificate"]["passed"]


def test_random_sets_equal_the_edit_applied_by_hand(case, tmp_path):
    folder, _, labels = case
    rows = [r for r in studied(case, tmp_path).parts[0].rows if r["n_heads_disabled"] == 2]
    row = next(r for r in rows if "chosen" not in r)
    edited = parse(f"disable({', '.join(row['target'].split())})")(load(folder))
    assert row["value"] == pytest.approx(np.mean(np.array(predictions(edited)) == labels))


def test_the_words_follow_the_rows(case, tmp_path):
    part = studied(case, tmp_path).parts[0]
    doctored = [dict(row) for row in part.rows]
    target = next(row for row in doctored if row["target"] == "1.2")
    target |= {"delta": -0.5, "low": -0.6, "high": -0.4, "p_maxt": 0.001}
    words = part.experiment.finding(doctored)
    assert words != part.finding
    assert "1.2's: −50.0 points (−60.0 to −40.0)" in words


def test_every_number_in_the_views_is_in_the_rows(case, tmp_path):
    part = studied(case, tmp_path).parts[0]
    numbers = {value for row in part.rows for value in row.values() if isinstance(value, float)}
    heat_map, layers, sets = part.experiment.views(part.rows)
    assert {v for row in heat_map.values for v in row} <= numbers
    for table in (layers, sets):
        assert {cell for row in table.rows for cell in row if isinstance(cell, float)} <= numbers


def test_the_command_prints_the_fixed_shape_and_goes_on(case, tmp_path, capsys):
    folder, data, _ = case
    arguments = ["run", "head-disabling", "--model", folder, "--data", data, "--out"]
    arguments += [tmp_path / "run", "--workers", "0", "--json"]
    for _ in range(2):
        assert run([str(a) for a in arguments]) == 0
        document = json.loads(capsys.readouterr().out)
        assert {"experiment", "model", "task", "run", "rows", "summary", "finding"} <= set(document)
        wanted = set(find_experiment("head-disabling").columns)
        assert all(wanted <= set(row) for row in document["rows"] if row["head"] is not None)
    assert (tmp_path / "run" / "results.parquet").exists()


def test_the_best_is_saved_with_a_certificate(case, tmp_path, capsys):
    folder, data, _ = case
    arguments = ["run", "head-disabling", "--model", folder, "--data", data, "--out"]
    arguments += [tmp_path / "run", "--workers", "0", "--save-best", tmp_path / "best", "--json"]
    assert run([str(a) for a in arguments]) == 0
    history = json.loads((tmp_path / "best" / "microtome.json").read_text())
    assert history["certificate"]["passed"]
    assert history["edits"][0].startswith("disable(")


def flips(rng, right, n_variants, rate):
    """Variants that each flip a share of the answers at random: nothing is to be found."""
    return [np.where(rng.random(len(right)) < rate, 1 - right, right) for _ in range(n_variants)]


def test_under_the_null_the_naive_gain_is_positive_and_the_honest_one_is_not():
    """The design's simulation: heads that flip 2 % of 408 answers at random."""
    rng = np.random.default_rng(0)
    naive, honest, covered, rejected = [], [], [], []
    for _ in range(40):
        right = (rng.random(408) < 0.5).astype(float)
        variants = flips(rng, right, 48, 0.02)
        names = [f"0.{i}" for i in range(48)]
        found = picked(names, variants, right, clusters=None)
        naive.append(found["naive_gain"])
        honest.append(found["honest_gain"])
        covered.append(found["honest_low"] <= 0 <= found["honest_high"])
        rows = compared(dict(zip(names, variants, strict=True)), right, metric="accuracy")
        rejected.append(min(row["p_maxt"] for row in rows) <= 0.05)
    assert np.mean(naive) > 0.01
    error = np.std(honest) / np.sqrt(len(honest))
    assert abs(np.mean(honest)) <= 3 * error
    assert np.mean(covered) >= 0.9
    assert np.mean(rejected) <= 0.15  # 5 % nominal; 40 repeats leave that much room


def test_a_planted_gain_is_found():
    rng = np.random.default_rng(1)
    right = (rng.random(1500) < 0.7).astype(float)
    variants = flips(rng, right, 30, 0.02)
    planted = right.copy()
    wrong = np.flatnonzero(right == 0)
    planted[wrong[:60]] = 1.0  # 4 points of 1,500 rows
    variants[17] = planted
    names = [f"0.{i}" for i in range(30)]
    found = picked(names, variants, right, clusters=None)
    assert found["honest_target"] == "0.17"
    assert found["honest_low"] > 0.0
