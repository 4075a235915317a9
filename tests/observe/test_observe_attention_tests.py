"""A small version of studies/attention_tests.py: random marks and links are hardly ever found."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from microtome import load, load_tokenizer
from microtome.tasks import DataSpec, open_data

STUDIES = Path(__file__).resolve().parents[2] / "studies"
SAMPLES = 80
N_TEXTS = 15


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDIES))
    yield importlib.import_module("attention_tests")
    sys.path.remove(str(STUDIES))


@pytest.fixture(scope="module")
def maps(study):
    """The last layers of nano-bert on short texts."""
    dataset = open_data(DataSpec("micro-sentiment", split="dev")).limit(150)
    kept = study.kept_maps(load("nano-bert"), load_tokenizer("nano-bert"), dataset)
    return study.Maps(kept.texts, [own[-6:] for own in kept.maps])


def most_found_by_chance():
    """A test of 5 % finds more in 1 of 1,000 studies."""
    return float(binom.ppf(0.999, SAMPLES, 0.05)) / SAMPLES


def found_where_nothing_is(sampled):
    """How often some head is found by sign flips, and by random draws."""
    p = [sampled(np.random.default_rng([5, i]), N_TEXTS, 0.0) for i in range(SAMPLES)]
    return [np.mean([one[way].min() <= 0.05 for one in p]) for way in (0, 1)]


def test_random_marks_are_found_by_sign_flips_and_not_by_random_draws(study, maps):
    flips, draws = found_where_nothing_is(study.random_marks(maps, 0.0))
    assert draws <= most_found_by_chance()
    assert flips > most_found_by_chance()  # the simulation can see a test that isn't valid


@pytest.mark.parametrize("most_links", [1, 3])
def test_random_links_are_found_as_often_as_the_test_says(study, maps, most_links):
    _, draws = found_where_nothing_is(study.random_links(maps, most_links))
    assert draws <= most_found_by_chance()


@pytest.mark.parametrize(("kind", "share"), [("marks", 0.2), ("links", 0.3)])
def test_a_head_with_a_clear_effect_is_found(study, maps, kind, share):
    sampled = study.random_marks(maps, 0.2) if kind == "marks" else study.random_links(maps, 2)
    head = study.planted_head(maps)
    p = [sampled(np.random.default_rng([6, i]), N_TEXTS, share)[1][head] for i in range(10)]
    assert np.mean(np.array(p) <= 0.05) >= 0.9
