"""Progressive stacking against full depth from the start, at equal CPU time.

    python studies/pretraining_stacking.py --text FILES --seconds 300

Both arms have the same text, rows, head start, rates and schedule; CPU seconds of this process are
counted, so that a busy machine favours neither. Prints held-out masked accuracy and loss.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch

from microtome.training.mlm.forward import heldout_scores
from microtome.training.mlm.preparation import Prepared, prepare

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))
from pretraining.schedule import GrownSchedule, GrownStage
from pretraining.training import GrownRequest, GrownTraining

N_ROWS, LENGTH, MASKED, CANDIDATES = 64, 64, 0.3, 2048


def seconds_per_step(request: GrownRequest, prepared: Prepared, stage: GrownStage) -> float:
    training = GrownTraining(request, prepared, GrownSchedule.of([replace(stage, steps=5)]))
    training.step_once(0)
    begin = time.process_time()
    for step in range(1, 5):
        training.step_once(step)
    return (time.process_time() - begin) / 4


def schedule_for(
    request: GrownRequest, prepared: Prepared, shares: dict[int, float], seconds: float
) -> GrownSchedule:
    stages = []
    for layers, share in shares.items():
        stage = GrownStage(
            layers=layers, length=LENGTH, n_rows=N_ROWS, masked=MASKED, candidates=CANDIDATES
        )
        cost = seconds_per_step(request, prepared, stage)
        stages.append(replace(stage, steps=max(1, round(share * seconds / cost))))
    return GrownSchedule.of(stages)


def run(request: GrownRequest, prepared: Prepared, schedule: GrownSchedule) -> dict[str, object]:
    training = GrownTraining(request, prepared, schedule)
    training.begin()
    begin = time.process_time()
    for step in range(schedule.n_steps):
        training.step_once(step)
    seconds = time.process_time() - begin
    rows = prepared.heldout_rows(length=LENGTH, n=1024)
    scores = heldout_scores(training.model, rows, tokens=prepared.tokens, common=prepared.common)
    return {
        "steps": [(stage.layers, stage.steps) for stage in schedule.stages],
        "cpu_seconds": round(seconds),
        "tokens": sum(stage.steps * stage.n_rows * stage.length for stage in schedule.stages),
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
        request = GrownRequest(text=tuple(arguments.text), out=out)
        prepared = prepare(request)
        arms = {"stacked 3, 6, 12": {3: 0.6, 6: 0.2, 12: 0.2}, "12 from the start": {12: 1.0}}
        for name, shares in arms.items():
            schedule = schedule_for(request, prepared, shares, arguments.seconds)
            print(name, json.dumps(run(request, prepared, schedule)), flush=True)


if __name__ == "__main__":
    main()
