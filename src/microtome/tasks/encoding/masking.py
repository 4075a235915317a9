"""Tokens of every text hidden by [MASK], always the same ones: what a masked LM is scored on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import RequestError
from microtome.tasks.dataset import Dataset
from microtome.tasks.encoding.texts import Encoded

SHARE = 0.15  # of a text's ordinary tokens, as in BERT's pre-training; at least one
SHOWN = -1


@dataclass(frozen=True, eq=False)
class MaskedTexts(Encoded):
    """Encoded texts with [MASK] in some places."""

    targets: NDArray[np.int64]  # (T,), the token that is hidden; SHOWN where none is


def masked(encoded: Encoded, dataset: Dataset, tokenizer: Any) -> MaskedTexts:  # noqa: ANN401
    """Hide ``SHARE`` of every text's tokens, special and unknown ones left out.

    Which ones depends on the text alone: not on its place in the file, nor on the other texts. All
    are shown as [MASK], where pre-training shows some as they are.
    """
    if tokenizer.mask_token_id is None:
        raise RequestError(
            "expected a tokenizer with a mask token: a masked LM is scored on masked tokens"
        )
    ids = np.array(encoded.ids)
    targets = np.full(len(ids), SHOWN, dtype=np.int64)
    ordinary = ~(encoded.special | np.isin(ids, tokenizer.all_special_ids))
    for row, digest in enumerate(dataset.digests.tolist()):
        start, stop = encoded.offsets[row : row + 2]
        places = start + np.flatnonzero(ordinary[start:stop])
        if len(places):
            n_hidden = max(1, round(SHARE * len(places)))
            hidden = np.random.default_rng(digest).choice(places, n_hidden, replace=False)
            targets[hidden] = ids[hidden]
    ids[targets != SHOWN] = tokenizer.mask_token_id
    return MaskedTexts(
        ids, encoded.offsets, encoded.special, encoded.segments, encoded.n_truncated, targets
    )
