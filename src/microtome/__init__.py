"""Microtome cuts BERT-family encoders into layers, looks at each slice, and operates on it.

    from microtome import Disable, Extend, load, save

    model = load("minilm")
    edited = (Extend(8) | Disable("2.5"))(model)   # model is as it was
    save(edited, "minilm-8")                       # loads with plain from_pretrained

The names below are the public surface; ``docs/api.md`` says what is promised about them. Importing
this package loads neither torch nor numpy: a name brings in what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from microtome.edits import (
    Disable,
    Duplicate,
    Edit,
    Edits,
    Extend,
    Keep,
    Order,
    Randomize,
    Reinit,
    Remove,
    Repeat,
    Unshare,
    Vocabulary,
    parse,
)
from microtome.errors import MicrotomeError
from microtome.values import Head

if TYPE_CHECKING:
    from microtome.families import adapt
    from microtome.models import cost, load, load_tokenizer, provenance_of, save, tokenizer_of
    from microtome.notebook import experiment
    from microtome.surgery import Certificate, Check, certify, certify_weights, operate
    from microtome.tasks import DataSpec

_HOMES = {
    "Certificate": "surgery",
    "Check": "surgery",
    "DataSpec": "tasks",
    "adapt": "families",
    "certify": "surgery",
    "certify_weights": "surgery",
    "cost": "models",
    "experiment": "notebook",
    "load": "models",
    "load_tokenizer": "models",
    "operate": "surgery",
    "provenance_of": "models",
    "save": "models",
    "tokenizer_of": "models",
}

__all__ = [
    "Certificate",
    "Check",
    "DataSpec",
    "Disable",
    "Duplicate",
    "Edit",
    "Edits",
    "Extend",
    "Head",
    "Keep",
    "MicrotomeError",
    "Order",
    "Randomize",
    "Reinit",
    "Remove",
    "Repeat",
    "Unshare",
    "Vocabulary",
    "adapt",
    "certify",
    "certify_weights",
    "cost",
    "experiment",
    "load",
    "load_tokenizer",
    "operate",
    "parse",
    "provenance_of",
    "save",
    "tokenizer_of",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
