"""Tiny sentence-transformers folders, written file by file, as the library reads them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from support.tiny import WIDTH, save_tiny, tiny_tokenizer

OLD = "sentence_transformers.models."
NEW = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "Dense": "sentence_transformers.base.modules.dense.Dense",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
    "LayerNorm": "sentence_transformers.sentence_transformer.modules.layer_norm.LayerNorm",
}
MARKS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
TEXTS = ["the cat sees a big red dog .", "No", "She sings and he never sleeps in the old house"]


def write_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")


def sentence_folder(
    folder: Path,
    family: str = "bert",
    *,
    modes: tuple[str, ...] = ("mean",),
    then: tuple[str, ...] = ("Normalize",),
    encoder: str = "",
    new_names: bool = False,
    include_prompt: bool = True,
    prompts: dict[str, str] | None = None,
    default_prompt: str | None = None,
    max_seq_length: int = 40,
    dense: dict[str, object] | None = None,
    dtype: torch.dtype = torch.float32,
) -> Path:
    """A folder of an encoder, a Pooling and the modules in ``then``; gives the folder back."""
    save_tiny(folder / encoder, family, "none", dtype=dtype)
    tiny_tokenizer(family).save_pretrained(folder / encoder)
    settings = {"max_seq_length": max_seq_length, "do_lower_case": False}
    write_json(folder / encoder / "sentence_bert_config.json", settings)
    modules = [("Transformer", encoder), ("Pooling", "1_Pooling")]
    modules += [(kind, f"{place}_{kind}") for place, kind in enumerate(then, start=2)]
    entries = [
        {"idx": i, "name": str(i), "path": path, "type": NEW[kind] if new_names else OLD + kind}
        for i, (kind, path) in enumerate(modules)
    ]
    write_json(folder / "modules.json", entries)
    pooling: dict[str, object] = {"word_embedding_dimension": WIDTH}
    pooling |= {key: mode in modes for mode, key in MARKS.items()}
    if new_names:
        pooling = {"embedding_dimension": WIDTH, "pooling_mode": list(modes)}
    if not include_prompt:
        pooling["include_prompt"] = False
    write_json(folder / "1_Pooling" / "config.json", pooling)
    if prompts is not None:
        sentence = {"prompts": prompts, "default_prompt_name": default_prompt}
        write_json(folder / "config_sentence_transformers.json", sentence)
    width = WIDTH * len(modes)
    for kind, path in modules[2:]:
        if kind in ("Dense", "LayerNorm"):
            width = _with_weights(folder / path, kind, width, dense or {})
    return folder


def _with_weights(folder: Path, kind: str, width: int, options: dict[str, object]) -> int:
    drawn = torch.Generator().manual_seed(7)
    new_width = 24 if kind == "Dense" else width
    if kind == "LayerNorm":
        write_json(folder / "config.json", {"dimension": width})
        tensors = {
            "norm.weight": 1 + torch.rand(width, generator=drawn),
            "norm.bias": torch.randn(width, generator=drawn),
        }
    else:
        activation = "torch.nn.modules.activation.Tanh"
        config = {"in_features": width, "out_features": new_width, "bias": True}
        write_json(folder / "config.json", config | {"activation_function": activation} | options)
        tensors = {"linear.weight": torch.randn(new_width, width, generator=drawn)}
        if options.get("bias", True):
            tensors["linear.bias"] = torch.randn(new_width, generator=drawn)
        if options.get("use_residual"):
            tensors["residual.weight"] = torch.randn(new_width, width, generator=drawn)
    save_file(tensors, folder / "model.safetensors")
    return new_width
