"""Pre-train a small masked-LM encoder from plain text, on a CPU, in hours.

A vocabulary is made from the text, the text becomes one stream of tokens, and a fresh model is
trained on short rows and at last on long ones; or a masked LM that exists is trained on the text.
What a step does depends on its number and the seed: a run that was killed resumes to the same
weights.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from microtome import files
from microtome.errors import DISTRIBUTION, RequestError
from microtome.models.folders import check_empty
from microtome.models.quiet import quiet_transformers
from microtome.models.tokenizers import copy_tokenizer
from microtome.requests import check_same
from microtome.training.mlm.building import (
    shaped_as_start,
    start_folder,
    start_record,
    wrapped_tokenizer,
)
from microtome.training.mlm.card import card
from microtome.training.mlm.forward import decoding_curve, heldout_scores, random_blocks
from microtome.training.mlm.masked_training import MaskedTraining
from microtome.training.mlm.preparation import Prepared, prepare
from microtome.training.mlm.request import (
    LogLine,
    PretrainRequest,
    PretrainResult,
    Schedule,
    Stage,
    filled,
    outline,
)

SETTINGS, PLAN = "settings.json", "plan.json"


def pretrain(
    request: PretrainRequest, *, progress: Callable[[LogLine], None] = lambda _: None
) -> PretrainResult:
    """Pre-train as ``request`` says, and write the model with its card to ``request.out``.

    A run that was killed resumes from its last checkpoint and ends at the same weights; the folder
    of a different request is refused. ``progress`` is called with every line of the log.

    Example::

        result = pretrain(PretrainRequest(text=(Path("corpus.txt"),), out=Path("mine"), hours=2))
        result.heldout["accuracy"]   # masked top-1 on text never trained on
    """
    check_empty(request.out)
    if request.threads:
        torch.set_num_threads(request.threads)
    request = shaped_as_start(request)
    check_settings(request.work, request.settings)
    prepared = prepare(request)
    training = MaskedTraining(request, prepared, stored_schedule(request, prepared))
    training.resume()
    training.train(progress)
    return finish(training)


def check_settings(work: Path, settings: dict[str, object]) -> None:
    """Store the settings of a new run; refuse to resume one with other settings."""
    stored = files.read_json(work / SETTINGS)
    if stored is not None:
        check_same(work, stored, settings, what="a pre-training")
    elif (work / PLAN).exists():
        raise RequestError(f"{work} doesn't say which settings it has", "choose another --out")
    else:
        with files.storing(work):
            work.mkdir(parents=True, exist_ok=True)
            files.write_json(work / SETTINGS, settings)


def stored_schedule(request: PretrainRequest, prepared: Prepared) -> Schedule:
    """The schedule of an earlier call, or a new one: of `stages`, or of `hours` by measuring."""
    stored = files.read_json(request.work / PLAN)
    if stored is not None:
        return Schedule.from_json(stored)
    schedule = Schedule(request.stages) if request.stages else measured(request, prepared)
    files.write_json(request.work / PLAN, schedule.as_json())
    return schedule


def measured(request: PretrainRequest, prepared: Prepared) -> Schedule:
    """Time a few steps of every stage on this machine, and fill the hours with them."""
    outlined = outline(length=request.length, n_rows=request.n_rows, positions=request.positions)
    per_step = [seconds_per_step(request, prepared, stage) for stage, _ in outlined]
    return filled(outlined, seconds=request.hours * 3600, per_step=per_step)


def seconds_per_step(request: PretrainRequest, prepared: Prepared, stage: Stage) -> float:
    """The median of five steps of a stage, after one to warm up, on a model that isn't kept."""
    training = MaskedTraining(request, prepared, Schedule((replace(stage, steps=6),)))
    times = []
    for step in range(6):
        begin = time.perf_counter()
        training.step_once(step)
        times.append(time.perf_counter() - begin)
    return float(np.median(times[1:]))


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
