"""Everything that changes weights by gradients: fine-tuning, probes, readouts, pre-training.

Names are imported when they are first used: a recipe needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from microtome.training.finetuned import Finetuned
    from microtome.training.finetuning import finetune
    from microtome.training.loop import Step, Training, train
    from microtome.training.probes import (
        Probed,
        ProbeData,
        collect,
        majority,
        probe,
        probe_depths,
        random_encoder,
    )
    from microtome.training.recipe import Recipe, recipe_for
    from microtome.training.seeds import Seeds
    from microtome.training.state import Epoch

_HOMES = {
    "Epoch": "state",
    "Finetuned": "finetuned",
    "ProbeData": "probes",
    "Probed": "probes",
    "Recipe": "recipe",
    "Seeds": "seeds",
    "Step": "loop",
    "Training": "loop",
    "collect": "probes",
    "finetune": "finetuning",
    "majority": "probes",
    "probe": "probes",
    "probe_depths": "probes",
    "random_encoder": "probes",
    "recipe_for": "recipe",
    "train": "loop",
}

__all__ = [
    "Epoch",
    "Finetuned",
    "ProbeData",
    "Probed",
    "Recipe",
    "Seeds",
    "Step",
    "Training",
    "collect",
    "finetune",
    "majority",
    "probe",
    "probe_depths",
    "random_encoder",
    "recipe_for",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
