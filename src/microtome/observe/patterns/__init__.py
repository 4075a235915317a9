"""Patterns of attention maps: the five classes, a rule, a small network, counts over a stream."""
