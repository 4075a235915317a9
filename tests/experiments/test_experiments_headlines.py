"""What a page says first follows from rows: doctored rows change titles, sentences and cards."""

from __future__ import annotations

import re

import pytest

from microtome.experiments.field.trim import headline as trim
from microtome.experiments.field.trim import report as trimmed
from microtome.experiments.kao.decoding import headline as decoding
from microtome.experiments.kao.decoding import report as decoded
from microtome.experiments.kao.duplication import headline as duplication
from microtome.experiments.kao.duplication import report as duplicated
from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kao.layer_removal import headline as removal
from microtome.experiments.kao.layer_removal import report as removed
from microtome.experiments.kit.wording import between, change, layers_named, listed
from microtome.experiments.kovaleva.head_disabling import headline as disabling
from microtome.experiments.kovaleva.head_disabling import report as disabled
from microtome.experiments.singh.reinitialization import headline as reinitialization
from microtome.experiments.singh.reinitialization import report as reinitialized
from microtome.papers.answer import CANT_TELL, HOLDS, Answer
from microtome.study.headlines import joint_headline, plain_headline
from microtome.views import Card, Headline
from support.trimming.judged_rows import row as trim_row

SCORE = {
    "metric": "accuracy", "primary": "accuracy", "n": 400, "unit": "rows", "one_answer": False,
    "constant_value": 0.5, "value": 0.9, "value_low": 0.87, "value_high": 0.92,
}  # fmt: skip


def removal_rows(losses, best_low=-0.2, best_high=-0.05):
    """Single removals that lose so much, those above two points for sure, and one best cut."""
    cost = {"parameters": 100, "speed": 1.2, "latency_ms": 3.0, "edit": "remove(0)"}
    one = SCORE | cost | {"strategy": "each", "layers": len(losses) - 1, "p_holm": 0.5}
    base = one | {"target": "baseline", "edit": "", "layers": len(losses), "delta": 0.0}
    singles = [
        one | {"target": str(i), "edit": f"remove({i})", "delta": -loss, "low": -loss - 0.02,
               "high": -loss + 0.02, "p_maxt": 0.001 if loss > 0.02 else 0.6}
        for i, loss in enumerate(losses)
    ]  # fmt: skip
    best = one | {"strategy": "best", "target": "3", "edit": "remove(3)", "delta": -0.1,
                  "low": best_low, "high": best_high, "share": 1.0, "candidates": 4}  # fmt: skip
    return [base, *singles, best]


def test_the_layers_that_carry_the_task_are_those_that_are_missed_for_sure():
    assert removed.layers_that_matter(removal_rows([0.1, 0.1, 0.1, 0.01])) == (
        "Layers 0 to 2 carry the task"
    )
    assert removed.layers_that_matter(removal_rows([0.01, 0.3, 0.0])) == "Layer 1 carries the task"
    assert removed.layers_that_matter(removal_rows([0.01, 0.0, 0.0])) == ""
    assert removed.layers_that_matter(removal_rows([0.3, 0.3])) == "No layer can be spared"
    single = next(
        v for v in removed.views(removal_rows([0.1, 0.0])) if v.says.startswith("Layer 0")
    )
    assert single.title == "One layer removed, without training"


def test_how_many_layers_can_go_needs_the_whole_interval():
    losses = [0.1, 0.1, 0.1, 0.01]
    enough, open_, lost = (
        removal_rows(losses, *ends) for ends in ((-0.005, 0.004), (-0.02, 0.01), (-0.2, -0.05))
    )
    assert removed.how_many_can_go(enough) == "3 of 4 layers keep the score within a point"
    assert removed.how_many_can_go(open_) == ""
    assert removed.how_many_can_go(lost) == "Every cut costs more than a point"
    assert removal.headline(enough).cards[0].value == "1 of 4"
    assert removal.headline(open_).cards[0].value == "0 of 4"
    assert removal.headline(enough).sentence.startswith("3 of 4 layers are enough")
    unlearnt = [row | {"value": 0.5} for row in enough]
    assert "hasn't learnt" in removal.headline(unlearnt).sentence
    assert removed.how_many_can_go(unlearnt) == ""


def head_rows(losses):
    """Heads of layers of two; those above two points are lost for sure."""
    honest = {f"honest{part}_{end}": 0.0 for part in ("",) for end in ("gain", "low", "high")}
    base = SCORE | honest | {"target": "baseline", "layer": None, "head": None, "delta": 0.0}
    return [base] + [
        SCORE | {"target": f"{i // 2}.{i % 2}", "layer": i // 2, "head": i % 2, "delta": -loss,
                 "low": -loss - 0.02, "high": -loss + 0.02, "p_maxt": 0.001 if loss > 0.02 else 0.9}
        for i, loss in enumerate(losses)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([0.01, 0.1, 0.0, 0.3], "Heads 1.1 and 0.1 carry the task"),
        ([0.01, 0.1, 0.0, 0.0], "Head 0.1 carries the task"),
        ([0.0] * 4, ""),
        ([0.1] * 4 + [0.0] * 2, "4 of 6 heads carry the task, in layers 0 and 1"),
    ],
)
def test_the_heads_that_carry_the_task_are_those_beyond_chance(losses, said):
    rows = head_rows(losses)
    assert disabled.which_matter(disabled.single_heads(rows)) == said
    first = disabling.headline(rows)
    assert first.cards[0].value == f"{sum(loss > 0.02 for loss in losses)} of {len(losses)}"
    assert first.sentence.startswith(said or f"No single head of {len(losses)} is sure to matter")


def decoded_rows(accuracies, control=0.2):
    return [
        {"checkpoint": "base", "layers": len(accuracies) - 1, "edit": "", "depth": i,
         "accuracy": a, "low": a - 0.02, "high": a + 0.02, "control": control,
         "first_token_accuracy": a, "readout": "mlm", "n": 900, "input": "a b", "decoded": "a b"}
        for i, a in enumerate(accuracies)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("accuracies", "said"),
    [
        ((0.9, 0.9, 0.9, 0.9), "Every inner depth can be read beyond the random blocks"),
        ((0.9, 0.9, 0.25, 0.9), "Depth 1 can be read beyond the random blocks"),
        ((0.9, 0.2, 0.2, 0.9), "Random blocks can be read as well as the model's"),
        ((0.9, 0.31, 0.31, 0.9), ""),
    ],
)
def test_depths_are_held_against_their_control(accuracies, said):
    rows = decoded_rows(accuracies)
    assert decoded.what_inner_depths_hold(decoded.curve_rows(rows)) == said
    assert decoded.views(rows)[0].says == said
    assert decoding.headline(rows).sentence.startswith(said or "Only some inner depths")


def test_the_frontier_says_what_is_sure_on_the_rows_that_price_it():
    base, good = trim_row("", 6, speed=1.0), trim_row("keep(0-3)", 4)
    unsure = good | {"low": -0.02}
    wish = trimmed.Wish()
    assert trimmed.frontier([base, good]).says == "4 of 6 layers lose less than 1 point"
    assert trimmed.frontier([base, unsure]).says == ""
    assert trimmed.frontier([base, good], trimmed.Wish(0.02)).says.endswith("less than 2 points")
    first = trim.headline([base, good], wish)
    assert first.sentence == "4 of 6 layers are enough: +0.0 points (−0.4 to +0.4), 1.5× the speed."
    assert [card.value for card in first.cards] == [
        "2 of 6", "90.0 %", "1.5×", "+0.0 points", "33.3 % smaller",
    ]  # fmt: skip
    none = trim.headline([base, good | {"pick_low": -0.05}], wish)
    assert none.cards[0].value == "0 of 6"
    assert none.sentence == "No layer can go yet: no cut is sure to lose less than 1 point."
    ignorant = trim.headline([base | {"pick_value": base["constant_value"]}, good], wish)
    assert ignorant.sentence.startswith("The model hasn't learnt the task")
    assert [card.value for card in ignorant.cards] == ["90.0 %"]


def arms(column, scores, **more):
    """A row for every place and seed."""
    return [
        SCORE | {"fraction": 1, "n_train": 500, "layers": 12, "seed": seed, "value": value,
                 "low": value - 0.02, "high": value + 0.02, column: place} | more
        for place, values in scores.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip


SURE, SAME = (0.70, 0.71, 0.69), (0.90, 0.91, 0.89)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({0: SAME, 2: SAME, 4: SURE}, "Pre-training matters: without it in the last 4 layers"),
        ({0: SAME, 2: SURE, 4: SURE}, "Pre-training matters: without it in the last 2 layers"),
        ({0: SAME, 2: SAME, 4: SAME}, ""),
        ({0: SAME[:1], 4: SURE[:1]}, ""),
    ],
)
def test_what_pre_training_is_worth_needs_an_interval_over_seeds(scores, said):
    rows = arms("reinitialized", scores, side="top", layer=None)
    assert reinitialized.what_it_costs(rows).startswith(said)
    assert bool(reinitialized.what_it_costs(rows)) == bool(said)
    assert reinitialized.views(rows)[0].says == reinitialized.what_it_costs(rows)
    assert ("three are the least" in reinitialization.headline(rows).sure) == (len(scores[0]) < 3)


def depth_rows(scores):
    return [
        row | {"stage": "finetuned", "strategy": "none" if layers == 12 else "first",
               "edit": "" if layers == 12 else f"extend({layers})", "layers": layers}
        for layers, values in scores.items()
        for row in arms("layers", {layers: values})
    ]  # fmt: skip


def test_more_layers_are_better_or_worse_only_where_seeds_say_so():
    def rows(scores):
        return [
            r | {"strategy": BASELINE if r["layers"] == 12 else "first"} for r in depth_rows(scores)
        ]

    assert duplicated.what_depth_does(rows({12: SURE, 15: SAME})) == "15 layers are better than 12"
    assert duplicated.what_depth_does(rows({12: SAME, 15: SURE, 18: SURE})) == (
        "15 and 18 layers are worse than 12"
    )
    assert duplicated.what_depth_does(rows({12: SAME, 15: SAME})) == ""
    same = duplication.headline(rows({12: SAME, 15: SAME}))
    assert same.sentence == "No number of added layers is sure to help or to hurt."
    assert 3 <= len(same.cards) <= 5


def test_several_experiments_on_one_model_lead_with_the_first():
    def said(name):
        return Headline(f"{name}.", tuple(Card(f"{name} {i}", str(i)) for i in range(4)), "")

    whole = joint_headline([("", said(n)) for n in "abcd"], same_subject=True)
    assert whole.sentence == "a."
    assert [card.label for card in whole.cards] == ["a 0", "a 1", "a 2", "b 0", "c 0"]
    shared = joint_headline([("", said("a")), ("", said("a"))], same_subject=True)
    assert len({card.label for card in shared.cards}) == len(shared.cards), "a number is said once"
    models = joint_headline([("x", said("a")), ("y", said("a"))], same_subject=False)
    assert models.sentence == "x: a."
    assert [card.label for card in models.cards] == [
        "x: a 0", "y: a 0", "x: a 1", "y: a 1", "x: a 2",
    ]  # fmt: skip
    assert joint_headline([], same_subject=True) is None


def test_an_experiment_without_a_headline_counts_what_it_has():
    rows = [{"n": 40, "seed": 0}, {"n": 60, "seed": 1}]
    claims = {"a": Answer("x", HOLDS), "b": Answer("y", CANT_TELL), "c": Answer("z")}
    first = plain_headline("It is so. And so.", rows, claims, "Kao et al. 2021, section 2")
    assert first.sentence == "It is so."
    assert {card.label: card.value for card in first.cards} == {
        "claims that hold": "1 of 2", "rows measured": "60", "seeds": "2", "results": "2",
        "method of": "Kao et al. 2021",
    }  # fmt: skip


def test_numbers_in_words():
    assert change(0.0, -0.0001, 0.0001) == "+0.0 points"
    assert change(-0.004, -0.011, 0.003) == "−0.4 points (−1.1 to +0.3)"
    assert between(0.841, 0.9) == "84.1 to 90.0"
    assert between(None, 0.9) == ""
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert layers_named([5, 0, 2, 1]) == "Layers 0 to 2 and 5"
    assert not re.search(r"(\d\.\d) to \1\b", change(0.01, 0.0100001, 0.01))
