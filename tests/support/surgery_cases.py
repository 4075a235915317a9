"""The edits that the contract suite runs over every family, and what they are tried on."""

from __future__ import annotations

import hashlib
import re

import torch

from microtome.edits import parse
from microtome.families import adapt
from microtome.surgery import apply
from support.tiny import FAMILY_TYPES, tiny_batch, tiny_model

# What the design promises for each family, written out by hand: three layers, four heads.
FREE = (
    "bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "mpnet", "deberta-v2",
    "nomic_bert", "gte", "jina_embeddings_v3", "eurobert",
)  # fmt: skip
UNIFORM = tuple(kind for kind in FAMILY_TYPES if kind != "mpnet")  # disable(i.j) is 1/L
DEPTH_EDITS = {
    "extend(4)": (0, 0, 1, 2),
    "duplicate(1)": (0, 1, 1, 2),
    "duplicate(1, times=3)": (0, 1, 1, 1, 1, 2),
    "duplicate(last=2)": (0, 1, 1, 2, 2),
    "repeat(1-2)": (0, 1, 2, 1, 2),
    "remove(2)": (0, 1),
    "keep(0-1)": (0, 1),
    "order(0, 2, 1)": (0, 2, 1),
}
WEIGHT_EDITS = (
    "reinit(top=1, seed=0)",
    "reinit(1, seed=3, std=0.5, parts=all)",
    "randomize(seed=1)",
    "disable(1.2)",
    "disable(2.*, how=zero)",
    "disable(*.3)",
)
IDENTITIES = ("extend(3)", "keep(0-2)", "order(0, 1, 2)", "duplicate(1) | remove(2)")


def disable_text(kind: str, text: str) -> str:
    """``text`` with its disabling made possible: no weights make a head of MPNet uniform."""
    if kind in UNIFORM or "how=" in text:
        return text
    return re.sub(r"disable\((.*?)\)", r"disable(\1, how=zero)", text)


def fingerprint(model) -> str:
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


@torch.no_grad()
def logits(model, kind):
    return model(**tiny_batch(kind))[0]


def ready(kind):
    """A model on which every BERT edit is allowed: ALBERT unshared, with its layers made unlike."""
    model = tiny_model(kind)
    if kind == "albert":
        model = apply(parse("unshare()"), model)
        for index, layer in enumerate(adapt(model).layers):
            for parameter in layer.parameters():
                parameter.data.add_(
                    0.05
                    * (index + 1)
                    * torch.sin(torch.arange(parameter.numel())).view_as(parameter)
                )
    return model
