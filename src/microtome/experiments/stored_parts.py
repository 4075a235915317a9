"""The projections of a stored checkpoint, read one tensor at a time; no model is built in memory.

Which tensor holds which part is the families' knowledge: a skeleton without numbers is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import ModelError, RequestError
from microtome.models.checkpoint import Checkpoint, look_at
from microtome.models.configuration import size
from microtome.models.weights import StoredTensor

if TYPE_CHECKING:
    from torch import Tensor

    from microtome.families.seam import Family

SHOWN = 3
_IN_LAYER = re.compile(r"(?:^|\.)(layers?\.\d+\..*)|(_layer_groups)\.\d+(\..*)")


@dataclass(frozen=True)
class StoredPart:
    """One projection of one layer: the tensor that holds it, and its rows there."""

    layer: int
    part: str
    tensor: StoredTensor
    rows: tuple[int, int] | None

    def read(self) -> Tensor:
        """Its weight (out, in), in double precision."""
        from safetensors import safe_open

        with safe_open(self.tensor.file, framework="pt") as stored:
            if self.rows is None:
                values: Tensor = stored.get_tensor(self.tensor.name)
            else:
                values = stored.get_slice(self.tensor.name)[self.rows[0] : self.rows[1]]
        return values.double()


def stored_parts(folder: Path, names: tuple[str, ...]) -> Iterator[StoredPart]:
    """The parts called ``names`` of every layer, by layer."""
    checkpoint, family = looked_at(folder), structure(folder)
    for layer in range(family.shape.n_layers):
        for name in names:
            part = family.part(name)
            wanted = f"{family.layer_prefix(layer)}.{part.path}.weight"
            yield StoredPart(layer, name, _tensor(checkpoint, wanted), part.rows)


def sharing(folder: Path) -> tuple[int, ...]:
    """For every layer, the first layer with the same weights."""
    return structure(folder).sharing


def structure(folder: Path) -> Family:
    """The encoder without numbers."""
    from microtome.experiments.layer_rules import outline
    from microtome.families import adapt

    return adapt(outline(folder))


def looked_at(folder: Path) -> Checkpoint:
    """The checkpoint in a folder; the hub's cache has links into a folder beside."""
    return look_at(folder, links_into=Path(folder.resolve().anchor))


def _tensor(checkpoint: Checkpoint, wanted: str) -> StoredTensor:
    """The tensor of that name; under a head the encoder has a name in front."""
    found = [
        tensor
        for tensor in checkpoint.tensors
        if tensor.name == wanted or tensor.name.endswith(f".{wanted}")
    ]
    if len(found) != 1:
        raise ModelError(
            f"{checkpoint.folder} holds {len(found)} tensors called {wanted}, one wanted",
            "save the checkpoint again with save_pretrained",
        )
    return found[0]


def check_same_shape(model: str, folder: Path, base: str, base_folder: Path) -> None:
    """Refuse two checkpoints whose layers aren't built alike, naming the tensors."""
    ours, theirs = looked_at(folder), looked_at(base_folder)
    if ours.facts.name != theirs.facts.name:
        raise RequestError(
            f"--base {base} is of the family {theirs.facts.name}, {model} of {ours.facts.name}",
            "drift is between a model and the one it was fine-tuned from",
        )
    counts = [size(one.config, one.facts.config, "layers") for one in (ours, theirs)]
    different = _differences(_shapes(ours), _shapes(theirs), model, base)
    if counts[0] != counts[1]:
        different.insert(0, f"layers {counts[0]} in {model} and {counts[1]} in {base}")
    if different:
        more = len(different) - SHOWN
        raise RequestError(
            f"--base {base} has another shape than {model}: {'; '.join(different[:SHOWN])}"
            f"{f'; and {more} more' if more > 0 else ''}",
            "drift is between a model and the one it was fine-tuned from",
        )


def _shapes(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    """The shapes within layers, by name from the layer on: what lies around may differ."""
    found = {}
    for tensor in checkpoint.tensors:
        if match := _IN_LAYER.search(tensor.name):
            # Groups of shared layers are alike, and may be as many as there are layers.
            found[match[1] or f"{match[2]}.*{match[3]}"] = tensor.shape
    return found


def _differences(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], model: str, base: str
) -> list[str]:
    return [
        f"{name} {_shape(ours.get(name))} in {model} and {_shape(theirs.get(name))} in {base}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def _shape(shape: tuple[int, ...] | None) -> str:
    return "isn't" if shape is None else "×".join(map(str, shape))
