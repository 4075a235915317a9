"""Pre-train a small masked-LM encoder from plain text, on a CPU, in hours.

A vocabulary is made from the text, the text becomes one stream of tokens, and a fresh model is
trained on short rows and at last on long ones; or a masked LM that exists is trained on the text.
What a step does depends on its number and the seed: a run that was killed resumes to the same
weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from microtome import files
from microtome.errors import RequestError
from microtome.models.folders import check_empty
from microtome.requests import check_same
from microtome.training.mlm.finishing import finish
from microtome.training.mlm.masked_training import MaskedTraining
from microtome.training.mlm.preparation import Prepared, prepare
from microtome.training.mlm.request import LogLine, PretrainRequest, PretrainResult
from microtome.training.mlm.schedule import Schedule, Stage, filled, outline
from microtome.training.mlm.start import shaped_as_start

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
