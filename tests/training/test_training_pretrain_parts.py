"""Schedule, loss, optimiser, forward pass and growth, each against an independent reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from masked_rows import TOKENS, batch_of, rows_of
from microtome.errors import RequestError
from microtome.families import adapt
from microtome.training.pretrain import PretrainRequest, parse_shape
from microtome.training.pretraining.building import trained_parameters
from microtome.training.pretraining.evaluation import decoding_curve, heldout_scores
from microtome.training.pretraining.forward import every_depth, masked_features, masked_loss
from microtome.training.pretraining.growth import grown, grown_state
from microtome.training.pretraining.loss import draw_candidates, vocabulary_loss
from microtome.training.pretraining.rows import make_batch
from microtome.training.pretraining.schedule import (
    Plan,
    Stage,
    depths_to,
    make_plan,
    outline,
    plan_of,
)
from tiny import N_LAYERS, VOCABULARY, tiny_model

# --- schedule ------------------------------------------------------------------------------------


def test_the_rate_rises_stays_and_falls_by_step():
    plan = Plan(
        (Stage(3, 64, 8, 0.3, 60), Stage(6, 64, 8, 0.2, 40)), warm_up=10, decay=20, rewarm=4
    )
    assert [plan.factor(step) for step in (0, 4, 9, 10, 59)] == [0.1, 0.5, 1, 1, 1]
    assert [plan.factor(step) for step in (60, 61, 63, 64, 80)] == [0.25, 0.5, 1, 1, 1]
    assert plan.factor(90) == 0.5
    assert plan.factor(99) == 1 / 20


def test_hours_become_steps_by_the_share_and_speed_of_each_stage():
    outlined = outline(12, grow=True, length=64, n_rows=64, long=512)
    assert [stage.layers for stage, _ in outlined] == [3, 6, 12, 12]
    assert sum(share for _, share in outlined) == pytest.approx(1)
    plan = make_plan(outlined, seconds=1000, per_step=[0.5, 1.0, 2.0, 4.0])
    assert [stage.steps for stage in plan.stages] == [1000, 200, 100, 25]
    assert plan.stages[-1].n_rows * plan.stages[-1].length == 64 * 64
    assert Plan.from_json(plan.as_json()) == plan


def test_depths_double_up_to_the_one_asked_for():
    assert depths_to(12, grow=True) == (3, 6, 12)
    assert depths_to(24, grow=True) == (3, 6, 12, 24)
    assert depths_to(5, grow=True) == depths_to(5, grow=False) == (5,)


def test_a_stage_of_the_same_rows_goes_on_where_the_one_before_ended():
    plan = plan_of([Stage(3, 64, 8, 0.3, 10), Stage(6, 64, 8, 0.2, 10), Stage(6, 512, 1, 0.15, 5)])
    assert plan.row_step(12) == 12
    assert plan.row_step(22) == 2


def test_shapes_are_read_and_wrong_requests_refused(tmp_path):
    assert parse_shape("12x128") == (12, 128)
    for shape in ("12", "x", "12x", "axb"):
        with pytest.raises(RequestError, match="LAYERSxWIDTH"):
            parse_shape(shape)
    for wrong in (
        {"family": "gpt"},
        {"layers": 0},
        {"layers": 300},
        {"layers": 96, "family": "albert"},
        {"width": 0},
        {"width": 33},
        {"width": 100, "heads": 3},
        {"embedding": 15, "family": "albert"},
        {"embedding": -2, "family": "albert"},
        {"vocabulary": -5},
        {"hours": math.nan},
        {"hours": math.inf},
        {"hours": 0.0},
        {"length": 600},
    ):
        with pytest.raises(RequestError):
            PretrainRequest(text=(), out=tmp_path / "out", **wrong)


@pytest.mark.parametrize(("width", "heads"), [(128, 4), (100, 2), (16, 1), (62, 1), (192, 6)])
def test_there_is_a_head_per_32_of_width_or_fewer_that_divide_it(tmp_path, width, heads):
    assert PretrainRequest(text=(), out=tmp_path / "out", width=width).n_heads == heads


# --- loss ----------------------------------------------------------------------------------------


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


# --- forward pass --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_features_at_masked_positions_equal_transformers(family):
    model = tiny_model(family, "mlm").eval()
    batch = batch_of()
    with torch.no_grad():
        logits = model(
            input_ids=torch.from_numpy(batch.ids), token_type_ids=torch.from_numpy(batch.segments)
        ).logits
        asked = torch.from_numpy(batch.positions)[..., None].expand(-1, -1, VOCABULARY)
        wanted = logits.gather(1, asked)
        bound = adapt(model)
        ours = bound.mlm_decoder()(masked_features(bound, batch))
        torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-4)
        loss = masked_loss(bound, batch)
        flat = wanted.flatten(0, 1)
        labels = torch.from_numpy(batch.labels).flatten()
        torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(flat, labels))


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_every_parameter_gets_a_gradient(family):
    model = tiny_model(family, "mlm").train()
    masked_loss(adapt(model), batch_of(8, 20)).backward()
    without = [
        n for n, p in trained_parameters(model).items() if p.grad is None or not p.grad.any()
    ]
    # Softmax doesn't see what is added to all scores of a query: key biases can't have one.
    assert [name for name in without if ".key.bias" not in name] == []


def test_scores_count_right_tokens_as_a_plain_loop_does():
    model = tiny_model("bert", "mlm").eval()
    rows = rows_of(70, 22)
    scores = heldout_scores(model, rows, tokens=TOKENS, common=9)
    hidden = make_batch(
        rows, rate=0.15, pairs=0, tokens=TOKENS, random=np.random.default_rng(15), shares=(1.0, 0.0)
    )
    with torch.no_grad():
        best = model(input_ids=torch.from_numpy(hidden.ids)).logits.argmax(-1).numpy()
    right = unigram = 0
    for row in range(70):
        for place, label in zip(hidden.positions[row], hidden.labels[row], strict=True):
            assert hidden.ids[row, place] == TOKENS.mask
            right += best[row, place] == label
            unigram += label == 9
    assert scores.n == 70 * 3
    assert scores.accuracy == pytest.approx(right / scores.n)
    assert scores.unigram == pytest.approx(unigram / scores.n)


def test_the_decoding_curve_reads_every_depth_through_the_head():
    model = tiny_model("bert", "mlm").eval()
    rows = rows_of(9, 16)
    curve = decoding_curve(model, rows, tokens=TOKENS)
    with torch.no_grad():
        out = model(input_ids=torch.from_numpy(rows), output_hidden_states=True)
        decoded = [model.cls(states).argmax(-1).numpy() for states in out.hidden_states]
    wanted = [(d[:, 1:-1] == rows[:, 1:-1]).mean() for d in decoded]
    assert curve == pytest.approx(wanted)


# --- growth --------------------------------------------------------------------------------------


def test_stacking_keeps_the_function_of_the_lower_half_and_repeats_it_above():
    model = tiny_model("bert", "mlm").eval()
    deep = grown(model, 2 * N_LAYERS)
    batch = batch_of()
    with torch.no_grad():
        before = list(every_depth(adapt(model), batch))
        after = list(every_depth(adapt(deep), batch))
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
