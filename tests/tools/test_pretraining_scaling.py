"""Embeddings as small as fresh ones: another size, the same function."""

from __future__ import annotations

import pytest
import torch

from microtome.families import adapt
from microtome.training.mlm.building import new_model
from pretraining.scaling import restore_embeddings_, shrink_embeddings_


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_smaller_embeddings_change_nothing_that_the_model_computes(family):
    model = new_model(
        family, layers=2, width=32, heads=2, embedding=16, vocabulary=60, positions=20, seed=0
    ).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.5 if "embeddings" in name and "LayerNorm" not in name else 0.1
            parameter.add_(scale * torch.randn_like(parameter))
    ids = torch.randint(0, 60, (3, 12))
    before = model(input_ids=ids).logits.detach()
    factor = shrink_embeddings_(model)
    words = model.get_input_embeddings().weight
    assert factor < 0.1
    size = float(words.detach().pow(2).mean().sqrt())
    assert size == pytest.approx(model.config.initializer_range, rel=1e-4)
    assert words.data_ptr() == model.get_output_embeddings().weight.data_ptr()
    assert torch.allclose(
        model(input_ids=ids).logits, before, atol=1e-4 * float(before.abs().max())
    )
    # And the way back: the size at which the decoder's norm is 1.
    restore_embeddings_(model)
    norm = adapt(model).mlm_norm().weight.detach()
    assert float(norm.pow(2).mean().sqrt()) == pytest.approx(1, rel=1e-4)
    assert float(words.detach().pow(2).mean().sqrt()) > 5 * size
    assert torch.allclose(
        model(input_ids=ids).logits, before, atol=1e-4 * float(before.abs().max())
    )
