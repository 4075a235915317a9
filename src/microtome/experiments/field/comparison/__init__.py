"""Several checkpoints on the same rows; run by ``microtome compare``, not by name."""
