"""Small masked batches for tests of pre-training."""

from __future__ import annotations

import numpy as np

from microtome.training.mlm.rows import Tokens, make_batch
from support.tiny import VOCABULARY

TOKENS = Tokens(cls=2, sep=3, mask=4, first_ordinary=5, n_vocabulary=VOCABULARY, full_stop=7)


def rows_of(n: int, length: int) -> np.ndarray:
    """Rows of random tokens between [CLS] and [SEP]."""
    rows = np.random.default_rng(0).integers(5, VOCABULARY, (n, length))
    rows[:, 0], rows[:, -1] = TOKENS.cls, TOKENS.sep
    return rows


def batch_of(n: int = 3, length: int = 12):
    """The same rows, masked."""
    return make_batch(
        rows_of(n, length), rate=0.3, pairs=0.5, tokens=TOKENS, random=np.random.default_rng(1)
    )
