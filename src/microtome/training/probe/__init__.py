"""Frozen probing: classifiers on the states of every depth, trained on one cached pass."""

from __future__ import annotations

from microtome.training.probe.probes import (
    Probed,
    ProbeData,
    collect,
    majority,
    probe,
    probe_depths,
    random_encoder,
)

__all__ = [
    "ProbeData",
    "Probed",
    "collect",
    "majority",
    "probe",
    "probe_depths",
    "random_encoder",
]
