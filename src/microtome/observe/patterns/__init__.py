"""Patterns of attention maps: the five classes, a rule, a small network, counts over a stream."""

from __future__ import annotations

from microtome.observe.patterns.classifier import (
    EMBEDDED,
    SHIPPED,
    PatternClassifier,
    load_classifier,
    save_classifier,
)
from microtome.observe.patterns.counting import PatternCounts, second_texts, token_kinds
from microtome.observe.patterns.maps import PATTERNS, Map, load_labels, load_maps, save_maps
from microtome.observe.patterns.network import PatternNetwork, planes_of

__all__ = [
    "EMBEDDED",
    "PATTERNS",
    "SHIPPED",
    "Map",
    "PatternClassifier",
    "PatternCounts",
    "PatternNetwork",
    "load_classifier",
    "load_labels",
    "load_maps",
    "planes_of",
    "save_classifier",
    "save_maps",
    "second_texts",
    "token_kinds",
]
