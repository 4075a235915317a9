"""Progressive stacking against full depth from the start, at equal CPU time.

    python benchmarks/pretraining_stacking.py --text FILES --seconds 300

Both arms have the same text, rows, head start, rates and schedule; CPU seconds of this process are
counted, so that a busy machine favours neither. Prints held-out masked accuracy and loss.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch

from microtome.training.pretrain import PretrainRequest
from microtome.training.pretraining.evaluation import heldout_scores
from microtome.training.pretraining.preparation import Prepared, prepare
from microtome.training.pretraining.schedule import Plan, Stage, plan_of
from microtome.training.pretraining.stepping import Training

N_ROWS, LENGTH, MASKED, CANDIDATES = 64, 64, 0.3, 2048


def seconds_per_step(request: PretrainRequest, prepared: Prepared, stage: Stage) -> float:
    training = Training(request, prepared, plan_of([replace(stage, steps=5)]))
    training.step_once(0)
    begin = time.process_time()
    for step in range(1, 5):
        training.step_once(step)
    return (time.process_time() - begin) / 4


def plan_for(
    request: PretrainRequest, prepared: Prepared, shares: dict[int, float], seconds: float
) -> Plan:
    stages = []
    for layers, share in shares.items():
        stage = Stage(layers, LENGTH, N_ROWS, MASKED, candidates=CANDIDATES)
        cost = seconds_per_step(request, prepared, stage)
        stages.append(replace(stage, steps=max(1, round(share * seconds / cost))))
    return plan_of(stages)


def run(request: PretrainRequest, prepared: Prepared, plan: Plan) -> dict[str, object]:
    training = Training(request, prepared, plan)
    training.begin()
    begin = time.process_time()
    for step in range(plan.n_steps):
        training.step_once(step)
    seconds = time.process_time() - begin
    rows = prepared.heldout_rows(length=LENGTH, n=1024)
    scores = heldout_scores(training.model, rows, tokens=prepared.tokens, common=prepared.common)
    return {
        "steps": [(stage.layers, stage.steps) for stage in plan.stages],
        "cpu_seconds": round(seconds),
        "tokens": sum(stage.tokens for stage in plan.stages),
        **asdict(scores),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, nargs="+", required=True)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--work", type=Path, help="a folder with vocabulary and tokens made before")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = arguments.work or Path(folder) / "model"
        torch.set_num_threads(arguments.threads)
        request = PretrainRequest(text=tuple(arguments.text), out=out)
        prepared = prepare(request)
        arms = {"stacked 3, 6, 12": {3: 0.6, 6: 0.2, 12: 0.2}, "12 from the start": {12: 1.0}}
        for name, shares in arms.items():
            plan = plan_for(request, prepared, shares, arguments.seconds)
            print(name, json.dumps(run(request, prepared, plan)), flush=True)


if __name__ == "__main__":
    main()
