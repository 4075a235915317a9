"""Make a model's vocabulary smaller: its embeddings, its decoder and its tokenizer together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from microtome.edits import Vocabulary
from microtome.errors import DataError, EditError
from microtome.families.seam import Family
from microtome.families.vocabulary import keep_rows_, n_fixed_ids
from microtome.models.provenance import attach, provenance_of
from microtome.models.tokenizers import (
    VOCABULARY_FILES,
    tokenizer_files,
    tokenizer_from,
    tokenizer_of,
)
from microtome.surgery.smaller_tokenizer import (
    Definition,
    check_kind,
    needed_ids,
    tokens_of,
    with_tokens,
)
from microtome.tasks.encoding.texts import plain_backend
from microtome.tasks.reading.tables import column_names, format_of, read_records

BATCH = 4096  # texts that are tokenized at once: memory stays bounded
FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
GENERIC_CLASS = "PreTrainedTokenizerFast"  # loads tokenizer.json as it is


def shrink_vocabulary_(edit: Vocabulary, family: Family) -> None:
    """Keep the tokens that the edit's texts need; the model then carries its new tokenizer."""
    model, origin = family.model, provenance_of(family.model)
    tokenizer = tokenizer_of(model)
    if origin is None or tokenizer is None:
        raise EditError(
            "the model has no tokenizer, which becomes smaller with its embeddings",
            "load it with microtome.load from a folder with tokenizer.json",
        )
    files = tokenizer_files(model)
    definition = definition_of(tokenizer_from(files, model.config.model_type))
    check_kind(definition)
    texts = with_prompts(texts_of(edit.path), family)
    used = used_ids(plain_backend(tokenizer), texts, definition)
    kept = needed_ids(definition, used | named_ids(family, definition))
    smaller = with_tokens(definition, kept)
    attach(model, replace(origin, tokenizer=smaller_files(files, smaller, kept, family)))
    keep_rows_(family, kept)


def texts_of(path: Path) -> list[str]:
    """Every text in a file, once: lines, or the strings in a table's fields, header included."""
    format = format_of(path)
    if format not in FORMATS:
        expected = " ".join(f".{name}" for name in FORMATS)
        raise DataError(f"expected texts in one of {expected}, got {path.name}")
    columns = column_names(path, format)
    texts = [] if format == "txt" else list(columns)  # some tables start without a header
    for record in read_records(path, format, columns):
        texts += _strings(record.values)
    if not any(text.strip() for text in texts):
        raise DataError(f"{path.name} has no text in it")
    return list(dict.fromkeys(texts))


def with_prompts(texts: Sequence[str], family: Family) -> list[str]:
    """The texts, and every prompt of an embedder before what they start with.

    Only the first word of a text can be cut in another way after a prompt.
    """
    prompts = () if family.embedder is None else filter(None, family.embedder.prompts.values())
    starts = dict.fromkeys(text.partition(" ")[0] for text in texts)
    return [*texts, *(prompt + start for prompt in prompts for start in starts)]


def used_ids(backend: Tokenizer, texts: Sequence[str], definition: Definition) -> set[int]:
    """The ids that occur in the tokenized texts, and what is behind an unknown word."""
    unknown = tokens_of(definition).get(definition["model"].get("unk_token") or "")
    is_word_piece = definition["model"]["type"] == "WordPiece"
    used: set[int] = set()
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        for text, encoding in zip(batch, backend.encode_batch_fast(batch), strict=True):
            used.update(encoding.ids)
            if is_word_piece and unknown in encoding.ids:
                used |= _stuck_pieces(backend, text, definition["model"])
    return used


def named_ids(family: Family, definition: Definition) -> set[int]:
    """The tokens that the config names by their id, and those whose number can't change."""
    config = family.config.to_dict()
    named = {config[key] for key in config if key.endswith("_token_id")}
    return {*range(n_fixed_ids(family)), *(named & set(tokens_of(definition).values()))}


def definition_of(tokenizer: PreTrainedTokenizerBase) -> Definition:
    """What ``tokenizer.json`` says of a loaded tokenizer."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EditError(
            f"{type(tokenizer).__name__} has no fast tokenizer", "a tokenizer.json is needed"
        )
    definition: Definition = json.loads(backend.to_str())
    return definition


def smaller_files(
    files: dict[str, bytes], smaller: Definition, kept: list[int], family: Family
) -> dict[str, bytes]:
    """The tokenizer's files anew; what would contradict ``tokenizer.json`` is left out.

    Some classes of transformers build a tokenizer by themselves and expect fixed ids: where plain
    ``AutoTokenizer`` doesn't give back ``smaller``, the class becomes the generic one.
    """
    left_out = {*VOCABULARY_FILES, "merges.txt", "added_tokens.json"}
    anew = {name: content for name, content in files.items() if name not in left_out}
    anew["tokenizer.json"] = json.dumps(smaller, ensure_ascii=False).encode()
    if "vocab.txt" in files and smaller["model"]["type"] == "WordPiece":
        anew["vocab.txt"] = "".join(f"{token}\n" for token in smaller["model"]["vocab"]).encode()
    settings = _settings(files, kept)
    model_type = family.config.model_type
    before = tokenizer_from(files, model_type)
    generic = {
        "tokenizer_class": GENERIC_CLASS,
        "model_input_names": list(before.model_input_names),
    }
    for changes in ({}, generic):
        anew["tokenizer_config.json"] = _json_file({**settings, **changes})
        if _same(definition_of(tokenizer_from(anew, model_type)), smaller):
            return anew
    raise EditError(
        f"a smaller {type(before).__name__} isn't loaded by transformers as it was written",
        "this model's vocabulary can't be made smaller",
    )


def _settings(files: dict[str, bytes], kept: list[int]) -> dict[str, Any]:
    """``tokenizer_config.json`` with the new numbers of the tokens that it lists."""
    settings: dict[str, Any] = json.loads(files.get("tokenizer_config.json", b"{}"))
    new_ids = {str(old): str(new) for new, old in enumerate(kept)}
    listed = settings.get("added_tokens_decoder")
    if isinstance(listed, dict):
        settings["added_tokens_decoder"] = {
            new_ids[old]: token for old, token in listed.items() if old in new_ids
        }
    return settings


def _json_file(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _same(loaded: Definition, written: Definition) -> bool:
    """Equal in all but truncation and padding, which every call sets for itself."""
    return all(
        loaded.get(key) == written.get(key)
        for key in ("model", "added_tokens", "normalizer", "pre_tokenizer", "post_processor")
    )


def _strings(value: object) -> Iterator[str]:
    """The strings in a field: itself, or those in its list or object."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


def _stuck_pieces(backend: Tokenizer, text: str, model: dict[str, Any]) -> set[int]:
    """The pieces that a text's unknown words begin with.

    Without them WordPiece would take shorter ones, and might come through where it got stuck.
    """
    if backend.normalizer is not None:
        text = backend.normalizer.normalize_str(text)
    cut = backend.pre_tokenizer
    words = [text] if cut is None else [word for word, _ in cut.pre_tokenize_str(text)]
    pieces: set[int] = set()
    for word in words:
        pieces.update(_longest_pieces(word, model["vocab"], model["continuing_subword_prefix"]))
    return pieces


def _longest_pieces(word: str, vocabulary: dict[str, int], prefix: str) -> Iterator[int]:
    start = 0
    while start < len(word):
        before = prefix if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if before + word[start:end] in vocabulary), None)
        if end is None:
            return
        yield vocabulary[before + word[start:end]]
        start = end
