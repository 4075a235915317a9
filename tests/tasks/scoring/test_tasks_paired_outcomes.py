"""Outcomes of every kind are paired with another model's: differences, tests, sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from microtome.statistics import compare_metric, honest_gain, mean, sweep_gains, value_of
from microtome.tasks import Row, Task, evaluate_logits
from microtome.tasks.reading.scanning import Tags
from microtome.tasks.scoring.entities import entity_f1
from microtome.tasks.task import METRICS_OF
from support.rows_in_memory import dataset_from


def tagging(rng, noise):
    """Entity F1 of tags that are wrong with this probability, on 120 sentences of 6 words."""
    gold = np.random.default_rng(0).integers(0, 3, 720)
    wrong = rng.random(720) < noise
    predicted = np.where(wrong, rng.integers(0, 3, 720), gold)
    return entity_f1(("O", "B-X", "B-Y"), predicted, Tags(gold, np.arange(0, 721, 6))), None


def reranking(rng, noise):
    """MAP of a relevance with this much noise, on 120 queries of 6 passages."""
    task = Task("pairs", "reranking", METRICS_OF["reranking"], "", cluster_by="text")
    rows = [Row(f"q{i // 6}", f"p{i}", int(i % 6 < 2 and i % 60 > 5)) for i in range(720)]
    data = dataset_from(task, rows)
    logits = data.targets[:, None] + noise * rng.normal(size=(720, 1))
    outcomes = evaluate_logits(data, logits).outcomes["map"]
    assert len(outcomes) == data.n_scored == 108  # queries with a relevant passage
    return mean(outcomes), data.scored_clusters


def several(rng, noise):
    """Micro F1 of 3 labels of 240 texts, each wrong with this probability."""
    gold = np.random.default_rng(0).random((240, 3)) < 0.4
    task = Task("topics", "multilabel", METRICS_OF["multilabel"], "", labels=("a", "b", "c"))
    labels = [frozenset(np.flatnonzero(line).tolist()) for line in gold]
    data = dataset_from(task, [Row(f"t{i}", label=label) for i, label in enumerate(labels)])
    logits = np.where((rng.random(gold.shape) < noise) ^ gold, 1.0, -1.0)
    return evaluate_logits(data, logits).outcomes["micro_f1"], None


@pytest.mark.parametrize("make", [tagging, reranking, several])
def test_a_worse_model_is_told_from_a_better_one_and_a_model_from_itself_is_not(make):
    rng = np.random.default_rng(1)
    (good, clusters), (bad, _) = make(rng, 0.1), make(rng, 0.9)
    found = compare_metric(bad, good, clusters=clusters)
    assert found.difference.value == pytest.approx(value_of(bad) - value_of(good))
    assert found.difference.high < 0
    assert found.p < 0.01
    same = compare_metric(good, good, clusters=clusters)
    assert (same.difference.value, same.p) == (0, 1)


@pytest.mark.parametrize("make", [tagging, reranking, several])
def test_a_sweep_picks_the_best_and_its_honest_gain_is_the_difference(make):
    rng = np.random.default_rng(2)
    (base, clusters), (best, _) = make(rng, 0.8), make(rng, 0.05)
    others = [make(rng, 0.9)[0] for _ in range(3)]
    gains = sweep_gains([*others, best], base, clusters=clusters)
    assert np.argmax([gain.value for gain in gains.each]) == 3
    honest = honest_gain([*others, best], base, clusters=clusters, n_splits=20)
    assert honest.picks[0] == (3, 1.0)
    assert honest.gain.value == pytest.approx(value_of(best) - value_of(base), abs=0.1)
    assert honest.gain.low > 0
