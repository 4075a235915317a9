"""Micro and macro F1, exact match: scikit-learn's, for any weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from microtome.errors import RequestError
from microtome.statistics import macro_f1, micro_f1, pooled_f1, value_of, wilson
from microtome.tasks import Row, Task, constant_answer, evaluate_logits
from microtome.tasks.scoring.ensembles import ensemble_logits
from microtome.tasks.task import METRICS_OF
from support.rows_in_memory import dataset_from

METRICS = {"micro": micro_f1, "macro": macro_f1}


@pytest.mark.parametrize("average", METRICS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), n_labels=st.integers(2, 5))
def test_f1_is_scikit_learns_for_any_weights(average, seed, n, n_labels):
    rng = np.random.default_rng(seed)
    predicted, gold = rng.random((2, n, n_labels)) < 0.3
    metric = METRICS[average](predicted, gold)
    options = {"average": average, "zero_division": 0}
    wanted = sklearn.metrics.f1_score(gold, predicted, **options)
    assert value_of(metric) == pytest.approx(wanted)
    weights = rng.integers(0, 3, size=(4, n))
    wanted = [
        sklearn.metrics.f1_score(np.repeat(gold, w, 0), np.repeat(predicted, w, 0), **options)
        if w.any()
        else 0
        for w in weights
    ]
    assert metric(weights.astype(float)) == pytest.approx(wanted)


def test_items_that_cannot_be_right_are_refused():
    assert value_of(pooled_f1([1], [2], [1])) == pytest.approx(2 / 3)
    with pytest.raises(RequestError, match="no more right items"):
        pooled_f1([2], [1], [3])
    with pytest.raises(RequestError, match="for every row and label"):
        micro_f1([[1, 0]], [[1]])


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    gold = rng.random((n, 3)) < (0.7, 0.3, 0.1)
    task = Task("topics", "multilabel", METRICS_OF["multilabel"], "", labels=("a", "b", "c"))
    labels = [frozenset(np.flatnonzero(line).tolist()) for line in gold]
    return dataset_from(task, [Row(f"text {i}", label=lab) for i, lab in enumerate(labels)]), gold


def test_a_label_applies_where_its_probability_is_above_a_half():
    data, gold = rows()
    assert (data.targets == gold).all()
    logits = np.random.default_rng(1).normal(size=(60, 3))
    found = evaluate_logits(data, logits[:, ::-1], {0: "C", 1: "B", 2: "A"})
    predicted = 1 / (1 + np.exp(-logits)) > 0.5
    assert (found.predictions == predicted).all()
    assert found.primary == "micro_f1"
    micro = sklearn.metrics.f1_score(gold, predicted, average="micro")
    assert found.scores["micro_f1"].value == pytest.approx(micro)
    assert found.scores["macro_f1"].low < found.scores["macro_f1"].value
    exact = sklearn.metrics.accuracy_score(gold, predicted)
    assert found.scores["accuracy"] == wilson(round(exact * 60), 60)
    with pytest.raises(RequestError, match=r"head has 2 outputs, topics needs 3 \(multilabel"):
        evaluate_logits(data, logits[:, :2])


def test_the_constant_answer_is_the_best_set_of_labels():
    data, gold = rows()
    sets = np.array(list(itertools.product([False, True], repeat=3)))
    scores = [
        sklearn.metrics.f1_score(gold, np.tile(s, (60, 1)), average="micro", zero_division=0)
        for s in sets
    ]
    assert constant_answer(data, "micro_f1") == pytest.approx(max(scores))
    exact = max((gold == s).all(axis=1).mean() for s in sets)
    assert constant_answer(data, "accuracy") == pytest.approx(exact)


def test_an_ensemble_averages_the_probabilities_of_each_label():
    data, _ = rows()
    one, two = np.random.default_rng(2).normal(size=(2, 60, 3))
    both = ensemble_logits(data.task, [one, two])
    probability = (1 / (1 + np.exp(-one)) + 1 / (1 + np.exp(-two))) / 2
    assert 1 / (1 + np.exp(-both)) == pytest.approx(probability)
    assert ensemble_logits(data.task, [one]) == pytest.approx(one)
