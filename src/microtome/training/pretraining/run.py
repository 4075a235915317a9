"""The run itself: settings and plan, which are stored once; training; and at the end the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from microtome.errors import RequestError
from microtome.training.pretrain import PretrainResult, Progress
from microtome.training.pretraining.continuing import shaped_as_start
from microtome.training.pretraining.preparation import NOTHING_YET, Prepared, prepare
from microtome.training.pretraining.schedule import Plan, Stage, make_plan, outline, plan_of
from microtome.training.pretraining.stepping import Training
from microtome.training.storage import storing, write_json

if TYPE_CHECKING:
    from microtome.training.pretrain import PretrainRequest

EXTRA = 0.125  # rows from the extra text, in the stages at full depth
CONTINUED = 0.25  # of a depth's rates: what a model has learnt must not be shaken out of it


def carry_out(request: PretrainRequest, progress: Callable[[Progress], None]) -> PretrainResult:
    """Prepare, train to the plan's end, finish."""
    from microtome.training.pretraining.finishing import finish

    if request.out.exists() and not (request.out.is_dir() and not any(request.out.iterdir())):
        raise RequestError(f"{request.out} isn't an empty folder", "name a new one with --out")
    if request.threads:
        torch.set_num_threads(request.threads)
    request = shaped_as_start(request)
    check_settings(request.work, request.settings)
    prepared = prepare(request)
    plan = stored_plan(request, prepared)
    training = Training(request, prepared, plan)
    training.resume()
    training.train(progress)
    return finish(request, prepared, plan, training)


def check_settings(work: Path, settings: Mapping[str, Any]) -> None:
    """Refuse to go on with other settings than a run was begun with."""
    file = work / "settings.json"
    if not file.exists() and not (work / "plan.json").exists():
        with storing(work, kept=NOTHING_YET):
            work.mkdir(parents=True, exist_ok=True)
            write_json(file, settings)
        return
    begun = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if not settings.keys() <= begun.keys():
        raise RequestError(
            f"{work} was begun by an older version, and doesn't say with what settings",
            "use another --out",
        )
    changed = [
        f"{name} {begun.get(name)} (now {value})"
        for name, value in settings.items()
        if begun.get(name) != value
    ]
    if changed:
        raise RequestError(
            f"{work} was begun with {', '.join(changed)}",
            "use another --out, or the same settings",
        )


def stored_plan(request: PretrainRequest, prepared: Prepared) -> Plan:
    """The plan of an earlier call, or a new one: from `stages`, or from `hours` by measuring."""
    file = request.work / "plan.json"
    if file.exists():
        return Plan.from_json(json.loads(file.read_text(encoding="utf-8")))
    plan = plan_of(request.stages) if request.stages else calibrated_plan(request, prepared)
    with storing(request.work, kept=NOTHING_YET):
        write_json(file, plan.as_json())
    return plan


def calibrated_plan(request: PretrainRequest, prepared: Prepared) -> Plan:
    """Time a few steps of every stage on this machine, and fill the hours with them."""
    outlined = outline(
        request.layers,
        grow=request.grow,
        length=request.length,
        n_rows=request.n_rows,
        long=request.positions,
        extra=EXTRA if request.extra_text else 0.0,
        candidates=prepared.tokens.n_vocabulary // 4,
    )
    if request.start is not None:
        outlined = [
            (replace(stage, rate=CONTINUED * stage.rate), share) for stage, share in outlined
        ]
    per_step = [seconds_per_step(request, prepared, stage) for stage, _ in outlined]
    return make_plan(outlined, seconds=request.hours * 3600, per_step=per_step)


def seconds_per_step(request: PretrainRequest, prepared: Prepared, stage: Stage) -> float:
    """The middle of five steps of a stage, after one to warm up, on a model that is thrown away."""
    timed = replace(stage, steps=6)
    training = Training(request, prepared, plan_of([timed]))
    times = []
    for step in range(6):
        begin = time.perf_counter()
        training.step_once(step)
        times.append(time.perf_counter() - begin)
    return float(np.median(times[1:]))
