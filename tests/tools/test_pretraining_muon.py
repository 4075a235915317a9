"""The optimiser and its checkpoints: directions, decay, and nothing lost on the way to disk."""

from __future__ import annotations

import torch

from microtome.families import adapt
from microtome.training.checkpoints import SavedState, read_state, write_state
from microtome.training.mlm.building import new_model, trained_parameters
from microtome.training.mlm.forward import masked_loss
from pretraining.muon import MuonAndAdamW, Rates, layer_matrices, orthogonalized
from support.masked_rows import batch_of
from support.tiny import VOCABULARY


def test_orthogonalized_matrices_keep_their_directions_and_lose_their_scale():
    torch.manual_seed(0)
    for shape in ((2, 16, 16), (2, 8, 32), (2, 32, 8)):
        matrices = torch.randn(*shape)
        left, _, right = torch.linalg.svd(matrices, full_matrices=False)
        ours = orthogonalized(matrices)
        singular = torch.linalg.svdvals(ours)
        assert singular.max() < 1.3  # Muon's quintic aims at 0.7 to 1.2
        assert singular.median() > 0.6
        aligned = left.transpose(1, 2) @ ours @ right.transpose(1, 2)
        off = aligned - torch.diag_embed(torch.diagonal(aligned, dim1=1, dim2=2))
        assert off.abs().max() < 1e-3


def test_the_state_of_an_optimiser_survives_a_checkpoint_bit_for_bit(tmp_path):
    def begun():
        model = new_model(
            "bert", layers=2, width=16, heads=2, embedding=16, vocabulary=VOCABULARY,
            positions=32, seed=0,
        )  # fmt: skip
        return model, MuonAndAdamW(trained_parameters(model), layer_matrices(model), Rates())

    def update(model, optimizer, n):
        for _ in range(n):
            masked_loss(adapt(model), batch_of()).backward()
            optimizer.step(1.0)

    straight = begun()
    update(*straight, 4)
    broken = begun()
    update(*broken, 2)
    weights = {name: p.detach() for name, p in trained_parameters(broken[0]).items()}
    write_state(tmp_path, "step-2", SavedState(weights, broken[1].state(), {"step": 2}))
    resumed, saved = begun(), read_state(tmp_path)
    for name, parameter in trained_parameters(resumed[0]).items():
        parameter.data.copy_(saved.weights[name])
    resumed[1].load(saved.optimizer)
    update(*resumed, 2)
    wanted = trained_parameters(straight[0])
    for name, parameter in trained_parameters(resumed[0]).items():
        assert torch.equal(parameter, wanted[name]), name


def test_matrices_decay_by_their_rate_and_stop_growing():
    matrix = torch.nn.Parameter(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))
    before = matrix.detach().clone()
    rates = Rates(matrices=0.1, matrix_decay=0.5)
    bias = torch.nn.Parameter(torch.zeros(8))  # AdamW wants something of its own
    optimizer = MuonAndAdamW({"w": matrix, "b": bias}, frozenset({"w"}), rates)
    matrix.grad = torch.zeros_like(matrix)
    optimizer.step(0.5)  # no gradient: only the decay is left
    torch.testing.assert_close(matrix.detach(), before * (1 - 0.1 * 0.5 * 0.5))
    for _ in range(400):  # always the same direction: 1 / decay is as far as it goes
        matrix.grad = torch.eye(8)
        optimizer.step(1.0)
    assert torch.linalg.svdvals(matrix.detach()).max() < 1.3 / rates.matrix_decay
