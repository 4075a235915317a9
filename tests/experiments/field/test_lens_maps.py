"""The lens in its parts: KL against transformers in double precision, the fit against L-BFGS."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from microtome.errors import Diverged
from microtome.experiments.field.lens.divergence import divergence, feature_gradient, log_shares
from microtome.experiments.field.lens.maps import DepthMap, FittedMaps, fit_maps, mean_divergences
from microtome.experiments.field.lens.positions import ReadTexts, cached_states
from microtome.experiments.field.lens.reading import READINGS, read_depths
from microtome.experiments.kit.controlled_decoding import random_blocks
from microtome.families import adapt
from microtome.observe import Readout, Vocabulary, decode, readout_of
from microtome.observe.predicting import states
from support.naive import faithful_model, full_logits, padded, random_texts
from support.tiny import FAMILY_TYPES, N_LAYERS, VOCABULARY, WIDTH

LENGTHS = (9, 5, 14, 3, 9)
PLAIN = Vocabulary.of([f"t{i}" for i in range(VOCABULARY)], special_ids=[0, 1, 2, 3, 4])
DIRECT, LENS, CONTROL = (READINGS.index(name) for name in ("direct", "lens", "control"))


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_every_reading_equals_transformers_in_double_precision(kind):
    texts = random_texts(LENGTHS, segments=kind in ("bert", "electra", "albert"))
    model = faithful_model(kind, texts)
    read = ReadTexts(texts, ~texts.special, texts.ids, None)
    zero = DepthMap(torch.zeros(WIDTH, WIDTH), torch.zeros(WIDTH))
    nothing = dict.fromkeys(range(N_LAYERS), zero)
    found = read_depths(model, random_blocks(model), read, readout_of(adapt(model)), nothing, {})

    # A map of zeros reads as decoding does; the control begins with the model's embeddings.
    decoded = decode(model, texts, PLAIN).right.sum(2)
    np.testing.assert_array_equal(found.right[DIRECT], decoded)
    assert decoded.max() > 0, "nothing comes back: the test model is too loud"
    for table in (found.divergence, found.right, found.agrees):
        np.testing.assert_array_equal(table[LENS], table[DIRECT])
        np.testing.assert_array_equal(table[CONTROL][0], table[DIRECT][0])
    assert not found.divergence[DIRECT, -1].any()
    np.testing.assert_array_equal(found.agrees[DIRECT, -1], found.n_tokens)
    assert (found.divergence[CONTROL, -1] > 0).all()

    by_depth, _ = full_logits(model.double(), kind, padded(texts, kind))
    wanted = by_depth[-1].log_softmax(-1)
    for depth, logits in enumerate(by_depth):
        kl = functional.kl_div(logits.log_softmax(-1), wanted, log_target=True, reduction="none")
        agrees = logits.argmax(-1) == by_depth[-1].argmax(-1)
        for text, length in enumerate(LENGTHS):
            ordinary = slice(1, length - 1)  # all but the first and the last token
            ours = found.divergence[DIRECT, depth, text]
            assert ours == pytest.approx(float(kl[text, ordinary].sum()), rel=1e-4, abs=1e-6)
            assert found.agrees[DIRECT, depth, text] == agrees[text, ordinary].sum()


def test_a_map_is_applied_to_the_state_before_any_final_norm():
    texts = random_texts(LENGTHS)
    model = faithful_model("modernbert", texts)
    read = ReadTexts(texts, ~texts.special, texts.ids, None)
    generator = torch.Generator().manual_seed(0)
    weight, bias = (torch.randn(*size, generator=generator) for size in ((WIDTH, WIDTH), (WIDTH,)))
    maps = {1: DepthMap(weight, bias)}
    found = read_depths(model, model, read, readout_of(adapt(model)), maps, {})
    with torch.no_grad():
        hidden = model(**padded(texts), output_hidden_states=True).hidden_states
        mapped = hidden[1] + hidden[1] @ weight.T + bias
        read_out = [
            model.decoder(model.head(h)) for h in (model.model.final_norm(mapped), hidden[-1])
        ]
    given, wanted = (logits.double().log_softmax(-1) for logits in read_out)
    kl = functional.kl_div(given, wanted, log_target=True, reduction="none").sum(-1)
    ours = found.divergence[LENS, 1]
    plain = [float(kl[text, 1 : length - 1].sum()) for text, length in enumerate(LENGTHS)]
    np.testing.assert_allclose(ours, plain, rtol=1e-3)
    assert (np.abs(ours - found.divergence[DIRECT, 1]) > 0.1).all()


def test_cached_states_are_those_of_the_asked_tokens():
    texts = random_texts(LENGTHS)
    model = faithful_model("bert", texts)
    read = ReadTexts(texts, ~texts.special, texts.ids, None)
    tokens = np.array([2, 10, 11, 30])
    cache = cached_states(model, read, tokens)
    ((chunk, depths),) = states(model, texts)
    for place, token in enumerate(tokens):
        row = chunk.tokens.tolist().index(token)
        for depth in range(N_LAYERS + 1):
            assert torch.equal(cache[depth, place], depths[depth][row])


def test_the_gradient_equals_autograd_of_the_divergence():
    readout, last = problem(40, width=6)
    features = last.flip(0).requires_grad_()
    wanted = log_shares(readout, last)
    (plain,) = torch.autograd.grad(
        divergence(wanted, log_shares(readout, features)).sum(), features
    )
    with torch.no_grad():
        ours = feature_gradient(readout, features, wanted)
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-6)


# --- the fit ----------------------------------------------------------------------------

LONG = {"steps": 1000, "learning_rate": 1e-2, "patience": 99}


def problem(n, *, width=8, n_tokens=40, seed=0):
    """A readout of random weights, and last states."""
    generator = torch.Generator().manual_seed(seed)
    weight, bias, last = (
        torch.randn(*size, generator=generator)
        for size in ((n_tokens, width), (n_tokens,), (n, width))
    )
    return Readout("mlm", lambda given: given, 0.5 * weight, bias), last


def split(n):
    """The last tenth to stop by."""
    return np.arange(n) >= 0.9 * n


def heldout(readout, states, last, one):
    return float(mean_divergences(readout, last, [one(states)])[0])


def lbfgs(readout, states, last):
    """The plain way: all logits at once, in double precision, by torch's own optimiser."""
    weight, bias, x = readout.weight.double(), readout.bias.double(), states.double()
    wanted = (last.double() @ weight.T + bias).log_softmax(-1)
    width = x.shape[1]
    a, b = (
        torch.zeros(*size, dtype=torch.double, requires_grad=True)
        for size in ((width, width), (width,))
    )
    solver = torch.optim.LBFGS([a, b], max_iter=400, history_size=20, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        given = ((x + x @ a.T + b) @ weight.T + bias).log_softmax(-1)
        loss = (wanted.exp() * (wanted - given)).sum(-1).mean()
        loss.backward()
        return loss

    solver.step(closure)
    return DepthMap(a.detach().float(), b.detach().float())


def test_the_fit_reaches_what_lbfgs_reaches_on_texts_that_neither_saw():
    """Within 2 % of the divergence that is left, where an affine map can't take all of it."""
    readout, last = problem(3000)
    states = torch.tanh(0.7 * last.roll(1, 1)) + 0.3 * problem(3000, seed=1)[1]
    seen, new = slice(0, 2000), slice(2000, None)
    found = fit_maps(readout, {1: states[seen]}, last[seen], split(2000), **LONG)
    ours = heldout(readout, states[new], last[new], found.maps[1])
    plain = heldout(readout, states[new], last[new], lbfgs(readout, states[seen], last[seen]))
    direct = heldout(readout, states[new], last[new], lambda given: given)
    assert 0.05 < plain < direct / 2
    assert ours == pytest.approx(plain, rel=0.02)


def test_a_planted_affine_distortion_is_recovered():
    readout, last = problem(2000)
    generator = torch.Generator().manual_seed(2)
    noise = torch.randn(8, 8, generator=generator)
    matrix, shift = torch.eye(8) + 0.15 * noise, torch.randn(8, generator=generator)
    states = (last - shift) @ torch.linalg.inv(matrix).T  # last = matrix · state + shift
    found = fit_maps(readout, {0: states}, last, split(2000), **LONG).maps[0]
    assert heldout(readout, states, last, lambda given: given) > 0.5
    assert heldout(readout, states, last, found) < 1e-3
    torch.testing.assert_close(found.weight, matrix - torch.eye(8), rtol=0, atol=0.05)
    torch.testing.assert_close(found.bias, shift, rtol=0, atol=0.05)


def test_depths_are_fitted_as_if_alone_and_a_good_one_is_left_as_it_is():
    readout, last = problem(400)
    others = {1: last.roll(1, 0), 2: torch.tanh(last)}
    together = fit_maps(readout, {**others, 3: last}, last, split(400), steps=60)
    for depth, own in others.items():
        alone = fit_maps(readout, {depth: own}, last, split(400), steps=60)
        assert torch.equal(alone.maps[depth].weight, together.maps[depth].weight)
        assert torch.equal(alone.maps[depth].bias, together.maps[depth].bias)
    assert not together.maps[3].weight.any()
    assert np.isnan(together.losses[-1, 2])  # it was done early, the second wasn't
    assert np.isfinite(together.losses[:, 1]).all()


def test_the_kept_map_is_that_of_the_least_loss_and_survives_storing():
    readout, last = problem(200, width=8)
    states = last.roll(1, 0)  # unrelated to what is wanted: fitting overfits
    to_stop_by = split(200)
    found = fit_maps(readout, {1: states}, last, to_stop_by, steps=200, batch=20)
    kept = mean_divergences(readout, last[180:], [found.maps[1](states[180:])])[0]
    assert kept == pytest.approx(np.nanmin(found.losses))
    again = FittedMaps.of_arrays(found.arrays(), "cpu")
    assert torch.equal(again.maps[1].weight, found.maps[1].weight)
    np.testing.assert_array_equal(again.losses, found.losses)


def test_numbers_that_run_away_are_said_so():
    readout, last = problem(100)
    with pytest.raises(Diverged, match="the lens diverged at step"):
        fit_maps(readout, {1: last.roll(1, 0)}, last, split(100), steps=20, learning_rate=1e38)
