"""Microtome."""
