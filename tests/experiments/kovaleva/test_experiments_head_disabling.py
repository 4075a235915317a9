"""Disabling heads as an experiment: rows against single edits, words against rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from microtome import load, parse
from microtome.cli import run
from microtome.errors import RunError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kit.paired_comparison import VariantSweep
from microtome.experiments.kovaleva.head_disabling.claims import claims
from microtome.experiments.kovaleva.head_disabling.report import (
    best_head_edit,
    finding,
    summary,
    views,
)
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.labelled_texts import sentences, write_rows
from support.tiny import save_tiny, tiny_tokenizer

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
    subject = subject_of(str(folder), DataSpec(path=data))
    return study_here(name, subject, tmp_path / "run", **settings)


def by_target(rows, metric="accuracy"):
    """The rows of one metric by what was disabled."""
    return {row["target"]: row for row in rows if row["metric"] == metric}


def test_every_row_equals_the_edit_applied_to_the_model_by_hand(case, tmp_path):
    folder, _, labels = case
    rows = by_target(studied(case, tmp_path).parts[0].rows)
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
    rows = by_target(studied(case, tmp_path).parts[0].rows)
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
    row = next(r for r in rows if "chosen" not in r and r["metric"] == "accuracy")
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


def disabled(target, delta, *, p=1.0, low=None, high=None):
    """A row as the experiment makes it: a head (0.1), a whole layer (0.*), or the baseline."""
    layer, _, head = target.partition(".")
    is_head = head.isdigit()
    return {
        "target": target, "metric": "accuracy", "value": 0.8 + delta, "delta": delta,
        "low": delta - 0.1 if low is None else low, "high": delta + 0.1 if high is None else high,
        "p_maxt": p, "layer": int(layer) if head else None, "head": int(head) if is_head else None,
        "n_heads_disabled": 1 if is_head else None, "edit": f"disable({target})",
    }  # fmt: skip


def handmade(*rows):
    """A baseline whose best head gains 2 points by luck, and the rows that were tried."""
    luck = {
        "naive_gain": 0.02, "naive_target": "0.1", "honest_gain": -0.004, "honest_low": -0.011,
        "honest_high": 0.003, "honest_target": "0.1", "mean_delta": -0.001, "mean_low": -0.002,
        "mean_high": 0.001, "naive_layer_gain": 0.01, "honest_layer_gain": -0.02,
        "honest_layer_value": 0.78, "honest_layer_low": -0.03, "honest_layer_high": 0.01,
    }  # fmt: skip
    return [disabled("baseline", 0.0) | {"edit": ""} | luck, *rows]


HEADS = (disabled("0.0", -0.01, low=-0.2), disabled("0.1", 0.02), disabled("1.0", 0.0, low=-0.005))


LAYERS = (
    disabled("0.*", -0.05, p=0.01, low=-0.08, high=-0.02),
    disabled("1.*", 0.01, low=0.002, high=0.02),
)


def test_the_paper_s_claims_have_the_rows_numbers():
    found = claims(handmade(*HEADS, *LAYERS))
    assert {key: answer.words for key, answer in found.items()} == {
        "best head": "+2.0 points the paper's way; −0.4 points (−1.1 to +0.3) on other rows",
        "random head": "on this data: −0.1 points (−0.2 to +0.1)",
        "some heads": "1 of 3 heads; beyond chance (max-T, 5 %): none",
        "whole layer": "from layer 0 −5.0 to layer 1 +1.0 points the paper's way;"
        " the best −2.0 points (−3.0 to +1.0) on other rows;"
        " beyond chance (max-T, 5 %): helping none, hurting 1 of 2",
    }


def test_a_layer_picked_on_the_same_rows_never_shows_its_own_interval():
    """Layer 1's own interval (+0.2 to +2.0) promises a gain that other rows don't have."""
    rows = handmade(*HEADS, *LAYERS)
    said = claims(rows)["whole layer"].words + finding(rows)
    assert "+0.2 to +2.0" not in said
    assert "The best whole layer gains +1.0 points on the rows it was picked on" in finding(rows)
    assert "−2.0 points (−3.0 to +1.0) on others, no gain that is sure" in finding(rows)
    layers = views(rows)[1]
    assert layers.rows[-1][:5] == ("the best, on other rows", 0.78, -0.02, -0.03, 0.01)


def test_a_run_of_an_earlier_version_has_fewer_answers():
    base, *others = handmade(*HEADS, *LAYERS)
    new = ("mean_", "honest_layer", "naive_layer")
    without = {key: value for key, value in base.items() if not key.startswith(new)}
    answers = claims([without, *others])
    assert set(answers) == {"best head", "some heads", "whole layer"}
    assert "other rows" not in answers["whole layer"].words
    assert "whole layer" not in finding([without, *others])


def test_rows_of_other_metrics_and_of_the_test_split_are_not_what_is_shown():
    shown = handmade(*HEADS, *LAYERS)
    other = [
        row | {"metric": "f1", "delta": 0.9, "naive_gain": 0.9, "honest_gain": 0.9, "p_maxt": 0.001}
        for row in shown
    ]
    rows = [row | {"primary": "accuracy"} for row in (*other, *shown)]
    assert finding(rows) == finding(shown)
    assert claims(rows) == claims(shown)
    assert summary(rows) == summary(shown)
    assert views(rows) == views(shown)
    assert best_head_edit(rows) == best_head_edit(shown)
    picked_on_dev = {"split": "test", "picked_on": "dev", "n": 1725}
    on_test = [
        disabled("0.1", -0.003, low=-0.01, high=0.004) | picked_on_dev,
        disabled("1.*", 0.002, low=-0.006, high=0.01) | picked_on_dev,
    ]
    assert summary([*shown, *on_test]) == summary(shown)
    assert views([*shown, *on_test])[:3] == views(shown)
    words = finding([*shown, *on_test])
    assert (
        "Picked on dev and scored on 1,725 test rows: head 0.1 −0.3 points (−1.0 to +0.4) and"
        " layer 1 +0.2 points (−0.6 to +1.0)." in words
    )
    answers = claims([*shown, *on_test])
    assert answers["best head"].words.endswith("; −0.3 points (−1.0 to +0.4) on test")
    assert answers["whole layer"].words.endswith("; +0.2 points (−0.6 to +1.0) on test")


def test_a_count_of_zero_gets_words():
    words = finding(handmade(*HEADS))
    assert words.startswith("No head matters by itself: none of 3")
    assert "1 of the heads is sure to cost less than 1 point" in words
    assert "−0.4 points (−1.1 to +0.3), indistinguishable from none" in words
    hurting = disabled("1.1", -0.3, p=0.01)
    words = finding(handmade(*HEADS, hurting))
    assert words.startswith("Of 4 heads, disabling 1 hurts beyond chance")
    assert "helps" not in words
    words = finding(handmade(*HEADS, hurting, disabled("1.2", 0.3, p=0.01)))
    assert words.startswith("Of 5 heads, disabling 1 hurts and disabling 1 helps beyond chance")


def test_the_best_head_is_the_one_that_honest_selection_picks():
    assert best_head_edit(handmade(*HEADS)) == "disable(0.1)"
    with pytest.raises(RunError, match="comparison hasn't run") as caught:
        best_head_edit(HEADS)
    assert "resume" in caught.value.hint


def test_every_number_in_the_views_is_in_the_rows(case, tmp_path):
    part = studied(case, tmp_path).parts[0]
    numbers = {value for row in part.rows for value in row.values() if isinstance(value, float)}
    heat_map, layers, sets = part.experiment.views(part.rows)
    assert {v for row in heat_map.values for v in row} <= numbers
    for table in (layers, sets):
        assert {cell for row in table.rows for cell in row if isinstance(cell, float)} <= numbers


def test_the_command_prints_the_fixed_shape_and_resumes(case, tmp_path, capsys):
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


def test_a_head_that_no_weights_disable_is_refused_before_the_sweep(tmp_path, capsys):
    """MPNet adds a position bias to the scores: uniform heads are measured, but can't be saved."""
    folder, data, _ = made(tmp_path, "mpnet")
    arguments = ["run", "head-disabling", "--model", folder, "--data", data, "--out"]
    arguments += [tmp_path / "run", "--workers", "0", "--save-best", tmp_path / "best"]
    assert run([str(a) for a in arguments]) == 2
    assert "--how zero" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert run([str(a) for a in [*arguments, "--how", "zero"]]) == 0
    history = json.loads((tmp_path / "best" / "microtome.json").read_text())
    assert history["certificate"]["passed"]
    assert "how=zero" in history["edits"][0]


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
        found = VariantSweep(dict(zip(names, variants, strict=True)), right, None).selection()
        naive.append(found["naive_gain"])
        honest.append(found["honest_gain"])
        covered.append(found["honest_low"] <= 0 <= found["honest_high"])
        rows = VariantSweep(dict(zip(names, variants, strict=True)), right).rows("accuracy")
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
    found = VariantSweep(dict(zip(names, variants, strict=True)), right, None).selection()
    assert found["honest_target"] == "0.17"
    assert found["honest_low"] > 0.0
