"""The tokenizer that belongs to a model, if it has one: loaded, or copied as it is."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from microtome.errors import ModelError
from microtome.models.checkpoint import look_at
from microtome.models.configuration import MAX_CONFIG_BYTES, read_object, refuse_own_code, size
from microtome.models.provenance import provenance_of
from microtome.models.quiet import quiet_transformers
from microtome.models.sentence_transformers.folder import encoder_folder, sentence_folder
from microtome.models.source import Source, fetched, resolve

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MAX_TOKENIZER_BYTES = 200_000_000
MAX_TOKENIZER_CONFIG_BYTES = 20 * MAX_CONFIG_BYTES  # added tokens are listed in it

VOCABULARY_FILES = (
    "tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model",
)  # fmt: skip
TOKENIZER_FILES = (
    *VOCABULARY_FILES, "merges.txt", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json",
)  # fmt: skip
"""Every file that a tokenizer of these families may consist of."""


def load_tokenizer(
    name: str | PathLike[str] | Source, *, revision: str | None = None
) -> PreTrainedTokenizerBase | None:
    """The fast tokenizer of a model; None where the checkpoint has none.

    One that knows more tokens than the model has embeddings for is refused. Fewer are fine:
    vocabularies are often padded to a multiple of 8 or 64.
    """
    source = fetched(name if isinstance(name, Source) else resolve(name, revision=revision))
    assert source.path is not None
    checkpoint = look_at(source.path, links_into=source.links_into, allow_pickle=True)
    folder = checkpoint.folder
    if not any((folder / file).is_file() for file in VOCABULARY_FILES):
        return None
    _refuse_huge_files(folder)
    settings = folder / "tokenizer_config.json"
    if settings.is_file():
        refuse_own_code(read_object(settings, max_bytes=MAX_TOKENIZER_CONFIG_BYTES), str(folder))
    tokenizer = _load(folder)
    if checkpoint.sentence is not None and checkpoint.sentence.lowers_case:
        _lower_case_(tokenizer)
    n_embeddings = size(checkpoint.config, checkpoint.facts.config, "vocabulary")
    n_tokens = max(tokenizer.get_vocab().values(), default=-1) + 1
    if n_embeddings is not None and n_tokens > n_embeddings:
        raise ModelError(
            f"the tokenizer of {source.name} has {n_tokens} tokens, but the model has "
            f"{n_embeddings} embeddings",
            "the tokenizer belongs to another model; get the right one",
        )
    return tokenizer


def tokenizer_of(model: PreTrainedModel) -> PreTrainedTokenizerBase | None:
    """The tokenizer of a model in memory, after its edits; None where it has none.

    ``tokenizer_of(Vocabulary("texts.txt")(load("minilm")))`` has the tokens that stayed; of a model
    whose vocabulary no edit touched it is what :func:`load_tokenizer` gives.
    """
    origin = provenance_of(model)
    if origin is None:
        return None
    if origin.tokenizer is None:
        return load_tokenizer(Source(origin.kind, origin.name, origin.path, origin.revision))
    tokenizer = tokenizer_from(origin.tokenizer, model.config.model_type)
    sentence = sentence_folder(origin.path)
    if sentence is not None and sentence.lowers_case:
        _lower_case_(tokenizer)
    return tokenizer


def tokenizer_files(model: PreTrainedModel) -> dict[str, bytes]:
    """A model's tokenizer files by name, after its edits; none where its origin is unknown."""
    origin = provenance_of(model)
    if origin is None:
        return {}
    if origin.tokenizer is not None:
        return dict(origin.tokenizer)
    place = encoder_folder(origin.path)
    return {
        name: (place / name).read_bytes() for name in TOKENIZER_FILES if (place / name).is_file()
    }


def tokenizer_from(files: Mapping[str, bytes], model_type: str) -> PreTrainedTokenizerBase:
    """What plain ``AutoTokenizer`` makes of a checkpoint of this type with these files."""
    config = json.dumps({"model_type": model_type}).encode()  # it may decide the class
    with tempfile.TemporaryDirectory(prefix="microtome-tokenizer-") as place:
        write_files({**files, "config.json": config}, Path(place))
        return _load(Path(place))


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write a tokenizer's files."""
    for name, content in files.items():
        (folder / name).write_bytes(content)


def copy_tokenizer(source: Path, folder: Path) -> None:
    """The tokenizer's files, byte for byte."""
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)


def _lower_case_(tokenizer: PreTrainedTokenizerBase) -> None:
    """Lower-case texts first, as sentence-transformers does where a folder says so."""
    from tokenizers import normalizers

    backend = tokenizer.backend_tokenizer
    own = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])


def _refuse_huge_files(folder: Path) -> None:
    for file in TOKENIZER_FILES:
        if (folder / file).is_file() and (folder / file).stat().st_size > MAX_TOKENIZER_BYTES:
            raise ModelError(
                f"{file} in {folder} has more than {MAX_TOKENIZER_BYTES:,} bytes",
                "this isn't an ordinary tokenizer; get it from its publisher again",
            )


def _load(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(
                folder, use_fast=True, trust_remote_code=False, local_files_only=True
            )
    # The tokenizers library raises Exception itself for a broken tokenizer.json.
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise ModelError(
            f"the tokenizer in {folder} can't be read: {type(error).__name__}: {lines[0][:300]}",
            "get the tokenizer's files again",
        ) from error
