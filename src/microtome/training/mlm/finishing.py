"""From a trained model to a folder: last figures, half precision, tokenizer, card."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from microtome import files
from microtome.errors import DISTRIBUTION
from microtome.models.quiet import quiet_transformers
from microtome.models.tokenizers import copy_tokenizer
from microtome.training.mlm.building import wrapped_tokenizer
from microtome.training.mlm.card import card
from microtome.training.mlm.evaluation import decoding_curve, heldout_scores, random_blocks
from microtome.training.mlm.masked_training import MaskedTraining
from microtome.training.mlm.request import PretrainResult
from microtome.training.mlm.start import start_folder, start_record

RECORD = "pretraining.json"
CURVE_ROWS = 256
CardWriter = Callable[[str, Mapping[str, Any]], str]


def finish(training: MaskedTraining, *, card: CardWriter = card) -> PretrainResult:
    """Measure the model as it will be stored (float16); write it to `out`, whole or not at all."""
    out = training.request.out
    stored = copy.deepcopy(training.model).eval().half()
    result = measure(training, copy.deepcopy(stored).float())
    with files.storing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=files.TEMPORARY) as scratch:
            folder = Path(scratch) / out.name
            write_folder(folder, training, stored, result, card)
            files.move_folder(folder, out)
    return result


def measure(training: MaskedTraining, model: PreTrainedModel) -> PretrainResult:
    """Scores on all held-out rows; the decoding curve and its control."""
    request, prepared = training.request, training.prepared
    length = min(2 * request.length, request.positions)
    rows = prepared.heldout_rows(length=length, n=len(prepared.heldout))
    scores = heldout_scores(model, rows, tokens=prepared.tokens, common=prepared.common)
    curve, control = (
        tuple(
            round(share, 4)
            for share in decoding_curve(decoded, rows[:CURVE_ROWS], tokens=prepared.tokens)
        )
        for decoded in (model, random_blocks(model))
    )
    return PretrainResult(
        out=request.out,
        steps=training.done,
        tokens=training.tokens,
        seconds=training.seconds,
        heldout={"length": length, **{n: round(v, 4) for n, v in asdict(scores).items()}},
        curve=curve,
        control=control,
    )


def write_folder(
    folder: Path,
    training: MaskedTraining,
    model: PreTrainedModel,
    result: PretrainResult,
    card: CardWriter,
) -> None:
    """Weights, config, tokenizer, the record for programs and the card for people."""
    request = training.request
    with quiet_transformers():
        model.save_pretrained(folder)
        if request.start:
            copy_tokenizer(start_folder(request.start), folder)
        else:
            wrapped_tokenizer(
                training.prepared.tokenizer,
                positions=request.positions,
                lowercase=request.lowercase,
            ).save_pretrained(folder)
    record = {
        "schema_version": 1,
        "recipe": {
            **request.settings,
            "vocabulary": training.prepared.tokens.n_vocabulary,  # fewer where text is short
            "learning_rate": request.peak_rate,
            "license": request.license,
            "plan": training.schedule.as_json(),
        },
        "start": start_record(request),
        "text": training.prepared.facts,
        "result": {k: v for k, v in result.as_json().items() if k != "out"},
        "weights_sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "finetuning": {"learning_rate": request.card_rate},
        "versions": versions(),
        "threads": torch.get_num_threads(),
        "log": training.logged(),
    }
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card(request.out.name, record), encoding="utf-8")
    shutil.copymode(folder.parent.parent, folder)


def versions() -> dict[str, str]:
    """Of what made the model."""
    names = {"microtome": DISTRIBUTION, "torch": "torch", "transformers": "transformers"}
    return {name: version(distribution) for name, distribution in names.items()}
