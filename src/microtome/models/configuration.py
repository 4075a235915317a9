"""A checkpoint's config.json, read and bounded before any library acts on it; no torch here.

``transformers`` accepts a config of ten million layers, and builds them. Here every size has a
bound, so that a hostile or mistyped config costs one line, not the machine's memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from microtome.errors import ModelError, UnsupportedFamily
from microtome.families.catalogue import FAMILIES, ConfigNames, FamilyFacts, facts_of

MAX_CONFIG_BYTES = 1_000_000

Config = Mapping[str, object]

# The smallest and the largest that is loaded.
SIZES = {
    "layers": (1, 256),
    "heads": (1, 256),
    "width": (1, 16_384),
    "inner": (1, 131_072),
    "vocabulary": (1, 2_000_000),
    "positions": (1, 1_000_000),
}
# A config may use a family's name or the general one: DistilBERT reads n_layers and
# num_hidden_layers alike. So every name that any family uses is bounded in every config.
_BOUNDS: dict[str, tuple[int, int]] = {
    getattr(names, meaning): bounds
    for names in (ConfigNames(), *(facts.config for facts in FAMILIES))
    for meaning, bounds in SIZES.items()
} | {
    "embedding_size": (1, 16_384),
    "head_dim": (1, 16_384),  # rotary tables are as wide as this says, and not in the file
    "num_key_value_heads": (1, 256),
    "type_vocab_size": (0, 1_000),
    "num_hidden_groups": (1, 256),
    "inner_group_num": (1, 16),
    "num_labels": (1, 10_000),
    "local_attention": (1, 1_000_000),
    "global_attn_every_n_layers": (1, 256),
    "chunk_size_feed_forward": (0, 1_000_000),
    "relative_attention_num_buckets": (1, 100_000),
    "max_relative_positions": (-1, 1_000_000),
    "position_buckets": (-1, 100_000),
    "pooler_hidden_size": (1, 16_384),
    "conv_kernel_size": (0, 1_000),
}


def read_json(file: Path, *, max_bytes: int) -> object:
    """What a JSON file of limited size holds."""
    size = file.stat().st_size
    if size > max_bytes:
        raise ModelError(
            f"{file.name} in {file.parent} has {size} bytes, more than the {max_bytes} allowed",
            "this isn't an ordinary checkpoint; get it from its publisher again",
        )
    try:
        content: object = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise ModelError(
            f"{file.name} in {file.parent} is not valid JSON ({reason})", "get the file again"
        ) from error
    return content


def read_object(file: Path, *, max_bytes: int) -> dict[str, object]:
    """A JSON object from a file of limited size."""
    content = read_json(file, max_bytes=max_bytes)
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise ModelError(
            f"{file.name} in {file.parent} holds a {kind}, expected a JSON object",
            "get the file again",
        )
    return content


def read_config(file: Path) -> tuple[dict[str, object], FamilyFacts]:
    """The config of a supported family with sizes within bounds; anything else is refused."""
    config = read_object(file, max_bytes=MAX_CONFIG_BYTES)
    where = str(file.parent)
    refuse_own_code(config, where)
    facts = _family(config, where)
    check_sizes(config, facts, where)
    return config, facts


def refuse_own_code(config: Config, where: str) -> None:
    """Code that comes with a checkpoint (``auto_map``) is never run, so it is refused early."""
    if config.get("auto_map"):
        raise ModelError(
            f"{where} would run code that comes with it (auto_map)",
            "Microtome runs no code from checkpoints; use one of a family that transformers has",
        )


def check_sizes(config: Config, facts: FamilyFacts, where: str) -> None:
    """Every size a whole number within its bounds, and those that belong together fitting."""
    of_family = {getattr(facts.config, meaning): bounds for meaning, bounds in SIZES.items()}
    for key, (low, high) in (_BOUNDS | of_family).items():
        if config.get(key) is not None:
            _check_bound(config, key, low, high, where)
    _check_heads(config, facts.config, where)
    _check_groups(config, where)
    if config.get("is_decoder") or config.get("add_cross_attention"):
        raise UnsupportedFamily(f"{where} is a decoder", "Microtome works on encoders")
    if config.get("quantization_config"):
        raise ModelError(f"{where} holds quantised weights", "use the unquantised checkpoint")


def size(config: Config, names: ConfigNames, meaning: str) -> int | None:
    """A size under the family's key or the general one; None where the config leaves it out."""
    for key in (getattr(names, meaning), getattr(ConfigNames(), meaning)):
        value = config.get(key)
        if isinstance(value, int):
            return value
    return None


def _family(config: Config, where: str) -> FamilyFacts:
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        known = ", ".join(name for facts in FAMILIES for name in facts.model_types)
        raise UnsupportedFamily(
            f"config.json in {where} names no model_type", f"supported: {known}"
        )
    return facts_of(model_type[:100])


def _check_bound(config: Config, key: str, low: int, high: int, where: str) -> None:
    value = config[key]
    if type(value) is not int:  # a bool is an int to isinstance, and 12.0 layers are none
        raise ModelError(
            f"config.json in {where} has {key} = {str(value)[:40]!r}, expected a whole number",
            "get the checkpoint again",
        )
    if not low <= value <= high:
        # str() of an integer of a million digits is slow and refused by Python.
        shown = value if abs(value) < 10**30 else "a number of more than 30 digits"
        raise ModelError(
            f"config.json in {where} has {key} = {shown}, expected {low} to {high}",
            "get the checkpoint again",
        )


def _check_heads(config: Config, names: ConfigNames, where: str) -> None:
    width, heads = size(config, names, "width"), size(config, names, "heads")
    if width is not None and heads is not None and width % heads:
        raise ModelError(
            f"config.json in {where} has width {width}, not divisible by {heads} heads",
            "get the checkpoint again",
        )

    groups = config.get("num_key_value_heads")
    if heads is not None and isinstance(groups, int) and heads % groups:
        raise ModelError(
            f"config.json in {where} has {heads} heads, not divisible by {groups} groups of keys",
            "get the checkpoint again",
        )
    head_width = config.get("head_dim")
    if width is not None and heads is not None and head_width not in (None, width // heads):
        raise ModelError(
            f"config.json in {where} has heads of width {head_width}, but {width} over {heads} "
            f"heads gives {width // heads}",
            "get the checkpoint again",
        )


def _check_groups(config: Config, where: str) -> None:
    groups, layers = config.get("num_hidden_groups"), config.get("num_hidden_layers")
    if isinstance(groups, int) and isinstance(layers, int) and groups > layers:
        raise ModelError(
            f"config.json in {where} has {groups} layer groups for {layers} layers",
            "get the checkpoint again",
        )
