"""Trimming: the cuts of a model, healed, scored and priced."""
