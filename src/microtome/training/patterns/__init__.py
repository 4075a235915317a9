"""Train a classifier of attention patterns from labelled maps, and say how good it is."""

from __future__ import annotations

from microtome.training.patterns.training import train_folder

__all__ = ["train_folder"]
