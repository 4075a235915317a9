"""Duplication: models with more layers, or fewer, decoded and fine-tuned."""
