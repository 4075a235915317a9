"""Turn a checkpoint that was looked at into a model, with every weight accounted for."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedConfig,
    PreTrainedModel,
)

from microtome.errors import ModelError, UnsupportedFamily
from microtome.models.checkpoint import Checkpoint
from microtome.models.configuration import check_sizes
from microtome.models.heads import (
    HEAD_TENSORS,
    LABELLED,
    HeadName,
    is_head_tensor,
    is_pooler_tensor,
)
from microtome.models.sentence_transformers.folder import encoder_folder

_AUTO = {
    "mlm": AutoModelForMaskedLM,
    "classification": AutoModelForSequenceClassification,
    "token-classification": AutoModelForTokenClassification,
    "question-answering": AutoModelForQuestionAnswering,
    "none": AutoModel,
}
# What transformers raises on a config or a file that is wrong in some unforeseen way.
_LIBRARY_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError,
    TypeError, ValueError, SafetensorError, StrictDataclassError, pickle.UnpicklingError,
)  # fmt: skip


@dataclass(frozen=True)
class HeadChoice:
    """Which head the model gets: the one stored in the checkpoint, another, or a fresh one.

    ``architecture`` is the class of a head that is loaded as it is, whatever it is.
    """

    stored: HeadName
    head: HeadName
    is_fresh: bool
    seed: int
    architecture: str | None = None


def build_config(
    checkpoint: Checkpoint, choice: HeadChoice, labels: Mapping[int, str] | None
) -> PreTrainedConfig:
    """The checkpoint's config as transformers reads it, bounded once more, with the new labels."""
    try:
        config = AutoConfig.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=False
        )
    except _LIBRARY_ERRORS as error:
        raise _unloadable(checkpoint.folder, error) from error
    for prefix, key, value in checkpoint.facts.layouts:
        is_stored = any(tensor.name.startswith(prefix) for tensor in checkpoint.tensors)
        if is_stored and key not in checkpoint.config:
            setattr(config, key, value)
    if choice.architecture is None:
        _check_class(config, choice.head)
    if choice.is_fresh:
        config.problem_type = None
        if labels is not None:
            config.id2label = dict(labels)
            config.label2id = {label: index for index, label in labels.items()}
    # Once more, with what transformers fills in where the file says nothing.
    check_sizes(config.to_dict(), checkpoint.facts, str(checkpoint.folder))
    return config


def _check_class(config: PreTrainedConfig, head: HeadName) -> None:
    """Refuse a head that transformers has no class for in this family."""
    kinds = [name for name, auto in _AUTO.items() if type(config) in auto._model_mapping]
    if head not in kinds:
        raise UnsupportedFamily(
            f"transformers has no {config.model_type} class for {head}",
            f"heads of {config.model_type}: {', '.join(kinds)}",
        )


def build_model(
    checkpoint: Checkpoint,
    config: PreTrainedConfig,
    choice: HeadChoice,
    *,
    attention: str,
    dtype: torch.dtype,
) -> PreTrainedModel:
    """The model with the checkpoint's weights; weights that don't fit it are refused by name."""
    folder, auto = checkpoint.folder, _class_of(choice, config)
    try:
        skeleton = _skeleton(config, choice)
        _check_n_parameters(checkpoint, skeleton, choice)
        with _random_numbers_from(choice.seed):
            model, info = auto.from_pretrained(
                folder,
                config=copy.deepcopy(config),  # from_pretrained writes into it
                dtype=dtype,
                attn_implementation="eager" if checkpoint.facts.only_eager else attention,
                use_safetensors=not checkpoint.is_pickled,
                weights_only=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                **_pooler_option(checkpoint, skeleton),
            )
        _check_keys(info, choice, folder)
        if choice.is_fresh and choice.stored in LABELLED:
            _renew_head_(model, choice)
    except _LIBRARY_ERRORS as error:
        raise _unloadable(folder, error) from error
    return model


def lacks_pooler(model: PreTrainedModel) -> bool:
    """Whether a headless model has no pooler, where plain transformers would draw a random one."""
    names = (name for name, _ in model.named_parameters())
    return _has_optional_pooler(model) and not any(map(is_pooler_tensor, names))


def outline(folder: Path) -> PreTrainedModel:
    """The encoder of a checkpoint without numbers, to be asked about its structure.

    ``adapt(outline(folder)).sharing`` costs no memory for weights; it can't compute anything.
    """
    config = AutoConfig.from_pretrained(
        encoder_folder(folder), local_files_only=True, trust_remote_code=False
    )
    with torch.device("meta"):
        encoder: PreTrainedModel = AutoModel.from_config(config, trust_remote_code=False)
    return encoder


def _skeleton(config: PreTrainedConfig, choice: HeadChoice) -> PreTrainedModel:
    """The model without numbers: on the meta device a tensor is a shape and takes no memory."""
    with torch.device("meta"):
        if choice.architecture is not None:
            return _class_of(choice, config)(copy.deepcopy(config))
        return _AUTO[choice.head].from_config(
            copy.deepcopy(config), attn_implementation="eager", trust_remote_code=False
        )


def _class_of(choice: HeadChoice, config: PreTrainedConfig) -> Any:  # noqa: ANN401
    """The class to load with: an Auto class, or for an unmeasured head transformers' own class."""
    if choice.architecture is None:
        return _AUTO[choice.head]
    found = getattr(transformers, choice.architecture, None)
    is_model = isinstance(found, type) and issubclass(found, PreTrainedModel)
    # The name comes from a file: only a class made for this very config may be built.
    if not is_model or getattr(found, "config_class", None) is not type(config):
        raise UnsupportedFamily(
            f"config.json names {choice.architecture}, which transformers doesn't have for "
            f"{config.model_type}",
            "correct the architectures in config.json, or load it with head='none'",
        )
    return found


def _check_n_parameters(
    checkpoint: Checkpoint, skeleton: PreTrainedModel, choice: HeadChoice
) -> None:
    """Refuse a config of far more weights than the files hold, before they are allocated.

    A few weights too many are named one by one after loading, which says more.
    """
    n_described = sum(
        value.numel()
        for name, value in skeleton.named_parameters()
        if not is_pooler_tensor(name) and not (choice.is_fresh and is_head_tensor(name))
    )
    n_stored = sum(tensor.n_elements for tensor in checkpoint.tensors)
    if checkpoint.is_pickled:  # its tensors can't be seen; each number takes 2 bytes at least
        n_stored = sum(file.stat().st_size for file in checkpoint.files) // 2
    if n_described > 2 * n_stored:
        raise ModelError(
            f"config.json in {checkpoint.folder} describes {n_described:,} weights, "
            f"but the files hold {n_stored:,}",
            "get the checkpoint again, or correct the config",
        )


def _pooler_option(checkpoint: Checkpoint, skeleton: PreTrainedModel) -> dict[str, bool]:
    """Without this a headless model of a checkpoint that has no pooler would get a random one."""
    has_pooler = any(is_pooler_tensor(tensor.name) for tensor in checkpoint.tensors)
    is_optional = _has_optional_pooler(skeleton)
    return {"add_pooling_layer": False} if is_optional and not has_pooler else {}


def _has_optional_pooler(model: PreTrainedModel) -> bool:
    """Whether the class has a pooler unless it is told not to; NomicBERT's and gte's don't."""
    option = inspect.signature(type(model).__init__).parameters.get("add_pooling_layer")
    return option is not None and option.default is True


@contextmanager
def _random_numbers_from(seed: int) -> Iterator[None]:
    """Fresh weights from ``seed``; the caller's random numbers continue as if nothing was drawn."""
    state = torch.default_generator.get_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.default_generator.set_state(state)


def _check_keys(info: Mapping[str, Any], choice: HeadChoice, folder: Path) -> None:
    missing = sorted(name for name in info["missing_keys"] if not _may_miss(name, choice))
    if missing:
        raise _misfit(folder, "lacks", missing)
    unexpected = sorted(name for name in info["unexpected_keys"] if not _may_have(name, choice))
    if unexpected:
        raise _misfit(folder, "has weights that the model has no place for:", unexpected)
    mismatched = sorted(
        f"{name} {tuple(stored)} instead of {tuple(expected)}"
        for name, stored, expected in info["mismatched_keys"]
        if not (choice.is_fresh and is_head_tensor(name))
    )
    if mismatched:
        raise _misfit(folder, "has weights of the wrong shape:", mismatched)
    if info.get("error_msgs"):
        raise _misfit(folder, "can't be read:", [str(text) for text in info["error_msgs"]])


def _may_miss(name: str, choice: HeadChoice) -> bool:
    # Only what a fresh head consists of: BERT's classifier sits on a pooler, part of the head here.
    return choice.is_fresh and (is_head_tensor(name) or is_pooler_tensor(name))


def _may_have(name: str, choice: HeadChoice) -> bool:
    if is_pooler_tensor(name):
        return True  # masked-LM and QA classes have no pooler, their checkpoints often do
    if name.endswith("embeddings.position_ids"):
        return True  # a buffer 0, 1, 2, … that transformers 3 saved; not a weight
    if name.startswith(HEAD_TENSORS["pretraining"]):
        return True  # next-sentence and discriminator heads: no class that is loaded here has them
    # A head that isn't the chosen one is dropped; the chosen one must fit completely.
    return is_head_tensor(name) and (choice.is_fresh or choice.head == "none")


@torch.no_grad()
def _renew_head_(model: PreTrainedModel, choice: HeadChoice) -> None:
    """Overwrite a head that came from the file: the caller asked for a fresh one.

    Needed where a classifier and a QA head have the same tensor names, or labels are new.
    """
    with _random_numbers_from(choice.seed):
        fresh = _AUTO[choice.head].from_config(
            copy.deepcopy(model.config), attn_implementation="eager", trust_remote_code=False
        )
    values = dict(fresh.named_parameters())
    # A tied decoder is the embeddings, which must stay. named_parameters gives it under the name of
    # whichever the class makes first: jina v3's is the head.
    words = model.get_input_embeddings().weight
    for name, value in model.named_parameters():
        if is_head_tensor(name) and value is not words:
            value.copy_(values[name])


def _misfit(folder: Path, what: str, names: list[str]) -> ModelError:
    shown = ", ".join(name[:100] for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ModelError(
        f"the checkpoint {folder} {what} {shown}{more}",
        "config.json and weights don't belong together; get the checkpoint again",
    )


def _unloadable(folder: Path, error: BaseException) -> ModelError:
    reason = " ".join(str(error).split())[:300]
    return ModelError(
        f"transformers can't load {folder}: {type(error).__name__}: {reason}",
        "check config.json and the weight files, or get the checkpoint again",
    )
