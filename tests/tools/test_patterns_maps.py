"""Labelled maps as files, and the rule: bytes, passes, scores of pure structures."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import torch

from microtome.errors import DataError
from microtome.observe.patterns import PATTERNS
from patterns.maps import LABELS, as_bytes, as_weights, load_labels, load_maps, save_maps
from patterns.rules import block_score, by_rule, line_score, stripe_score
from support.drawn_maps import pure, random_maps


def test_scores_are_one_for_pure_structures_and_zero_for_uniform_attention():
    ordinary = torch.ones(16, dtype=torch.bool)
    second = torch.arange(16) >= 8
    same = second[:, None] == second[None]
    for score, kind in (
        (stripe_score, "stripe"),
        (line_score, "line"),
        (lambda m: block_score(m, same, ordinary), "block"),
    ):
        assert float(score(pure(kind))) == pytest.approx(1.0, abs=1e-6)
        assert float(score(pure("uniform"))) < 0.07
    said = by_rule(
        *(torch.tensor(s) for s in ([1.0, 0, 1, 0, 0], [0, 1.0, 1, 0, 0], [0.0, 0, 0, 1, 0]))
    )
    assert said.tolist() == list(range(5))


def test_bytes_keep_weights_to_within_their_step():
    weights = random_maps(1, 40)[0].numpy()
    back = as_weights(as_bytes(weights))
    assert np.abs(np.sqrt(back) - np.sqrt(weights)).max() < 2 / 255
    assert back.sum(-1) == pytest.approx(1.0, abs=1e-5)


def test_labelled_maps_have_two_passes_and_enough_of_every_class():
    maps = load_maps(LABELS)
    labels, one, two = (
        load_labels(LABELS / f"{n}.csv", maps) for n in ("labels", "pass1", "pass2")
    )
    assert len(maps) >= 400
    assert np.bincount(labels, minlength=5).min() >= 30
    with (LABELS / "third.csv").open() as stream:
        third = {row["map"]: row["label"] for row in csv.DictReader(stream)}
    for m, label, a, b in zip(maps, labels, one, two, strict=True):
        wanted = PATTERNS[a] if a == b else third[m.about["map"]]
        assert PATTERNS[label] == wanted
        assert m.weights.sum(-1) == pytest.approx(1.0, abs=1e-4)


def test_saved_maps_come_back_and_wrong_labels_are_refused(tmp_path):
    few = load_maps(LABELS)[:5]
    save_maps(tmp_path, few)
    for one, two in zip(few, load_maps(tmp_path), strict=True):
        assert np.allclose(one.weights, two.weights, atol=0.02)
        assert (one.kinds == two.kinds).all()
        assert one.about == two.about
    names = [one.about["map"] for one in few]
    for bad in ("spiral", "block"):
        lines = [f"{name},{bad if i == 0 else 'vertical'}" for i, name in enumerate(names)]
        (tmp_path / "labels.csv").write_text("\n".join(["map,label", *lines]) + "\n")
        if bad == "spiral" or not few[0].border:
            with pytest.raises(DataError):
                load_labels(tmp_path / "labels.csv", few)
    with pytest.raises(DataError, match=r"no maps\.npz"):
        load_maps(tmp_path / "nowhere")
