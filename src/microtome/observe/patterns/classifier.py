"""A trained network with what is known of its mistakes; one file, weights and figures together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from microtome.errors import DataError
from microtome.observe.patterns.network import BLOCK, PATTERNS, PatternNetwork, planes_of

SHIPPED = Path(__file__).resolve().parents[2] / "embedded" / "patterns" / "classifier.safetensors"
WEIGHTS_AT_ONCE = 2**18  # of attention: their planes and inner states take about 20 MB


@dataclass(frozen=True, eq=False)
class PatternClassifier:
    """Gives each map a class. ``confusion`` (true, given) counts held-out maps."""

    network: PatternNetwork
    confusion: NDArray[np.int64]  # (5, 5)
    figures: Mapping[str, Any] = field(default_factory=dict)

    @torch.inference_mode()
    def classify(self, maps: Tensor, second: Tensor | None = None) -> Tensor:
        """The class of each map (n, L, L), as a place in PATTERNS; (n,).

        ``second`` (n, L) marks the tokens of a second text. A map of one text is never ``block``.
        """
        at_once = max(1, WEIGHTS_AT_ONCE // maps.shape[-1] ** 2)
        parts = []
        for start in range(0, len(maps), at_once):
            own = None if second is None else second[start : start + at_once]
            scores = self.network(planes_of(maps[start : start + at_once].float(), own))
            single = torch.ones(len(scores), dtype=torch.bool) if own is None else ~own.any(-1)
            scores[single, BLOCK] = -torch.inf
            parts.append(scores.argmax(-1))
        return torch.cat(parts)


def load_classifier(path: str | Path = SHIPPED) -> PatternClassifier:
    """The shipped classifier, or one's own."""
    try:
        with safe_open(str(path), framework="pt") as stored:
            told = stored.metadata() or {}
            weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} is no classifier of patterns: {error}") from error
    network = PatternNetwork().eval()
    if json.loads(told.get("patterns", "[]")) != list(PATTERNS) or {
        name: tensor.shape for name, tensor in network.state_dict().items()
    } != {name: tensor.shape for name, tensor in weights.items()}:
        raise DataError(
            f"{path} holds other weights than a classifier of patterns",
            "train one: python tools/pattern_classifier.py train --maps FOLDER --out FILE",
        )
    network.load_state_dict(weights)
    confusion = np.array(json.loads(told["confusion"]), dtype=np.int64)
    return PatternClassifier(network, confusion, json.loads(told["figures"]))
