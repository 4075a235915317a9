"""Output-layer decoding: read every depth with a readout, and count the tokens that come back.

Kao et al. feed an unmasked text and decode the state at every depth with the model's own MLM head.
One pass gives all depths; counts are kept by text, so that intervals can be drawn by text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families.seam import Family
from microtome.observe import forward
from microtome.observe.packing import TOKENS_IN_FLIGHT, Chunk, packed
from microtome.observe.products import FastProducts
from microtome.observe.readouts import Readout, readout_of
from microtome.observe.scanning import VocabularyScan, best_tokens, scanned_together
from microtome.observe.texts import Encoded, Texts, fitted
from microtome.observe.vocabulary import (
    FIRST,
    SPECIAL,
    TOKEN_CLASSES,
    Vocabulary,
    joined,
    token_classes,
)
from microtome.statistics import Interval, SumMetric, bootstrap
from microtome.statistics.weighted import ratio

Counts = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Decoding:
    """How many tokens of each text and class came back, at every depth.

    Classes are those of :data:`TOKEN_CLASSES`. The special ones are only decoded on request;
    otherwise they are counted in ``n_left_out``. ``depths`` are those that were read: 0 to N
    unless some were asked for.
    """

    readout: str
    right: Counts  # (depths, n, classes)
    total: Counts  # (n, classes)
    n_left_out: int
    n_truncated: int
    depths: tuple[int, ...]

    @property
    def n_depths(self) -> int:
        """N + 1, unless only some were read."""
        return len(self.right)

    @property
    def n_tokens(self) -> int:
        """Tokens that were decoded."""
        return int(self.total.sum())

    @property
    def n_first(self) -> int:
        """Tokens right after [CLS] that were decoded: one in every text that has one."""
        return int(self.total[:, FIRST].sum())

    def accuracy(self, token_class: str | None = None) -> NDArray[np.float64]:
        """The share that came back at every depth read; of one class, or of all tokens."""
        chosen = slice(None) if token_class is None else [TOKEN_CLASSES.index(token_class)]
        n_right = self.right[:, :, chosen].sum((1, 2))
        n_total = self.total[:, chosen].sum()
        return n_right / n_total if n_total else np.full(len(n_right), np.nan)

    def interval(self, depth: int, *, clusters: ArrayLike | None = None, seed: int = 0) -> Interval:
        """Token accuracy at ``depth`` with an interval over texts (or ``clusters`` of them)."""
        return _share(
            self.right[self.depths.index(depth)].sum(1), self.total.sum(1), clusters, seed
        )


@FastProducts()
@torch.inference_mode()
def decode(
    model: PreTrainedModel,
    texts: Encoded,
    vocabulary: Vocabulary,
    *,
    readout: Readout | str = "auto",
    graft: PreTrainedModel | None = None,
    special: bool = False,
    depths: Sequence[int] | None = None,
    tokens_in_flight: int = TOKENS_IN_FLIGHT,
    early_exit: bool = True,
    progress: Callable[[int, int], None] | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Decoding:
    """Decode every depth of ``model`` over ``texts``, or the ``depths`` asked for.

    Special tokens and [UNK] are left out unless ``special``. ``readout`` is a name or a
    :class:`Readout`; a control model is decoded with the readout of the model it controls.
    """
    family = forward.bound(model, device=device, dtype=dtype)
    own = fitted(texts, family.n_positions)
    chosen = readout if isinstance(readout, Readout) else readout_of(family, readout, graft=graft)
    _check_ids(own, min(chosen.n_tokens, len(vocabulary)))
    classes = token_classes(own, vocabulary)
    counted = np.ones(len(classes), bool) if special else classes != SPECIAL
    asked = _asked_depths(depths, family.shape.n_layers)
    tally = _Tally(own, classes, counted, asked)
    scan = VocabularyScan(chosen, early_exit=early_exit)
    done = 0
    for chunk in packed(own, tokens_in_flight=tokens_in_flight, device=family.model.device):
        _decode_chunk(family, chunk, scan, tally)
        done += len(chunk.texts)
        if progress is not None:
            progress(done, len(own))
    n_left_out = int((~counted).sum())
    return Decoding(chosen.name, tally.right, tally.total, n_left_out, own.n_truncated, asked)


def _asked_depths(depths: Sequence[int] | None, n_layers: int) -> tuple[int, ...]:
    asked = tuple(range(n_layers + 1)) if depths is None else tuple(sorted(set(depths)))
    if not asked or asked[0] < 0 or asked[-1] > n_layers:
        raise RequestError(f"expected depths from 0 to {n_layers}, got {list(asked)}")
    return asked


class _Tally:
    """Counts by depth, text and class."""

    def __init__(
        self,
        texts: Texts,
        classes: NDArray[np.uint8],
        counted: NDArray[np.bool_],
        depths: tuple[int, ...],
    ) -> None:
        self.depths = {depth: place for place, depth in enumerate(depths)}
        self.counted = counted
        self.n_cells = len(texts) * len(TOKEN_CLASSES)
        # The cell of every token in a flat (n, classes) table.
        self.cells = np.repeat(np.arange(len(texts), dtype=np.int32), texts.lengths)
        self.cells *= len(TOKEN_CLASSES)
        self.cells += classes
        self.right = np.zeros((len(depths), len(texts), len(TOKEN_CLASSES)), dtype=np.int32)
        self.total = self._table(np.flatnonzero(counted))

    def add(self, depth: int, tokens: NDArray[np.int64]) -> None:
        """These tokens of the input came back at ``depth``."""
        np.add.at(self.right[self.depths[depth]].reshape(-1), self.cells[tokens], 1)

    def _table(self, tokens: NDArray[np.int64]) -> Counts:
        counts = np.bincount(self.cells[tokens], minlength=self.n_cells)
        return counts.reshape(-1, len(TOKEN_CLASSES)).astype(np.int32)


def _decode_chunk(family: Family, chunk: Chunk, scan: VocabularyScan, tally: _Tally) -> None:
    """One chunk; only the counted tokens are read, in the order of their ids.

    A depth by itself has too few rows for fast products, so several are scanned together.
    """
    rows = np.flatnonzero(tally.counted[chunk.tokens])
    if len(rows) == 0:
        return
    ids = chunk.ids.cpu().numpy()
    rows = rows[np.argsort(ids[rows], kind="stable")]
    taken = torch.from_numpy(rows).to(chunk.ids.device)
    sorted_ids = chunk.ids[taken]
    read = (
        (depth, states[taken])
        for depth, states in enumerate(forward.depths(family, chunk))
        if depth in tally.depths
    )
    for size in scanned_together(len(tally.depths), len(rows)):
        depths, states = zip(*islice(read, size), strict=True)
        right = scan.right_by_depth(states, sorted_ids).cpu().numpy()
        for depth, own in zip(depths, right, strict=True):
            tally.add(depth, chunk.tokens[rows[own]])


@FastProducts()
@torch.inference_mode()
def decoded_ids(
    model: PreTrainedModel,
    ids: Sequence[int],
    *,
    readout: Readout | str = "auto",
    graft: PreTrainedModel | None = None,
    segments: Sequence[int] | None = None,
) -> list[list[int]]:
    """The best token at every position of one text, special ones too, for every depth."""
    family = forward.bound(model)
    chosen = readout if isinstance(readout, Readout) else readout_of(family, readout, graft=graft)
    texts = fitted(
        Texts.of([ids], segments=None if segments is None else [segments]), family.n_positions
    )
    chunk = next(packed(texts, tokens_in_flight=len(ids), device=family.model.device))
    # All depths together: the vocabulary is wide, and is read once.
    features = chosen.features(torch.cat(list(forward.depths(family, chunk))))
    best: list[list[int]] = best_tokens(chosen, features).view(-1, chunk.n_tokens).tolist()
    return best


def depth_rows(
    decoding: Decoding,
    control: Decoding | None = None,
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> list[dict[str, float | int | None]]:
    """One row per depth: accuracy, first_token_accuracy, low, high, control."""
    first = decoding.accuracy(TOKEN_CLASSES[FIRST])
    controlled = None if control is None else control.accuracy()
    rows: list[dict[str, float | int | None]] = []
    for place, depth in enumerate(decoding.depths):
        share = decoding.interval(depth, clusters=clusters, seed=seed)
        rows.append(
            {
                "depth": depth,
                "accuracy": share.value,
                "first_token_accuracy": _number(first[place]),
                "low": share.low,
                "high": share.high,
                "control": None if controlled is None else _number(controlled[place]),
            }
        )
    return rows


def decode_document(
    model_name: str,
    decoding: Decoding,
    control: Decoding | None = None,
    *,
    clusters: ArrayLike | None = None,
    vocabulary: Vocabulary | None = None,
    text: tuple[Sequence[int], Sequence[Sequence[int]]] | None = None,
) -> dict[str, object]:
    """What ``microtome decode --json`` prints.

    ``text`` is a single text's ids and its :func:`decoded_ids`, shown through ``vocabulary``.
    """
    rows: list[dict[str, object]] = [
        dict(row) for row in depth_rows(decoding, control, clusters=clusters)
    ]
    document: dict[str, object] = {
        "schema_version": 1,
        "model": model_name,
        "readout": decoding.readout,
        "examples": len(decoding.total),
        "tokens": decoding.n_tokens,
        "depths": rows,
    }
    if text is not None and vocabulary is not None:
        ids, by_depth = text
        document["input"] = [vocabulary.token(index) for index in ids]
        for row, decoded in zip(rows, by_depth, strict=True):
            tokens = [vocabulary.token(index) for index in decoded]
            row["decoded"] = tokens
            row["text"] = joined(tokens)
    return document


def _share(right: Counts, total: Counts, clusters: ArrayLike | None, seed: int) -> Interval:
    if total.sum() == 0:
        raise RequestError(
            "no token left to decode: all are special or unknown", "count them with special=True"
        )
    columns = np.stack([right, total], axis=1).astype(np.float64)
    metric = SumMetric(
        columns,
        lambda sums: ratio(sums[:, 0], sums[:, 1]),
        worst=np.array([[0.0, 1.0]]),
        best=np.array([[1.0, 1.0]]),
    )
    drawn = np.arange(len(columns)) if clusters is None else clusters
    return bootstrap(metric, clusters=drawn, seed=seed)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _check_ids(texts: Texts, n_tokens: int) -> None:
    highest = int(texts.ids.max())
    if highest >= n_tokens:
        raise RequestError(
            f"token id {highest} is not in the vocabulary of {n_tokens} tokens",
            "encode the texts with the model's own tokenizer",
        )
