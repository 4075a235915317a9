"""Attention on words: where links are placed, random draws and their test, the expected maximum."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.observe import stream
from microtome.observe.linguistic.link_attention import LinkAttention, placements_of
from microtome.observe.linguistic.random_draws import Draws, DrawTest
from microtome.observe.linguistic.received_attention import RandomMarks, chance_weights
from support.by_definition import drawn_most, expected_most
from support.naive import random_texts
from support.tiny import tiny_model


def placement_test(placed, *, clusters=None, repeats=2000, seed=0):
    """The test of heads on texts with one link each, whose weights are (heads, placements)."""
    draws = Draws(None if clusters is None else np.array(clusters), repeats, seed)
    test = DrawTest(1, len(placed[0]), repeats)
    for text, weights in enumerate(placed):
        (rows,) = draws.placements(text, [weights.shape[1]])
        test.add(0, weights.T[rows])
    return test


def shuffled(placed, rng):
    """The same weights, with the link at any of its placements."""
    return [own[:, np.roll(np.arange(own.shape[1]), rng.integers(own.shape[1]))] for own in placed]


class KeptMaps:
    """Every text's maps: (layers, heads, L, L)."""

    def open(self, n_layers, n_heads, n_texts):
        self.maps = [[] for _ in range(n_texts)]

    def add(self, block):
        for text, maps in zip(block.texts.tolist(), block.maps.numpy(), strict=True):
            self.maps[text].append(maps.copy())


def linked_texts(n_texts):
    """Random texts of a small model, one link each: the texts, links and kept maps."""
    lengths = np.random.default_rng(0).integers(7, 14, n_texts)
    texts = random_texts(lengths.tolist(), seed=1)
    links = {}
    for text, length in enumerate(lengths):
        sides = np.array([-1, *[0] * (length - 2), -1])
        links[text] = [placements_of(((1, 4), (2, 4))[: 1 + text % 2], sides)]
    kept = KeptMaps()
    stream(tiny_model("bert", "none"), texts, [kept])
    return texts, links, [np.stack(maps) for maps in kept.maps]


def weights_of_a_model(n_texts):
    """Placed weights of a random model's heads on links in random texts: (heads, placements)."""
    _, links, maps = linked_texts(n_texts)
    placed = []
    for text, (link,) in links.items():
        weights = maps[text][:, :, link.queries, link.keys].max(-1)
        placed.append(weights.reshape(-1, weights.shape[-1]))
    return placed


def test_the_placement_test_has_the_right_size_on_shuffled_links():
    """300 shuffles, 5 % nominal: a share outside 1.2 to 8.8 % is three standard errors off."""
    placed = weights_of_a_model(40)
    rng = np.random.default_rng(2)
    corrected, single = [], []
    for repeat in range(300):
        test = placement_test(shuffled(placed, rng), repeats=199, seed=repeat)
        corrected.append(test.p_max.min() <= 0.05)
        single.append(test.p)
    assert 0.012 <= np.mean(corrected) <= 0.088
    assert np.mean(np.array(single) <= 0.05) == pytest.approx(0.05, abs=0.02)
    assert np.mean(single) == pytest.approx(0.5, abs=0.06)


def test_a_planted_link_is_found_and_clusters_count_once():
    rng = np.random.default_rng(3)
    placed = [rng.random((6, 5)) for _ in range(30)]
    for own in placed:
        own[4, 0] += 0.5
    p_max = placement_test(placed).p_max[0]
    assert p_max[4] <= 0.01
    assert (p_max[[0, 1, 2, 3, 5]] > 0.05).all()
    # Thirty copies of one text are one text: 5 placements can't give less than 1 in 5.
    copies = placement_test([placed[0]] * 30, clusters=[7] * 30)
    assert copies.p.min() > 0.15
    flat = placement_test([np.ones((2, 4))] * 10)
    assert (flat.p == 1).all()  # a head that looks alike everywhere follows nothing
    assert np.isnan(DrawTest(2, 3).p_max).all()  # no text, no number


def test_the_streamed_test_is_that_of_the_kept_maps():
    """Blocks come by length and layer; draws belong to texts, whatever comes when."""
    texts, links, _ = linked_texts(12)
    reduction = LinkAttention(links, Draws(repeats=99))
    stream(tiny_model("bert", "none"), texts, [reduction], tokens_in_flight=40)
    placed = weights_of_a_model(12)
    by_hand = placement_test(placed, repeats=99)
    np.testing.assert_allclose(reduction.test.p_max.ravel(), by_hand.p_max.ravel())
    np.testing.assert_allclose(reduction.test.p.ravel(), by_hand.p.ravel())


def test_links_of_a_text_move_together_round_the_text():
    sides = np.array([-1, *[0] * 8, -1])
    near, far = (placements_of(link, sides) for link in (((3, 2),), ((6, 5),)))
    rows = Draws(repeats=50).placements(0, [len(near.queries), len(far.queries)])
    distance = far.queries[rows[1], 0] - near.queries[rows[0], 0]
    assert distance[0] == 3  # where they are
    assert set(distance % len(near.queries)) == {3}  # and in every draw, on a circle
    assert len(set(rows[0])) == len(near.queries)


def test_drawn_marks_are_different_units_of_the_pool_each_as_likely():
    pool, marked = np.array([2, 3, 5, 7, 8, 9]), np.array([5, 9])
    draws = Draws(repeats=6000)
    drawn = draws.marks(4, marked, pool)
    assert drawn.shape == (2, 6001)
    assert drawn[:, 0].tolist() == [5, 9]
    assert (drawn[0] != drawn[1]).all()
    pairs, counts = np.unique(np.sort(drawn[:, 1:], axis=0), axis=1, return_counts=True)
    assert pairs.shape[1] == 15  # all of them
    assert set(pairs.ravel()) == set(pool)
    assert abs(counts - 400).max() < 4 * np.sqrt(400)
    np.testing.assert_array_equal(drawn, draws.marks(4, marked, pool))  # in every layer the same
    assert (drawn != draws.marks(5, marked, pool)).any()
    clustered = Draws(np.array([1, 1, 0]), repeats=20)
    np.testing.assert_array_equal(
        clustered.marks(0, marked, pool), clustered.marks(1, marked, pool)
    )
    assert (clustered.marks(0, marked, pool) != clustered.marks(2, marked, pool)).any()


def received_by_hand(maps, marked, pool, draws, text):
    """(layers, heads, draws): the largest of what drawn units receive, by plain loops."""
    received = maps.mean(-2)  # (layers, heads, L)
    drawn = draws.marks(text, np.array(marked), np.array(sorted({*pool, *marked})))
    return np.stack([received[:, :, column].max(-1) for column in drawn.T], axis=-1)


def test_random_marks_are_summed_over_texts_and_forgotten():
    texts, _, maps = linked_texts(9)
    lengths = np.diff(texts.offsets)
    marked = {text: [1, 3][: 1 + text % 2] for text in range(8)}  # the last text has none
    marks = np.zeros(len(texts.ids), dtype=bool)
    for text, places in marked.items():
        marks[texts.offsets[text] + np.array(places)] = True
    first = np.zeros_like(marks)
    first[texts.offsets[:-1]] = True
    draws = Draws(repeats=60)
    reduction = RandomMarks(
        {"some": marks, "first": first}, ~texts.special, lambda block: block.received, draws
    )
    stream(tiny_model("bert", "none"), texts, [reduction], tokens_in_flight=30)
    assert not reduction.drawn  # nothing of a text is left
    everywhere = {text: [0] for text in range(9)}
    for name, places in (("some", marked), ("first", everywhere)):
        total = sum(
            received_by_hand(maps[text], of_text, range(1, lengths[text] - 1), draws, text)
            for text, of_text in places.items()
        )
        np.testing.assert_allclose(reduction.tests[name].sums, total.swapaxes(1, 2), rtol=1e-5)


def test_placements_keep_the_offsets_and_stay_in_the_text():
    sides = np.array([-1, 0, 0, 0, 0, -1])
    link = ((3, 1), (3, 2))
    placed = placements_of(link, sides)
    assert [tuple(zip(q, k, strict=True)) for q, k in
            zip(placed.queries.tolist(), placed.keys.tolist(), strict=True)] == [
        ((3, 1), (3, 2)), ((4, 2), (4, 3)),
    ]  # fmt: skip
    assert placed.elsewhere.tolist() == [1]
    assert placed.stripes.tolist() == [[3, 3], [4, 4]]  # from 1 and 2 it would be on its own keys
    avoiding = placements_of(link, sides, avoid=[(4, 3)])
    assert avoiding.elsewhere.tolist() == []  # no control, though it might have been there
    assert len(avoiding.queries) == 2
    pair = np.array([-1, 0, 0, -1, 1, 1, -1])
    crossing = placements_of(((1, 4),), pair)
    assert crossing.keys.tolist() == [[4], [5]]  # (2, 5); each end stays on its side


@pytest.mark.parametrize(("m", "k"), [(5, 1), (5, 2), (6, 6), (7, 3), (1, 1)])
def test_the_expected_maximum_is_exact(m, k):
    values = np.sort(np.random.default_rng(m * k).random(m))[::-1].copy()
    weights = chance_weights(torch.tensor([k]), torch.tensor([m]), m + 2)[0, :m].numpy()
    assert weights.sum() == pytest.approx(1.0)
    assert values @ weights == pytest.approx(drawn_most(values, k))
    assert expected_most(values, k) == pytest.approx(drawn_most(values, k))
