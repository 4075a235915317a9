"""Healing: a cut model learns to answer as its base does."""
