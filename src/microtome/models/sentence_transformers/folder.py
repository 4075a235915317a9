"""What a sentence-transformers folder says about itself, read without torch.

``modules.json`` lists the modules in their order and the sub-folder of each. Only modules that are
known here are taken: an unknown one would compute something that Microtome doesn't.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from microtome.errors import ModelError
from microtome.models.configuration import MAX_CONFIG_BYTES, read_json, read_object

MODULES = "modules.json"
SETTINGS = "config_sentence_transformers.json"
ENCODER_SETTINGS = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta")
)
"""The names under which an encoder's settings are kept; the first is the usual one."""

ENCODER, POOLING = "Transformer", "Pooling"
STEPS = ("Dense", "Normalize", "LayerNorm", "Dropout")  # a dropout does nothing but in training
MAX_MODULES = 20
PICKLES = (".bin", ".pt", ".pth", ".ckpt")

_PATH = re.compile(r"(?!\.)[\w.-]{0,100}", re.ASCII)


@dataclass(frozen=True)
class Module:
    """One module: the last part of its class's name, and its sub-folder ("" is the folder)."""

    kind: str
    path: str


@dataclass(frozen=True)
class SentenceFolder:
    """A folder with a ``modules.json`` whose modules are all known."""

    root: Path
    modules: tuple[Module, ...]

    @property
    def encoder(self) -> Path:
        """Where the encoder's config, weights and tokenizer are."""
        return self.root / self.modules[0].path

    @property
    def is_embedder(self) -> bool:
        """Whether it makes embeddings; else it is a cross-encoder, which scores pairs."""
        return len(self.modules) > 1

    @cached_property
    def encoder_settings(self) -> Mapping[str, object]:
        """What ``sentence_bert_config.json`` says: max_seq_length, do_lower_case."""
        for name in ENCODER_SETTINGS:
            if (self.encoder / name).is_file():
                return read_object(self.encoder / name, max_bytes=MAX_CONFIG_BYTES)
        return {}

    @property
    def max_length(self) -> int | None:
        """How many tokens of a text are read; None where the folder doesn't say."""
        length = self.encoder_settings.get("max_seq_length")
        return length if isinstance(length, int) and length > 0 else None

    @property
    def lowers_case(self) -> bool:
        """Whether texts are lower-cased before the tokenizer."""
        return self.encoder_settings.get("do_lower_case") is True

    @cached_property
    def settings(self) -> Mapping[str, object]:
        """What ``config_sentence_transformers.json`` says: prompts, similarity, model_type."""
        return sentence_settings(self.root)

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts by name; an empty one is none."""
        prompts = self.settings.get("prompts")
        if not isinstance(prompts, dict):
            return {}
        return {str(name): text for name, text in prompts.items() if isinstance(text, str)}

    @property
    def similarity(self) -> str:
        """How embeddings are compared: cosine unless the folder says otherwise."""
        name = self.settings.get("similarity_fn_name")
        return name[:40] if isinstance(name, str) else "cosine"

    @property
    def default_prompt(self) -> str | None:
        """The name of the prompt that every text gets unless another one is asked for."""
        name = self.settings.get("default_prompt_name")
        return name if isinstance(name, str) and name in self.prompts else None

    def files(self) -> Iterator[Path]:
        """The files that no edit concerns, relative to the folder: settings, and all modules'.

        Without the encoder's weights, config and tokenizer.
        """
        yield from (Path(name) for name in (MODULES, SETTINGS) if (self.root / name).is_file())
        for name in ENCODER_SETTINGS:
            if (self.encoder / name).is_file():
                yield Path(self.modules[0].path) / name
        for module in self.modules[1:]:
            for file in sorted((self.root / module.path).rglob("*")) if module.path else ():
                if file.is_file() and file.suffix not in PICKLES:
                    yield file.relative_to(self.root)


def sentence_folder(root: Path) -> SentenceFolder | None:
    """The folder's modules; None where there is no ``modules.json``, an error on unknown ones."""
    if not (root / MODULES).is_file():
        return None
    modules = module_list(root)
    kinds = [module.kind for module in modules]
    if kinds[0] != ENCODER or kinds.count(ENCODER) > 1:
        raise _unusable(root, f"lists {', '.join(kinds)}; expected one Transformer, first of all")
    is_cross_encoder = sentence_settings(root).get("model_type") == "CrossEncoder"
    if is_cross_encoder and len(kinds) > 1:
        raise _unusable(root, f"lists {kinds[1]}; expected a cross-encoder of a Transformer alone")
    if not is_cross_encoder and (kinds[1:2] != [POOLING] or kinds.count(POOLING) > 1):
        raise _unusable(root, f"lists {', '.join(kinds)}; expected one Pooling after Transformer")
    return SentenceFolder(root, modules)


def module_list(root: Path) -> tuple[Module, ...]:
    """The modules that ``modules.json`` lists, in their order; an unknown one is refused."""
    entries = read_json(root / MODULES, max_bytes=MAX_CONFIG_BYTES)
    if not isinstance(entries, list) or not 0 < len(entries) <= MAX_MODULES:
        raise _unusable(root, f"is not a list of 1 to {MAX_MODULES} modules")
    return tuple(_module(root, entry) for entry in entries)


def encoder_folder(root: Path) -> Path:
    """Where a checkpoint's config, weights and tokenizer are: nearly always ``root`` itself."""
    sentence = sentence_folder(root)
    return root if sentence is None else sentence.encoder


def sentence_settings(root: Path) -> Mapping[str, object]:
    """What ``config_sentence_transformers.json`` says; nothing where there is none."""
    file = root / SETTINGS
    return read_object(file, max_bytes=MAX_CONFIG_BYTES) if file.is_file() else {}


def sentence_files(root: Path) -> Iterator[Path]:
    """The files that sentence-transformers needs besides the encoder, relative to the folder."""
    sentence = sentence_folder(root)
    if sentence is not None:
        yield from sentence.files()
    elif (root / SETTINGS).is_file():
        yield Path(SETTINGS)


def modules_hash(root: Path) -> str:
    """The sha256 of what comes after a folder's encoder: modules, settings, weights of a Dense."""
    digest = hashlib.sha256()
    for file in sentence_files(root):
        content = (root / file).read_bytes()
        digest.update(f"{file.as_posix()} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def _module(root: Path, entry: object) -> Module:
    kind, path = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(path, str):
        raise _unusable(root, f"has {str(entry)[:100]!r}, expected a module's type and path")
    known = (ENCODER, POOLING, *STEPS)
    name = kind.rpartition(".")[2]
    if not kind.startswith("sentence_transformers.") or name not in known:
        raise ModelError(
            f"{MODULES} in {root} lists the module {kind[:100]!r}, which Microtome doesn't know",
            f"known: {', '.join(known)}; without {MODULES} the folder is an encoder alone",
        )
    if not _PATH.fullmatch(path):
        raise _unusable(root, f"has the path {path[:100]!r}, expected the name of a sub-folder")
    return Module(name, path)


def _unusable(root: Path, what: str) -> ModelError:
    return ModelError(f"{MODULES} in {root} {what}", "get the folder again")
