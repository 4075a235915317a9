"""Look at a checkpoint folder before torch does; refuse what can't be trusted. No torch here."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from microtome.errors import ModelError
from microtome.families.catalogue import FamilyFacts
from microtome.families.stack import LayerStack
from microtome.models.configuration import Config, read_config, read_object, size
from microtome.models.sentence_transformers.folder import SentenceFolder, sentence_folder
from microtome.models.weights import FLOATS, StoredTensor, stored_tensors

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_INDEX_BYTES = 50_000_000
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
NOT_WEIGHTS = ("training_args.bin", "optimizer.pt", "scheduler.pt", "scaler.pt")

_LAYER = re.compile(r"(?:^|\.)layers?\.(\d{1,9})\.")
_GROUP = re.compile(r"_layer_groups\.(\d{1,9})\.")


@dataclass(frozen=True)
class Checkpoint:
    """A folder that was looked at: its config, its family, and what its weight files hold.

    ``folder`` is where config and weights are. Old sentence-transformers folders keep them in a
    sub-folder: ``root`` is what the user named.
    """

    folder: Path
    config: Config
    facts: FamilyFacts
    tensors: tuple[StoredTensor, ...]  # empty for a pickled checkpoint
    files: tuple[Path, ...]  # the weight files, in the order of their names
    sentence: SentenceFolder | None = None  # of sentence-transformers, where it is one

    @property
    def root(self) -> Path:
        """The folder that the user named."""
        return self.folder if self.sentence is None else self.sentence.root

    @property
    def is_pickled(self) -> bool:
        """Whether the weights are pickles, let in by ``allow_pickle``."""
        return not self.tensors

    @property
    def stack(self) -> LayerStack:
        """How the layers are stacked, as the config says it."""
        n_layers = size(self.config, self.facts.config, "layers")
        if n_layers is None:
            key = self.facts.config.layers
            raise ModelError(
                f"config.json in {self.folder} has no {key}", f"add {key}, the number of layers"
            )
        groups = self.config.get(self.facts.groups or "", 1)
        return self.facts.stack(n_layers, groups if isinstance(groups, int) else 1)

    @property
    def weights_applied(self) -> int:
        """How many weights of layers a token meets; shared ones count at every application."""
        stored = sum(
            math.prod(tensor.shape)
            for tensor in self.tensors
            if _LAYER.search(tensor.name) or _GROUP.search(tensor.name)
        )
        return stored * self.stack.n_layers // len(set(self.stack.sharing))

    @property
    def dtype(self) -> str:
        """The weights' dtype in torch's words: the one that most of their bytes are in."""
        n_bytes: Counter[str] = Counter()
        for tensor in self.tensors:
            if tensor.dtype in FLOATS:
                n_bytes[FLOATS[tensor.dtype]] += tensor.n_bytes
        if n_bytes:
            return n_bytes.most_common(1)[0][0]
        declared = self.config.get("dtype") or self.config.get("torch_dtype")
        return str(declared) if declared in FLOATS.values() else "float32"


def look_at(
    folder: Path, *, links_into: Path | None = None, allow_pickle: bool = False
) -> Checkpoint:
    """Check a folder's files, config and weight headers; anything wrong is one clear ModelError.

    ``look_at(Path("my-model")).facts.name`` is its family, known before torch is imported.

    ``links_into`` is a further folder that symlinks may point into: the hub's cache keeps its files
    in ``blobs/``, next to ``snapshots/``.
    """
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise ModelError(f"{folder} {kind}, expected a checkpoint folder")
    _refuse_foreign_links(folder, links_into)
    sentence = sentence_folder(folder)
    if sentence is not None:
        for module in sentence.modules:
            if (folder / module.path).is_dir():
                _refuse_foreign_links(folder / module.path, links_into or folder)
        folder = sentence.encoder
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{folder} has no config.json, so it isn't a model",
            "give the folder that config.json and model.safetensors are in",
        )
    if (folder / "adapter_config.json").exists():
        # transformers would follow its base_model_name_or_path to some other model.
        raise ModelError(
            f"{folder} holds an adapter (adapter_config.json), not a whole model",
            "merge the adapter into its base and save that",
        )
    config, facts = read_config(folder / "config.json")
    files = _safetensors_files(folder)
    tensors = _all_tensors(folder, files)
    if not files:
        files = _pickled_files(folder, allow_pickle=allow_pickle)
    _check_dtypes(tensors, folder)
    _check_against_config(tensors, config, facts, folder)
    return Checkpoint(folder, config, facts, tensors, files, sentence)


def look_at_fetched(folder: Path) -> Checkpoint:
    """Look at a folder that a source was fetched to; its links may lead anywhere.

    The hub's cache has links from a snapshot into ``blobs/``, a folder next to it.
    """
    return look_at(folder, links_into=Path(folder.resolve().anchor))


def _refuse_foreign_links(folder: Path, links_into: Path | None) -> None:
    homes = [folder.resolve(), *([links_into.resolve()] if links_into else [])]
    for entry in folder.iterdir():
        if entry.is_symlink() and not any(entry.resolve().is_relative_to(home) for home in homes):
            raise ModelError(
                f"{entry.name} in {folder} is a link to {entry.resolve()}, outside of the folder",
                f"copy the files themselves: cp -rL {folder} COPY",
            )


def _safetensors_files(folder: Path) -> tuple[Path, ...]:
    if (folder / WEIGHTS).is_file():  # transformers prefers it to an index, too
        return (folder / WEIGHTS,)
    if not (folder / INDEX).is_file():
        return ()
    shards = sorted(set(_weight_map(folder).values()))
    for shard in shards:
        if not re.fullmatch(r"[\w.-]+\.safetensors", shard):
            raise ModelError(
                f"{INDEX} in {folder} names the shard {shard[:100]!r}, expected a plain file name "
                "ending in .safetensors",
                "get the checkpoint again",
            )
        if not (folder / shard).is_file():
            raise ModelError(
                f"{folder} lacks the shard {shard} that its index names", "get the missing file"
            )
    return tuple(folder / shard for shard in shards)


def _weight_map(folder: Path) -> dict[str, str]:
    weight_map = read_object(folder / INDEX, max_bytes=MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{INDEX} in {folder} has no weight_map", "get the file again")
    if not all(isinstance(shard, str) for shard in weight_map.values()):
        raise ModelError(
            f"{INDEX} in {folder} maps a tensor to something other than a file name",
            "get the checkpoint again",
        )
    return weight_map


def _all_tensors(folder: Path, files: tuple[Path, ...]) -> tuple[StoredTensor, ...]:
    if not files:
        return ()
    tensors: dict[str, StoredTensor] = {}
    for file in files:
        for tensor in stored_tensors(file):
            if tensor.name in tensors:
                raise ModelError(
                    f"tensor {tensor.name[:100]} is in two shards of {folder}: "
                    f"{tensors[tensor.name].file.name} and {file.name}",
                    "get the checkpoint again",
                )
            tensors[tensor.name] = tensor
    if files[0].name != WEIGHTS:
        _check_index(folder, tensors)
    if not tensors:
        raise ModelError(f"{files[0].name} in {folder} holds no tensors", "get the file again")
    return tuple(tensors[name] for name in sorted(tensors))


def _check_index(folder: Path, tensors: dict[str, StoredTensor]) -> None:
    for name, shard in _weight_map(folder).items():
        if name not in tensors or tensors[name].file.name != shard:
            raise ModelError(
                f"{INDEX} in {folder} puts tensor {name[:100]} into {shard}, but it isn't there",
                "get the checkpoint again",
            )
    extra = sorted(tensors.keys() - _weight_map(folder).keys())
    if extra:
        raise ModelError(
            f"{tensors[extra[0]].file.name} in {folder} holds tensor {extra[0][:100]}, "
            "which the index doesn't name",
            "get the checkpoint again",
        )


def _pickled_files(folder: Path, *, allow_pickle: bool) -> tuple[Path, ...]:
    files = sorted(
        file for pattern in PICKLED for file in folder.glob(pattern) if file.name not in NOT_WEIGHTS
    )
    if not files:
        raise ModelError(
            f"{folder} has no weights: neither {WEIGHTS} nor {INDEX}",
            "get the missing file, or save the model again with save_pretrained",
        )
    if not allow_pickle:
        raise ModelError(
            f"{folder} has its weights only as a pickle ({files[0].name}), which can run code",
            "convert it to safetensors, or add --allow-pickle if you trust it",
        )
    return tuple(files)


def _check_dtypes(tensors: tuple[StoredTensor, ...], folder: Path) -> None:
    for tensor in tensors:
        # Old checkpoints carry position_ids, an integer buffer; every weight is a float.
        if tensor.dtype not in FLOATS and not tensor.name.endswith("position_ids"):
            raise ModelError(
                f"{tensor.file.name} in {folder} keeps {tensor.name[:100]} as {tensor.dtype}, "
                "expected floating-point weights",
                "use the unquantised checkpoint",
            )


def _check_against_config(
    tensors: tuple[StoredTensor, ...], config: Config, facts: FamilyFacts, folder: Path
) -> None:
    """Config and weights must have the same number of layers.

    transformers would fill layers that the file lacks with random numbers, and only log it.
    """
    groups = config.get("num_hidden_groups")
    counts = (
        ("layers", _LAYER, size(config, facts.config, "layers")),
        ("layer groups", _GROUP, groups if isinstance(groups, int) else None),
    )
    for what, pattern, declared in counts:
        stored = {int(match[1]) for tensor in tensors if (match := pattern.search(tensor.name))}
        if stored and declared is not None and len(stored) != declared:
            raise ModelError(
                f"config.json in {folder} says {declared} {what}, "
                f"but the weights have {len(stored)}",
                "get the checkpoint again, or correct the config",
            )
