"""Timing by turns: medians of a clock that is made up here, and what a busy machine leaves."""

from __future__ import annotations

import itertools

import pytest

from microtome.observe import speed
from microtome.observe.speed import seconds_by_turns, time_against
from support.naive import random_texts
from support.tiny import tiny_model


@pytest.fixture
def clock(monkeypatch):
    """Seconds by model: the cut takes what the test says, the base always 10 ms."""
    base, cut = tiny_model("bert", "classification"), tiny_model("bert", "classification")
    taken: list[str] = []

    def set_seconds(*of_cut):
        seconds = itertools.cycle(of_cut)

        def measured(model, batch):
            taken.append("base" if model is base else "cut")
            return 0.010 if model is base else next(seconds)

        monkeypatch.setattr(speed, "_seconds", measured)

    return base, cut, taken, set_seconds


def timed(clock, *seconds, share=0.5):
    base, cut, _, set_seconds = clock
    set_seconds(*seconds)
    return time_against(cut, base, random_texts((5, 9, 4, 7)), share=share)


def test_speed_and_milliseconds_are_medians_of_the_turns(clock):
    timing = timed(clock, 0.005)
    assert timing.speed == timing.speed_low == timing.speed_high == pytest.approx(2.0)
    assert (timing.latency_ms, timing.base_latency_ms) == pytest.approx((5, 10))
    assert (timing.batch_ms, timing.base_batch_ms) == pytest.approx((5, 10))
    disturbed = timed(clock, 0.005, 0.005, 0.005, 0.005, 0.080)
    assert disturbed.speed == pytest.approx(2.0)
    assert disturbed.speed_low <= disturbed.speed <= disturbed.speed_high


def test_neither_model_always_comes_first(clock):
    timed(clock, 0.005)
    pairs = list(zip(clock[2][::2], clock[2][1::2], strict=True))
    assert set(pairs) == {("base", "cut"), ("cut", "base")}


@pytest.mark.parametrize("seconds", [0.019, 0.001])
def test_a_ratio_that_fewer_layers_do_not_explain_is_not_given(clock, seconds):
    """Half of the layers neither take longer than all of them nor run ten times as fast."""
    timing = timed(clock, seconds)
    assert timing.speed is timing.speed_low is timing.speed_high is None
    assert timing.latency_ms == pytest.approx(1000 * seconds)


def test_a_disturbed_measurement_is_taken_again(clock):
    n_first = 2 * (speed.SINGLE_TURNS + 1) // 2 + (speed.BATCH_TURNS + 1)
    timing = timed(clock, *([0.050] * n_first), *([0.005] * 200))
    assert timing.speed == pytest.approx(2.0)


def test_of_several_models_each_begins_as_often_and_keeps_its_place(monkeypatch):
    seconds = {"a": 1.0, "b": 2.0, "c": 3.0}
    taken = []

    def measured(model, batch):
        taken.append((model, batch))
        return seconds[model]

    monkeypatch.setattr(speed, "_seconds", measured)
    texts = [{"a": ["A0", "A1"], "b": ["B0", "B1"], "c": ["C0", "C1"]}[name] for name in seconds]
    turns = seconds_by_turns(list(zip(seconds, texts, strict=True)), 6)
    assert turns == [[1.0, 2.0, 3.0]] * 6
    first = [model for model, _ in taken[::3]][1:]  # without the turn that warms up
    assert sorted(first) == ["a", "a", "b", "b", "c", "c"]
    for turn in range(7):  # in a turn, all read the same text
        assert {batch[1] for _, batch in taken[3 * turn : 3 * turn + 3]} == {str(turn % 2)}
