"""The states that probes read: one forward pass, all depths, on disk.

SST-2's training rows at 13 depths and width 768 take 2.7 GB: more than belongs into memory, so the
arrays are mapped files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.errors import RequestError, StorageError
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe.forward import text_means
from microtome.observe.packing import Chunk
from microtome.observe.predicting import states
from microtome.observe.texts import Encoded
from microtome.tasks.encoding.tagged import UNSEEN, TaggedTexts

Feature = Literal["cls", "mean", "pooler", "trained-pooler"]
FEATURES: tuple[Feature, ...] = ("cls", "mean", "pooler", "trained-pooler")

FloatArray = NDArray[np.float32]


def cache_states(
    model: PreTrainedModel,
    texts: Encoded,
    folder: Path,
    *,
    features: Sequence[Feature] = ("cls", "mean"),
) -> dict[Feature, FloatArray]:
    """One state per text and depth, (N + 1, n, D) for every feature, mapped from ``folder``.

    ``cls``: the first token's. ``mean``: over all tokens. ``pooler``: the pre-trained pooler on the
    first token's; ``trained-pooler`` has the first token's, and its pooler is trained on them. Each
    is what the truncated encoder would give: through the final norm where there is one, else raw.
    """
    check_features(features)
    family = adapt(model)
    shape = (family.shape.n_layers + 1, len(texts.offsets) - 1, family.shape.width)
    arrays = {feature: _mapped(folder / f"{feature}.npy", shape) for feature in features}
    for chunk, depths in states(model, texts):
        for depth, raw in enumerate(depths):
            read = family.final_norm(raw)
            for feature, array in arrays.items():
                array[depth, chunk.texts] = _read(family, feature, read, chunk).cpu().numpy()
    return arrays


@torch.no_grad()
def cache_word_states(model: PreTrainedModel, texts: TaggedTexts, folder: Path) -> FloatArray:
    """One state per word and depth (N + 1, n, D), that of its first piece, mapped from ``folder``.

    Words that the tokenizer drops (``UNSEEN``) have none and are left out. Final norms as in
    :func:`cache_states`.
    """
    family = adapt(model)
    seen = texts.word_tokens != UNSEEN
    place = np.cumsum(seen) - 1  # of a word among those that are seen
    word_of = texts.by_token(np.arange(len(seen)))  # (T,), −1 for other tokens
    array = _mapped(
        folder / "words.npy", (family.shape.n_layers + 1, seen.sum(), family.shape.width)
    )
    for chunk, depths in states(model, texts):
        words = word_of[chunk.tokens]
        rows = np.flatnonzero(words >= 0)
        for depth, raw in enumerate(depths):
            array[depth, place[words[rows]]] = family.final_norm(raw[rows]).cpu().numpy()
    return array


def check_features(features: Sequence[str]) -> None:
    """Refuse an unknown feature."""
    for feature in features:
        if feature not in FEATURES:
            raise RequestError(f"feature must be one of {', '.join(FEATURES)}, got {feature!r}")


@torch.no_grad()
def _read(family: Family, feature: Feature, read: Tensor, chunk: Chunk) -> Tensor:
    """(T, D) → (n, D)."""
    if feature == "mean":
        return text_means(read, chunk)
    first = read[chunk.first_rows]
    return family.pool(first) if feature == "pooler" else first


def _mapped(file: Path, shape: tuple[int, int, int]) -> FloatArray:
    """A new array on disk, its room taken at once: a full disk must not come as a bus error."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        array = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
        if hasattr(os, "posix_fallocate"):
            with file.open("r+b") as stream:
                os.posix_fallocate(stream.fileno(), 0, file.stat().st_size)
    except OSError as error:
        needed = 4 * int(np.prod(shape)) / 1e9
        raise StorageError(
            f"{needed:.2f} GB of states can't be stored in {file.parent}: {error.strerror}",
            "make room, or name another scratch folder",
        ) from error
    return array
