"""Rows of a trim that were judged, made of answers or by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from microtome.experiments.field.trim.judging import Halves

N_LAYERS = 6


def judged_rows(
    base: np.ndarray, cuts: Mapping[str, tuple[int, np.ndarray]], constant: float = 0.5
) -> list[dict[str, Any]]:
    """What a trim says of a base and its cuts (layers, right or wrong for every row)."""
    halves = Halves.of(len(base), None)
    about = {"stage": "judged", "one_answer": False, "constant_value": constant}
    # All that is asked of the base is what it scores.
    scores = {"value": base[halves.scoring].mean(), "pick_value": base[halves.picking].mean()}
    whole = {**about, "edit": "", "layers": N_LAYERS, "healed": False, "speed": 1.0, **scores}
    return [
        whole,
        *(
            {
                **about, "edit": edit, "layers": layers, "healed": True,
                "speed": N_LAYERS / layers, **halves.columns(right, base, "accuracy"),
            }
            for edit, (layers, right) in cuts.items()
        ),
    ]  # fmt: skip


def row(edit: str, layers: int, **changes: object) -> dict[str, Any]:
    """A judged cut that loses nothing for sure, or the base where ``edit`` is empty."""
    made = {
        "stage": "judged", "edit": edit, "layers": layers, "healed": bool(edit), "steps": 9,
        "metric": "accuracy", "primary": "accuracy", "value": 0.9, "value_low": 0.88,
        "value_high": 0.92, "delta": 0.0, "low": -0.004, "high": 0.004, "n": 1000,
        "pick_value": 0.9, "pick_delta": 0.0, "pick_low": -0.005, "parameters": 100 * layers,
        "bytes": 400 * layers, "speed": N_LAYERS / layers, "latency_ms": 1.0 * layers,
        "batch_ms": 9.0 * layers, "on_frontier": True, "one_answer": False,
        "constant_value": 0.5, "unit": "rows", "task": "own",
    }  # fmt: skip
    return made | changes
