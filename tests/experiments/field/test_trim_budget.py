"""Minutes become texts and steps: reckoned by hand."""

from __future__ import annotations

import pytest

from microtome.errors import DataError
from microtome.experiments.field.trim.budget import LEAST_TEXTS, Times, budget_of, rounds

BATCH = 10


def request(*, minutes: float | None = None, steps: int | None = None, sizes=(1, 2)):
    return {"sizes": list(sizes), "batch_size": BATCH, "minutes": minutes, "steps": steps}


def test_enough_texts_are_answered_once_and_every_size_gets_the_same_time():
    # A step of one layer takes 0.2 s and reads ten texts that take 0.1 s to answer: of 60 s, each
    # of two sizes gets 24 s, in which the faster one takes 120 steps; 1200 answers take the last
    # 12 s.
    times = Times(per_text=0.01, per_step={1: 0.2, 2: 0.4})
    budget = budget_of(request(minutes=1), times, n_available=100_000)
    assert budget.n_texts == pytest.approx(1200, abs=BATCH)
    assert budget.steps[1] == pytest.approx(120, abs=1)
    assert budget.steps[2] == pytest.approx(60, abs=1)


@pytest.mark.parametrize("n_available", [100, 700, 1190, 5000])
def test_the_minutes_are_spent_and_not_more(n_available):
    times = Times(per_text=0.01, per_step={1: 0.2, 2: 0.4})
    budget = budget_of(request(minutes=1), times, n_available)
    spent = budget.n_texts * times.per_text
    spent += sum(n * times.per_step[size] for size, n in budget.steps.items())
    assert budget.n_texts <= n_available
    assert 60 - 0.6 - BATCH * 0.01 <= spent <= 60


def test_few_texts_are_read_again_and_again():
    times = Times(per_text=0.01, per_step={1: 0.2, 2: 0.4})
    budget = budget_of(request(minutes=1), times, n_available=100)
    assert budget.n_texts == 100  # 1 s; 29.5 s for each size
    assert dict(budget.steps) == {1: 147, 2: 73}


def test_very_few_texts_are_read_twenty_times_at_most():
    times = Times(per_text=0.01, per_step={1: 0.2, 2: 0.4})
    budget = budget_of(request(minutes=60), times, n_available=35)
    assert budget.n_texts == 35
    assert dict(budget.steps) == {1: 80, 2: 80}  # four batches, the last one of five texts


def test_a_moment_is_one_step_on_one_batch():
    times = Times(per_text=0.01, per_step={1: 2.0, 2: 4.0})
    budget = budget_of(request(minutes=0.001), times, n_available=100)
    assert budget.n_texts == BATCH
    assert dict(budget.steps) == {1: 1, 2: 1}


def test_steps_are_what_was_asked_for():
    budget = budget_of(request(steps=7), None, n_available=1000)
    assert budget.n_texts == 70
    assert dict(budget.steps) == {1: 7, 2: 7}
    assert budget_of(request(steps=7), None, n_available=33).n_texts == 33


@pytest.mark.parametrize("asked", [request(steps=3), request(minutes=5)])
def test_too_few_texts_are_refused(asked):
    times = Times(per_text=0.01, per_step={1: 0.2, 2: 0.4})
    with pytest.raises(DataError, match=f"at least {LEAST_TEXTS} texts to heal on, got 9"):
        budget_of(asked, times, n_available=9)


def test_fewer_texts_than_a_batch_are_a_batch():
    times = Times(per_text=0.01, per_step={1: 0.2, 2: 0.4})
    asked = {**request(minutes=1), "batch_size": 64}
    budget = budget_of(asked, times, n_available=20)
    assert budget.n_texts == 20
    assert dict(budget.steps) == {1: 20, 2: 20}  # each step reads all of them


def test_times_are_read_as_they_are_stored():
    stored = {"seconds_per_text": 0.5, "seconds_per_step": {"1": 0.25, "11": 2.0}}
    assert Times.of(stored) == Times(0.5, {1: 0.25, 11: 2.0})


def test_three_contend_for_a_tenth_of_the_steps_each():
    assert rounds(200, 15) == (3, 20, 140)
    assert rounds(200, 2) == (2, 20, 160)
    assert rounds(100, 15) == (3, 10, 70)


@pytest.mark.parametrize(("n_steps", "n_candidates"), [(99, 15), (1000, 1)])
def test_one_takes_all_where_contending_tells_nothing(n_steps, n_candidates):
    assert rounds(n_steps, n_candidates) == (1, 0, n_steps)


@pytest.mark.parametrize("n_steps", [1, 50, 100, 137, 1000])
@pytest.mark.parametrize("n_candidates", [1, 2, 3, 20])
def test_no_step_is_lost(n_steps, n_candidates):
    contenders, first, then = rounds(n_steps, n_candidates)
    assert contenders * first + then == n_steps
    assert then > 0
