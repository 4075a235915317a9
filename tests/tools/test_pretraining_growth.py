"""Parts of how the embedded models grew: stages, stacking, candidates, [CLS] that is asked."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from microtome.families import adapt
from microtome.training.mlm.rows import Tokens, cut, make_batch
from pretraining.candidates import draw_candidates, vocabulary_loss
from pretraining.growth import grown, grown_state
from pretraining.schedule import GrownSchedule, GrownStage, depths_to, rate_of
from pretraining.summary_words import ask_first
from support.tiny import N_LAYERS, tiny_model

TOKENS = Tokens(cls=2, sep=3, mask=4, first_ordinary=5, n_vocabulary=100, full_stop=7)


def stage(layers, length, n_rows, masked, steps=0, **more):
    return GrownStage(
        layers=layers, length=length, n_rows=n_rows, masked=masked, steps=steps, **more
    )


def test_the_rate_rises_stays_and_falls_by_step():
    plan = GrownSchedule(
        (stage(3, 64, 8, 0.3, 60), stage(6, 64, 8, 0.2, 40)), warm_up=10, decay=20, rewarm=4
    )
    assert [plan.factor(step) for step in (0, 4, 9, 10, 59)] == [0.1, 0.5, 1, 1, 1]
    assert [plan.factor(step) for step in (60, 61, 63, 64, 80)] == [0.25, 0.5, 1, 1, 1]
    assert plan.factor(90) == 0.5
    assert plan.factor(99) == 1 / 20


def test_a_stage_takes_its_share_of_the_peak_rate():
    plan = GrownSchedule.of([stage(3, 64, 8, 0.3, 500), stage(12, 64, 8, 0.2, 500, rate=0.25)])
    assert plan.factor(400) == 1.0
    assert plan.factor(700) == 0.25
    assert GrownSchedule.from_json(plan.as_json()) == plan


def test_depths_double_up_to_the_one_asked_for_and_deeper_ones_take_smaller_steps():
    assert depths_to(12) == (3, 6, 12)
    assert depths_to(24) == (3, 6, 12, 24)
    assert depths_to(5) == (5,)
    assert [rate_of(depth) for depth in (2, 3, 6, 12)] == [1, 1, 0.5, 0.25]


def test_a_stage_of_the_same_rows_continues_where_the_one_before_ended():
    plan = GrownSchedule.of(
        [stage(3, 64, 8, 0.3, 10), stage(6, 64, 8, 0.2, 10), stage(6, 512, 1, 0.15, 5)]
    )
    assert plan.row_step(12) == 12
    assert plan.row_step(22) == 2


def test_the_loss_and_its_gradients_equal_torchs():
    torch.manual_seed(0)
    features, weight = torch.randn(600, 8), torch.randn(50, 8)
    bias, labels = torch.randn(50), torch.randint(0, 50, (600,))
    results = []
    for function in (
        vocabulary_loss,
        lambda x, w, b, y: torch.nn.functional.cross_entropy(x @ w.t() + b, y),
    ):
        inputs = [tensor.clone().requires_grad_() for tensor in (features, weight, bias)]
        loss = function(*inputs, labels)
        (3 * loss).backward()
        results.append([loss.detach(), *(tensor.grad for tensor in inputs)])
    for ours, torchs in zip(*results, strict=True):
        torch.testing.assert_close(ours, torchs, rtol=1e-5, atol=1e-6)


def test_candidates_that_are_the_whole_vocabulary_change_nothing():
    torch.manual_seed(0)
    features, weight, bias = torch.randn(40, 8), torch.randn(50, 8), torch.randn(50)
    labels = torch.randint(0, 50, (40,))
    everything = draw_candidates(np.arange(50), 50, np.random.default_rng(0))
    sampled = vocabulary_loss(features, weight, bias, labels, everything)
    torch.testing.assert_close(sampled, vocabulary_loss(features, weight, bias, labels))


def test_candidates_estimate_the_softmax_without_bias():
    torch.manual_seed(0)
    features, weight, bias = torch.randn(1, 4), 0.3 * torch.randn(60, 4), torch.zeros(60)
    labels = torch.tensor([30])
    true = torch.exp(vocabulary_loss(features, weight, bias, labels))  # 1 / probability
    draws = torch.stack([
        torch.exp(vocabulary_loss(
            features, weight, bias, labels,
            draw_candidates(np.arange(60), 20, np.random.default_rng(seed)),
        ))
        for seed in range(400)
    ])  # fmt: skip
    error = draws.std() / 400**0.5
    assert abs(draws.mean() - true) < 4 * error
    assert error < 0.02 * true  # a wrong weight of the rare tokens would be off by a half


def test_stacking_keeps_the_function_of_the_lower_half_and_repeats_it_above():
    model = tiny_model("bert", "mlm").eval()
    deep = grown(model, 2 * N_LAYERS)
    ids = torch.randint(5, 30, (3, 12), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before, after = (
            one.bert(ids, output_hidden_states=True).hidden_states for one in (model, deep)
        )
    assert len(after) == 2 * N_LAYERS + 1
    for old, new in zip(before, after, strict=False):
        assert torch.equal(old, new)
    for name, value in model.state_dict().items():
        if ".layer.1." in name:
            assert torch.equal(value, deep.state_dict()[name.replace(".layer.1.", ".layer.4.")])


def test_a_shared_layer_is_applied_more_often():
    model = tiny_model("albert", "mlm").eval()
    deep = grown(model, 12)
    assert adapt(deep).shape.n_layers == 12
    assert {n: tuple(p.shape) for n, p in deep.named_parameters()} == {
        n: tuple(p.shape) for n, p in model.named_parameters()
    }


def test_moments_move_with_their_layers():
    model = tiny_model("bert", "mlm")
    deep = grown(model, 2 * N_LAYERS)
    prefix = "bert.encoder.layer"
    state = {f"muon/{prefix}.{i}.output.dense.weight": torch.tensor(float(i)) for i in range(3)}
    state["adamw/cls.predictions.bias/step"] = torch.tensor(9.0)
    moved = grown_state(state, model, deep)
    assert [int(moved[f"muon/{prefix}.{i}.output.dense.weight"]) for i in range(6)] == [
        0, 1, 2, 0, 1, 2,
    ]  # fmt: skip
    assert moved["adamw/cls.predictions.bias/step"] == 9


def test_the_first_token_is_asked_for_tokens_of_its_row_the_rarer_the_more_often():
    stream = np.random.default_rng(0).integers(5, 100, 60_000)
    rows = cut(stream, length=52, offset=0, tokens=TOKENS)
    batch = make_batch(rows, rate=0.3, pairs=0, tokens=TOKENS, random=np.random.default_rng(1))
    weights = np.where(np.arange(100) < 50, 1.0, 3.0)  # of the ids
    asked = ask_first(
        batch, rows, n=1, weights=weights, tokens=TOKENS, random=np.random.default_rng(3)
    )
    assert (asked.positions[:, 0] == 0).all()
    assert (asked.positions[:, 1:] == batch.positions).all()
    assert (asked.labels[:, 1:] == batch.labels).all()
    named = asked.labels[:, 0]
    assert all(label in row[1:-1] for label, row in zip(named, rows, strict=True))
    # Drawn in proportion to the weights: of 95 ids, 50 weigh three times as much as 45.
    wanted = np.mean([weights[row[1:-1]][row[1:-1] >= 50].sum() / weights[row[1:-1]].sum()
                      for row in rows])  # fmt: skip
    assert abs((named >= 50).mean() - wanted) < 3 * (wanted * (1 - wanted) / len(rows)) ** 0.5
    several = ask_first(
        batch, rows, n=4, weights=weights, tokens=TOKENS, random=np.random.default_rng(3)
    )
    assert several.positions[:, :4].tolist() == [[0] * 4] * len(rows)
    assert (several.labels[:, 4:] == batch.labels).all()
    for four, row in zip(several.labels[:, :4].tolist(), rows[:, 1:-1].tolist(), strict=True):
        assert not Counter(four) - Counter(row)  # no token more often than the row has it
