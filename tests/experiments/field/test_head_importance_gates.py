"""Gradients at gates against finite differences: plain transformers, every family, every loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from microtome.edits import Unshare
from microtome.experiments.field.head_importance.gates import _gradients, gate_gradients
from microtome.experiments.field.head_importance.measure import rollout
from microtome.families import adapt
from microtome.families.embedder import Embedder, attach_embedder
from microtome.observe import predict
from microtome.observe.evaluation import encode_to_score
from microtome.tasks import DataSpec, open_data
from microtome.training.finetune.examples import examples_of
from support.tiny import FAMILY_TYPES, N_HEADS, N_LAYERS, tiny_model
from support.training_rows import (
    multilabel_rows,
    rows,
    similarity_rows,
    tagged_rows,
    tokenizer_for,
)

# Transformers rounds parts of these two to single precision, so a tiny step would be noise.
ROUNDED = ("modernbert", "eurobert")
# The head's outputs aren't in the order of the data's labels.
NAMES = {"id2label": {0: "yes", 1: "no"}, "label2id": {"yes": 0, "no": 1}}


def scaled_head(model, layer, head, factor):
    """In place: what a head contributes, times ``factor``."""
    family = adapt(model)
    weight = family.part("attention_output").weight(family.layers[layer])
    weight[:, family.head_rows(head)] *= factor


def hooked_layer(model, layer, gate):
    def scale(module, given, out):
        states = given[0] if given else None
        reached = out[0] if isinstance(out, tuple) else out
        scaled = states + gate * (reached - states)
        return (scaled, *out[1:]) if isinstance(out, tuple) else scaled

    return adapt(model).layers[layer].register_forward_hook(scale)


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_every_texts_gradients_equal_finite_differences_of_transformers(family, tmp_path):
    model = tiny_model(family, "classification", **NAMES).double()
    if family == "albert":
        model = Unshare()(model)
    dataset, tokenizer = rows(tmp_path, "single", n=4), tokenizer_for(family)
    encoded = encode_to_score(model, tokenizer, dataset)
    heads, layers = gate_gradients(model, dataset, encoded)
    assert heads.shape == (4, N_LAYERS, N_HEADS)
    assert layers.shape == (4, N_LAYERS)
    step = 1e-3 if family in ROUNDED else 1e-6  # small: DistilBERT's head has a kink at 0
    gold = [NAMES["label2id"][("no", "yes")[row.label]] for row in dataset.rows()]

    @torch.no_grad()
    def losses():
        found = []
        for text in range(4):
            ids = encoded.ids[encoded.offsets[text] : encoded.offsets[text + 1]]
            logits = model(input_ids=torch.from_numpy(np.array(ids, dtype=np.int64))[None]).logits
            found.append(float(functional.cross_entropy(logits, torch.tensor([gold[text]]))))
        return np.array(found)

    for layer in range(N_LAYERS):
        ends = []
        for gate in (1 + step, 1 - step):
            hook = hooked_layer(model, layer, gate)
            ends.append(losses())
            hook.remove()
        slope = abs(ends[0] - ends[1]) / (2 * step)
        assert layers[:, layer] == pytest.approx(
            slope, rel=5e-3, abs=2e-4 if family in ROUNDED else 1e-6
        )
        for head in (0, N_HEADS - 1):
            scaled_head(model, layer, head, 1 + step)
            up = losses()
            scaled_head(model, layer, head, (1 - step) / (1 + step))
            slope = abs(up - losses()) / (2 * step)
            scaled_head(model, layer, head, 1 / (1 - step))
            assert heads[:, layer, head] == pytest.approx(
                slope, rel=5e-3, abs=2e-4 if family in ROUNDED else 1e-6
            )
    assert heads.max() > 1e-3


def plain_text(folder):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "plain.txt"
    file.write_text("the cat sees a big red dog\nshe never sleeps in the old house\n" * 3)
    return open_data(DataSpec(path=file))


def cosines(outputs):
    a, b = functional.normalize(outputs, dim=-1).view(-1, 2, outputs.shape[-1]).unbind(1)
    return 20 * (a * b).sum(-1)


def order_loss(outputs, gold):
    """log(1 + Σ exp(20 (cos i − cos j))) over pairs with gold i < gold j, written as loops."""
    angle, terms = cosines(outputs), [torch.zeros(())]
    for i, lower in enumerate(gold):
        terms += [angle[i] - angle[j] for j, higher in enumerate(gold) if lower < higher]
    return torch.logsumexp(torch.stack(terms), 0)


def case(kind, folder):
    """A model, rows, and the loss of its answers to all of them, written out."""
    if kind == "regression":
        model, dataset = tiny_model("bert", "classification", num_labels=1), rows(folder, kind, n=6)
        return model, dataset, lambda out, gold, texts: ((out[:, 0] - gold) ** 2).sum()
    if kind == "multilabel":
        labels = {"num_labels": 3, "problem_type": "multi_label_classification"}
        model, dataset = (
            tiny_model("bert", "classification", **labels),
            multilabel_rows(folder, n=6),
        )
        return (
            model,
            dataset,
            lambda out, gold, texts: (
                -(
                    gold * functional.logsigmoid(out) + (1 - gold) * functional.logsigmoid(-out)
                ).sum()
            ),
        )
    if kind == "tokens":
        dataset = tagged_rows(folder, n=6)
        names = dict(enumerate(dataset.task.labels))
        extra = {"id2label": names, "label2id": {name: i for i, name in names.items()}}
        model = tiny_model("bert", "token-classification", **extra)
        return (
            model,
            dataset,
            lambda out, gold, texts: (
                -sum(out[t].log_softmax(-1)[tag] for t, tag in enumerate(gold.tolist()) if tag >= 0)
            ),
        )
    if kind == "spans":
        model, dataset = tiny_model("bert", "question-answering"), rows(folder, kind, n=6)
        return (
            model,
            dataset,
            lambda out, gold, texts: (
                -sum(
                    out[texts.offsets[w] : texts.offsets[w + 1], side].log_softmax(0)[gold[w, side]]
                    / 2
                    for w in range(len(gold))
                    for side in (0, 1)
                )
            ),
        )
    if kind == "text":
        return tiny_model("bert"), plain_text(folder), lambda out, gold, texts: out[:, 2].sum()
    model = attach_embedder(tiny_model("bert", "none"), Embedder(("mean",)))
    return model, similarity_rows(folder, n=8), lambda out, gold, texts: order_loss(out, gold)


@pytest.mark.parametrize(
    "kind", ["regression", "multilabel", "tokens", "spans", "text", "similarity"]
)
def test_the_gradients_of_every_loss_add_up_to_the_slope_of_the_loss_written_out(kind, tmp_path):
    model, dataset, loss = case(kind, tmp_path)
    encoded = encode_to_score(model, tokenizer_for("bert"), dataset)
    gold = None if kind == "text" else examples_of(dataset, encoded, adapt(model)).targets
    found = [parts for _, parts in _gradients(adapt(model), dataset, encoded)]
    heads, layers = (sum(part.sum(0) for part in parts) for parts in zip(*found, strict=True))

    def total():
        return float(loss(torch.from_numpy(predict(model, encoded)).double(), gold, encoded))

    step = 1e-2
    for layer, head in ((0, 1), (1, 2), (2, 3)):
        scaled_head(model, layer, head, 1 + step)
        up = total()
        scaled_head(model, layer, head, (1 - step) / (1 + step))
        slope = (up - total()) / (2 * step)
        scaled_head(model, layer, head, 1 / (1 - step))
        assert float(heads[layer, head]) == pytest.approx(slope, rel=0.02, abs=5e-3)
    assert layers.abs().min() > 0


def test_rollout_is_the_product_of_averaged_maps():
    rng = np.random.default_rng(0)
    maps = rng.dirichlet(np.ones(5), size=(3, 2, 5))  # (layers, heads, L, L)
    flow = np.eye(5)
    for layer in range(3):
        mixed = 0.5 * (maps[layer, 0] + maps[layer, 1]) / 2 + 0.5 * np.eye(5)
        flow = mixed @ flow
    found = rollout(maps.astype(np.float32))
    assert found == pytest.approx(flow, abs=1e-6)
    assert found.sum(1) == pytest.approx(np.ones(5), abs=1e-6)
