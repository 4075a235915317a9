"""Layer removal as an experiment: rows against edits made by hand, refused cuts, words and rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from microtome import load, parse
from microtome.edits.depth import DepthRules
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kao.layer_removal.cuts import all_cuts, cuts_of
from microtome.experiments.kao.layer_removal.report import (
    cut_to_make,
    front,
    rows_to_decide,
)
from microtome.models import cost
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.labelled_texts import sentences, write_rows
from support.paraphrases import N_DEV, N_TEST, answers_of, tiny_mrpc
from support.tiny import save_tiny, tiny_tokenizer

OFFICIAL = {"f1": f1_score, "accuracy": accuracy_score}
TEXTS = sentences(40)


def predictions(model, family):
    tokenizer = tiny_tokenizer(family)
    with torch.no_grad():
        inputs = (tokenizer(text, return_tensors="pt") for text in TEXTS)
        return np.array([int(model(**given).logits.argmax()) for given in inputs])


def studied(tmp_path, family, **config):
    """The part, the model and its labels: its own answers, every fifth one turned."""
    folder = save_tiny(
        tmp_path / "model", family, "classification", with_tokenizer=True,
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1}, **config,
    )  # fmt: skip
    model = load(folder)
    labels = predictions(model, family)
    labels[::5] = 1 - labels[::5]
    data = write_rows(tmp_path / "rows.csv", TEXTS, labels)
    subject = subject_of(str(folder), DataSpec(path=data))
    (part,) = study_here("layer-removal", subject, tmp_path / "run").parts
    return part, model, labels


def by_cut(part):
    shown = [row for row in part.rows if row["metric"] == row["primary"]]
    return {(row["strategy"], row["target"]): row for row in shown}


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_every_cut_equals_the_edit_made_by_hand(tmp_path, family):
    part, model, labels = studied(tmp_path, family)
    first = "unshare() | " if family == "albert" else ""
    rows = by_cut(part)
    base = np.mean(predictions(model, family) == labels)
    for strategy, target, edit in (
        ("each", "0", "remove(0)"),
        ("each", "2", "remove(2)"),
        ("top", "top 2", "keep(0)"),
        ("bottom", "bottom 1", "keep(1-2)"),
    ):
        row = rows[strategy, target]
        assert parse(row["edit"]) == parse(first + edit)
        edited = parse(row["edit"])(model)
        score = np.mean(predictions(edited, family) == labels)
        assert row["value"] == pytest.approx(score)
        assert row["delta"] == pytest.approx(score - base)
        assert row["parameters"] == cost(edited).parameters
        assert row["latency_ms"] > 0
    best = [cut for cut in rows if cut[0] == "best"]
    assert len(rows) - len(best) == 3 + 3 + 2 + 2  # baselines, single layers, top 1–2, bottom 1–2
    assert [rows[cut]["layers"] for cut in best] == [2, 1]


def test_shared_layers_are_unshared_in_the_baseline_too_and_the_words_say_so(tmp_path):
    part, model, labels = studied(tmp_path, "albert")
    base = by_cut(part)["each", "baseline"]
    assert base["edit"] == "unshare()"
    assert base["value"] == pytest.approx(np.mean(predictions(model, "albert") == labels))
    assert base["parameters"] == cost(parse("unshare()")(model)).parameters
    assert base["parameters"] > cost(model).parameters
    assert "share weights" in part.finding
    assert front(part.rows)[0].rows[0][0] == "as it is, layers unshared"


def test_a_refused_cut_is_a_row_that_says_why(tmp_path):
    part, _, _ = studied(tmp_path, "modernbert")  # its layer 0 has to stay
    rows = by_cut(part)
    refused = [cut for cut, row in rows.items() if row.get("refused")]
    assert all("layer 0" not in row["edit"] for row in part.rows if row["strategy"] == "best")
    assert set(refused) == {("each", "0"), ("bottom", "bottom 1"), ("bottom", "bottom 2")}
    for cut in refused:
        assert "layer 0" in rows[cut]["refused"]
        assert rows[cut]["value"] is None
    assert rows["each", "1"]["value"] is not None
    assert set(part.experiment.columns) <= set(rows["each", "0"])
    assert "3 cuts can't be made in this model" in part.finding
    assert rows["each", "0"]["refused"] in part.finding
    assert part.experiment.summary(part.rows)["n_refused"] == 3
    curve, _, best, prices, table = part.experiment.views(part.rows)
    assert [series.name for series in curve.series] == [
        "removed from the top", "best cut, picked on other rows", "one constant answer",
    ]  # fmt: skip
    assert [row[1] for row in best.rows] == [2, 1]
    assert len(prices.rows) == 4  # remove(1), remove(2), keep(0-1), keep(0)
    assert set(table.rows) == {(rows[cut]["edit"], rows[cut]["refused"]) for cut in refused}
    layers = [row[1] for row in front(part.rows)[0].rows]
    assert layers == [3, 2, 1, None]  # as it is, the best cuts, the constant answer


def test_a_model_of_one_layer_has_nothing_to_cut_and_says_so(tmp_path):
    part, _, _ = studied(tmp_path, "bert", num_hidden_layers=1)
    assert list(by_cut(part)) == [
        ("each", "baseline"), ("each", "0"), ("top", "baseline"), ("bottom", "baseline"),
    ]  # fmt: skip
    assert "1 cut can't be made" in part.finding
    assert len(part.experiment.views(part.rows)) == 3
    learnt = [dict(row) | {"constant_value": 0.0, "one_answer": False} for row in part.rows]
    learnt = [row | {"value": row["value"] or 1.0} for row in learnt]
    assert part.experiment.finding(learnt).startswith("No cut is possible")


def test_the_words_follow_the_rows(tmp_path):
    part, _, _ = studied(tmp_path, "bert")
    doctored = [dict(row) for row in part.rows]
    best = [row for row in doctored if row["strategy"] == "best"]
    for row in best:
        row |= {"delta": -0.4, "low": -0.5, "high": -0.3, "one_answer": False, "speed": 1.4}
    finding = find_experiment("layer-removal").finding
    assert finding(doctored).startswith(
        "No cut is sure to cost less than 1 point without training; the nearest is"
    )
    assert "rows would decide" not in finding(doctored)  # no number of rows makes 40 points 1
    best[0] |= {"delta": 0.0, "low": -0.02, "high": 0.02, "n": 400}
    assert "about 1,600 rows would decide it." in finding(doctored)  # 400 · (2 / 1)²
    best[0]["one_answer"] = True
    assert best[0]["edit"] not in finding(doctored).split(".")[0]
    best[1] |= {"delta": 0.01, "low": 0.0, "high": 0.02, "speed": 2.5, "edit": "keep(0)"}
    assert finding(doctored).startswith(
        "Keep 1 of 3 layers (keep(0)): +1.0 points (+0.0 to +2.0), 2.50× the speed, sure to cost"
    )


def test_cuts_of_a_model_that_learnt_nothing_are_not_judged(tmp_path):
    part, _, _ = studied(tmp_path, "bert")
    base = dict(by_cut(part)["each", "baseline"])
    worse = [row | {"constant_value": base["value"]} for row in map(dict, part.rows)]
    assert part.experiment.finding(worse).startswith("The model hasn't learnt the task")
    assert cut_to_make(worse) is None
    assert cut_to_make(part.rows) is not None


def test_a_constant_answer_is_no_good_cut(tmp_path):
    part, _, labels = studied(tmp_path, "bert")
    base = by_cut(part)["each", "baseline"]
    assert base["constant_value"] == pytest.approx(max(np.mean(labels), 1 - np.mean(labels)))
    assert not base["one_answer"]
    for row in front(part.rows)[0].rows[1:-1]:
        edit = row[0].removesuffix(" (one answer only)")
        answers = predictions(parse(edit)(load(tmp_path / "model")), "bert")
        assert row[0].endswith("(one answer only)") == (len(set(answers.tolist())) == 1)


def test_the_best_cut_is_picked_among_all_blocks_and_pairs(tmp_path):
    part, model, labels = studied(tmp_path, "bert", num_hidden_layers=4)
    best = {row["layers"]: row for row in part.rows if row["strategy"] == "best"}
    assert best[2]["candidates"] == 6  # all pairs of four layers
    assert best[3]["candidates"] == 4
    assert best[1]["candidates"] == 2  # blocks of three
    base = np.mean(predictions(model, "bert") == labels)
    for row in best.values():
        assert -1 <= row["low"] <= row["delta"] <= row["high"] <= 1
        assert row["value"] == pytest.approx(base + row["delta"])
        assert 0 < row["share"] <= 1
    shown = {line[1]: line[0].partition(" (")[0] for line in front(part.rows)[0].rows[1:-1]}
    assert shown == {layers: best[layers]["edit"] for layers in (3, 2, 1)}  # one cut of every size


def test_cuts_are_the_same_for_every_task_and_known_before_any_row_is_read():
    every = all_cuts(6, DepthRules())
    removed = {cut.removed for cut in every}
    assert len(removed) == len(every) == (6 * 7 // 2 - 1) + (15 - 5)  # blocks, then other pairs
    assert {len(cut.order) for cut in every} == {1, 2, 3, 4, 5}
    assert len(all_cuts(12, DepthRules())) == 12 * 13 // 2 - 1  # too many layers for all pairs
    assert cuts_of("top", 6, DepthRules())["top 2"].order == (0, 1, 2, 3)
    assert cuts_of("bottom", 6, DepthRules())["bottom 2"].edit == "keep(2-5)"
    fixed = all_cuts(3, DepthRules(first_copied=1))
    assert {cut.removed for cut in fixed if cut.order} == {(1,), (2,), (1, 2)}
    assert all("layer 0" in cut.refusal for cut in fixed if 0 in cut.removed)


def test_how_many_rows_would_decide_is_asked_of_a_cost_below_a_point():
    row = {"delta": -0.005, "low": -0.025, "n": 400}
    assert rows_to_decide(row) == 6400  # the half-width of 2 points must shrink to half a point
    assert rows_to_decide(row | {"delta": -0.01, "low": -0.02}) is None


def test_the_claim_counts_the_cuts_that_cost_less_than_a_point(tmp_path):
    part, _, _ = studied(tmp_path, "modernbert")
    claims = part.experiment.claims
    costly = [dict(row) for row in part.rows]
    for row in costly:
        if row["target"] != "baseline" and not row.get("refused"):
            row["low_corrected"] = row["high"] = -0.5
        row |= {"constant_value": -1.0, "one_answer": False}
    found = claims(costly)["removal"]
    assert found.words.startswith("none of 4 cuts is sure to cost less than 1 point")
    assert found.verdict == "doesn't hold"
    large = next(row for row in costly if row["target"] == "top 2")
    large["high"] = 0.1
    assert claims(costly)["removal"].verdict == "can't tell"
    large["low_corrected"] = 0.0
    found = claims(costly)["removal"]
    assert (found.words[:20], found.verdict) == ("1 of 4 cuts is sure ", "holds")


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return tiny_mrpc(tmp_path_factory.mktemp("mrpc"))


@pytest.fixture(scope="module")
def on_mrpc(mrpc, tmp_path_factory):
    subject = subject_of(str(mrpc[0]), DataSpec("mrpc", path=mrpc[1]))
    out = tmp_path_factory.mktemp("run")
    return study_here("layer-removal", subject, out, metric="accuracy", test_split=True).parts[0]


def by_hand(mrpc, edit, split, metric):
    folder, _, rows, labels = mrpc
    edited = parse(edit)(load(folder)) if edit else load(folder)
    return OFFICIAL[metric](labels[split], answers_of(edited, rows[split]))


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_every_official_metric_has_rows_that_equal_edits_by_hand(mrpc, on_mrpc, metric):
    rows = [row for row in on_mrpc.rows if row["metric"] == metric and row["strategy"] == "each"]
    assert [row["target"] for row in rows] == ["baseline", "0", "1", "2"]
    for row in rows:
        assert row["value"] == pytest.approx(by_hand(mrpc, row["edit"], "dev", metric))
        assert row["primary"] == "accuracy"
        assert row["constant_value"] == pytest.approx(
            max(OFFICIAL[metric](mrpc[3]["dev"], np.full(N_DEV, label)) for label in (0, 1))
        )


def test_the_chosen_metric_is_shown_and_picked_by(mrpc, on_mrpc):
    assert {row["metric"] for row in on_mrpc.rows if row["strategy"] == "best"} == {"accuracy"}
    curve, _, _, prices, on_test = on_mrpc.experiment.views(on_mrpc.rows)
    assert len(on_test.rows) == 2
    assert curve.y_label == "accuracy"
    assert len(prices.rows) == 3 + 2 + 2
    score = by_hand(mrpc, "", "dev", "accuracy")
    assert f"The accuracy with all 3 layers is {100 * score:.1f} %" in on_mrpc.finding
    subject = subject_of(str(mrpc[0]), DataSpec("mrpc", path=mrpc[1]))
    experiment = find_experiment("layer-removal")
    settings = experiment.settings({"metric": "matthews"})
    with pytest.raises(RequestError, match="--metric must be one of mrpc's, f1 or accuracy"):
        experiment.plan(subject, settings)


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_what_dev_rows_pick_is_scored_on_test_rows(mrpc, on_mrpc, metric):
    rows = [row for row in on_mrpc.rows if row.get("picked_on") and row["metric"] == metric]
    assert [row["layers"] for row in rows] == [2, 1]
    base = by_hand(mrpc, "", "test", metric)
    for row in rows:
        cuts = ("0", "1", "2") if row["layers"] == 2 else ("0-1", "1-2", "0,2")
        edits = [f"remove({cut})" for cut in cuts]
        scores = {edit: by_hand(mrpc, edit, "dev", metric) for edit in edits}
        assert scores[row["edit"]] == pytest.approx(max(scores.values()))
        score = by_hand(mrpc, row["edit"], "test", metric)
        assert (row["split"], row["picked_on"], row["n"]) == ("test", "dev", N_TEST)
        assert row["value"] == pytest.approx(score)
        assert row["delta"] == pytest.approx(score - base)
        assert row["low"] <= row["delta"] <= row["high"]
    assert "scored on 36 test rows" in on_mrpc.finding
