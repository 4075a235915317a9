"""The projections of a stored checkpoint, read one tensor at a time; no model is built in memory.

Which tensor holds which part is the families' knowledge: a model without numbers is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from microtome.errors import ModelError
from microtome.families import adapt
from microtome.models.building import outline
from microtome.models.checkpoint import Checkpoint, look_at_fetched
from microtome.models.weights import StoredTensor


@dataclass(frozen=True)
class StoredPart:
    """One projection of one layer: the tensor that holds it, and its rows there."""

    layer: int
    part: str
    tensor: StoredTensor
    rows: tuple[int, int] | None

    def read(self) -> Tensor:
        """Its weight (out, in), in double precision."""
        with safe_open(self.tensor.file, framework="pt") as stored:
            if self.rows is None:
                values: Tensor = stored.get_tensor(self.tensor.name)
            else:
                values = stored.get_slice(self.tensor.name)[self.rows[0] : self.rows[1]]
        return values.double()


def stored_parts(folder: Path, names: tuple[str, ...]) -> Iterator[StoredPart]:
    """The parts called ``names`` of every layer, by layer."""
    checkpoint, family = look_at_fetched(folder), adapt(outline(folder))
    for layer in range(family.shape.n_layers):
        for name in names:
            part = family.part(name)
            weight = f"{family.layer_prefix(layer)}.{part.path}.weight"
            yield StoredPart(layer, name, _tensor(checkpoint, weight), part.rows)


def _tensor(checkpoint: Checkpoint, name: str) -> StoredTensor:
    """The tensor of that name; in a model with a head, the encoder's prefix precedes it."""
    tensors = [
        tensor
        for tensor in checkpoint.tensors
        if tensor.name == name or tensor.name.endswith(f".{name}")
    ]
    if len(tensors) != 1:
        raise ModelError(
            f"{checkpoint.folder} must hold one tensor called {name}, got {len(tensors)}",
            "save the checkpoint again with save_pretrained",
        )
    return tensors[0]
