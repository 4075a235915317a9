"""The distance that each stored projection went from its base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from microtome.errors import ModelError
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import model_place
from microtome.experiments.singh.weight_drift.plan import BASE
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models.building import outline
from microtome.models.checkpoint import Checkpoint, look_at_fetched
from microtome.models.weights import StoredTensor
from microtome.runs import Context, Result


def compare_weights(request: Mapping[str, Any], context: Context) -> Result:
    """The distance of every layer and part from the base, or from the subject's own weights."""
    tuned = model_place(context)
    base = Path(context.where.get(BASE, context.where[MODEL]))
    parts = tuple(request["parts"])
    first_alike = adapt(outline(tuned)).sharing  # for every layer, the first with its weights
    rows = [
        {**request["about"], "layer": new.layer, "part": new.part, **distances(old, new)}
        for old, new in zip(stored_parts(base, parts), stored_parts(tuned, parts), strict=True)
        if first_alike[new.layer] == new.layer  # a layer that others share counts once
    ]
    return Result(rows=rows)


def distances(old: StoredPart, new: StoredPart) -> dict[str, float | int | None]:
    """Three measures of one projection's change."""
    before, after = old.read(), new.read()
    distance, norm = float((after - before).norm()), float(before.norm())
    return {
        "distance": distance,
        "relative": distance / norm if norm else None,
        "per_parameter": distance / before.numel() ** 0.5,
        "norm": norm,
        "n_parameters": before.numel(),
    }


@dataclass(frozen=True)
class StoredRows:
    """A tensor of a file, or some of its rows."""

    tensor: StoredTensor
    rows: tuple[int, int] | None

    def read(self) -> Tensor:
        """Its values, in double precision."""
        with safe_open(self.tensor.file, framework="pt") as stored:
            if self.rows is None:
                values: Tensor = stored.get_tensor(self.tensor.name)
            else:
                values = stored.get_slice(self.tensor.name)[self.rows[0] : self.rows[1]]
        return values.double()


@dataclass(frozen=True)
class StoredPart:
    """One projection of one layer; a feed-forward's gate counts as more rows of its input."""

    layer: int
    part: str
    pieces: tuple[StoredRows, ...]

    def read(self) -> Tensor:
        """Its weight (out, in), in double precision."""
        return torch.cat([piece.read() for piece in self.pieces])


def stored_parts(folder: Path, names: tuple[str, ...]) -> Iterator[StoredPart]:
    """The parts called ``names`` of every layer, by layer."""
    checkpoint, family = look_at_fetched(folder), adapt(outline(folder))
    is_gated = any(part.name == "gate" for part in family.parts)
    for layer in range(family.shape.n_layers):
        for name in names:
            together = (name, "gate") if is_gated and name == "intermediate" else (name,)
            pieces = tuple(_piece(checkpoint, family, layer, part) for part in together)
            yield StoredPart(layer, name, pieces)


def _piece(checkpoint: Checkpoint, family: Family, layer: int, name: str) -> StoredRows:
    part = family.part(name)
    weight = f"{family.layer_prefix(layer)}.{part.path}.weight"
    found = _tensors(checkpoint, weight)
    if not found and name in family.published:
        template, place, count = family.published[name]
        weight = f"{template.format(layer)}.weight"
        found = _tensors(checkpoint, weight)
        if len(found) == 1:
            n_rows = found[0].shape[0] // count
            return StoredRows(found[0], (place * n_rows, (place + 1) * n_rows))
    if len(found) != 1:
        raise ModelError(
            f"{checkpoint.folder} must hold one tensor called {weight}, got {len(found)}",
            "save the checkpoint again with save_pretrained",
        )
    return StoredRows(found[0], part.rows)


def _tensors(checkpoint: Checkpoint, name: str) -> list[StoredTensor]:
    """The tensors of that name; in a model with a head, the encoder's prefix precedes it."""
    return [
        tensor
        for tensor in checkpoint.tensors
        if tensor.name == name or tensor.name.endswith(f".{name}")
    ]
