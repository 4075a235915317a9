"""The models that have a name of their own, with what their files say; no torch here."""

from __future__ import annotations

from typing import Any

from microtome.errors import install_command
from microtome.models.checkpoint import look_at
from microtome.models.configuration import size
from microtome.models.front_matter import license_of
from microtome.models.source import EMBEDDED_FOLDER, MINILM, embedded_names, minilm_folder
from microtome.models.weights import FLOATS


def list_models() -> list[dict[str, Any]]:
    """One item per embedded model: name family layers heads width parameters source license."""
    return [_item(name) for name in embedded_names()]


def _item(name: str) -> dict[str, Any]:
    folder = minilm_folder() if name == MINILM else EMBEDDED_FOLDER / name
    if folder is None:
        unknown = dict.fromkeys(("family", "layers", "heads", "width", "parameters"))
        hint = f"not installed: {install_command('english')}"
        return {"name": name, **unknown, "source": hint, "license": None}
    checkpoint = look_at(folder)
    names = checkpoint.facts.config
    sizes = {key: size(checkpoint.config, names, key) for key in ("layers", "heads", "width")}
    return {
        "name": name,
        "family": checkpoint.facts.name,
        **sizes,
        # position_ids, an integer buffer in old files, is no parameter.
        "parameters": sum(
            tensor.n_elements for tensor in checkpoint.tensors if tensor.dtype in FLOATS
        ),
        "source": "extra english" if name == MINILM else "embedded",
        "license": license_of(folder),
    }
