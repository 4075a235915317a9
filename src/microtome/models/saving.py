"""Save a model as an ordinary checkpoint folder, completely or not at all."""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from os import PathLike
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.errors import DISTRIBUTION, StorageError
from microtome.families.embedder import embedder_of
from microtome.files import is_full_disk
from microtome.models.building import lacks_pooler
from microtome.models.card import model_card
from microtome.models.contents import file_hashes
from microtome.models.costs import cost
from microtome.models.folders import check_empty
from microtome.models.provenance import (
    CARD,
    FILES,
    HISTORY,
    OF_RECORD,
    SCHEMA_VERSION,
    TRAINING,
    Provenance,
    provenance_of,
    record_hash,
)
from microtome.models.quiet import quiet_transformers
from microtome.models.sentence_transformers.folder import encoder_folder, sentence_files
from microtome.models.tokenizers import copy_tokenizer, write_files


def save(
    model: PreTrainedModel,
    out: str | PathLike[str],
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    certificate: Mapping[str, object] | None = None,
    prove: Callable[[Path], Mapping[str, object] | None] | None = None,
    story: str = "",
    training: Mapping[str, object] | None = None,
    max_shard_size: str = "5GB",
) -> Path:
    """Write ``model`` to the new or empty folder ``out``, in the dtype of its base.

    ``save(Remove(11)(load("my-model")), "shorter")`` makes a folder that ``from_pretrained`` loads:
    weights, config, tokenizer (``tokenizer``, else the base's files, or those that an edit of the
    vocabulary made), the model card ``README.md`` and ``microtome.json``. A sentence embedder's or
    cross-encoder's further files come along byte for byte, so that sentence-transformers loads it
    too. It appears complete, or not at all.
    ``prove`` is handed the folder with the weights in it before it gets its name, and gives the
    certificate; if it raises, nothing is left. ``story`` is a sentence or two for the card on what
    happened besides the edits, ``training`` the record of it for ``microtome.json``.
    """
    target = Path(out).expanduser()
    check_empty(target)
    provenance = provenance_of(model)
    with whole_folder(target) as folder:
        encoder = folder / encoder_path(model)
        with quiet_transformers():
            _in_dtype(model, provenance).save_pretrained(encoder, max_shard_size=max_shard_size)
            if tokenizer is not None:
                tokenizer.save_pretrained(encoder)
        if provenance is not None:
            if tokenizer is None and provenance.tokenizer is not None:
                write_files(provenance.tokenizer, encoder)
            elif tokenizer is None:
                copy_tokenizer(encoder_folder(provenance.path), encoder)
            copy_sentence_files(model, provenance, folder)
        if prove is not None:
            certificate = prove(folder)
        card = _card(model, target.resolve().name, certificate, story)
        # A folder's name may have bytes that aren't text.
        (folder / CARD).write_text(card, encoding="utf-8", errors="replace")
        recorded: dict[str, object] = {} if training is None else {TRAINING: dict(training)}
        recorded[FILES] = file_hashes(folder)
        record = _history(provenance, certificate) | recorded
        record[OF_RECORD] = record_hash(json.loads(json.dumps(record)))  # as it will be read
        (folder / HISTORY).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return target


def _card(
    model: PreTrainedModel, title: str, certificate: Mapping[str, object] | None, story: str
) -> str:
    return model_card(
        title=title,
        architecture=type(model).__name__,
        provenance=provenance_of(model),
        certificate=certificate,
        cost=cost(model),
        has_pooler=not lacks_pooler(model),
        task=getattr(model.config, "microtome_task", None),
        loader=sentence_loader(model),
        story=story,
    )


def encoder_path(model: PreTrainedModel) -> str:
    """Where a model's folder keeps config and weights: "" but for old embedders' folders."""
    embedder = embedder_of(model)
    return "" if embedder is None else embedder.path


def sentence_loader(model: PreTrainedModel) -> str | None:
    """The class of sentence-transformers that loads the saved folder; None where none is for it."""
    embedder, provenance = embedder_of(model), provenance_of(model)
    if embedder is not None and embedder.is_folder:
        return "SentenceTransformer"
    return "CrossEncoder" if provenance is not None and provenance.is_cross_encoder else None


def copy_sentence_files(model: PreTrainedModel, provenance: Provenance, folder: Path) -> None:
    """What sentence-transformers needs besides the encoder, byte for byte: no edit concerns it."""
    if sentence_loader(model) is None or provenance.head_is_fresh:
        return  # a fresh head has nothing to do with the modules of its base
    for file in sentence_files(provenance.path):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(provenance.path / file, folder / file)


def _in_dtype(model: PreTrainedModel, provenance: Provenance | None) -> PreTrainedModel:
    """A copy in the base's dtype: save_pretrained writes into the model's config."""
    dtype = getattr(torch, provenance.dtype) if provenance else model.dtype
    return copy.deepcopy(model).to("cpu", dtype)


def _history(
    provenance: Provenance | None, certificate: Mapping[str, object] | None
) -> dict[str, object]:
    base = provenance.base if provenance else None
    return {
        "schema_version": SCHEMA_VERSION,
        "base": {
            "name": base.name if base else "unknown",
            "content_hash": base.content_hash if base else "unknown",
        },
        "edits": list(provenance.edits) if provenance else [],
        "certificate": certificate,
        "versions": {
            "microtome": version(DISTRIBUTION),
            "torch": version("torch"),
            "transformers": version("transformers"),
        },
    }


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A temporary folder next to ``target`` that takes its name at the end, or leaves no trace."""
    made: list[Path] = []
    try:
        for parent in _missing_parents(target):
            parent.mkdir()
            made.append(parent)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as place:
            folder = Path(place) / "model"  # made like any folder, while its place is private
            folder.mkdir()
            yield folder
            for file in folder.rglob("*"):
                if file.is_file():
                    file.chmod(folder.stat().st_mode & 0o666)  # safetensors makes private files
            folder.rename(target)  # an empty folder of that name gives way
    except BaseException as error:
        for parent in reversed(made):
            with suppress(OSError):  # somebody else uses it by now
                parent.rmdir()
        # safetensors and tokenizers, written in Rust, tell the errno in their text only.
        if isinstance(error, OSError) or "(os error " in str(error):
            reason = getattr(error, "strerror", None) or str(error)
            reason = "the disk is full" if is_full_disk(error) else reason
            raise StorageError(
                f"{target} can't be written: {reason}", "nothing was left behind"
            ) from error
        raise


def _missing_parents(target: Path) -> list[Path]:
    """The folders above that aren't there yet, the highest first."""
    return [parent for parent in reversed(target.absolute().parents) if not parent.exists()]
