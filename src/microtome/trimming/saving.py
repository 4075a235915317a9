"""The chosen cut as a folder: its surgery proven, its training recorded, its scores on its card."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from microtome import files
from microtome.edits import Edits, Vocabulary, parse
from microtome.experiments.field.trim.healing import RECORD
from microtome.families import adapt
from microtome.families.embedder import attach_embedder, embedder_of
from microtome.models import load, save
from microtome.models.sentence_transformers.embedder_files import write_embedder
from microtome.surgery import Certificate, apply, certify
from microtome.surgery.proof import healed_checks


def save_cut(
    base: Path,
    edit: str,
    healed: Path | None,
    out: Path,
    *,
    vocabulary: Path | None = None,
    pooling: str | None = None,
    scores: Callable[[PreTrainedModel], str] = lambda model: "",
) -> Certificate:
    """Write the cut of ``base`` by ``edit`` to ``out``; ``healed`` is its folder after training.

    The cut itself is proven on the base's weights, as ``operate`` proves it; of the trained weights
    it is proven that the folder gives what they compute. ``scores`` gives the card's
    words on the model that is saved. An encoder
    that was pooled by name (``pooling``) becomes a sentence-transformers folder.
    """
    smaller = () if vocabulary is None else (Vocabulary(vocabulary),)
    edits = Edits(parse(edit), *smaller)
    whole = _opened(base, pooling)
    cut = apply(edits, whole)
    proven: list[Certificate] = []

    def prove(folder: Path) -> Mapping[str, object]:
        _write_modules(cut, folder)
        proven.append(certify(edits, whole, cut, folder).require())
        return proven[-1].as_json()

    if healed is None:
        save(cut, out, prove=prove, story=scores(cut))
        return proven[-1]
    with tempfile.TemporaryDirectory() as place:
        save(cut, Path(place) / "cut", prove=prove)
    trained = _opened(healed, pooling)
    kept = apply(Edits(*smaller), trained) if smaller else trained

    def prove_trained(folder: Path) -> Mapping[str, object]:
        _write_modules(kept, folder)
        shutil.copyfile(healed / RECORD, folder / RECORD)
        before = (
            replace(check, name=f"before healing: {check.name}") for check in proven[0].checks
        )
        checks = (*before, *healed_checks(kept, folder))
        proven.append(Certificate(checks, proven[0].warnings).require())
        return proven[-1].as_json()

    record = files.read_json(healed / RECORD)
    story = f"{_training(record)} {scores(kept)}".strip()
    save(kept, out, prove=prove_trained, story=story, training=record)
    return proven[-1]


def _opened(folder: Path, pooling: str | None) -> PreTrainedModel:
    """The model with the head that the folder has; pooled by name, as it was measured."""
    if pooling is None:
        return load(folder, head="saved")
    model = load(folder, pooling=pooling)
    embedder = embedder_of(model)
    assert embedder is not None
    return attach_embedder(model, replace(embedder, is_folder=True))


def _write_modules(model: PreTrainedModel, folder: Path) -> None:
    """What sentence-transformers needs, where the base's folder doesn't have it to copy."""
    embedder = embedder_of(model)
    if embedder is not None and not (folder / "modules.json").is_file():
        write_embedder(folder, embedder, adapt(model).shape.width)


def _training(record: Mapping[str, Any]) -> str:
    """What happened to the weights after the cut, in a sentence."""
    return (
        "After the cut it learnt to answer as its base does:"
        f" {record['steps']:,} steps of {record['batch_size']} out of {record['texts']:,} texts,"
        f" seed {record['seed']} (`{RECORD}`). The certificate proves the cut; the training"
        " is recorded."
    )
