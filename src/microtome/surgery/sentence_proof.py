"""The certificate's checks of a sentence-transformers folder: its files, and what it computes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.errors import install_command
from microtome.families import adapt
from microtome.models import load_tokenizer
from microtome.models.provenance import provenance_of
from microtome.models.quiet import quiet_transformers
from microtome.models.saving import sentence_loader
from microtome.models.sentence_transformers.folder import sentence_files
from microtome.observe.embedding import embed, longest
from microtome.observe.predicting import predict
from microtome.observe.texts import Texts
from microtome.surgery.certificate import Check

NAME = "sentence-transformers"
TOLERANCE = 1e-5
# Of different lengths, so that they are padded there; ours are packed.
PROBE_TEXTS = (
    "Microtome cuts an encoder into layers, looks at each slice, and heals what was cut.",
    "Does it still answer as before?",
    "No",
)


def sentence_checks(reference: PreTrainedModel, saved: Path) -> Iterator[Check]:
    """Nothing for a model that sentence-transformers isn't for."""
    loader, origin = sentence_loader(reference), provenance_of(reference)
    if loader is None:
        return
    if origin is not None:
        yield files_check(origin.path, saved)
    yield output_check(reference, saved, loader)


def files_check(base: Path, saved: Path) -> Check:
    """Every file that no edit concerns is as in the base's folder, byte for byte."""
    files = list(sentence_files(base))
    lost = [
        file.as_posix()
        for file in files
        if not (saved / file).is_file() or (saved / file).read_bytes() != (base / file).read_bytes()
    ]
    detail = f"{len(files)} further files copied byte for byte"
    return Check("other files", not lost, f"lost or changed: {', '.join(lost)}" if lost else detail)


def output_check(reference: PreTrainedModel, saved: Path, loader: str) -> Check:
    """Compare ``reference`` with what ``loader`` of sentence-transformers makes of ``saved``."""
    if find_spec("sentence_transformers") is None:
        return Check(NAME, None, f"not run: {install_command('embedding')}")
    tokenizer = load_tokenizer(saved)
    if tokenizer is None:
        return Check(NAME, None, "not run: the folder has no tokenizer, which it needs")
    is_embedder = loader == "SentenceTransformer"
    ours = (
        embed(reference, tokenizer, PROBE_TEXTS) if is_embedder else _logits(reference, tokenizer)
    )
    try:
        theirs = _embeddings(saved) if is_embedder else _scores(saved)
    except Exception as error:  # noqa: BLE001  # whatever the library raises, it can't be loaded
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return Check(NAME, False, f"{loader} can't load or run it: {reason}")
    if ours.shape != theirs.shape:
        return Check(NAME, False, f"expected the shape {ours.shape}, it gives {theirs.shape}")
    off = float(np.abs(ours - theirs).max())
    scale = max(1.0, float(np.abs(ours).max()))
    detail = f"{loader} loads it: outputs on a padded batch differ from ours by {off:.1g}"
    return Check(NAME, off <= TOLERANCE * scale, detail)


def _embeddings(saved: Path) -> NDArray[np.float32]:
    from sentence_transformers import SentenceTransformer

    with quiet_transformers():
        model = SentenceTransformer(str(saved), device="cpu", model_kwargs={"dtype": torch.float32})
    rows = model.encode(list(PROBE_TEXTS), show_progress_bar=False, convert_to_numpy=True)
    return np.asarray(rows, dtype=np.float32)


def _scores(saved: Path) -> NDArray[np.float32]:
    from sentence_transformers import CrossEncoder

    with quiet_transformers():
        model = CrossEncoder(str(saved), device="cpu", model_kwargs={"dtype": torch.float32})
    pairs = [(PROBE_TEXTS[0], text) for text in PROBE_TEXTS]
    rows = model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    return np.asarray(rows, dtype=np.float32).reshape(len(pairs), -1)


def _logits(reference: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> NDArray[np.float32]:
    family = adapt(reference)
    first = [PROBE_TEXTS[0]] * len(PROBE_TEXTS)
    length = longest(family, tokenizer)
    pairs = tokenizer(first, list(PROBE_TEXTS), truncation=True, max_length=length)
    # A generic tokenizer gives no segments, and CrossEncoder then has none.
    segments = pairs.get("token_type_ids") if family.uses_segments else None
    return predict(reference, Texts.of(pairs["input_ids"], segments=segments))
