"""The models that have a name of their own, with what their files say; no torch here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from microtome.errors import install_command
from microtome.families.catalogue import facts_of
from microtome.models.checkpoint import Checkpoint, look_at, look_at_fetched
from microtome.models.configuration import size
from microtome.models.front_matter import license_of
from microtome.models.heads import job_of
from microtome.models.source import EMBEDDED_FOLDER, MINILM, embedded_names, minilm_folder
from microtome.models.weights import FLOATS

PUBLISHED = EMBEDDED_FOLDER.parent / "checkpoints.json"


def list_models() -> list[dict[str, Any]]:
    """One item per embedded model: name family job layers heads width parameters source license."""
    return [_item(name) for name in embedded_names()]


def known_checkpoints() -> list[dict[str, Any]]:
    """Checkpoints that many people use, with the family and the job that each is taken for.

    Each has name, model_type, architecture, family and job; embedders their pooling, classifiers
    the number of their labels. Nothing is fetched: the list says it.
    """
    items: list[dict[str, Any]] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return [{**item, "family": facts_of(item["model_type"]).name} for item in items]


def _item(name: str) -> dict[str, Any]:
    folder = minilm_folder() if name == MINILM else EMBEDDED_FOLDER / name
    if folder is None:
        unknown = dict.fromkeys(("family", "job", "layers", "heads", "width", "parameters"))
        hint = f"not installed: {install_command('english')}"
        return {"name": name, **unknown, "source": hint, "license": None}
    checkpoint = look_at(folder)
    return {
        "name": name,
        **_facts(checkpoint),
        "source": "extra english" if name == MINILM else "embedded",
        "license": license_of(folder),
    }


def facts_of_model(folder: Path, name: str) -> dict[str, Any]:
    """What the files of a fetched checkpoint say: family, job, sizes, whether layers are shared."""
    checkpoint = look_at_fetched(folder)
    return {"model": name, **_facts(checkpoint), "shared": checkpoint.stack.is_shared}


def _facts(checkpoint: Checkpoint) -> dict[str, Any]:
    names = checkpoint.facts.config
    sizes = {key: size(checkpoint.config, names, key) for key in ("layers", "heads", "width")}
    return {
        "family": checkpoint.facts.name,
        "job": job_of(checkpoint),
        **sizes,
        # position_ids, an integer buffer in old files, is no parameter.
        "parameters": sum(
            tensor.n_elements for tensor in checkpoint.tensors if tensor.dtype in FLOATS
        ),
    }
