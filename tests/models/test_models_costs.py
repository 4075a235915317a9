from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from microtome.models import cost, load
from support.tiny import (
    FAMILY_TYPES,
    INNER,
    KINDS_AND_HEADS,
    N_LAYERS,
    VOCABULARY,
    WIDTH,
    save_tiny,
    tiny_model,
)


def counted_flops(model, length):
    """What torch counts while one text of ``length`` tokens goes through plain transformers."""
    ids = torch.randint(5, VOCABULARY, (1, length), generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids, attention_mask=torch.ones_like(ids))
    return counter.get_total_flops()


@pytest.mark.parametrize("length", [16, 48])
@pytest.mark.parametrize(("family", "head"), KINDS_AND_HEADS)
def test_flops_are_those_that_torch_counts(family, head, length):
    model = tiny_model(family, head, attention="eager")
    wanted = counted_flops(model, length) / length
    assert cost(model, length=length).flops_per_token == pytest.approx(wanted, rel=1e-9)


def test_flops_of_bert_by_hand():
    attention, feed_forward = 4 * WIDTH * WIDTH, 2 * WIDTH * INNER
    head = WIDTH * WIDTH + WIDTH * VOCABULARY
    wanted = 2 * (N_LAYERS * (attention + feed_forward) + head) + N_LAYERS * 4 * 128 * WIDTH
    assert cost(tiny_model("bert")).flops_per_token == wanted


def test_shared_layers_cost_memory_once_and_work_every_time():
    short, long = (tiny_model("albert", "none", num_hidden_layers=n) for n in (3, 6))
    assert cost(long).parameters == cost(short).parameters
    per_layer = (cost(long).flops_per_token - cost(short).flops_per_token) / 3
    assert per_layer == 2 * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER) + 4 * 128 * WIDTH


@pytest.mark.parametrize(("n_layers", "n_groups"), [(3, 3), (5, 2), (6, 3)])
def test_groups_of_shared_layers(n_layers, n_groups):
    sizes = {"num_hidden_layers": n_layers, "num_hidden_groups": n_groups}
    model = tiny_model("albert", attention="eager", **sizes)
    wanted = counted_flops(model, 16) / 16
    assert cost(model, length=16).flops_per_token == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_parameters_and_bytes_are_those_of_the_file(tmp_path, family):
    """Half precision: computed in fp32, paid for in two bytes per weight."""
    folder = save_tiny(tmp_path / "m", family, dtype=torch.float16)
    priced = cost(load(folder))
    assert priced.bytes == 2 * priced.parameters
    size = (folder / "model.safetensors").stat().st_size
    n_header = int.from_bytes((folder / "model.safetensors").read_bytes()[:8], "little")
    assert priced.bytes == size - 8 - n_header
