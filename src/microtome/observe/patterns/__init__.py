"""Patterns of attention maps: the five classes, a small network, counts over a stream, shares."""

from __future__ import annotations

from microtome.observe.patterns.classifier import SHIPPED, PatternClassifier, load_classifier
from microtome.observe.patterns.counting import PatternCounts, second_texts, token_kinds
from microtome.observe.patterns.network import PATTERNS, PatternNetwork, planes_of

__all__ = [
    "PATTERNS",
    "SHIPPED",
    "PatternClassifier",
    "PatternCounts",
    "PatternNetwork",
    "load_classifier",
    "planes_of",
    "second_texts",
    "token_kinds",
]
