"""Whether two checkpoints are built alike, from their configs and weight headers; no torch here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from microtome.errors import RequestError
from microtome.models.checkpoint import Checkpoint, look_at_fetched
from microtome.models.configuration import size

MOST_NAMED = 3  # tensors that a message names
_IN_LAYER = re.compile(r"(?:^|\.)(layers?\.\d+\..*)|(_layer_groups)\.\d+(\..*)")

TensorShape = tuple[int, ...]


def check_same_layers(model: str, folder: Path, base: str, base_folder: Path) -> None:
    """Refuse two checkpoints whose layers aren't built alike, naming the tensors that differ.

    ``model`` and ``base`` are what the user called them.
    """
    ours, theirs = look_at_fetched(folder), look_at_fetched(base_folder)
    if ours.facts.name != theirs.facts.name:
        raise RequestError(
            f"--base {base} is of the family {theirs.facts.name}, {model} of {ours.facts.name}",
            "drift is between a model and the one it was fine-tuned from",
        )
    counts = [size(each.config, each.facts.config, "layers") for each in (ours, theirs)]
    different = _differences(_layer_shapes(ours), _layer_shapes(theirs), model, base)
    if counts[0] != counts[1]:
        different.insert(0, f"layers {counts[0]} in {model} and {counts[1]} in {base}")
    if different:
        more = len(different) - MOST_NAMED
        raise RequestError(
            f"--base {base} has another shape than {model}: {'; '.join(different[:MOST_NAMED])}"
            f"{f'; and {more} more' if more > 0 else ''}",
            "drift is between a model and the one it was fine-tuned from",
        )


def _layer_shapes(checkpoint: Checkpoint) -> dict[str, TensorShape]:
    """The shapes within layers, by name from the layer on: embeddings and heads may differ."""
    shapes = {}
    for tensor in checkpoint.tensors:
        if match := _IN_LAYER.search(tensor.name):
            # Groups of shared layers are alike, and may be as many as there are layers.
            shapes[match[1] or f"{match[2]}.*{match[3]}"] = tensor.shape
    return shapes


def _differences(
    ours: Mapping[str, TensorShape], theirs: Mapping[str, TensorShape], model: str, base: str
) -> list[str]:
    return [
        f"{name} {_shown(ours.get(name))} in {model} and {_shown(theirs.get(name))} in {base}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _shown(shape: TensorShape | None) -> str:
    return "is missing" if shape is None else "×".join(map(str, shape))
