"""Where a model came from and what was done to it, carried by the model itself; no torch here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from microtome.errors import ModelError
from microtome.models.configuration import read_object
from microtome.models.source import Kind

if TYPE_CHECKING:
    from microtome.models.heads import HeadName

HISTORY, CARD = "microtome.json", "README.md"
FILES, TRAINING, OF_RECORD = "sha256", "training", "record_sha256"  # keys of the history
PARTS = ("schema_version", "base", "edits", "certificate", "versions", FILES, TRAINING, OF_RECORD)
SCHEMA_VERSION = 1
MAX_HISTORY_BYTES = 1_000_000
MAX_EDITS = 1_000
MAX_TEXT = 2_000

_ATTRIBUTE = "_microtome_provenance"  # a plain attribute, so copy.deepcopy(model) keeps it


@dataclass(frozen=True)
class Base:
    """The model that the first edit started from."""

    name: str
    content_hash: str


@dataclass(frozen=True)
class Provenance:
    """The origin of a loaded model, and the edits made since, oldest first."""

    name: str
    kind: Kind
    path: Path
    content_hash: str
    dtype: str  # of the weights in the file, in torch's words; saving goes back to it
    family: str
    head: HeadName
    head_is_fresh: bool  # its weights are random: they came from no file
    revision: str | None
    base: Base
    edits: tuple[str, ...]
    is_cross_encoder: bool = False  # its folder says that sentence-transformers scores pairs by it
    # What an edit of the vocabulary made, by file name; None: the files are those in ``path``.
    tokenizer: Mapping[str, bytes] | None = None

    def with_edits(self, texts: Iterable[str]) -> Provenance:
        """The provenance after further edits, in their canonical text."""
        return replace(self, edits=(*self.edits, *texts))


class _HasAttributes(Protocol):
    def __setattr__(self, name: str, value: object, /) -> None: ...


Model = TypeVar("Model", bound=_HasAttributes)


def attach(model: Model, provenance: Provenance) -> Model:
    """Let ``model`` carry its provenance; gives the same model back."""
    setattr(model, _ATTRIBUTE, provenance)
    return model


def provenance_of(model: object) -> Provenance | None:
    """What a model carries; None for one that Microtome didn't load."""
    provenance = getattr(model, _ATTRIBUTE, None)
    return provenance if isinstance(provenance, Provenance) else None


def record_hash(record: Mapping[str, object]) -> str:
    """The sha256 of everything that a history says, but for this hash itself.

    It tells a slip of a hand or of a disk. It is no signature: who changes a folder on purpose can
    compute it, too, and is told by making the edits again on the base.
    """
    told = {key: value for key, value in record.items() if key != OF_RECORD}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def read_history(folder: Path) -> tuple[Base, tuple[str, ...]] | None:
    """Base and edits from a checkpoint's ``microtome.json``; None where there is none.

    The file may come from anybody, so it is only ever read as short texts.
    """
    file = folder / HISTORY
    if not file.is_file():
        return None
    content = read_object(file, max_bytes=MAX_HISTORY_BYTES)
    version = content.get("schema_version")
    if version != SCHEMA_VERSION:
        raise _unusable(folder, f"has schema_version {str(version)[:40]!r}, not {SCHEMA_VERSION}")
    base, edits = content.get("base"), content.get("edits")
    if not isinstance(base, dict):
        raise _unusable(folder, "names no base")
    if not isinstance(edits, list) or len(edits) > MAX_EDITS:
        raise _unusable(folder, f"has no list of at most {MAX_EDITS} edits")
    return (
        Base(_text(base.get("name"), folder), _text(base.get("content_hash"), folder)),
        tuple(_text(edit, folder) for edit in edits),
    )


def _text(value: object, folder: Path) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT or not value.isprintable():
        raise _unusable(folder, f"has {str(value)[:40]!r}, expected a short line of text")
    return value


def _unusable(folder: Path, what: str) -> ModelError:
    return ModelError(
        f"{HISTORY} in {folder} {what}",
        f"remove {HISTORY} to load the weights without their history",
    )
