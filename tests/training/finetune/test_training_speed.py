"""What makes a training fast changes neither gradients nor weights, but for rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from microtome.families import adapt
from microtome.observe import products
from microtome.observe.evaluation import encode_for
from microtome.training.finetune.examples import examples_of
from microtome.training.finetune.loop import computing, train
from microtome.training.optimisation import Optimizer
from microtome.training.recipe import Recipe, Seeds
from support.tiny import FAMILY_TYPES, tiny_model
from support.training_rows import rows, tokenizer_for


def examples_for(model, family_type, tmp_path):
    dataset = rows(tmp_path, "single", n=8)
    encoded = encode_for(model, tokenizer_for(family_type), dataset)
    return examples_of(dataset, encoded, adapt(model))


def gradients(model, examples, precision=None):
    """Of the summed loss of all rows; as the loop computes it, or plainly."""
    family = adapt(model)
    chunk, targets = examples.batch(np.arange(len(examples)))
    if precision is None:
        loss = examples.loss(examples.outputs(family, chunk, frozenset()), targets, chunk)
    else:
        with computing(family, precision):
            loss = examples.loss(examples.outputs(family, chunk, frozenset()), targets, chunk)
    loss.backward()
    found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


@pytest.fixture
def multiplied(monkeypatch):
    """The shapes that oneDNN multiplied; small products are its own here, too."""
    if not products.is_worthwhile():
        pytest.skip("oneDNN isn't used on this CPU, or by this torch")
    shapes, real = [], products._product
    monkeypatch.setattr(products, "FEWEST_MULTIPLICATIONS", 1)
    monkeypatch.setattr(
        products, "_product", lambda *given: shapes.append(given[0].shape) or real(*given)
    )
    return shapes


@pytest.mark.parametrize("family_type", FAMILY_TYPES)
def test_gradients_are_the_plain_ones_and_those_of_words_are_rows(family_type, tmp_path):
    model = tiny_model(family_type, "classification").eval()
    examples = examples_for(model, family_type, tmp_path)
    plain = gradients(model, examples)
    ours = gradients(model, examples, "float32")
    assert ours.keys() == plain.keys()
    words = model.base_model.get_input_embeddings()
    sparse = [name for name, gradient in ours.items() if gradient.is_sparse]
    assert [dict(model.named_parameters())[name] for name in sparse] == [words.weight]
    assert not words.sparse  # the model is as it was
    largest = max(float(gradient.abs().max()) for gradient in plain.values())
    for name, gradient in plain.items():
        difference = float((ours[name].to_dense() - gradient).abs().max())
        assert difference < 1e-5 * max(1.0, largest), name


def test_the_loop_multiplies_fast_but_not_where_it_was_asked_for_bfloat16(multiplied, tmp_path):
    model = tiny_model("bert", "classification")
    examples = examples_for(model, "bert", tmp_path)
    once = Recipe(batch_size=8, steps=1, epochs=1)
    train(model, examples, once.but(precision="bfloat16"), seeds=Seeds.of(0))
    assert not multiplied
    train(model, examples, once, seeds=Seeds.of(0))
    assert multiplied


def looked_up(table, ids, sparse):
    functional.embedding(torch.tensor(ids), table, sparse=sparse).square().sum().backward()


def test_rows_gradients_make_the_steps_that_whole_ones_do():
    torch.manual_seed(0)
    tables = [nn.Parameter(torch.randn(50, 6)) for _ in range(2)]
    tables[1].data.copy_(tables[0].data)
    optimizers = [
        Optimizer({"table": table}, learning_rate=0.1, weight_decay=0.1, clip=1.0)
        for table in tables
    ]
    for ids in ([3, 4, 3], [5, 3], [7]):  # rows that aren't looked up again have moments, and decay
        for table, optimizer, sparse in zip(tables, optimizers, (False, True), strict=True):
            looked_up(table, ids[:1], sparse)  # two micro-batches add up
            looked_up(table, ids[1:], sparse) if ids[1:] else None
            optimizer.step(1.0)
        torch.testing.assert_close(tables[1], tables[0], rtol=1e-6, atol=1e-6)


def test_gradients_that_are_no_numbers_leave_nothing_for_the_next_step():
    torch.manual_seed(0)
    table = nn.Parameter(torch.randn(50, 6))
    optimizer = Optimizer({"table": table}, learning_rate=0.1, weight_decay=0.0, clip=1.0)
    before = table.detach().clone()
    functional.embedding(torch.tensor([3]), table * 1.0).sum().mul(torch.nan).backward()
    assert np.isnan(optimizer.step(1.0))
    (functional.embedding(torch.tensor([3]), table, sparse=True).sum() * torch.nan).backward()
    assert np.isnan(optimizer.step(1.0))
    assert torch.equal(table, before)
    looked_up(table, [4], sparse=True)
    assert np.isfinite(optimizer.step(1.0))
    moved = (table != before).any(1).nonzero()[:, 0]
    assert moved.tolist() == [4]
