"""Pooled answers from answers and rows made by hand; printed numbers show with their own rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from microtome.papers import Answer
from microtome.papers.exhibits import PAPERS
from microtome.replication.answers import (
    average,
    average_gain,
    every_task,
    frame_heads_disabled,
    judgements,
    most_models,
    same_heads,
)
from microtome.replication.drawings import DRAWINGS
from microtome.replication.measured import Measured
from microtome.replication.page import Replicated

FACTS = {"layers": 12, "shared": False, "family": "BERT", "width": 768, "heads": 12,
         "parameters": 1}  # fmt: skip
NOTHING = Measured({}, {}, {}, {})


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
    found = most_models(NOTHING, answers(*verdicts))
    assert found.verdict == together
    assert f"of {len(verdicts)} models" in found.words


def test_one_model_alone_is_not_most():
    assert most_models(NOTHING, answers("holds")) is None


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
    assert every_task(NOTHING, single).verdict == together
    with_excepted = single | {("m0", "qqp"): Answer("w", None)}
    assert every_task(NOTHING, with_excepted) == every_task(NOTHING, single)
    with_failure = single | {("m0", "qqp"): Answer("w", "doesn't hold")}
    assert every_task(NOTHING, with_failure).verdict == "doesn't hold"


def test_the_average_has_the_interval_of_its_parts():
    single = {
        ("m", "a"): Answer("w", "holds", 0.3, 0.2, 0.4),
        ("m", "b"): Answer("w", "holds", 0.5, 0.4, 0.6),
    }
    found = average(NOTHING, single)
    # Two half-widths of 0.1: √(0.01 + 0.01) / 2.
    assert found.value == pytest.approx(0.4)
    assert (found.low, found.high) == pytest.approx((0.4 - 0.0707, 0.4 + 0.0707), abs=1e-4)
    assert found.verdict == "holds"
    assert "+40.0 points" in found.words
    lower = {pair: replace(one, value=one.value - 0.4, low=one.low - 0.4, high=one.high - 0.4)
             for pair, one in single.items()}  # fmt: skip
    assert average(NOTHING, lower).verdict == "can't tell"
    without = single | {("m", "c"): Answer("w", "can't tell", 0.4)}
    assert average(NOTHING, without).verdict == "can't tell"
    # Together they may decide where none does by itself.
    unsure = {("m", task): Answer("w", "can't tell", 0.1, -0.01, 0.21) for task in "abcd"}
    assert average(NOTHING, unsure).verdict == "holds"


def test_an_average_gain_needs_a_task_that_was_learnt():
    single = {("m", task): Answer("w", "can't tell", 0.4, 0.3, 0.5) for task in ("a", "b")}

    def measured(*tuned):
        rows = {
            ("initialization", "m", task): tuple(
                {"start": start, "metric": "f1", "primary": "f1", "value": value, "seed": seed}
                for start, value in (("majority", 0.5), ("finetuned", own))
                for seed in range(1 if start == "majority" else 3)
            )
            for task, own in zip(("a", "b"), tuned, strict=True)
        }
        return Measured(rows, {}, {"m": FACTS}, {"a": {}, "b": {}})

    assert average_gain(measured(0.9, 0.5), single).verdict == "holds"
    found = average_gain(measured(0.5, 0.4), single)
    assert found.verdict == "can't tell"
    assert "none has learnt" in found.words


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
    found = same_heads(measured, {})
    assert found.verdict == "holds"
    assert "m in stsb and rte: 1 (1.0)" in found.words
    apart = {**rows, ("token-links", "m", "rte"): overlap_rows(2)}
    assert same_heads(replace(measured, rows=apart), {}).verdict == "doesn't hold"
    alone = {key: value for key, value in rows.items() if key[2] == "rte"}
    assert same_heads(replace(measured, rows=alone), {}) is None


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
    found = frame_heads_disabled(measured, {})
    assert found.verdict == verdict
    assert "head 1.0 on rte" in found.words
    unlearnt = (base | {"constant_value": 0.9}, costly, row)
    nothing = replace(measured, rows={**rows, ("head-disabling", "m", "rte"): unlearnt})
    assert frame_heads_disabled(nothing, {}).verdict == "can't tell"


def trained(task, layers, value, metric="f1"):
    return [
        {"model": "bert-base-uncased", "task": task, "layers": layers, "edit": "", "seed": seed,
         "strategy": "baseline" if layers == 12 else "first", "stage": "finetuned",
         "metric": metric, "primary": "f1", "value": value + seed / 100, "low": 0.0, "high": 1.0,
         "constant_value": 0.5, "one_answer": False, "selection": None}
        for seed in range(3)
    ]  # fmt: skip


def table_3(task, whole):
    exhibit = next(one for one in PAPERS["kao2021"].exhibits if one.name == "Table 3")
    rows = tuple(
        row
        for metric in ("f1", "exact_match")
        for layers, value in ((12, 0.7), (13, 0.72))
        for row in trained(task, layers, value, metric)
    )
    key = ("duplication", "bert-base-uncased", task)
    measured = Measured({key: rows}, {}, {key[1]: FACTS}, {task: {}}, frozenset(whole))
    views = DRAWINGS[exhibit.drawing](measured, exhibit)
    return Replicated(exhibit, measured, views, tuple(judgements(measured, exhibit, measured)))


def printed(shown):
    return [line.paper for line in shown.section(PAPERS["kao2021"]).reported]


def test_a_printed_number_shows_with_the_paper_s_own_task_and_split_alone():
    own = table_3("squad2", ["squad2"])
    assert "76.80 %" in printed(own)
    line = next(one for one in own.section(PAPERS["kao2021"]).reported if one.paper == "76.80 %")
    assert line.measured == "73.00 % (mean of 3 runs)"
    assert not [words for words in printed(table_3("squad2", [])) if words.endswith(" %")]
    assert not [words for words in printed(table_3("micro-squad", ["micro-squad"]))
                if words.endswith(" %")]  # fmt: skip


def test_a_table_of_depths_marks_what_is_better_than_the_baseline():
    (table,) = table_3("squad2", []).views
    assert table.columns == ("model", "layers", "exact_match", "f1")
    assert table.groups == (("", 2), ("squad2", 2))
    assert [tuple(row[1:]) for row in table.rows] == [
        (12, pytest.approx(0.71), pytest.approx(0.71)),
        (13, pytest.approx(0.73), pytest.approx(0.73)),
    ]
    assert table.better == ((1, 2), (1, 3))
    assert table.worse == ()
