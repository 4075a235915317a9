"""The placement test: its size on shuffled links, a planted link, clusters."""

from __future__ import annotations

import numpy as np
import pytest

from microtome.experiments.frame_tables import BACK, FORWARD, encode_exemplars, frame_rows
from microtome.experiments.link_attention import LinkAttention, placement_test, placements_of
from microtome.observe import stream
from microtome.tasks.frames import Element, Exemplar
from microtome.tasks.treebanks import Sentence, Word
from tiny import WORDS, tiny_model
from training_rows import tokenizer_for


def shuffled(placed, rng):
    """The same weights, with the link at any of its placements."""
    return [own[:, np.roll(np.arange(own.shape[1]), rng.integers(own.shape[1]))] for own in placed]


def weights_of_a_model(n_texts):
    """Placed weights of a random model's heads on links in random texts: (heads, placements)."""
    from observe.naive import random_texts

    rng = np.random.default_rng(0)
    lengths = rng.integers(7, 14, n_texts)
    texts = random_texts(lengths.tolist(), seed=1)
    links = {}
    for text, length in enumerate(lengths):
        sides = np.array([-1, *[0] * (length - 2), -1])
        links[text] = [placements_of(((1, 4), (2, 4))[: 1 + text % 2], sides)]
    reduction = LinkAttention(links, keep=True)
    stream(tiny_model("bert", "none"), texts, [reduction])
    return [own.reshape(-1, own.shape[-1]) for own in reduction.placed.values()]


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


def sentence_of(words):
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    found = [
        Word(form=word, start=int(start), stop=int(start) + len(word))
        for word, start in zip(words, starts, strict=False)
    ]
    return Sentence(" ".join(words), tuple(found))


def test_frames_with_shuffled_links_find_a_head_as_often_as_they_say():
    """The whole way of frame-relations, clusters of two among the texts; 200 shuffles, 5 %."""
    rng = np.random.default_rng(4)
    sentences = [sentence_of(rng.choice(WORDS, rng.integers(7, 12)).tolist()) for _ in range(10)]
    distances = rng.integers(3, 5, 10)
    model, tokenizer = tiny_model("bert", "none"), tokenizer_for()
    found = {FORWARD: [], BACK: []}
    for _ in range(200):
        named = []
        for number, (sentence, distance) in enumerate(zip(sentences, distances, strict=True)):
            place = int(rng.integers(len(sentence.words) - distance))
            element = Element("one", place + distance, place + distance + 1)
            exemplar = Exemplar(sentence, "some", ((place, place + 1),), (element,))
            named += [(exemplar, str(number))] * (1 + number % 2)
        texts = encode_exemplars(named, tokenizer, max_length=40, segments=True)
        rows = frame_rows(model, named, texts)
        for direction, own in found.items():
            own.append([row["p_max"] for row in rows if row["direction"] == direction])
    for own in found.values():
        share = np.mean(np.min(own, axis=1) <= 0.05)
        assert 0.004 <= share <= 0.096  # three standard errors around 5 %


def test_a_planted_link_is_found_and_clusters_count_once():
    rng = np.random.default_rng(3)
    placed = [rng.random((6, 5)) for _ in range(30)]
    for own in placed:
        own[4, 0] += 0.5
    test = placement_test(placed)
    assert test.p_max[4] <= 0.01
    assert (test.p_max[[0, 1, 2, 3, 5]] > 0.05).all()
    # Thirty copies of one text are one text: 5 placements can't give less than 1 in 5.
    copies = placement_test([placed[0]] * 30, clusters=["one"] * 30)
    assert copies.p.min() > 0.15
    flat = placement_test([np.ones((2, 4))] * 10)
    assert (flat.p == 1).all()  # a head that looks alike everywhere follows nothing
