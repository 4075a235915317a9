"""The content hash of a checkpoint: what it means, not how it is stored; no torch here."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from microtome.models.checkpoint import Checkpoint, look_at
from microtome.models.configuration import Config
from microtome.models.provenance import CARD, HISTORY
from microtome.models.sentence_transformers.folder import encoder_folder
from microtome.models.tokenizers import TOKENIZER_FILES
from microtome.models.weights import stored_tensors

CHUNK_BYTES = 1 << 20

# Where the file came from and how it was written; the tensors themselves carry their dtype.
_MEANINGLESS = frozenset(
    {"_name_or_path", "name_or_path", "transformers_version", "dtype", "torch_dtype"}
    | {"_commit_hash", "_attn_implementation", "_attn_implementation_autoset", "use_cache"}
    | {"gradient_checkpointing", "output_attentions", "output_hidden_states", "return_dict"}
    | {"torchscript"}
)


def content_hash(folder: str | Path) -> str:
    """The sha256 of a folder's config and tensors, in hexadecimal: ``content_hash("my-model")``.

    Names, dtypes, shapes and bytes of the tensors count, in the order of their names; the way they
    are spread over shards, the order in a file, and config entries without meaning don't.
    """
    path = Path(folder).resolve()
    # The caller names the folder: whether its links may be followed is for load() to decide.
    return content_hash_of(look_at(path, links_into=Path(path.anchor), allow_pickle=True))


def tokenizer_hash(folder: str | Path) -> str:
    """The sha256 of a folder's tokenizer files, byte for byte: what decides how text is cut."""
    digest = hashlib.sha256()
    place = encoder_folder(Path(folder))
    for name in TOKENIZER_FILES:
        file = place / name
        if file.is_file():
            digest.update(f"{name} {file.stat().st_size} ".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def file_hashes(folder: Path) -> dict[str, str]:
    """The sha256 of every file of a saved folder by its name there.

    The record itself isn't among them, nor the card, which people may write on.
    """
    found = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and name not in (HISTORY, CARD):
            with file.open("rb") as stream:
                found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def content_hash_of(checkpoint: Checkpoint) -> str:
    """The hash of a checkpoint that was looked at; computed once per process and file state."""
    states = tuple(_state(file) for file in checkpoint.files)
    return _hash(checkpoint.folder.resolve(), _config_text(checkpoint.config), states)


def _state(file: Path) -> tuple[str, int, int]:
    stat = file.stat()
    return file.name, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=64)
def _hash(folder: Path, config_text: str, states: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256(config_text.encode())
    files = [folder / name for name, _, _ in states]
    if any(file.suffix != ".safetensors" for file in files):
        # Pickles have no header to read: their hash is of the files as they are.
        for file in files:
            _add(digest, file, 0, file.stat().st_size)
        return digest.hexdigest()
    tensors = sorted(
        (tensor for file in files for tensor in stored_tensors(file)), key=lambda it: it.name
    )
    for tensor in tensors:
        digest.update(json.dumps([tensor.name, tensor.dtype, tensor.shape]).encode())
        _add(digest, tensor.file, tensor.begin, tensor.n_bytes)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, file: Path, begin: int, n_bytes: int) -> None:
    with file.open("rb") as stream:
        stream.seek(begin)
        while n_bytes:
            chunk = stream.read(min(CHUNK_BYTES, n_bytes))
            digest.update(chunk)
            n_bytes -= len(chunk)
            if not chunk:
                raise OSError(f"{file} became shorter while it was read")


def _config_text(config: Config) -> str:
    kept = {key: value for key, value in config.items() if key not in _MEANINGLESS}
    return json.dumps(kept, sort_keys=True)
