"""From a trained model to a folder: last figures, half precision, tokenizer, card."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from microtome.models.quiet import quiet_transformers
from microtome.models.tokenizers import copy_tokenizer
from microtome.training.pretrain import PretrainResult
from microtome.training.pretraining import checkpoint
from microtome.training.pretraining.building import wrapped_tokenizer
from microtome.training.pretraining.card import card
from microtome.training.pretraining.continuing import start_folder, start_record
from microtome.training.pretraining.evaluation import (
    decoding_curve,
    heldout_scores,
    random_blocks,
)
from microtome.training.pretraining.preparation import Prepared
from microtome.training.pretraining.scaling import shrink_embeddings_
from microtome.training.pretraining.schedule import Plan
from microtome.training.storage import storing

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from microtome.training.pretrain import PretrainRequest
    from microtome.training.pretraining.stepping import Training

RECORD = "pretraining.json"
CURVE_ROWS = 256


def finish(
    request: PretrainRequest, prepared: Prepared, plan: Plan, training: Training
) -> PretrainResult:
    """Measure the model as it will be stored (float16); write it to `out`, whole or not at all."""
    stored = copy.deepcopy(training.model).eval()
    shrink_embeddings_(stored)
    stored.half()
    measured = copy.deepcopy(stored).float()
    result = measure(request, prepared, training, measured)
    with (
        storing(request.out, kept=checkpoint.KEPT),
        tempfile.TemporaryDirectory(dir=_parent(request.out), prefix=".pretrained-") as name,
    ):
        folder = Path(name) / request.out.name
        write_folder(folder, request, prepared, plan, stored, result, training.logged())
        if request.out.exists():
            request.out.rmdir()  # empty: checked before training
        folder.replace(request.out)
    return result


def measure(
    request: PretrainRequest, prepared: Prepared, training: Training, model: PreTrainedModel
) -> PretrainResult:
    """Held-out scores over all held-out rows; the decoding curve beside its control."""
    tokens = prepared.tokens
    length = min(2 * request.length, request.positions)
    rows = prepared.heldout_rows(length=length, n=len(prepared.heldout))
    scores = heldout_scores(model, rows, tokens=tokens, common=prepared.common)
    shown = rows[:CURVE_ROWS]
    return PretrainResult(
        out=request.out,
        steps=training.done,
        tokens=training.tokens,
        seconds=training.seconds,
        heldout={"length": length, **{n: round(v, 4) for n, v in asdict(scores).items()}},
        curve=_rounded(decoding_curve(model, shown, tokens=tokens)),
        control=_rounded(decoding_curve(random_blocks(model), shown, tokens=tokens)),
    )


def write_folder(
    folder: Path,
    request: PretrainRequest,
    prepared: Prepared,
    plan: Plan,
    model: PreTrainedModel,
    result: PretrainResult,
    log: list[dict[str, Any]],
) -> None:
    """Weights, config, tokenizer, the record for programs and the card for people."""
    with quiet_transformers():
        model.save_pretrained(folder)
        if request.start:
            copy_tokenizer(start_folder(request.start), folder)
        else:
            wrapped_tokenizer(
                prepared.tokenizer, positions=request.positions, lowercase=request.lowercase
            ).save_pretrained(folder)
    record = {
        "schema_version": 1,
        "recipe": recipe(request, prepared, plan),
        "start": start_record(request),
        "text": prepared.facts,
        "result": {k: v for k, v in result.as_json().items() if k != "out"},
        "weights_sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "finetuning": {"learning_rate": request.card_rate},
        "versions": {name: version(name) for name in ("microtome", "torch", "transformers")},
        "threads": torch.get_num_threads(),
        "log": log,
    }
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card(request.out.name, record), encoding="utf-8")
    shutil.copymode(folder.parent.parent, folder)


def recipe(request: PretrainRequest, prepared: Prepared, plan: Plan) -> dict[str, Any]:
    """Every setting that decided the weights; a little text fills only a small vocabulary."""
    found = {"vocabulary": prepared.tokens.n_vocabulary, "license": request.license}
    return {**request.settings, **found, "plan": plan.as_json()}


def _rounded(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values)


def _parent(out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    return out.parent
