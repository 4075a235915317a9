"""Whose attention fine-tuning changes: the experiment ``attention-drift``."""
