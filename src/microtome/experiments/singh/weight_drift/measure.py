"""The distance that each stored projection went from its base."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import model_place
from microtome.experiments.singh.weight_drift.plan import BASE
from microtome.experiments.singh.weight_drift.stored_parts import StoredPart, stored_parts
from microtome.families import adapt
from microtome.models.building import outline
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
