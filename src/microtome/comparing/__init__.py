"""Several checkpoints on the same rows: one resumable run, a table, a page."""
