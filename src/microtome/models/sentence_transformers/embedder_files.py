"""Read what comes after a folder's encoder: pooling, dense layers, norms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from safetensors.torch import load_file
from torch import Tensor

from microtome.errors import ModelError, RequestError
from microtome.families.embedder import (
    ACTIVATIONS,
    POOLING_MODES,
    Dense,
    Embedder,
    LayerNorm,
    Normalize,
    PoolingMode,
    Step,
)
from microtome.models.configuration import MAX_CONFIG_BYTES, read_object
from microtome.models.sentence_transformers.folder import (
    ENCODER,
    ENCODER_SETTINGS,
    MODULES,
    POOLING,
    Module,
    SentenceFolder,
)
from microtome.models.weights import FLOATS, stored_tensors

WEIGHTS = "model.safetensors"
LIBRARY = "sentence_transformers.models."  # where every version finds its modules
POOLINGS_BY_NAME = ("cls", "mean")
SENTENCE = "sentence_embedding"  # what every module after pooling reads and writes

# Old folders mark every mode with a key of its own.
_MARKS: Mapping[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def bare_embedder(pooling: str) -> Embedder:
    """The embedder of an encoder that comes without modules: pooled by ``cls`` or ``mean``."""
    if pooling not in POOLINGS_BY_NAME:
        expected = " or ".join(POOLINGS_BY_NAME)
        raise RequestError(f"pooling must be {expected}, got {pooling!r}")
    return Embedder((cast(PoolingMode, pooling),))


def write_embedder(folder: Path, embedder: Embedder, width: int) -> None:
    """Let ``folder``, which has a bare encoder, say how sentence-transformers pools it."""
    kinds = {ENCODER: "", POOLING: f"1_{POOLING}"}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"{LIBRARY}{kind}"}
        for place, (kind, path) in enumerate(kinds.items())
    ]
    pooling: dict[str, object] = {"word_embedding_dimension": width}
    pooling |= {key: mode in embedder.modes for key, mode in _MARKS.items()}
    (folder / kinds[POOLING]).mkdir()
    settings = {"max_seq_length": embedder.max_length, "do_lower_case": False}
    for name, content in (
        (MODULES, modules),
        (f"{kinds[POOLING]}/config.json", pooling),
        (ENCODER_SETTINGS[0], settings),
    ):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_embedder(folder: SentenceFolder, width: int) -> Embedder:
    """The embedder of a folder whose encoder has states of ``width``."""
    pooling = folder.root / folder.modules[1].path
    modes, include_prompt = _pooling(pooling, width)
    steps: list[Step] = []
    width *= len(modes)
    for module in folder.modules[2:]:
        step, width = _step(folder.root / module.path, module, width)
        steps += [] if step is None else [step]
    return Embedder(
        modes,
        tuple(steps),
        include_prompt=include_prompt,
        prompts=folder.prompts,
        default_prompt=folder.default_prompt,
        max_length=folder.max_length,
        similarity=folder.similarity,
        path=folder.modules[0].path,
        is_folder=True,
    )


def _pooling(folder: Path, width: int) -> tuple[tuple[PoolingMode, ...], bool]:
    config = _config(folder, POOLING)
    declared = config.get("word_embedding_dimension", config.get("embedding_dimension"))
    if declared != width:
        raise _unusable(folder, f"expects states of width {declared}, the encoder has {width}")
    given = config.get("pooling_mode")
    if given is None:
        given = [mode for key, mode in _MARKS.items() if config.get(key) is True]
    modes = tuple(given) if isinstance(given, list) else (given,)
    for mode in modes:
        if mode not in POOLING_MODES:
            known = ", ".join(POOLING_MODES)
            raise _unusable(folder, f"pools by {str(mode)[:40]!r}, expected some of {known}")
    if not modes:
        raise _unusable(folder, f"names no way of pooling, expected some of {', '.join(_MARKS)}")
    return modes, config.get("include_prompt") is not False


def _step(folder: Path, module: Module, width: int) -> tuple[Step | None, int]:
    """The step and the width after it; None for a module that does nothing when it computes."""
    if module.kind == "Dropout":
        return None, width
    if module.kind == "Normalize":
        if (folder / "config.json").is_file():
            _check_names(folder, _config(folder, "Normalize"))
        return Normalize(), width
    config = _config(folder, module.kind)
    if module.kind == "LayerNorm":
        shapes = {"norm.weight": (width,), "norm.bias": (width,)}
        values = _tensors(folder, shapes)
        return LayerNorm(values["norm.weight"], values["norm.bias"]), width
    return _dense(folder, config, width)


def _dense(folder: Path, config: Mapping[str, object], width: int) -> tuple[Dense, int]:
    _check_names(folder, config)
    new_width = config.get("out_features")
    if config.get("in_features") != width or type(new_width) is not int:
        sizes = f"{config.get('in_features')} to {new_width}"
        raise _unusable(folder, f"goes from width {sizes}, but comes after width {width}")
    path = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))[:100]
    activation = path.rpartition(".")[2]
    if not path.startswith("torch.nn.") or activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise _unusable(folder, f"has the activation {path!r}, expected torch's {known}")
    adds_input = config.get("use_residual") is True
    shapes: dict[str, tuple[int, ...]] = {"linear.weight": (new_width, width)}
    if config.get("bias") is not False:
        shapes["linear.bias"] = (new_width,)
    if adds_input and new_width != width:
        shapes["residual.weight"] = (new_width, width)
    values = _tensors(folder, shapes)
    dense = Dense(
        values["linear.weight"],
        values.get("linear.bias"),
        activation,
        adds_input,
        values.get("residual.weight"),
    )
    return dense, new_width


def _check_names(folder: Path, config: Mapping[str, object]) -> None:
    """A module may be told to read and write something else than the sentence's embedding."""
    for key in ("module_input_name", "module_output_name"):
        if config.get(key, SENTENCE) not in (SENTENCE, None):
            name = str(config[key])[:60]
            raise _unusable(folder, f"has {key} {name!r}, expected {SENTENCE!r}")


def _config(folder: Path, kind: str) -> Mapping[str, object]:
    file = folder / "config.json"
    if not file.is_file():
        # sentence-transformers would take mean pooling, or its defaults, without a word.
        raise ModelError(
            f"{folder} has no config.json, so how its {kind} works is unknown",
            "get the missing file",
        )
    return read_object(file, max_bytes=MAX_CONFIG_BYTES)


def _tensors(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The weights of a module, which must be exactly ``shapes``; as float32."""
    file = folder / WEIGHTS
    if not file.is_file():
        pickled = next((file.name for file in sorted(folder.glob("*.bin"))), None)
        if pickled is not None:
            raise ModelError(
                f"{folder} has its weights only as a pickle ({pickled}), which can run code",
                "load the model with sentence-transformers and save it again: it writes "
                "safetensors",
            )
        raise ModelError(f"{folder} has no {WEIGHTS}", "get the missing file")
    stored = {
        tensor.name: tensor.shape for tensor in stored_tensors(file) if tensor.dtype in FLOATS
    }
    if stored != dict(shapes):
        raise _unusable(folder, f"holds the weights {stored}, expected {dict(shapes)}")
    return {name: value.float() for name, value in load_file(file).items()}


def _unusable(folder: Path, what: str) -> ModelError:
    return ModelError(f"{folder} {what}", "get the folder again")
