"""States of a training on disk: the last whole one is read, and only that one is kept."""

from __future__ import annotations

import pytest
import torch

from microtome.errors import StorageError
from microtome.training.checkpoints import PROGRESS, SavedState, read_state, write_state
from microtome.training.optimisation import Optimizer


def state_of(step: int) -> SavedState:
    return SavedState({"w": torch.full((2,), step)}, {"w/step": torch.ones(1)}, {"step": step})


def test_the_last_state_is_read_and_the_ones_before_it_are_gone(tmp_path):
    assert read_state(tmp_path / "checkpoint") is None
    for step in (1, 2, 10):
        write_state(tmp_path / "checkpoint", f"step-{step:04d}", state_of(step))
    saved = read_state(tmp_path / "checkpoint")
    assert saved.progress == {"step": 10}
    assert saved.weights["w"].tolist() == [10, 10]
    assert saved.best == {}
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["step-0010"]


@pytest.mark.parametrize("name", [".tmp-step-0002", "step-0002"])
def test_a_torn_state_is_not_seen(tmp_path, name):
    write_state(tmp_path, "step-0001", state_of(1))
    torn = tmp_path / name
    torn.mkdir()
    (torn / "weights.safetensors").write_bytes(b"half a")
    if name.startswith(".tmp-"):
        (torn / PROGRESS).write_text("{}")
    assert read_state(tmp_path).progress["step"] == 1


def test_a_state_that_cant_be_read_is_named(tmp_path):
    write_state(tmp_path, "step-0001", state_of(1))
    (tmp_path / "step-0001" / PROGRESS).write_text("{")
    with pytest.raises(StorageError, match=r"can't read .*step-0001"):
        read_state(tmp_path)


def test_the_state_of_an_optimiser_survives_bit_for_bit(tmp_path):
    def begun():
        weight = torch.nn.Parameter(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)))
        parameters = {"w": weight, "b": torch.nn.Parameter(torch.zeros(4))}
        return parameters, Optimizer(parameters, learning_rate=0.1, weight_decay=0.1, clip=1.0)

    def update(parameters, optimizer, steps):
        for step in steps:
            inputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(step))
            (inputs @ parameters["w"].t() + parameters["b"]).square().sum().backward()
            optimizer.step(1.0)

    straight, broken, resumed = begun(), begun(), begun()
    update(*straight, range(4))
    update(*broken, range(2))
    write_state(tmp_path, "step-2", SavedState(broken[0], broken[1].state(), {"step": 2}))
    saved = read_state(tmp_path)
    for name, parameter in resumed[0].items():
        parameter.data.copy_(saved.weights[name])
    resumed[1].load(saved.optimizer)
    update(*resumed, range(2, 4))
    for name, parameter in straight[0].items():
        assert torch.equal(parameter, resumed[0][name]), name
