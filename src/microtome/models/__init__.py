"""Models: what a MODEL argument means, loading, saving, provenance, cost.

Names are imported when they are first used, so that ``list models`` and a wrong argument need
neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from microtome.models.source import Source, embedded_names, fetched, resolve

if TYPE_CHECKING:
    from microtome.models.contents import content_hash
    from microtome.models.costs import Cost, cost
    from microtome.models.heads import job_of
    from microtome.models.listing import known_checkpoints, list_models
    from microtome.models.loading import load, nonfinite_tensors
    from microtome.models.provenance import Provenance, attach, provenance_of
    from microtome.models.saving import save
    from microtome.models.tokenizers import load_tokenizer, tokenizer_of

_HOMES = {
    "Cost": "costs",
    "Provenance": "provenance",
    "attach": "provenance",
    "content_hash": "contents",
    "cost": "costs",
    "job_of": "heads",
    "known_checkpoints": "listing",
    "list_models": "listing",
    "load": "loading",
    "load_tokenizer": "tokenizers",
    "nonfinite_tensors": "loading",
    "provenance_of": "provenance",
    "save": "saving",
    "tokenizer_of": "tokenizers",
}

__all__ = [
    "Cost",
    "Provenance",
    "Source",
    "attach",
    "content_hash",
    "cost",
    "embedded_names",
    "fetched",
    "job_of",
    "known_checkpoints",
    "list_models",
    "load",
    "load_tokenizer",
    "nonfinite_tensors",
    "provenance_of",
    "resolve",
    "save",
    "tokenizer_of",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
