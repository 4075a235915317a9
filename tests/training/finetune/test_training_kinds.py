"""Losses of taggers, several labels, rerankers and embedders: plain transformers', or by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from microtome.families import adapt
from microtome.families.embedder import Embedder, attach_embedder
from microtome.observe.evaluation import encode_for
from microtome.training.finetune import loop
from microtome.training.finetune.examples import examples_of
from microtome.training.finetune.forward import logits_of
from microtome.training.finetune.losses import order_loss, pair_loss, summed_loss
from microtome.training.finetune.processes import Processes
from microtome.training.recipe import Recipe, Seeds
from support.tiny import FAMILY_TYPES, tiny_model
from support.training_rows import (
    multilabel_rows,
    reranking_rows,
    retrieval_rows,
    similarity_rows,
    tagged_rows,
    tagged_sentences,
    tokenizer_for,
)

STD = 0.15  # gradients of order 1: a tolerance of 1e-5 is one of relative error
SEVERAL = {"problem_type": "multi_label_classification"}
LABELS = {"tokens": 5, "multilabel": 3, "one logit": 1, "two logits": 2}


def without_dropout(family: str, head: str, **labels: object):
    """A tiny model in training mode that drops nothing."""
    model = tiny_model(family, head, std=STD, **labels).train()
    for name in vars(model.config):
        if "drop" in name and isinstance(getattr(model.config, name), float):
            setattr(model.config, name, 0.0)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, 0.0)
    return model


def gradients(model) -> dict[str, torch.Tensor]:
    found = {n: p.grad.to_dense() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    # transformers gives a gradient of zeros to what a text's answer doesn't depend on.
    theirs = {name: value for name, value in theirs.items() if name in ours or value.any()}
    assert ours.keys() == theirs.keys()
    largest = max(float(value.abs().max()) for value in theirs.values())
    assert largest > 1e-2  # a thousand times the tolerance
    for name, value in theirs.items():
        assert float((ours[name] - value).abs().max()) < 1e-5 * max(1.0, largest), name


def padded(tokenizer, texts, family, **options):
    """The texts as plain transformers takes them."""
    batch = tokenizer(texts, padding=True, return_tensors="pt", **options)
    if not family.uses_segments:
        batch.pop("token_type_ids", None)
    return batch


def tag_targets(batch, tags: list[list[str]], names: tuple[str, ...]) -> torch.Tensor:
    """-100 but for the first piece of every word, as transformers' own examples do it."""
    targets = torch.full_like(batch["input_ids"], -100)
    for row, sentence in enumerate(tags):
        seen = set()
        for place, word in enumerate(batch.word_ids(row)):
            if word is not None and word not in seen:
                targets[row, place] = names.index(sentence[word])
                seen.add(word)
    return targets


def plain_batch(kind: str, dataset, tokenizer, family, n: int):
    if kind == "tokens":
        sentences = tagged_sentences(n)
        words, tags = [list(part) for part in zip(*sentences, strict=True)]
        batch = padded(tokenizer, words, family, is_split_into_words=True)
        return batch, tag_targets(batch, tags, dataset.labels)
    rows = list(dataset.rows())
    texts = [row.text if row.pair is None else (row.text, row.pair) for row in rows]
    batch = padded(tokenizer, texts, family)
    if kind == "multilabel":
        return batch, torch.tensor(dataset.targets, dtype=torch.float32)
    labels = torch.tensor(dataset.targets)
    return batch, labels[:, None].float() if kind == "one logit" else labels


def rows_of(kind: str, folder, n: int):
    make = {"tokens": tagged_rows, "multilabel": multilabel_rows}.get(kind)
    return reranking_rows(folder, n=n // 4) if make is None else make(folder, n=n)


def model_for(family_type: str, kind: str):
    head = "token-classification" if kind == "tokens" else "classification"
    several = SEVERAL if kind in ("multilabel", "one logit") else {}
    return without_dropout(family_type, head, num_labels=LABELS[kind], **several)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("family_type", FAMILY_TYPES)
def test_loss_and_gradients_are_plain_transformers(family_type, kind, tmp_path):
    model, tokenizer = model_for(family_type, kind), tokenizer_for(family_type)
    family = adapt(model)
    dataset = rows_of(kind, tmp_path, n=12)
    examples = examples_of(dataset, encode_for(model, tokenizer, dataset), family)
    rows = np.random.default_rng(0).permutation(len(examples))
    assert len(set(examples.texts.lengths.tolist())) > 3

    chunk, targets = examples.batch(rows)
    ours = summed_loss(examples.kind, logits_of(family, chunk), targets, chunk)
    ours = ours / examples.n_terms(rows)
    ours.backward()
    our_gradients = gradients(model)
    batch, labels = plain_batch(kind, dataset, tokenizer, family, n=12)
    theirs = model(**batch, labels=labels).loss
    theirs.backward()

    assert abs(float(ours.detach()) - float(theirs.detach())) < 1e-5
    assert_same(our_gradients, gradients(model))


@pytest.mark.parametrize("kind", ["tokens", "multilabel"])
def test_micro_batches_add_up_to_the_mean_of_the_batch(kind, tmp_path):
    """Sentences have different numbers of words: a mean of means would be another loss."""
    model = model_for("bert", kind)
    dataset = rows_of(kind, tmp_path, n=12)
    examples = examples_of(dataset, encode_for(model, tokenizer_for(), dataset), adapt(model))
    found = []
    for size in (12, 5):
        loss = stepping(model, examples, size).gradients(0, np.arange(12))
        found.append((loss, gradients(model)))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-6)
    assert_same(found[0][1], found[1][1])


def test_a_long_sentence_is_labelled_once_over_its_windows(tmp_path):
    model = model_for("bert", "tokens")
    dataset = tagged_rows(tmp_path, n=12)
    encoded = encode_for(model, tokenizer_for(), dataset, max_length=8)
    examples = examples_of(dataset, encoded, adapt(model))
    assert len(examples) > 12
    assert int((examples.targets >= 0).sum()) == len(dataset.tags.values)


# --- embedders -----------------------------------------------------------------------------------


def stepping(model, examples, micro_batch_size: int) -> loop.Stepping:
    return loop.Stepping(
        adapt(model), examples, Recipe(), Seeds.of(0), Processes(), micro_batch_size
    )


def embedder(family_type: str, *, pooling: str = "mean"):
    return attach_embedder(without_dropout(family_type, "none"), Embedder((pooling,)))


def plain_embeddings(model, tokenizer, texts: list[str], pooling: str) -> torch.Tensor:
    """Padded transformers output, pooled with the mask and normed by hand."""
    batch = padded(tokenizer, texts, adapt(model))
    states = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    pooled = states[:, 0] if pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
    return pooled / pooled.norm(dim=1, keepdim=True)


def contrastive_by_hand(queries, documents, pairs, relevant, sharpness=20.0) -> torch.Tensor:
    total = torch.zeros(())
    for query, own in pairs:
        others = [d for _, d in pairs if (query, d) not in relevant]
        exponents = [sharpness * (queries[query] @ documents[d]) for d in [own, *others]]
        total = total + torch.logsumexp(torch.stack(exponents), 0) - exponents[0]
    return total / len(pairs)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("family_type", FAMILY_TYPES)
def test_the_contrastive_loss_is_the_one_by_hand(family_type, pooling, tmp_path):
    model, tokenizer = embedder(family_type, pooling=pooling), tokenizer_for(family_type)
    dataset = retrieval_rows(tmp_path)
    examples = examples_of(dataset, encode_for(model, tokenizer, dataset), adapt(model))
    corpus = dataset.corpus
    pairs = list(zip(corpus.queries.tolist(), corpus.documents.tolist(), strict=True))
    assert len(examples) == len(pairs) == 15  # a query with two documents is two pairs

    ours = stepping(model, examples, 100).gradients(0, np.arange(15))
    our_gradients = gradients(model)
    texts = [row.text for row in dataset.rows()]
    embeddings = plain_embeddings(model, tokenizer, texts, pooling)
    theirs = contrastive_by_hand(embeddings[:12], embeddings[12:], pairs, set(pairs))
    theirs.backward()
    assert ours == pytest.approx(float(theirs.detach()), abs=1e-4)
    assert_same(our_gradients, gradients(model))


def test_an_embedder_that_searches_by_dot_product_learns_by_it():
    embeddings = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
    by_dot = Embedder(("mean",), similarity="dot")
    ours = pair_loss(by_dot, "retrieval", embeddings, torch.ones(6, 6, dtype=torch.bool))
    pairs = [(i, i) for i in range(6)]
    theirs = contrastive_by_hand(*embeddings, pairs, set(pairs), sharpness=1.0)
    assert float(ours) == pytest.approx(float(theirs), abs=1e-5)


@pytest.mark.parametrize("family_type", ["bert", "modernbert", "albert"])
def test_the_loss_of_similarities_is_the_one_by_hand(family_type, tmp_path):
    model, tokenizer = embedder(family_type), tokenizer_for(family_type)
    dataset = similarity_rows(tmp_path, n=10)
    examples = examples_of(dataset, encode_for(model, tokenizer, dataset), adapt(model))
    ours = stepping(model, examples, 100).gradients(0, np.arange(10))
    our_gradients = gradients(model)

    rows = list(dataset.rows())
    first = plain_embeddings(model, tokenizer, [row.text for row in rows], "mean")
    second = plain_embeddings(model, tokenizer, [row.pair for row in rows], "mean")
    total = torch.ones(())
    for i, lower in enumerate(rows):
        for j, higher in enumerate(rows):
            if lower.label < higher.label:
                total = total + torch.exp(20 * (first[i] @ second[i] - first[j] @ second[j]))
    theirs = torch.log(total)
    theirs.backward()
    assert ours == pytest.approx(float(theirs.detach()), abs=1e-4)
    assert_same(our_gradients, gradients(model))


@pytest.mark.parametrize("make", [retrieval_rows, similarity_rows])
def test_micro_batches_of_pairs_give_the_gradients_of_the_whole_batch(make, tmp_path):
    """In-batch negatives stay those of the effective batch."""
    model, tokenizer = embedder("bert"), tokenizer_for()
    dataset = make(tmp_path, n=10)
    examples = examples_of(dataset, encode_for(model, tokenizer, dataset), adapt(model))
    rows = np.random.default_rng(0).permutation(len(examples))
    found = []
    for size in (100, 4, 1):
        loss = stepping(model, examples, size).gradients(0, rows)
        found.append((loss, gradients(model)))
    for loss, values in found[1:]:
        assert loss == pytest.approx(found[0][0], abs=1e-5)
        assert_same(found[0][1], values)


def test_a_part_that_is_embedded_twice_has_the_same_dropout(tmp_path, monkeypatch):
    model = attach_embedder(tiny_model("bert", "none").train(), Embedder(("mean",)))
    dataset = similarity_rows(tmp_path, n=6)
    examples = examples_of(dataset, encode_for(model, tokenizer_for(), dataset), adapt(model))
    outputs = []
    real = loop.logits_of

    def watched(*given, **options):
        outputs.append(real(*given, **options))
        return outputs[-1]

    monkeypatch.setattr(loop, "logits_of", watched)
    stepping(model, examples, 3).gradients(0, np.arange(6))
    first, second, first_again, second_again = (output.detach() for output in outputs)
    assert torch.equal(first, first_again)
    assert torch.equal(second, second_again)
    stepping(model, examples, 3).gradients(1, np.arange(6))
    assert not torch.allclose(outputs[4].detach(), first)  # another step, another dropout


def test_a_perfect_order_costs_nothing_and_a_wrong_one_its_distance():
    angles = torch.tensor([0.0, 0.6, 1.2])
    fixed = torch.tensor([[1.0, 0.0]] * 3)
    turned = torch.stack([angles.cos(), angles.sin()], 1)
    embeddings = torch.stack([fixed, turned])
    assert float(order_loss(embeddings, torch.tensor([3.0, 2.0, 1.0]))) < 0.05
    assert float(order_loss(embeddings, torch.tensor([2.0, 2.0, 2.0]))) == 0.0
    wrong = float(order_loss(embeddings, torch.tensor([1.0, 2.0, 3.0])))
    assert wrong == pytest.approx(20 * (1 - math.cos(1.2)), abs=0.1)
