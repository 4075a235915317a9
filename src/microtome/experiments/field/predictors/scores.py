"""Every cheap score of every layer and head, as tables; the lowest is what it would cut first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.field.head_importance.measure import HEADS, LAYERS
from microtome.experiments.kit.stored_predictions import stored_arrays
from microtome.runs import Context

FloatArray = NDArray[np.float64]
Place = tuple[int, int | None]  # a layer and a head of it; None: the whole layer
RANDOM, TOP = "random", "top first"


@dataclass(frozen=True, eq=False)
class Score:
    """A cheap score of some layers or heads, and the seconds that it took."""

    unit: str
    name: str
    values: Mapping[Place, float]
    seconds: float


def all_scores(
    request: Mapping[str, Any], context: Context, texts: NDArray[np.bool_]
) -> list[Score]:
    """All scores of layers and heads; those that look at labels look at ``texts`` alone."""
    needs = {name: context.needs[hash_] for name, hash_ in request["trials"].items()}
    weights = needs["weights"]
    assert weights.arrays is not None
    arrays = stored_arrays(weights.arrays)
    n_layers, n_heads = arrays["head_norms"].shape
    rng = np.random.default_rng(0)
    scores = [
        *_of_states(needs["states"].rows, needs["states"].seconds),
        _layers("weight norm", arrays["layer_norms"], weights.seconds),
        _layers(TOP, np.arange(n_layers)[::-1], 0.0),
        _layers(RANDOM, rng.permutation(n_layers), 0.0),
        # A head whose attention is near uniform loses least when it becomes uniform.
        _heads("attention focus", -arrays["entropy"], weights.seconds),
        _heads("weight norm", arrays["head_norms"], weights.seconds),
        _heads(RANDOM, rng.permutation(n_layers * n_heads).reshape(n_layers, n_heads), 0.0),
    ]
    if "gradients" in needs:
        gradients = needs["gradients"]
        assert gradients.arrays is not None
        found = stored_arrays(gradients.arrays)
        by_layer, by_head = (found[name][texts].mean(0) for name in (LAYERS, HEADS))
        scores.append(_layers("gradient", by_layer, gradients.seconds))
        scores.append(_heads("gradient", by_head, gradients.seconds))
    return scores


def _of_states(rows: Sequence[Mapping[str, Any]], seconds: float) -> list[Score]:
    """What layer-similarity says of every layer; one pass gives all three."""
    influence = {row["layer"]: row["value"] for row in rows if row["measure"] == "influence"}
    steps = {
        measure: {
            row["depth"]: row["value"]
            for row in rows
            if row["measure"] == measure and row["other_depth"] == row["depth"] + 1
        }
        for measure in ("angle", "cka")
    }
    apart = {layer: 1 - (1.0 if cka is None else cka) for layer, cka in steps["cka"].items()}
    named = {"block influence": influence, "angle": steps["angle"], "1 − CKA": apart}
    return [
        Score("layer", name, {(layer, None): value for layer, value in values.items()}, seconds)
        for name, values in named.items()
    ]


def _layers(name: str, values: NDArray[Any], seconds: float) -> Score:
    by_place: dict[Place, float] = {(i, None): float(value) for i, value in enumerate(values)}
    return Score("layer", name, by_place, seconds)


def _heads(name: str, values: NDArray[Any], seconds: float) -> Score:
    by_place: dict[Place, float] = {
        (place[0], place[1]): float(values[place]) for place in np.ndindex(values.shape)
    }
    return Score("head", name, by_place, seconds)
