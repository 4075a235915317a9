"""Answers over several models and tasks, from answers and rows made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from microtome.papers import CLAIMS, Answer
from microtome.replication.answers import together
from microtome.replication.measured import Measured
from microtome.replication.pooling import POOLED, frame_heads_disabled, pooled

FACTS = {"layers": 12, "shared": False}
NOTHING = Measured({}, {}, {}, {})
MOST_MODELS, EVERY_TASK, AVERAGE = (
    ("decoding", "inner depths"), ("weight-drift", "depth"), ("initialization", "gain"),
)  # fmt: skip
LEARNT = [Answer("w", "holds", 0.3, 0.2, 0.4), Answer("w", "holds", 0.5, 0.4, 0.6)]
UNLEARNT = Answer("w", "can't tell", -9.0, -9.1, -8.9, learnt=False)


def answers(*verdicts, task="mrpc"):
    return {(f"m{i}", task): Answer("w", verdict) for i, verdict in enumerate(verdicts)}


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["holds", "holds", "doesn't hold"], "holds"),
        (["holds", "doesn't hold"], "doesn't hold"),
        (["holds", "can't tell", "can't tell"], "can't tell"),
        (["doesn't hold", "doesn't hold", "holds"], "doesn't hold"),
    ],
)
def test_most_models_are_more_than_half(verdicts, together):
    found = pooled(*MOST_MODELS, NOTHING, answers(*verdicts))
    assert found.verdict == together
    assert f"of {len(verdicts)} models" in found.words


def test_a_model_is_counted_once_whatever_its_tasks_are():
    single = {("m", task): Answer("w", "holds") for task in "abc"}
    single |= {("n", "a"): Answer("w", "holds"), ("n", "b"): Answer("w", "doesn't hold")}
    found = pooled(*MOST_MODELS, NOTHING, single)
    assert found.words == "holds for 1 of 2 models, doesn't for 1"
    assert found.verdict == "doesn't hold"


def test_one_model_alone_is_not_most():
    assert pooled(*MOST_MODELS, NOTHING, answers("holds")) is None


def every_task(single):
    return pooled(*EVERY_TASK, NOTHING, single)


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "can't tell"], "can't tell"),
        (["holds", "can't tell", "doesn't hold"], "doesn't hold"),
    ],
)
def test_every_task_means_all_that_the_claim_is_about(verdicts, together):
    single = answers(*verdicts)
    assert every_task(single).verdict == together
    with_excepted = single | {("m0", "qqp"): Answer("w", None)}
    assert every_task(with_excepted) == every_task(single)
    with_failure = single | {("m0", "qqp"): Answer("w", "doesn't hold")}
    assert every_task(with_failure).verdict == "doesn't hold"


def test_the_average_has_the_interval_of_its_parts():
    single = {
        ("m", "a"): Answer("w", "holds", 0.3, 0.2, 0.4),
        ("m", "b"): Answer("w", "holds", 0.5, 0.4, 0.6),
    }
    found = pooled(*AVERAGE, NOTHING, single)
    # Two half-widths of 0.1: √(0.01 + 0.01) / 2.
    assert found.value == pytest.approx(0.4)
    assert (found.low, found.high) == pytest.approx((0.4 - 0.0707, 0.4 + 0.0707), abs=1e-4)
    assert found.verdict == "holds"
    assert "+40.0 points" in found.words
    lower = {pair: replace(one, value=one.value - 0.4, low=one.low - 0.4, high=one.high - 0.4)
             for pair, one in single.items()}  # fmt: skip
    assert pooled(*AVERAGE, NOTHING, lower).verdict == "can't tell"
    without = single | {("m", "c"): Answer("w", "can't tell", 0.4)}
    assert pooled(*AVERAGE, NOTHING, without).verdict == "can't tell"
    # Together they may decide where none does by itself.
    unsure = {("m", task): Answer("w", "can't tell", 0.1, -0.01, 0.21) for task in "abcd"}
    assert pooled(*AVERAGE, NOTHING, unsure).verdict == "holds"


@pytest.mark.parametrize("claim", sorted({*POOLED} - {("token-links", "overlap")}))
def test_what_was_not_learnt_decides_nothing_together(claim):
    """Left out, and counted: the answer is that of the others alone."""
    learnt = {("m", task): one for task, one in zip("ab", LEARNT, strict=True)}
    alone = pooled(*claim, NOTHING, learnt)
    assert alone.verdict == "holds"
    more = learnt | {("m", task): UNLEARNT for task in "cde"}
    found = pooled(*claim, NOTHING, more)
    left_out = " (2 of 5 model and task pairs; the others haven't learnt their task)"
    assert found == replace(alone, words=alone.words + left_out)
    found = pooled(*claim, NOTHING, learnt | {("m", "c"): UNLEARNT})
    assert found.words.endswith("(2 of 3 model and task pairs; the other hasn't learnt its task)")
    for failed in ("doesn't hold", "can't tell"):
        failure = replace(UNLEARNT, verdict=failed)
        assert pooled(*claim, NOTHING, learnt | {("m", "c"): failure}).verdict == "holds"


@pytest.mark.parametrize("claim", sorted(POOLED))
@pytest.mark.parametrize(("n_learnt", "words"), [(0, "none of 3"), (1, "1 of 3")])
def test_one_that_has_learnt_is_not_several(claim, n_learnt, words):
    lines = [*LEARNT[:n_learnt], *[UNLEARNT] * (3 - n_learnt)]
    single = {("m", task): one for task, one in zip("abc", lines, strict=True)}
    found = pooled(*claim, NOTHING, single)
    assert found.verdict == "can't tell"
    assert (found.value, found.low, found.high) == (None, None, None)
    assert f"{words} model and task pairs has learnt its task" in found.words


def starts(tuned, pretrained=0.2):
    """Three seeds of each start; one constant answer scores 0.5, the commonest label 0.4."""
    return tuple(
        {"start": start, "metric": "f1", "primary": "f1", "value": value + seed / 1000,
         "seed": seed, "constant_value": 0.5, "one_answer": False}
        for start, value in (("majority", 0.4), ("pretrained", pretrained), ("finetuned", tuned),
                             ("random", 0.3))
        for seed in range(1 if start == "majority" else 3)
    )  # fmt: skip


def gains(*tuned):
    tasks = "abcdef"[: len(tuned)]
    rows = {("initialization", "m", task): starts(own)
            for task, own in zip(tasks, tuned, strict=True)}  # fmt: skip
    claim = next(claim for claim in CLAIMS if (claim.experiment, claim.key) == AVERAGE)
    measured = Measured(rows, {}, {"m": FACTS}, {task: {} for task in tasks})
    return together(claim, measured).answer


def test_a_mean_gain_is_that_of_the_tasks_that_were_learnt():
    both = gains(0.9, 0.7)
    assert (both.verdict, both.value) == ("holds", pytest.approx(0.6))
    # 45 % is above the commonest training label, and below the best constant answer.
    with_unlearnt = gains(0.9, 0.7, 0.45, 0.1, 0.1, 0.1)
    assert with_unlearnt.value == both.value
    assert "2 of 6 model and task pairs; the others haven't learnt" in with_unlearnt.words
    assert gains(0.9, 0.45).verdict == gains(0.1, 0.45).verdict == "can't tell"


def head_rows(baseline, gain):
    base = disabled(0, 0.0) | {
        "target": "baseline", "head": None, "layer": None, "value": baseline, "naive_gain": gain,
        "constant_value": 0.5, "one_answer": False, "honest_gain": gain, "honest_low": gain - 0.01,
        "honest_high": gain + 0.01, "unit": "rows", "mean_delta": None,
    }  # fmt: skip
    rows = (base, disabled(0, gain), disabled(1, -0.01))
    whole = {"head": None, "target": "0"}
    return tuple({"p_maxt": 0.01, **row} for row in (*rows, disabled(0, 0.0) | whole))


@pytest.mark.parametrize(("key", "value"), [("best head", 0.04), ("some heads", 1.0)])
def test_heads_of_a_model_that_has_not_learnt_are_no_gain(key, value):
    claim = next(c for c in CLAIMS if (c.experiment, c.key) == ("head-disabling", key))

    def found(*baselines):
        rows = {
            ("head-disabling", "m", task): head_rows(own, gain)
            for task, own, gain in zip("abc", baselines, (0.03, 0.05, -0.4), strict=True)
        }
        measured = Measured(rows, {}, {"m": FACTS}, {task: {} for task in "abc"})
        return together(claim, measured).answer

    two = found(0.8, 0.8, 0.5)
    assert (two.verdict, two.value) == ("holds", pytest.approx(value))
    assert "2 of 3 model and task pairs; the other hasn't" in two.words
    assert found(0.8, 0.8, 0.8).verdict != two.verdict  # the third counts once it has learnt
    assert found(0.8, 0.5, 0.5).verdict == found(0.5, 0.5, 0.5).verdict == "can't tell"


def overlap_rows(*following):
    return tuple(
        {"link": "overlap", "direction": "first→second", "layer": i, "head": 0, "excess": 0.5,
         "p_maxt": 0.01 if i in following else 0.9}
        for i in range(3)
    )  # fmt: skip


def test_the_same_heads_in_two_tasks_are_those_that_both_have():
    rows = {("token-links", "m", "stsb"): overlap_rows(0, 1),
            ("token-links", "m", "rte"): overlap_rows(1, 2)}  # fmt: skip
    measured = Measured(rows, {}, {"m": FACTS}, {"stsb": {}, "rte": {}})

    def same_heads(rows):
        pairs = {(model, task): LEARNT[0] for _, model, task in rows}
        return pooled("token-links", "overlap", replace(measured, rows=rows), pairs)

    found = same_heads(rows)
    assert found.verdict == "holds"
    assert "m in stsb and rte: 1 (1.0)" in found.words
    apart = {**rows, ("token-links", "m", "rte"): overlap_rows(2)}
    assert same_heads(apart).verdict == "can't tell"  # that none does proves nothing
    alone = {key: value for key, value in rows.items() if key[2] == "rte"}
    assert same_heads(alone) is None
    unlearnt = {("m", "stsb"): LEARNT[0], ("m", "rte"): UNLEARNT}
    assert pooled("token-links", "overlap", measured, unlearnt).verdict == "can't tell"


def disabled(layer, delta, *, p=1.0, low=-0.005, high=0.005):
    return {"target": f"{layer}.0", "layer": layer, "head": 0, "metric": "accuracy",
            "primary": "accuracy", "value": 0.8 + delta, "delta": delta, "low": low, "high": high,
            "p_holm": p, "picked_on": None}  # fmt: skip


def frame_row(layer, *, p):
    return {"direction": "predicate→element", "layer": layer, "head": 0, "score": 0.5,
            "excess": 0.2, "p_max": p}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (disabled(1, -0.001), "holds"),
        (disabled(1, -0.03, p=0.01, low=-0.05, high=-0.01), "doesn't hold"),
        (disabled(1, -0.01, low=-0.03, high=0.01), "can't tell"),
    ],
)
def test_frame_heads_are_judged_by_what_their_absence_costs(row, verdict):
    base = disabled(0, 0.0) | {"target": "baseline", "head": None, "layer": None,
                               "constant_value": 0.5, "one_answer": False}  # fmt: skip
    costly = disabled(0, -0.5, p=0.001, low=-0.6, high=-0.4)  # follows no link, so it's no matter
    rows = {
        ("head-disabling", "m", "rte"): (base, costly, row),
        ("frame-relations", "m", ""): (frame_row(0, p=0.9), frame_row(1, p=0.01)),
    }
    measured = Measured(rows, {}, {"m": FACTS}, {"rte": {}})
    found = frame_heads_disabled(measured)
    assert found.verdict == verdict
    assert "head 1.0 on rte" in found.words
    unlearnt = (base | {"constant_value": 0.9}, costly, row)
    nothing = replace(measured, rows={**rows, ("head-disabling", "m", "rte"): unlearnt})
    assert frame_heads_disabled(nothing).verdict == "can't tell"


def decoded(name, *accuracies, layers=4):
    """The last states of a model and of deeper ones, two layers more each time."""
    about = {"checkpoint": "pretrained", "control": 0.1, "n": 90, "depth": layers, "edit": "",
             "first_token_accuracy": None}  # fmt: skip
    rows = tuple(
        about | {"layers": layers + 2 * i, "accuracy": a, "low": a - 0.02, "high": a + 0.02}
        | {"edit": f"extend({layers + 2 * i})" if i else ""}
        for i, a in enumerate(accuracies)
    )  # fmt: skip
    return {("decoding", name, "sst2"): rows}


@pytest.mark.parametrize(
    ("large", "verdict"),
    [(0.3, "holds"), (0.88, "doesn't hold"), (0.72, "can't tell")],
)
def test_larger_models_that_share_layers_are_compared_with_smaller_ones(large, verdict):
    names = ("albert-base-v2", "albert-xlarge-v2", "bert-base-uncased")
    claim = next(c for c in CLAIMS if (c.experiment, c.key) == ("decoding", "xlarge"))
    found = decoded(names[0], 0.9, 0.75) | decoded(names[1], 0.9, large) | decoded(names[2], 0.9, 0)
    stacks = {name: {**FACTS, "shared": name.startswith("albert")} for name in names}
    measured = Measured(found, {}, stacks, {"sst2": {}})
    judged = together(claim, measured).answer
    assert judged.verdict == verdict
    assert f"albert-xlarge-v2 on sst2: −{100 * (0.9 - large):.1f} points" in judged.words
    assert "of the others at most −15.0" in judged.words
    small = replace(measured, stacks={name: stacks[name] for name in names[::2]})
    assert together(claim, small) is None
