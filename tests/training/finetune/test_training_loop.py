"""The loop: steps, seeds, accumulation, freezing, LayerDrop, and what runs away."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from microtome.errors import Diverged, RequestError
from microtome.families import adapt
from microtome.observe.evaluation import encode_for
from microtome.training.finetune import examples as batching
from microtome.training.finetune import loop
from microtome.training.finetune.examples import Batches, examples_of
from microtome.training.finetune.freezing import dropped_layers
from microtome.training.finetune.loop import Step, train
from microtome.training.finetune.processes import Processes
from microtome.training.optimisation import rate_factor
from microtome.training.recipe import Recipe, Seeds
from support.tiny import FAMILY_TYPES, tiny_model
from support.training_rows import rows, tokenizer_for

SEEDS = Seeds.of(0)
RECIPE = Recipe(learning_rate=1e-3, batch_size=8, epochs=2, max_length=32, stride=4)
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def prepared(tmp_path, family_type="bert", kind="single", *, n=40, std=0.1, **config):
    head = "question-answering" if kind == "spans" else "classification"
    labels = {} if kind == "spans" else {"num_labels": 1 if kind == "regression" else 2}
    model = tiny_model(family_type, head, std=std, **labels, **config)
    family, dataset = adapt(model), rows(tmp_path, kind, n=n)
    encoded = encode_for(model, tokenizer_for(family_type), dataset, max_length=32, stride=4)
    return model, examples_of(dataset, encoded, family)


def weights(model) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def largest_difference(ours, theirs, *, but: tuple[str, ...] = ()) -> float:
    names = [name for name in theirs if not name.endswith(but)]
    return max(float((ours[name] - theirs[name]).abs().max()) for name in names)


# Softmax doesn't see what is added to all of its inputs: the gradients of these are rounding
# alone, which Adam blows up to full steps in any direction.
UNDECIDED = ("key.bias", "qa_outputs.bias")


@pytest.mark.parametrize("family_type", FAMILY_TYPES)
def test_the_same_seed_twice_is_bit_equal_and_another_seed_is_not(family_type, tmp_path):
    results = []
    for seeds in (SEEDS, SEEDS, Seeds(SEEDS.init, SEEDS.data, SEEDS.dropout + 1)):
        model, examples = prepared(tmp_path, family_type)
        before = torch.random.get_rng_state()
        training = train(model, examples, RECIPE, seeds=seeds)
        assert torch.equal(before, torch.random.get_rng_state())
        results.append((weights(model), training))
    (first, one), (second, two), (other, _) = results
    assert one == two
    assert all(torch.equal(first[name], second[name]) for name in first)
    # The default dropout is 0 in these: a dropout seed draws nothing there.
    assert (family_type in ("modernbert", "nomic_bert", "eurobert")) == (
        largest_difference(first, other) == 0
    )


def test_a_training_without_dropout_is_torchs_own_adamw_on_transformers_loss(tmp_path):
    """An independent loop: plain model(**batch), AdamW, transformers' schedule, padded batches."""
    model, examples = prepared(tmp_path, **STILL)
    reference, _ = prepared(tmp_path, **STILL)
    recipe = RECIPE.but(weight_decay=0.1, clip=0.5)
    train(model, examples, recipe, seeds=SEEDS)

    reference.train()
    named = dict(reference.named_parameters())
    no_decay = [v for n, v in named.items() if "bias" in n or "LayerNorm" in n]
    decay = [v for n, v in named.items() if "bias" not in n and "LayerNorm" not in n]
    adamw = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}],
        lr=1e-3,
    )
    schedule = get_linear_schedule_with_warmup(adamw, 1, 10)  # 10 steps of 8 rows, 10 % of them
    for epoch in range(2):
        order = np.random.default_rng([SEEDS.data, epoch]).permutation(40)
        for start in range(0, 40, 8):
            chosen = order[start : start + 8]
            texts = [examples.texts.ids[slice(*examples.texts.offsets[[i, i + 1]])] for i in chosen]
            longest = max(map(len, texts))
            ids = torch.tensor([[*t.tolist(), *[0] * (longest - len(t))] for t in texts])
            labels = examples.targets[torch.from_numpy(chosen)]
            reference(input_ids=ids, attention_mask=(ids > 0).long(), labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.5)
            adamw.step()
            schedule.step()
            adamw.zero_grad()
    start, _ = prepared(tmp_path, **STILL)
    moved = largest_difference(weights(start), weights(reference))
    assert moved > 1e-3
    # Adam divides by the gradient's size: rounding of tiny gradients comes out enlarged.
    assert largest_difference(weights(model), weights(reference), but=UNDECIDED) < 0.01 * moved


@pytest.mark.parametrize("kind", ["single", "regression", "spans"])
def test_micro_batches_add_up_to_the_effective_batch(kind, tmp_path):
    model, examples = prepared(tmp_path, kind=kind, **STILL)
    found = []
    for micro in (32, 8, 5, 1):
        stepping = loop.Stepping(adapt(model), examples, RECIPE, SEEDS, Processes(), micro)
        loss = stepping.gradients(0, np.arange(32))
        own = {n: p.grad.to_dense() for n, p in model.named_parameters() if p.grad is not None}
        found.append((loss, own))
        model.zero_grad(set_to_none=True)
    whole_loss, whole = found[0]
    assert max(float(value.abs().max()) for value in whole.values()) > 1e-2
    for loss, gradients in found[1:]:
        assert loss == pytest.approx(whole_loss, abs=1e-5)
        assert largest_difference(whole, gradients) < 1e-5


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("full"), RuntimeError("DefaultCPUAllocator: can't allocate memory")],
)
def test_out_of_memory_halves_the_micro_batch_and_keeps_the_effective_one(
    error, tmp_path, monkeypatch
):
    recipe = RECIPE.but(batch_size=16, epochs=1)
    enough, examples = prepared(tmp_path, **STILL)
    train(enough, examples, recipe, seeds=SEEDS)
    scarce, _ = prepared(tmp_path, **STILL)
    real = batching.logits_of

    def limited(family, chunk, *, dropped):
        logits = real(family, chunk, dropped=dropped)
        if len(chunk.texts) > 5:
            raise error
        return logits

    monkeypatch.setattr(batching, "logits_of", limited)
    training = train(scarce, examples, recipe, seeds=SEEDS)
    assert training.micro_batch_size == 4
    assert largest_difference(weights(enough), weights(scarce), but=UNDECIDED) < 1e-4


def test_other_errors_are_not_taken_for_a_full_memory(tmp_path, monkeypatch):
    model, examples = prepared(tmp_path)

    def broken(*_, **__):
        raise RuntimeError("something else")

    monkeypatch.setattr(batching, "logits_of", broken)
    with pytest.raises(RuntimeError, match="something else"):
        train(model, examples, RECIPE, seeds=SEEDS)


@pytest.mark.parametrize("decay", [0.01, 0.0])
def test_a_learning_rate_of_1e9_diverges_and_says_at_which_step(decay, tmp_path):
    model, examples = prepared(tmp_path, n=120)
    recipe = RECIPE.but(learning_rate=1e9).but(weight_decay=decay)
    with pytest.raises(Diverged, match=r"diverged (at|by) step \d+ of 30.*learning rate 1e\+09"):
        train(model, examples, recipe, seeds=SEEDS)


def test_a_loss_that_is_no_number_is_a_divergence(tmp_path):
    model, examples = prepared(tmp_path)
    with torch.no_grad():
        model.classifier.bias[0] = math.nan
    with pytest.raises(Diverged, match="step 1 of 10: the loss is nan"):
        train(model, examples, RECIPE, seeds=SEEDS)


# --- freezing ------------------------------------------------------------------------------------

FROZEN = [
    (family_type, freeze)
    for family_type in FAMILY_TYPES
    for freeze in ("embeddings", "encoder", 0, 1, 2)
    if family_type != "albert" or freeze not in (1, 2)  # one layer for all depths: see below
]


@pytest.mark.parametrize(("family_type", "freeze"), FROZEN)
def test_frozen_tensors_stay_bit_equal_and_the_others_move(family_type, freeze, tmp_path):
    model, examples = prepared(tmp_path, family_type)
    before = weights(model)
    training = train(model, examples, RECIPE.but(freeze=freeze), seeds=SEEDS)
    after = weights(model)
    unchanged = {name for name in before if torch.equal(before[name], after[name])}
    assert set(training.frozen) <= unchanged
    family = adapt(model)
    layers = {family.layer_prefix(i) for i in range(family.shape.n_layers)}
    frozen_layers = layers if freeze == "encoder" else {
        family.layer_prefix(i) for i in range(freeze if isinstance(freeze, int) else 0)
    }  # fmt: skip
    for name in before:
        in_frozen_layer = name.startswith(tuple(f"{prefix}." for prefix in frozen_layers))
        in_layer = name.startswith(tuple(f"{prefix}." for prefix in layers))
        if in_layer:
            assert (name in training.frozen) == in_frozen_layer, name
        if "word_embeddings" in name or "tok_embeddings" in name:
            assert name in training.frozen
        if "classifier" in name:
            assert name not in training.frozen
            assert name not in unchanged


def test_freezing_some_of_alberts_shared_layers_is_refused(tmp_path):
    model, examples = prepared(tmp_path, "albert")
    with pytest.raises(RequestError, match=r"one layer at every depth, got 1.*unshare"):
        train(model, examples, RECIPE.but(freeze=1), seeds=SEEDS)


def test_more_frozen_layers_than_there_are_is_refused(tmp_path):
    model, examples = prepared(tmp_path)
    with pytest.raises(RequestError, match="freeze must be at most 3, the model's layers, got 4"):
        train(model, examples, RECIPE.but(freeze=4), seeds=SEEDS)


# --- LayerDrop -----------------------------------------------------------------------------------


def test_layerdrop_leaves_out_each_layer_at_its_rate_and_independently():
    n_steps, n_layers, rate = 2000, 12, 0.2
    table = np.zeros((n_steps, n_layers))
    for step in range(n_steps):
        table[step, list(dropped_layers(n_layers, rate, seed=3, step=step))] = 1
    error = math.sqrt(rate * (1 - rate) / n_steps)
    assert np.abs(table.mean(0) - rate).max() < 4 * error
    counts = table.sum(1)  # binomial: 12 · 0.2 · 0.8 = 1.92
    assert abs(counts.var() - 1.92) < 0.3
    assert dropped_layers(n_layers, 0.0, seed=3, step=0) == frozenset()


def test_a_dropped_layer_is_left_out_of_the_pass(tmp_path):
    model, examples = prepared(tmp_path, std=0.3)
    chunk, _ = examples.batch(np.arange(8))
    shorter = adapt(copy.deepcopy(model))
    shorter.arrange_((0, 2))
    with torch.no_grad():
        ours = loop.logits_of(adapt(model), chunk, dropped=frozenset({1}))
        theirs = loop.logits_of(shorter, chunk)
        whole = loop.logits_of(adapt(model), chunk)
    torch.testing.assert_close(ours, theirs)
    assert not torch.allclose(ours, whole, atol=1e-3)


def test_dropping_the_last_layer_or_all_of_them_still_reads_a_state(tmp_path):
    for family_type in ("bert", "modernbert"):
        model, examples = prepared(tmp_path, family_type)
        chunk, _ = examples.batch(np.arange(8))
        for dropped in ({2}, {0, 1, 2}):
            logits = loop.logits_of(adapt(model), chunk, dropped=frozenset(dropped))
            assert logits.shape == (8, 2)


def test_layerdrop_changes_training_and_is_refused_for_shared_layers(tmp_path):
    plain, examples = prepared(tmp_path, **STILL)
    dropping, _ = prepared(tmp_path, **STILL)
    train(plain, examples, RECIPE, seeds=SEEDS)
    train(dropping, examples, RECIPE.but(layerdrop=0.5), seeds=SEEDS)
    assert largest_difference(weights(plain), weights(dropping)) > 1e-4
    shared, examples = prepared(tmp_path, "albert")
    with pytest.raises(RequestError, match=r"same weights at every depth.*unshare"):
        train(shared, examples, RECIPE.but(layerdrop=0.1), seeds=SEEDS)


# --- the batches ---------------------------------------------------------------------------------


def test_every_pass_takes_every_row_once_in_an_order_of_its_own():
    batches = Batches.of(21, Recipe(batch_size=8, epochs=3))
    assert batches.n_steps == 9
    passes = [
        np.concatenate([batches.rows_of(step, seed=5) for step in batches.steps_of(epoch)])
        for epoch in range(3)
    ]
    for one in passes:
        assert sorted(one.tolist()) == list(range(21))
    assert len({tuple(one) for one in passes}) == 3


def test_a_fixed_number_of_steps_is_the_same_for_any_number_of_rows():
    for n_rows in (5, 50, 500):
        batches = Batches.of(n_rows, Recipe(batch_size=8, epochs=3, steps=20))
        steps = [step for epoch in range(batches.epochs) for step in batches.steps_of(epoch)]
        assert steps == list(range(20))
    assert Batches.of(50, Recipe(epochs=3, steps=2)).epochs == 2


def test_the_schedule_is_transformers_own():
    weight = torch.nn.Parameter(torch.zeros(1))
    sgd = torch.optim.SGD([weight], lr=1.0)
    schedule = get_linear_schedule_with_warmup(sgd, 4, 37)
    for step in range(37):
        assert rate_factor(step, 37, 0.1) == pytest.approx(sgd.param_groups[0]["lr"])
        sgd.step()
        schedule.step()


def test_progress_sees_every_step_and_every_epochs_scores(tmp_path):
    model, examples = prepared(tmp_path)
    seen: list[Step] = []
    scores = iter([0.4, 0.6])

    def score(_):
        value = next(scores)
        return {"accuracy": value}, value

    training = train(model, examples, RECIPE, seeds=SEEDS, score=score, progress=seen.append)
    assert [one.step for one in seen if not one.scores] == list(range(1, 11))
    assert [one.scores for one in seen if one.scores] == [{"accuracy": 0.4}, {"accuracy": 0.6}]
    assert [epoch.scores["accuracy"] for epoch in training.history] == [0.4, 0.6]


def test_the_best_epoch_is_kept_where_it_is_asked_for(tmp_path):
    snapshots, kept = [], {}
    for keep in ("best", "last"):
        model, examples = prepared(tmp_path)
        scores = iter([0.4, 0.7, 0.7])

        def score(one, scores=scores):
            snapshots.append(weights(one))
            value = next(scores)
            return {"accuracy": value}, value

        recipe = RECIPE.but(epochs=3, keep=keep)
        training = train(model, examples, recipe, seeds=SEEDS, score=score)
        kept[keep] = (training.kept_epoch, weights(model))
    # A tie goes to the earlier epoch.
    assert kept["best"][0] == 1
    assert largest_difference(kept["best"][1], snapshots[1]) == 0
    assert kept["last"][0] == 2
    assert largest_difference(kept["last"][1], snapshots[5]) == 0
