"""The packed training pass is plain transformers' own: the same loss, the same gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from microtome.families import adapt
from microtome.observe.evaluation import encode_for
from microtome.training.finetune.examples import examples_of
from microtome.training.finetune.forward import logits_of
from microtome.training.finetune.losses import summed_loss
from support.tiny import ANSWERING, FAMILY_TYPES, tiny_model
from support.training_rows import rows, tokenizer_for

NO_DROPOUT = {
    "distilbert": {"dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0}
    | {"qa_dropout": 0.0},
    "modernbert": {},
    "eurobert": {},
}
IN_OTHER_WORDS = tuple(NO_DROPOUT)  # families whose configs call dropout otherwise than BERT's
BERT_NAMES = {
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "classifier_dropout": 0.0,
}
HEADS = {"regression": {"num_labels": 1, "problem_type": "regression"}, "spans": {}}
STD = 0.15  # gradients of order 1: a tolerance of 1e-5 is one of relative error


def model_for(family: str, kind: str):
    names = dict(NO_DROPOUT.get(family, BERT_NAMES))
    if family == "albert":
        names["classifier_dropout_prob"] = names.pop("classifier_dropout")
    head = "question-answering" if kind == "spans" else "classification"
    labels = HEADS.get(kind, {"num_labels": 2})
    return tiny_model(family, head, std=STD, **names, **labels).train()


def gradients(model) -> dict[str, torch.Tensor]:
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def plain_loss(model, examples, uses_segments: bool) -> torch.Tensor:
    """transformers' loss, text by text: in a padded batch its span softmax sees the padding."""
    total = torch.zeros(())
    for index in range(len(examples)):
        part = slice(examples.texts.offsets[index], examples.texts.offsets[index + 1])
        batch = {"input_ids": torch.from_numpy(examples.texts.ids[part].astype(np.int64))[None]}
        if uses_segments:
            segments = examples.texts.segments[part].astype(np.int64)
            batch["token_type_ids"] = torch.from_numpy(segments)[None]
        target = examples.targets[index][None]
        if examples.kind == "spans":
            batch |= {"start_positions": target[:, 0], "end_positions": target[:, 1]}
        else:
            batch["labels"] = target
        total = total + model(**batch).loss
    return total / len(examples)


CASES = [
    (family_type, kind)
    for family_type in FAMILY_TYPES
    for kind in ("single", "pair", "regression", "spans")
    if kind != "spans" or family_type in ANSWERING
]


@pytest.mark.parametrize(("family_type", "kind"), CASES)
def test_loss_and_gradients_are_plain_transformers(family_type, kind, tmp_path):
    model = model_for(family_type, kind)
    family = adapt(model)
    dataset = rows(tmp_path, kind, n=12)
    encoded = encode_for(model, tokenizer_for(family_type), dataset, max_length=32, stride=4)
    examples = examples_of(dataset, encoded, family)
    assert len(set(examples.texts.lengths.tolist())) > 3

    chunk, targets = examples.batch(np.arange(len(examples)))
    ours = summed_loss(examples.kind, logits_of(family, chunk), targets, chunk) / len(examples)
    ours.backward()
    our_gradients = gradients(model)
    theirs = plain_loss(model, examples, family.uses_segments)
    theirs.backward()
    their_gradients = gradients(model)

    assert abs(float(ours.detach()) - float(theirs.detach())) < 1e-5
    assert our_gradients.keys() == their_gradients.keys()
    largest = max(float(value.abs().max()) for value in their_gradients.values())
    assert largest > 1e-2  # a thousand times the tolerance
    for name, value in their_gradients.items():
        assert float((our_gradients[name] - value).abs().max()) < 1e-5 * max(1.0, largest), name


def test_a_padded_batch_gives_the_same_loss_for_classifiers(tmp_path):
    model = model_for("bert", "pair")
    family = adapt(model)
    dataset = rows(tmp_path, "pair", n=12)
    encoded = encode_for(model, tokenizer_for(), dataset)
    examples = examples_of(dataset, encoded, family)
    texts = [encoded.row(index) for index in range(len(encoded))]
    longest = max(len(text) for text in texts)
    ids = torch.tensor([[*text.tolist(), *[0] * (longest - len(text))] for text in texts])
    segments = torch.zeros_like(ids)
    for index, text in enumerate(texts):
        own = encoded.segments[encoded.offsets[index] : encoded.offsets[index + 1]]
        segments[index, : len(text)] = torch.from_numpy(own.astype(np.int64))
    theirs = model(
        input_ids=ids, attention_mask=(ids > 0).long(), token_type_ids=segments,
        labels=examples.targets,
    ).loss  # fmt: skip
    chunk, targets = examples.batch(np.arange(len(examples)))
    ours = summed_loss("classification", logits_of(family, chunk), targets, chunk) / len(examples)
    assert abs(float(ours.detach()) - float(theirs.detach())) < 1e-5


@pytest.mark.parametrize("family_type", FAMILY_TYPES)
def test_dropout_is_on_in_training_in_every_layer(family_type, tmp_path):
    dropped = {"attention_dropout": 0.5} if family_type in IN_OTHER_WORDS else {
        "attention_probs_dropout_prob": 0.5
    }  # fmt: skip
    names = dict(NO_DROPOUT.get(family_type, BERT_NAMES)) | dropped
    if family_type == "albert":
        names["classifier_dropout_prob"] = names.pop("classifier_dropout")
    model = tiny_model(family_type, "classification", num_labels=2, **names)
    family = adapt(model)
    dataset = rows(tmp_path, "single", n=6)
    encoded = encode_for(model, tokenizer_for(family_type), dataset)
    chunk, _ = examples_of(dataset, encoded, family).batch(np.arange(6))
    assert torch.equal(logits_of(family, chunk), logits_of(family, chunk))
    model.train()
    assert not torch.allclose(logits_of(family, chunk), logits_of(family, chunk))
