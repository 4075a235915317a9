"""Kao's claims on rows made by hand: other rows, other words and another verdict."""

from __future__ import annotations

import pytest

from microtome.experiments import find_experiment
from microtome.experiments.kao.duplication.depth_comparison import OTHER_ROWS, SAME_ROWS, SELECTION

DECODING, DUPLICATION = find_experiment("decoding"), find_experiment("duplication")


def depths(*accuracies, checkpoint="pretrained", reach=0.01):
    return [
        {"checkpoint": checkpoint, "layers": len(accuracies) - 1, "edit": "", "depth": depth,
         "accuracy": a, "low": a - reach, "high": a + reach, "control": 0.1, "n": 900,
         "first_token_accuracy": None, "readout": "mlm", "task": "sst2", "model": "m"}
        for depth, a in enumerate(accuracies)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tuned", "reach", "verdict", "words"),
    [
        ((0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5), 0.01, "holds", "depth 6 of 6 by more than 5 points"),
        ((0.9, 0.9, 0.5, 0.9, 0.9, 0.9, 0.5), 0.01, "doesn't hold", "depth 2 moves most (−40.0"),
        ((0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9), 0.01, "can't tell", "moves no depth by more than 5"),
        ((0.9, 0.9, 0.8, 0.9, 0.9, 0.9, 0.5), 0.04, "can't tell", "depth 2 moves most (−10.0"),
    ],
)
def test_what_fine_tuning_changes_is_told_by_depths(tuned, reach, verdict, words):
    rows = depths(*[0.9] * 7, reach=reach) + depths(*tuned, checkpoint="finetuned", reach=reach)
    found = DECODING.claims(rows)["fine-tuned"]
    assert found.verdict == verdict
    assert words in found.words


@pytest.mark.parametrize(
    ("accuracy", "control", "layers", "verdict"),
    [
        (0.9, 0.1, 6, "holds"),
        (0.7, 0.1, 6, "doesn't hold"),
        (0.805, 0.1, 6, "can't tell"),
        (0.9, 0.85, 6, "can't tell"),  # random blocks are read as well
        (0.15, 0.1, 6, "doesn't hold"),  # so little is too little, whatever random blocks do
        (0.9, 0.1, 5, "can't tell"),  # half of four layers more are six
    ],
)
def test_shared_layers_are_judged_half_as_deep_again(accuracy, control, layers, verdict):
    (deeper,) = depths(accuracy)
    deeper |= {"edit": f"extend({layers})", "layers": layers, "depth": 4, "control": control}
    rows = [*depths(*[0.9] * 5), deeper]
    found = DECODING.claims([{**row, "model": "albert-base-v2"} for row in rows])["deeper"]
    assert found.verdict == verdict
    assert f"{100 * accuracy:.1f} %" in found.words
    other = DECODING.claims(rows)["deeper"]
    assert other.verdict is None
    assert "deeper" not in DECODING.claims(depths(*[0.9] * 5))


def trained(strategy, n_layers, *scores, task="sst2", model="bert-base-uncased", constant=0.5):
    return [
        {"strategy": strategy, "layers": n_layers, "edit": f"{strategy}({n_layers})", "seed": seed,
         "value": value, "stage": "finetuned", "metric": "accuracy", "primary": "accuracy",
         "low": value, "high": value, "constant_value": constant, "one_answer": False,
         "task": task, "model": model}
        for seed, value in enumerate(scores)
    ]  # fmt: skip


BASE = (0.80, 0.801, 0.802)


@pytest.mark.parametrize(
    ("strategy", "rule", "scores", "verdict"),
    [
        ("repeat:0", "rule 1", (0.70, 0.701, 0.702), "holds"),
        ("repeat:0", "rule 1", (0.90, 0.901, 0.902), "doesn't hold"),
        ("repeat:0", "rule 1", (0.70, 0.80, 0.90), "can't tell"),
        ("last", "rule 2", (0.80, 0.801, 0.802), "holds"),
        ("last", "rule 2", (0.90, 0.901, 0.902), "doesn't hold"),
        ("last", "rule 2", (0.8089, 0.809, 0.8091), "doesn't hold"),  # 0.8 points more
        ("last", "rule 2", (0.70, 0.80, 0.90), "can't tell"),
    ],
)
def test_rules_of_thumb_are_judged_by_seeds(strategy, rule, scores, verdict):
    rows = trained("baseline", 4, *BASE) + trained(strategy, 5, *scores)
    found = DUPLICATION.claims(rows)[rule]
    assert found.verdict == verdict
    assert found.words.startswith(f"{strategy}: ")
    unlearnt = [{**row, "constant_value": 0.95} for row in rows]
    found = DUPLICATION.claims(unlearnt)[rule]
    assert (found.verdict, found.learnt) == ("can't tell", False)
    assert "80.1 %, no better than one constant answer (95.0 %)" in found.words


PLUS_ONE, MORE = (0.80, 0.801, 0.802), (0.90, 0.901, 0.902)


@pytest.mark.parametrize(
    ("model", "by_depth", "verdict"),
    [
        ("bert-base-uncased", {5: MORE, 6: MORE}, "holds"),
        ("bert-base-uncased", {5: PLUS_ONE, 6: MORE}, "doesn't hold"),
        ("bert-base-uncased", {6: MORE}, "can't tell"),  # one more wasn't run
        ("bert-base-uncased", {5: PLUS_ONE, 6: PLUS_ONE}, "can't tell"),
        ("albert-base-v2", {5: PLUS_ONE, 6: MORE}, "holds"),
        ("albert-base-v2", {5: MORE, 6: MORE}, "doesn't hold"),
        ("albert-base-v2", {6: MORE}, "can't tell"),
        ("albert-base-v2", {5: (0.83, 0.86, 0.93), 6: MORE}, "can't tell"),  # perhaps as good
    ],
)
def test_one_more_layer_is_enough_or_not(model, by_depth, verdict):
    rows = trained("baseline", 4, *BASE, model=model)
    for n_layers, scores in by_depth.items():
        rows += trained("first", n_layers, *scores, model=model)
    assert DUPLICATION.claims(rows)["how many"].verdict == verdict


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("bert-large-uncased-whole-word-masking", "inner depths"),
        ("albert-xlarge-v2", "deeper"),
        ("albert-xxlarge-v2", "deeper"),
    ],
)
def test_models_that_the_papers_except_have_no_verdict(model, key):
    (deeper,) = depths(0.3)
    deeper |= {"edit": "extend(6)", "layers": 6, "depth": 4}
    rows = [*depths(*[0.5] * 5), deeper]
    assert DECODING.claims([{**row, "model": model} for row in rows])[key].verdict is None
    other = "albert-base-v2" if "albert" in model else "bert-base-uncased"
    found = DECODING.claims([{**row, "model": other} for row in rows])[key]
    assert found.verdict == "doesn't hold"


def test_a_few_texts_can_not_tell():
    rows = [{**row, "n_first": 4} for row in depths(*[0.9] * 5)]
    found = DECODING.claims(rows)["inner depths"]
    assert found.verdict == "can't tell"
    assert found.words.endswith("4 texts are too few to tell")
    many = [{**row, "n_first": 20} for row in rows]
    assert DECODING.claims(many)["inner depths"].verdict == "holds"


def picked(task, model, value, low, high):
    """The best depth, picked the paper's way and on other rows."""
    common = {"layers": 5, "strategy": "first", "edit": None, "seed": None, "stage": SELECTION,
              "metric": "accuracy", "n": 3, "share": 1.0, "task": task, "model": model}  # fmt: skip
    found = common | {"value": value, "low": low, "high": high}
    rows = trained("baseline", 4, *BASE, task=task, model=model)
    rows += trained("first", 5, *BASE, task=task, model=model)
    return [*rows, found | {"selection": SAME_ROWS}, found | {"selection": OTHER_ROWS}]


@pytest.mark.parametrize(
    ("ends", "gain", "easy", "large"),
    [
        ((0.02, 0.015, 0.03), "holds", "doesn't hold", "doesn't hold"),
        ((0.004, -0.001, 0.008), "can't tell", "holds", "can't tell"),
        ((-0.02, -0.03, -0.01), "doesn't hold", "holds", "holds"),
        ((0.01, -0.01, 0.03), "can't tell", "can't tell", "can't tell"),
    ],
)
def test_the_best_depth_is_judged_on_the_tasks_that_each_claim_is_about(ends, gain, easy, large):
    on_snli = DUPLICATION.claims(picked("snli", "albert-base-v2", *ends))
    assert on_snli["gain"].verdict == gain
    assert not on_snli.keys() & {"easy task", "bert-large"}
    excepted = DUPLICATION.claims(picked("snli", "bert-large-uncased", *ends))
    assert excepted["gain"].verdict is None
    on_sst2 = DUPLICATION.claims(picked("sst2-sentence", "bert-large-uncased", *ends))
    assert (on_sst2["gain"].verdict, on_sst2["easy task"].verdict) == (None, easy)
    assert on_sst2["bert-large"].verdict == large
    albert = DUPLICATION.claims(picked("sst2-sentence", "albert-large-v2", *ends))
    assert "bert-large" not in albert
