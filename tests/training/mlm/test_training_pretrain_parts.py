"""Schedule, request, forward pass and scores, each against an independent reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.training.mlm.building import trained_parameters
from microtome.training.mlm.forward import (
    decoding_curve,
    heldout_scores,
    masked_loss,
    masked_states,
)
from microtome.training.mlm.request import (
    PretrainRequest,
    Schedule,
    Stage,
    filled,
    outline,
    parse_shape,
)
from microtome.training.mlm.rows import make_batch
from support.masked_rows import TOKENS, batch_of, rows_of
from support.tiny import VOCABULARY, tiny_model

# --- schedule ------------------------------------------------------------------------------------


def test_hours_become_steps_by_the_share_and_speed_of_each_stage():
    outlined = outline(length=64, n_rows=16, positions=512)
    assert sum(share for _, share in outlined) == pytest.approx(1)
    schedule = filled(outlined, seconds=1000, per_step=[0.5, 4.0])
    assert [stage.steps for stage in schedule.stages] == [1800, 25]
    assert {stage.n_rows * stage.length for stage in schedule.stages} == {16 * 64}
    assert Schedule.from_json(schedule.as_json()) == schedule


def test_a_step_belongs_to_the_stage_that_its_number_falls_into():
    short, long = Stage(64, 8, 0.2, 10), Stage(512, 1, 0.15, 5)
    schedule = Schedule((short, long))
    assert [schedule.stage(step) for step in (0, 9, 10, 14)] == [short, short, long, long]
    with pytest.raises(IndexError):
        schedule.stage(15)
    with pytest.raises(RequestError, match="at least 1 step, got 0"):
        Schedule((Stage(64, 8, 0.2),))


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


# --- forward pass --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_features_at_masked_positions_equal_transformers(family):
    model = tiny_model(family, "mlm").eval()
    batch = batch_of()
    with torch.no_grad():
        logits = model(
            input_ids=torch.from_numpy(batch.ids), token_type_ids=torch.from_numpy(batch.segments)
        ).logits
        masked = torch.from_numpy(batch.positions)[..., None].expand(-1, -1, VOCABULARY)
        wanted = logits.gather(1, masked)
        bound = adapt(model)
        ours = bound.mlm_decoder()(bound.mlm_features(masked_states(bound, batch)))
        torch.testing.assert_close(ours, wanted.flatten(0, 1), rtol=1e-4, atol=1e-4)
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
