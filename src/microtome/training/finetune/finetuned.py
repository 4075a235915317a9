"""A fine-tuned model as a value, and as a folder with the record of how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome import files
from microtome.families import adapt
from microtome.families.embedder import attach_embedder, embedder_of
from microtome.models import attach, provenance_of, save
from microtome.models.sentence_transformers.embedder_files import write_embedder
from microtome.statistics import Interval
from microtome.surgery import Certificate, Check
from microtome.tasks import Evaluation
from microtome.tasks.scoring.scores import as_json as score_json
from microtome.training.finetune.state import Epoch
from microtome.training.recipe import Recipe

RECORD = "finetuning.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False)
class Finetuned:
    """A fine-tuned model, how it came about, and its scores on dev.

    ``evaluation`` and ``model`` are those of the kept epoch (``recipe.keep``).
    """

    name: str
    task: str
    edits: tuple[str, ...]
    seed: int
    out: Path | None
    recipe: Recipe
    evaluation: Evaluation
    logits: NDArray[np.float32]  # on dev, as `observe.predict` gives them
    history: tuple[Epoch, ...]
    kept_epoch: int
    certificate: Certificate | None
    micro_batch_size: int
    threads: int
    seconds: float  # of this call
    model: PreTrainedModel
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, Interval]:
        """By metric."""
        return self.evaluation.scores

    @property
    def primary(self) -> str:
        """The metric that decides."""
        return self.evaluation.primary

    def as_json(self) -> dict[str, object]:
        """What ``finetune --json`` prints."""
        return {
            "model": self.name,
            "task": self.task,
            "edits": list(self.edits),
            "seed": self.seed,
            "out": None if self.out is None else str(self.out),
            "scores": {name: score_json(interval) for name, interval in self.scores.items()},
            "primary": self.primary,
            "constant_scores": dict(self.evaluation.constant_scores),
        }


def save_finetuned(
    result: Finetuned, tokenizer: PreTrainedTokenizerBase, request: Mapping[str, object]
) -> None:
    """The folder appears whole: weights, tokenizer, card, and the record of how it was made."""
    assert result.out is not None
    record = {
        "schema_version": SCHEMA_VERSION,
        "request": dict(request),
        "history": [asdict(epoch) for epoch in result.history],
        "kept_epoch": result.kept_epoch,
        "micro_batch_size": result.micro_batch_size,
        "threads": result.threads,
        "scores": {name: score_json(score) for name, score in result.scores.items()},
        "primary": result.primary,
        "notes": list(result.notes),
    }
    family = adapt(result.model)
    bare = family.embedder
    if bare is not None and not bare.is_folder:
        length = min(result.recipe.max_length, family.n_positions, tokenizer.model_max_length)
        attach_embedder(result.model, replace(bare, max_length=length, is_folder=True))

    def add_record(folder: Path) -> Mapping[str, object] | None:
        files.write_json(folder / RECORD, record)
        saved = embedder_of(result.model)
        if saved is not None and saved is not bare:
            write_embedder(folder, saved, family.shape.width)
        return None if result.certificate is None else result.certificate.as_json()

    result.model.config.microtome_task = result.task
    origin = provenance_of(result.model)
    if origin is not None:
        # The base's dtype may be half precision; these weights were trained and scored in single.
        attach(result.model, replace(origin, dtype="float32"))
    save(result.model, result.out, tokenizer=tokenizer, prove=add_record, training=request)
    if bare is not None:
        attach_embedder(result.model, bare)  # the folder it came from is still without modules


def stored_certificate(history: Mapping[str, Any] | None) -> Certificate | None:
    """The certificate that a checkpoint's ``microtome.json`` keeps; None where it keeps none."""
    stored = (history or {}).get("certificate")
    if not stored:
        return None
    checks = tuple(Check(**check) for check in stored["checks"])
    return Certificate(checks, tuple(stored["warnings"]))
