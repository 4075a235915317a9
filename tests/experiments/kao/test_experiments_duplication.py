"""Duplication: which layers, how many seeds, what the words say, and what picking is worth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome import load, parse
from microtome.edits.depth import DepthRules
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kao.duplication.claims import claims
from microtome.experiments.kao.duplication.depth_comparison import compare_depths, trained_depths
from microtome.experiments.kao.duplication.measure import (
    picked_as_in_the_papers,
    picked_on_other_rows,
)
from microtome.experiments.kao.duplication.report import picked_finding, views
from microtome.experiments.kao.duplication.strategies import depths_of
from microtome.experiments.kit.layers import Layers
from microtome.tasks import DataSpec
from microtome.views import HeatMap
from support.experiment_rows import study_here
from support.labelled_texts import sentences, write_rows
from support.tiny import save_tiny, tiny_tokenizer
from support.training_rows import rows as labelled

EXPERIMENT = find_experiment("duplication")
N_ROWS = 40
FREE = Layers(12, DepthRules())
SHARED = Layers(12, DepthRules(shared=True))


@pytest.fixture
def data(tmp_path):
    return write_rows(tmp_path / "rows.csv", sentences(N_ROWS), (i % 2 for i in range(N_ROWS)))


def planned(folder, data, **settings):
    subject = subject_of(str(folder), DataSpec(path=data))
    return EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))


def studied(folder, data, out, **settings):
    subject = subject_of(str(folder), DataSpec(path=data))
    return study_here("duplication", subject, out, **settings)


@pytest.mark.parametrize(
    ("strategy", "layers", "orders"),
    [
        ("first", [4, 5], {4: [0, 0, 1, 2], 5: [0, 0, 1, 1, 2]}),
        ("last", [4, 5], {4: [0, 1, 2, 2], 5: [0, 1, 1, 2, 2]}),
        ("repeat:1", [5], {5: [0, 1, 1, 1, 2]}),
        ("remove-top", [2, 1], {2: [0, 1], 1: [0]}),
        ("remove-bottom", [2, 1], {2: [1, 2], 1: [2]}),
    ],
)
def test_each_strategy_is_the_order_of_layers_that_it_names(strategy, layers, orders):
    found = depths_of([strategy], layers, Layers(3, DepthRules()))[1:]
    made = {d.n_layers: list(next(iter(parse(d.edit))).order(3)) for d in found}
    assert made == orders


def test_remove_each_leaves_every_single_layer_out_once():
    found = depths_of(["remove-each"], None, Layers(3, DepthRules()))[1:]
    kept = [next(iter(parse(d.edit))).order(3) for d in found]
    assert kept == [(1, 2), (0, 2), (0, 1)]


def test_without_numbers_four_layers_are_added_but_never_more_than_twice_the_model():
    assert [d.n_layers for d in depths_of(["first"], None, FREE)] == [12, 13, 14, 15, 16]
    small = Layers(3, DepthRules())
    assert [d.n_layers for d in depths_of(["first"], None, small)] == [3, 4, 5, 6]
    assert [d.n_layers for d in depths_of(["remove-top"], None, FREE)] == [12, 11, 10, 9, 8]


@pytest.mark.parametrize(
    ("strategies", "layers", "rules", "message"),
    [
        (["first"], [13, 25], FREE, r"extend\(25\) doesn't fit a model of 12 layers"),
        (["last"], [25], FREE, "last must be at most 12, the number of layers, got 13"),
        (["first"], [11], FREE, "--layers 11 can't be made by first from a model with 12"),
        (["remove-top"], [13], FREE, "--layers 13 can't be made by remove-top"),
        (
            ["middle"],
            None,
            FREE,
            "--strategy must be one of first, last, repeat:LAYER, .* got 'middle'",
        ),
        (["repeat:12"], None, FREE, "there is no layer 12"),
        (["first"], [12], FREE, "only the baseline of 12 layers is left"),
        (["last"], None, SHARED, "applies one layer 12 times"),
        (["first"], [65], SHARED, "would give 65 layers"),
    ],
)
def test_depths_that_the_model_cannot_have_are_one_clear_line(strategies, layers, rules, message):
    with pytest.raises(RequestError, match=message):
        depths_of(strategies, layers, rules)


def test_a_shared_layer_is_applied_more_often_or_less():
    found = depths_of(["first", "remove-top"], [10, 12, 50], SHARED)
    assert [(d.strategy, d.n_layers) for d in found] == [
        ("baseline", 12),
        ("first", 50),
        ("remove-top", 10),
    ]


@pytest.mark.parametrize(
    ("family", "head", "settings", "message"),
    [
        (
            "albert",
            "none",
            {"layerdrop": 0.1},
            "--layerdrop doesn't go with a model that applies one",
        ),
        ("albert", "none", {"scan": True}, "--scan doesn't go with a model that applies one"),
        ("bert", "none", {"layers": [7]}, r"extend\(7\) doesn't fit a model of 3 layers"),
        ("bert", "none", {"layerdrop": 1.0}, "--layerdrop must be from 0 to below 1, got 1"),
        (
            "bert",
            "none",
            {"fraction": 1.5},
            "--fraction must be a share or a number of rows, got 1.5",
        ),
        ("bert", "question-answering", {}, "has a question-answering head"),
    ],
)
def test_what_no_trial_could_do_is_refused_at_planning_time(
    tmp_path, data, family, head, settings, message
):
    folder = save_tiny(tmp_path / "m", family, head, with_tokenizer=True)
    with pytest.raises(RequestError, match=message):
        planned(folder, data, **settings)


def test_the_baseline_is_an_arm_like_the_others_with_as_many_seeds(tmp_path, data):
    folder = save_tiny(tmp_path / "m", "bert", "none", with_tokenizer=True)
    trials = planned(folder, data, layers=[3, 4, 5], seeds=[3, 5], layerdrop=0.2)
    trained = {t.hash: t.request for t in trials if t.name == "finetuning.train"}
    about = {t.needs[0]: t.request["about"] for t in trials if t.name == "finetuning.repeat_rows"}
    arms = list(trained.values())
    assert [(about[key]["layers"], a["edits"], a["seed"]) for key, a in trained.items()] == [
        (3, "", 3), (3, "", 5), (4, "extend(4)", 3), (4, "extend(4)", 5),
        (5, "extend(5)", 3), (5, "extend(5)", 5),
    ]  # fmt: skip
    assert {a["recipe"]["layerdrop"] for a in arms} == {0.2}
    recipes = [(a["recipe"], a["fraction"], a["new_head"]) for a in arms]
    assert all(one == recipes[0] for one in recipes)


def test_a_whole_run_decodes_trains_picks_and_speaks(tmp_path):
    folder = save_tiny(tmp_path / "m", "bert", "mlm", with_tokenizer=True)
    labelled(tmp_path, n=80)
    data = tmp_path / "single-80-0.jsonl"
    recipe = {"epochs": 2, "learning_rate": 3e-3, "batch_size": 16}
    done = studied(folder, data, tmp_path / "run", layers=[3, 4], seeds=[0, 1, 2], **recipe)
    rows, part = done.parts[0].rows, done.parts[0]
    decoded = {r["layers"]: r for r in rows if r["stage"] == "decoded"}
    assert decoded[4]["value"] == pytest.approx(last_state_share(folder, data, 4))
    assert decoded[3]["value"] == pytest.approx(last_state_share(folder, data, 3))
    trained = [r for r in rows if r["stage"] == "finetuned" and r["metric"] == "accuracy"]
    assert sorted((r["layers"], r["seed"]) for r in trained) == [
        (layers, seed) for layers in (3, 4) for seed in (0, 1, 2)
    ]
    for record in done.result.records.values():
        if record.name == "finetuning.train":
            assert done.result.arrays(record.hash)["logits"].shape == (record.rows[0]["n"], 2)
    assert "4 layers against 3" in part.finding
    assert "the papers' way" in part.finding
    assert {"gain", "how many"} <= claims(rows).keys()
    assert views(rows)


@torch.no_grad()
def last_state_share(folder, data, n_layers):
    """By argmax over the full logits of the edited model, on the held-out rows."""
    subject = subject_of(str(folder), DataSpec(path=data))
    tokenizer = tiny_tokenizer("bert")
    model = parse(f"extend({n_layers})")(load(folder))
    right = total = 0
    for row in subject.dataset.rows():
        ids = tokenizer(row.text, return_tensors="pt")
        counted = ~torch.isin(ids["input_ids"], torch.tensor(tokenizer.all_special_ids))
        right += int(((model(**ids).logits.argmax(-1) == ids["input_ids"]) & counted).sum())
        total += int(counted.sum())
    return right / total


def test_the_scan_of_a_classifier_equals_each_repeat_by_hand(tmp_path, data):
    names = {0: "no", 1: "yes"}
    folder = save_tiny(
        tmp_path / "m", "bert", "classification", with_tokenizer=True, id2label=names,
        label2id={"no": 0, "yes": 1},
    )  # fmt: skip
    rows = studied(folder, data, tmp_path / "run", scan=True, zero_shot=True).parts[0].rows
    scan = {r["edit"]: r for r in rows if r["strategy"] == "scan"}
    assert scan.keys() == {
        "", "repeat(0)", "repeat(0-1)", "repeat(0-2)", "repeat(1)", "repeat(1-2)", "repeat(2)"
    }  # fmt: skip
    tokenizer, model = tiny_tokenizer("bert"), load(folder)
    gold = np.arange(N_ROWS) % 2
    for edit, row in scan.items():
        edited = parse(edit)(model) if edit else model
        with torch.no_grad():
            answers = [
                int(edited(**tokenizer(text, return_tensors="pt")).logits.argmax())
                for text in sentences(N_ROWS)
            ]
        assert row["value"] == pytest.approx(np.mean(np.array(answers) == gold))
        assert row["stage"] == "zero-shot"
    (heat,) = [view for view in views(rows) if isinstance(view, HeatMap)]
    change = scan["repeat(0-1)"]["value"] - scan[""]["value"]
    assert heat.values[0][1] == pytest.approx(change)
    assert heat.values[1][0] is None


def trained(strategy, layers, scores, edit=""):
    return [
        {
            "strategy": strategy, "layers": layers, "edit": edit, "seed": seed, "value": value,
            "stage": "finetuned", "metric": "accuracy", "primary": "accuracy",
        }
        for seed, value in enumerate(scores)
    ]  # fmt: skip


def test_the_words_hold_the_interval_and_the_smallest_detectable_difference():
    rows = trained("baseline", 12, (0.79, 0.80, 0.81))
    rows += trained("first", 13, (0.80, 0.81, 0.82), "extend(13)")
    (found,) = compare_depths(trained_depths(rows))
    # The error is √(2 · 0.01² / 3); 3 degrees of freedom, halfway between 4 and 2: t = 3.182.
    reach = 3.182446 * (2 * 0.01**2 / 3) ** 0.5
    assert found.difference.interval.low == pytest.approx(0.01 - reach, abs=1e-6)
    assert found.sentence.startswith(
        "13 layers against 12: +1.0 points (−1.6 to +3.6) over 3 seeds, can't tell; smallest"
        " detectable difference: "
    )
    assert found.sentence.endswith(f" {100 * found.difference.detectable:.1f} points")


def test_one_run_each_cannot_separate_the_edit_from_the_seed():
    rows = trained("baseline", 12, (0.8,)) + trained("first", 13, (0.9,), "extend(13)")
    (found,) = compare_depths(trained_depths(rows))
    assert "can't separate the edit from the seed: one run each" in found.sentence


def test_a_clear_difference_is_called_better_and_many_depths_are_corrected_for():
    rows = trained("baseline", 12, (0.800, 0.801, 0.802))
    rows += trained("first", 13, (0.900, 0.901, 0.902), "extend(13)")
    assert compare_depths(trained_depths(rows))[0].verdict == "better"
    for layers in range(14, 40):  # as many depths again that do nothing
        rows += trained("first", layers, (0.799, 0.801, 0.803), f"extend({layers})")
    one = next(a for a in compare_depths(trained_depths(rows)) if a.depth.n_layers == 13)
    assert one.p_holm == pytest.approx(min(1, 27 * one.difference.p))


N = 400


def answers(share, seed):
    return (np.random.default_rng(seed).random(N) < share).astype(float)


def test_a_lucky_run_carries_the_papers_way_and_not_the_honest_one():
    baseline = {seed: answers(0.8, 0) for seed in range(3)}
    lucky, plain = dict(baseline), {}
    wrong = np.flatnonzero(baseline[0] == 0)
    lucky[0] = baseline[0].copy()
    lucky[0][wrong[:40]] = 1.0  # one run of one depth: 10 points more
    for seed in range(3):
        plain[seed] = baseline[seed].copy()
        plain[seed][wrong[:12]] = 1.0  # every run of the other depth: 3 points more
    arms = {13: lucky, 14: plain}
    assert picked_as_in_the_papers(arms, baseline).value == pytest.approx(0.1)
    assert picked_as_in_the_papers(arms, baseline).n_layers == 13
    honest = picked_on_other_rows(arms, baseline)
    # Seed 0 is scored on what seeds 1 and 2 pick, 14 layers: 3 points. They are misled by seed 0,
    # and gain nothing where they pick 13 layers.
    assert 0 < honest.value < 0.03
    assert honest.low <= 0 <= honest.high


def test_a_depth_that_helps_every_seed_is_found():
    baseline = {seed: answers(0.8, seed) for seed in range(3)}
    better = {s: np.where(answers(0.3, 9 + s) > 0, 1.0, baseline[s]) for s in range(3)}
    honest = picked_on_other_rows({13: baseline, 14: better}, baseline)
    true = np.mean([better[s].mean() - baseline[s].mean() for s in range(3)])
    assert honest.n_layers == 14
    assert honest.share == 1.0
    assert honest.value == pytest.approx(true, abs=0.01)
    assert honest.low > 0


def test_one_seed_has_no_honest_choice_and_the_words_say_so():
    baseline = {0: answers(0.8, 0)}
    arms = {13: {0: answers(0.85, 1)}}
    assert picked_on_other_rows(arms, baseline) is None
    rows = [picked_as_in_the_papers(arms, baseline).row("first", "accuracy")]
    assert "can't be picked on some runs" in picked_finding(rows, "first")
