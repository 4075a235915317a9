"""From outputs to scores: references, label orders, no-answer thresholds, refusals."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from microtome.errors import DataError, RequestError, RunError
from microtome.statistics import wilson
from microtome.tasks import (
    Answer,
    DataSpec,
    Row,
    Span,
    SpanChoice,
    Task,
    evaluate_answers,
    evaluate_choices,
    evaluate_logits,
    find_task,
    label_map,
    metric_of,
    open_data,
    score,
    value,
)
from microtome.tasks.scoring.evaluation import best_threshold
from support.rows_in_memory import dataset_from

REFERENCES = {
    "accuracy": lambda p, y: sklearn.metrics.accuracy_score(y, p),
    "f1": lambda p, y: sklearn.metrics.f1_score(y, p, zero_division=0),
    "matthews": lambda p, y: sklearn.metrics.matthews_corrcoef(y, p),
    "pearson": lambda p, y: scipy.stats.pearsonr(p, y).statistic,
    "spearman": lambda p, y: scipy.stats.spearmanr(p, y).statistic,
}
TASK_OF = {
    "accuracy": "mrpc",
    "f1": "mrpc",
    "matthews": "cola",
    "pearson": "stsb",
    "spearman": "stsb",
}


def answers(name, rng, n):
    if TASK_OF[name] == "stsb":
        # Rounded, so that ranks are tied.
        return np.round(rng.normal(size=n), 1), np.round(rng.uniform(0, 5, size=n))
    return rng.integers(0, 2, n), rng.integers(0, 2, n)


@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(10, 80))
def test_a_metric_is_what_the_reference_says(name, seed, n):
    predicted, gold = answers(name, np.random.default_rng(seed), n)
    found = value(name, predicted, gold, find_task(TASK_OF[name]))
    assert found == pytest.approx(REFERENCES[name](predicted, gold), abs=1e-9)


@pytest.mark.parametrize("name", REFERENCES)
def test_a_weight_counts_a_row_that_often(name):
    rng = np.random.default_rng(0)
    predicted, gold = answers(name, rng, 60)
    weights = rng.integers(0, 4, size=(7, 60))
    found = metric_of(name, predicted, gold, find_task(TASK_OF[name]))(weights.astype(float))
    wanted = [REFERENCES[name](np.repeat(predicted, w), np.repeat(gold, w)) for w in weights]
    assert found == pytest.approx(wanted, abs=1e-9)


def test_matthews_of_three_labels_is_the_references():
    predicted, gold = np.random.default_rng(0).integers(0, 3, size=(2, 90))
    wanted = sklearn.metrics.matthews_corrcoef(gold, predicted)
    assert value("matthews", predicted, gold, find_task("snli")) == pytest.approx(wanted)


def test_constant_answers_have_a_matthews_of_zero():
    assert value("matthews", np.zeros(9, int), np.arange(9) % 2, find_task("cola")) == 0


def test_accuracy_has_wilsons_interval_and_others_one_that_holds_the_value():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 200)
    predicted = np.where(rng.random(200) < 0.8, gold, 1 - gold)
    found = score(find_task("mrpc"), predicted, gold)
    assert found["accuracy"] == wilson(int((predicted == gold).sum()), 200)
    assert 0 < found["f1"].low < found["f1"].value < found["f1"].high < 1
    assert list(found) == ["f1", "accuracy"]


def test_clusters_widen_the_interval_of_accuracy():
    rng = np.random.default_rng(0)
    right = np.repeat(rng.random(60) < 0.7, 10)  # whole clusters right or wrong
    gold = np.zeros(600, dtype=int)
    task = find_task("snli")
    alone = score(task, 1 - right.astype(int), gold)["accuracy"]
    together = score(task, 1 - right.astype(int), gold, clusters=np.repeat(np.arange(60), 10))
    assert together["accuracy"].value == alone.value
    wide = together["accuracy"].high - together["accuracy"].low
    assert wide > 2 * (alone.high - alone.low)  # theory: √10 times


# ── label order ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("names", "order", "said"),
    [
        (["entailment", "neutral", "contradiction"], (0, 1, 2), "matched by .* the same order"),
        (["CONTRADICTION", "Neutral", "Entailment"], (2, 1, 0), "matched by .* reordered"),
        (["neutral", "contradiction", "entailment"], (2, 0, 1), "outputs \\(2, 0, 1\\)"),
        (["LABEL_0", "LABEL_1", "LABEL_2"], (0, 1, 2), "taken by index"),
        (["entailment", "neutral", "other"], (0, 1, 2), "taken by index .*other"),
        (["neutral", "neutral", "neutral"], (0, 1, 2), "taken by index"),
    ],
)
def test_label_order_comes_from_names_that_match(names, order, said):
    found, note = label_map(find_task("snli"), dict(enumerate(names)), 3)
    assert found == order
    assert re.search(said, note)


def test_separators_and_case_of_label_names_do_not_matter():
    found, _ = label_map(find_task("rte"), {0: "Not-Entailment", 1: "ENTAILMENT"}, 2)
    assert found == (1, 0)


@pytest.mark.parametrize(
    ("task", "n", "said"),
    [
        ("sst2", 3, "head has 3 outputs, sst2 needs 2 .*negative, positive"),
        ("mnli", 2, "head has 2 outputs, mnli needs 3"),
        ("stsb", 2, "head has 2 outputs, stsb needs 1 .*regression"),
        ("sst2", 1, "head has 1 output, sst2 needs 2"),
        ("squad2", 2, "isn't measured with a classification head"),
    ],
)
def test_a_head_of_the_wrong_size_is_an_error_that_says_so(task, n, said):
    with pytest.raises(RequestError, match=said):
        label_map(find_task(task), None, n)


# ── logits ──────────────────────────────────────────────────────────────────────────────────────


def snli(tmp_path, labels):
    rows = [
        {"gold_label": label, "sentence1": f"p{i // 3}", "sentence2": f"h{i}"}
        for i, label in enumerate(labels)
    ]
    (tmp_path / "snli_1.0_test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return open_data(DataSpec("snli", tmp_path, "test"))


def test_logits_are_read_in_the_checkpoints_order(tmp_path):
    data = snli(tmp_path, ["entailment", "neutral", "contradiction", "neutral"])
    logits = np.eye(3)[[2, 1, 0, 1]]  # right for a head in reverse order
    reverse = {0: "contradiction", 1: "neutral", 2: "entailment"}
    found = evaluate_logits(data, logits, reverse)
    assert found.scores["accuracy"].value == 1
    assert any("reordered" in note for note in found.notes)
    assert found.predictions.tolist() == [0, 1, 2, 1]
    assert evaluate_logits(data, logits).scores["accuracy"].value == 0.5
    turned = {0: "neutral", 1: "contradiction", 2: "entailment"}
    found = evaluate_logits(data, np.eye(3)[[2, 0, 1, 0]], turned)
    assert found.predictions.tolist() == [0, 1, 2, 1]


def test_rows_without_a_label_count_as_wrong_in_a_figure_of_their_own(tmp_path):
    data = snli(tmp_path, ["entailment", "-", "neutral", "-", "neutral", "entailment"])
    found = evaluate_logits(data, np.eye(3)[[0, 1, 1, 0]])
    assert (found.scores["accuracy"].value, found.scores["accuracy"].n) == (1.0, 4)
    all_rows = found.scores["accuracy_with_unlabelled"]
    assert (all_rows.value, all_rows.n) == (pytest.approx(4 / 6), 6)
    assert all_rows.low <= all_rows.value <= all_rows.high


def test_the_ceiling_of_snlis_all_rows_figure_is_the_papers():
    from microtome.statistics import Interval
    from microtome.tasks.scoring.scores import with_unlabelled

    assert with_unlabelled(Interval(1, 0.99, 1, 9824), 176).value == pytest.approx(0.9824)


def test_a_regression_head_is_scored_by_its_number(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"t{i},{i / 4}\n" for i in range(12)))
    data = open_data(DataSpec(path=path))
    found = evaluate_logits(data, np.arange(12.0)[:, None] * 3 + 1)
    assert found.scores["pearson"].value == pytest.approx(1)
    assert found.primary == "pearson"


def test_the_json_is_the_shape_that_scripts_rely_on(tmp_path):
    data = snli(tmp_path, ["entailment", "neutral", "neutral"])
    document = json.loads(json.dumps(evaluate_logits(data, np.eye(3)).as_json()))
    assert document["primary"] == "accuracy"
    assert set(document["scores"]["accuracy"]) == {"value", "low", "high", "n"}


def test_outputs_that_cannot_be_scored_are_refused(tmp_path):
    data = snli(tmp_path, ["entailment", "neutral"])
    with pytest.raises(RequestError, match="expected output of 2 rows, got 5"):
        evaluate_logits(data, np.zeros((5, 3)))
    with pytest.raises(RunError, match="isn't a number in 1 of 2 rows"):
        evaluate_logits(data, np.array([[0, np.nan, 0], [1, 2, 3]]))
    with pytest.raises(RequestError, match="head has 2 outputs"):
        evaluate_logits(data, np.zeros((2, 2)))
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tfine\n")
    with pytest.raises(DataError, match=r"sst2 test has no labels .* try train or dev"):
        evaluate_logits(open_data(DataSpec("sst2", tmp_path, "test")), np.zeros((1, 2)))


# ── spans ───────────────────────────────────────────────────────────────────────────────────────


def questions(*rows):
    made = [
        Row(f"q{i}", p, tuple(Answer(a, p.find(a)) for a in y), f"{i}", "art")
        for i, (p, y) in enumerate(rows)
    ]
    task = Task(
        name="toy",
        kind="spans",
        metrics=("f1", "exact_match"),
        summary="a toy",
        cluster_by="given",
    )
    return dataset_from(task, made)


def test_span_answers_are_scored_against_all_accepted_ones():
    data = questions(
        ("in New York", ["New York"]), ("no idea", []), ("the red car", ["red car", "car"])
    )
    found = evaluate_answers(data, ["York", "", "car"])
    # F1: 2·1/(1+2), 1, 1; exact: 0, 1, 1
    assert found.scores["f1"].value == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert found.scores["exact_match"].value == pytest.approx(2 / 3)
    assert found.primary == "f1"


def test_a_question_is_left_unanswered_where_no_answer_wins_by_more_than_the_threshold():
    data = questions(("in New York", ["New York"]), ("no idea", []))
    choices = [
        SpanChoice(0, (Span(3, 11, 5.0),), no_answer=5.0),  # a draw: answered
        SpanChoice(1, (Span(0, 2, 1.0),), no_answer=2.0),
    ]
    found = evaluate_choices(data, choices)
    assert found.predictions.tolist() == ["New York", ""]
    assert found.scores["f1"].value == 1
    assert evaluate_choices(data, choices, threshold=1.0).predictions.tolist() == ["New York", "no"]
    assert evaluate_choices(data, choices, threshold=-1.0).predictions.tolist() == ["", ""]


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30))
def test_the_best_threshold_is_the_best_of_all_thresholds(seed, n):
    rng = np.random.default_rng(seed)
    margin = rng.integers(-3, 4, n).astype(float)  # with ties
    has_answer = rng.random(n) < 0.5
    answered = np.where(has_answer, rng.random(n).round(2), 0.0)
    threshold, best = best_threshold(answered, margin, has_answer, ["x"] * n)

    def mean_at(threshold):
        return np.where(margin > threshold, ~has_answer, answered).mean()

    assert mean_at(threshold) == pytest.approx(best)
    assert best == pytest.approx(max(mean_at(t) for t in np.arange(-4, 4.5, 0.5)))
