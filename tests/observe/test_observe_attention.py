"""Streamed statistics equal those of the maps that an eager model hands out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.observe import HeadMeans, SampledMaps, forward, reductions, stream
from support.naive import padded, random_texts
from support.tiny import FAMILY_TYPES, N_HEADS, N_LAYERS, tiny_model

LENGTHS = (9, 5, 14, 5, 2, 9, 1)
CLOSE = {"rtol": 0, "atol": 1e-5}


@torch.no_grad()
def eager_maps(model, texts, kind):
    """One list of (layers, heads, L, L) per text, padding cut away."""
    attentions = model(**padded(texts, kind), output_attentions=True).attentions
    stacked = torch.stack(attentions, 1).double().numpy()  # (B, N, H, L, L)
    return [maps[..., :n, :n] for maps, n in zip(stacked, texts.lengths, strict=True)]


def averaged(values):
    """Mean over texts of (N, H) tables; NaN tables are left out."""
    return np.nanmean(np.stack(values), axis=0)


def entropies(maps):
    logs = np.log(np.where(maps > 0, maps, 1.0))
    return -(maps * logs).sum(-1).mean(-1)


def by_hand(maps, marks):
    """Every measure of one text, written out."""
    length = maps.shape[-1]
    place = np.arange(length)
    received = maps.sum(-2) / length
    shift = {name: np.eye(length, k=k) for name, k in (("self", 0), ("previous", -1), ("next", 1))}
    return {
        "on_first": received[..., 0],
        "on_self": (maps * shift["self"]).sum((-1, -2)) / length,
        "on_previous": (maps * shift["previous"]).sum((-1, -2)) / length,
        "on_next": (maps * shift["next"]).sum((-1, -2)) / length,
        "on_marked": received[..., marks].sum(-1),
        "received_by": received[..., marks].max(-1)
        if marks.any()
        else np.full(maps.shape[:2], np.nan),
        "entropy": entropies(maps),
        "distance": (maps * abs(place[:, None] - place)).sum((-1, -2)) / length,
    }


def measures(marks):
    return {
        "on_first": reductions.on_first,
        "on_self": reductions.on_self,
        "on_previous": reductions.on_previous,
        "on_next": reductions.on_next,
        "on_marked": reductions.on_marked(marks),
        "received_by": reductions.received_by(marks),
        "entropy": reductions.entropy,
        "distance": reductions.distance,
    }


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_every_measure_equals_the_eager_maps(kind):
    model = tiny_model(kind, "mlm", attention="eager")
    texts = random_texts(LENGTHS)
    marks = np.random.default_rng(0).random(len(texts.ids)) < 0.3
    kept = {name: HeadMeans(measure, keep=True) for name, measure in measures(marks).items()}
    stream(model, texts, list(kept.values()), tokens_in_flight=20)
    own = [marks[a:b] for a, b in zip(texts.offsets, texts.offsets[1:], strict=False)]
    assert any(m.any() for m in own)
    assert not all(m.any() for m in own)
    wanted = [by_hand(*pair) for pair in zip(eager_maps(model, texts, kind), own, strict=True)]
    for name, means in kept.items():
        tables = [table[name] for table in wanted]
        np.testing.assert_allclose(means.mean, averaged(tables), **CLOSE, err_msg=name)
        np.testing.assert_allclose(means.values, np.stack(tables), **CLOSE, err_msg=name)
        assert means.mean.std() > 1e-3, f"{name} is the same everywhere"


@pytest.mark.parametrize("kind", ["bert", "albert", "modernbert"])
def test_two_models_are_compared_on_real_tokens_only(kind):
    one, two = (tiny_model(kind, "mlm", attention="eager", seed=seed) for seed in (0, 1))
    texts = random_texts(LENGTHS)
    cosine, js = HeadMeans(reductions.cosine), HeadMeans(reductions.jensen_shannon)
    stream(one, texts, [cosine, js], other=two, tokens_in_flight=30)
    cosines, divergences = [], []
    both = (eager_maps(model, texts, kind) for model in (one, two))
    for ours, theirs in zip(*both, strict=True):
        norms = np.sqrt((ours**2).sum((-1, -2)) * (theirs**2).sum((-1, -2)))
        cosines.append((ours * theirs).sum((-1, -2)) / norms)
        mixed = entropies((ours + theirs) / 2)
        divergences.append(mixed - (entropies(ours) + entropies(theirs)) / 2)
    np.testing.assert_allclose(cosine.mean, averaged(cosines), **CLOSE)
    np.testing.assert_allclose(js.mean, averaged(divergences), **CLOSE)
    assert cosine.mean.min() < 0.9


def test_a_model_compared_with_itself_is_the_same():
    model = tiny_model("bert", "mlm")
    cosine, js = HeadMeans(reductions.cosine), HeadMeans(reductions.jensen_shannon)
    stream(model, random_texts(LENGTHS), [cosine, js], other=model)
    np.testing.assert_allclose(cosine.mean, 1, atol=1e-6)
    np.testing.assert_allclose(js.mean, 0, atol=1e-6)


@pytest.mark.parametrize("how", ["max", "mean"])
def test_links_take_the_largest_or_the_mean_weight_of_their_pairs(how):
    model = tiny_model("bert", "mlm", attention="eager")
    texts = random_texts(LENGTHS)
    links = {0: [(1, 4), (2, 4), (7, 0)], 2: [(13, 1)], 5: []}
    means = HeadMeans(reductions.on_links(links, how=how), keep=True)
    stream(model, texts, [means], tokens_in_flight=25)
    maps = eager_maps(model, texts, "bert")
    fold = np.max if how == "max" else np.mean
    wanted = [
        fold(np.stack([maps[text][..., q, k] for q, k in links[text]]), axis=0) for text in (0, 2)
    ]
    np.testing.assert_allclose(means.mean, np.mean(wanted, axis=0), **CLOSE)
    assert (means.n == 2).all()
    assert np.isnan(means.values[[1, 3, 4, 5, 6]]).all()


def test_standard_errors_are_those_of_the_kept_values():
    means = HeadMeans(reductions.entropy, keep=True)
    stream(tiny_model("bert", "mlm"), random_texts(LENGTHS), [means])
    wanted = means.values.astype(np.float64).std(0, ddof=1) / np.sqrt(len(LENGTHS))
    np.testing.assert_allclose(means.standard_error, wanted, rtol=1e-4)


def test_sampled_maps_are_the_eager_maps():
    model = tiny_model("modernbert", "mlm", attention="eager")
    texts = random_texts(LENGTHS)
    sampled = SampledMaps([2, 6])
    stream(model, texts, [sampled], tokens_in_flight=10)
    maps = eager_maps(model, texts, "modernbert")
    assert set(sampled.maps) == {2, 6}
    for text, own in sampled.maps.items():
        assert own.shape == (N_LAYERS, N_HEADS, LENGTHS[text], LENGTHS[text])
        np.testing.assert_allclose(own, maps[text], **CLOSE)


def test_marks_keep_their_tokens_when_a_text_is_cut():
    model = tiny_model("bert", "mlm", attention="eager")
    texts = random_texts((80, 5))  # the table has 64 positions
    marks = np.zeros(85, dtype=bool)
    marks[[79, 81]] = True  # the first text's last token, the second text's second
    means = HeadMeans(reductions.on_marked(marks), keep=True)
    assert stream(model, texts, [means]) == 1
    cut = type(texts).of([[*texts.ids[:63].tolist(), int(texts.ids[79])], texts.ids[80:].tolist()])
    first, second = eager_maps(model, cut, "bert")
    np.testing.assert_allclose(means.values[0], first.mean(-2)[..., 63], **CLOSE)
    np.testing.assert_allclose(means.values[1], second.mean(-2)[..., 1], **CLOSE)


def test_a_forgotten_window_is_seen(monkeypatch):
    model = tiny_model("modernbert", "mlm", attention="eager")
    texts = random_texts((20, 20))
    means = HeadMeans(reductions.distance)
    monkeypatch.setattr(forward, "window_mask", lambda *given: None)
    stream(model, texts, [means])
    wanted = averaged(
        [by_hand(m, np.ones(20, bool))["distance"] for m in eager_maps(model, texts, "modernbert")]
    )
    assert np.abs(means.mean - wanted).max() > 0.1


def test_no_map_larger_than_one_chunk_is_ever_made():
    """What keeps memory flat: a block holds no more tokens than are in flight."""

    class Largest:
        def open(self, n_layers, n_heads, n_texts):
            self.most = 0

        def add(self, block):
            self.most = max(self.most, len(block.texts) * block.length)

    largest = Largest()
    stream(tiny_model("bert", "mlm"), random_texts((7,) * 300), [largest], tokens_in_flight=100)
    assert 100 / 1.5 <= largest.most <= 100 * 1.5


def test_long_texts_come_in_smaller_blocks_and_change_nothing(monkeypatch):
    texts = random_texts((9,) * 7 + (4,))
    model = tiny_model("bert", "mlm")
    whole, parts = (
        HeadMeans(reductions.entropy, keep=True),
        HeadMeans(reductions.entropy, keep=True),
    )
    stream(model, texts, [whole])
    monkeypatch.setattr("microtome.observe.attention.WEIGHTS_AT_ONCE", 3 * N_HEADS * 81)
    stream(model, texts, [parts])
    np.testing.assert_allclose(parts.values, whole.values, **CLOSE)
    assert not np.isnan(parts.values).any()


def test_models_of_different_shapes_are_not_compared():
    one, two = tiny_model("bert", "mlm"), tiny_model("bert", "mlm", num_hidden_layers=2)
    with pytest.raises(RequestError, match="n_layers 3, the other 2"):
        stream(one, random_texts((4,)), [], other=two)
    with pytest.raises(RequestError, match="one given"):
        stream(one, random_texts((4,)), [HeadMeans(reductions.cosine)])
    with pytest.raises(RequestError, match="text 9"):
        stream(one, random_texts((4,)), [SampledMaps([9])])


def test_a_reduction_of_ones_own_needs_two_methods():
    class Count:
        def open(self, n_layers, n_heads, n_texts):
            self.seen = np.zeros((n_texts, n_layers), dtype=int)

        def add(self, block):
            self.seen[block.texts, block.layer] += 1

    count = Count()
    model = tiny_model("bert", "mlm")
    stream(model, random_texts(LENGTHS), [count], tokens_in_flight=16)
    assert (count.seen == 1).all()
    assert adapt(model).shape.n_layers == count.seen.shape[1]
