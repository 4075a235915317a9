"""Toy trials for the fault tests: torch-free, and every call leaves a line in a side log."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np

from microtome.runs import Context, Diverged, Result, Trial
from microtome.threads import POLICIES


def _log(request: dict, context: Context) -> int:
    """Note in the side log that this trial was begun; how often it was before."""
    path = context.where.get("log")
    if path is None:
        return 0
    n_before = 0
    if Path(path).exists():
        n_before = Path(path).read_text().split().count(context.hash)
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, f"{context.hash}\n".encode())
    os.close(descriptor)
    return n_before


def measure(request: dict, context: Context) -> Result:
    """A number that depends on the trial alone, with rows, arrays and perhaps a checkpoint."""
    _log(request, context)
    time.sleep(request.get("seconds", 0))
    draw = random.Random(context.seed("data"))
    needed = sum(need.summary["value"] for need in context.needs.values())
    value = draw.random() + needed
    rows = [{"seed": request["seed"], "metric": "toy", "value": value + i} for i in range(3)]
    arrays = {"values": np.arange(4) + value} if request["seed"] % 2 else {}
    if request.get("checkpoint"):
        (context.scratch / "deep").mkdir()
        (context.scratch / "deep" / "weights.bin").write_bytes(context.hash.encode())
    return Result(rows, {"value": value}, arrays, bool(request.get("checkpoint")))


def read_need(request: dict, context: Context) -> Result:
    """What the needed trials left in their files."""
    (need,) = context.needs.values()
    weights = (need.checkpoint / "deep" / "weights.bin").read_text()
    total = float(np.load(need.arrays)["values"].sum()) if need.arrays else None
    return Result([{"weights": weights, "total": total}], {"value": need.summary["value"]})


def fail(request: dict, context: Context) -> Result:
    _log(request, context)
    raise ValueError("no such luck")


def fail_until_mended(request: dict, context: Context) -> Result:
    """Fails while the file ``where["mended"]`` is absent."""
    _log(request, context)
    if not Path(context.where["mended"]).exists():
        raise RuntimeError("not mended yet")
    return Result([{"value": 1.0}], {"value": 1.0})


def give_nan(request: dict, context: Context) -> Result:
    return Result([{"value": 1.0}, {"value": float("nan")}], {"value": np.float64("inf")})


def diverge(request: dict, context: Context) -> Result:
    raise Diverged("the loss is NaN at step 30")


def hang(request: dict, context: Context) -> Result:
    _log(request, context)
    time.sleep(600)
    return Result()


def kill_own_worker(request: dict, context: Context) -> Result:
    """Dies by SIGKILL the first ``times`` times, then gives its number."""
    if _log(request, context) < request["times"]:
        (context.scratch / "half").write_text("half a checkpoint")
        os.kill(os.getpid(), signal.SIGKILL)
    return measure(request, context)


def fill_the_disk(request: dict, context: Context) -> Result:
    """A trial that meets a full disk while it writes its checkpoint."""
    if Path(context.where["full"]).exists():
        raise OSError(28, "No space left on device", "weights")
    return Result([{"value": 2.0}], {"value": 2.0})


def environment(request: dict, context: Context) -> Result:
    print("noise on stdout")
    waiting = how_threads_wait(request, context).summary["waiting"]
    threads = os.environ.get("OMP_NUM_THREADS")
    seen = {"threads": threads, "waiting": waiting, "device": context.device, "pid": os.getpid()}
    return Result([seen])


def how_threads_wait(request: dict, context: Context) -> Result:
    policy, spins = (os.environ.get(name) for name in POLICIES[:2])
    return Result([{"waiting": f"{policy} {spins}"}], {"waiting": f"{policy} {spins}"})


def trivial(request: dict, context: Context) -> Result:
    return Result([{"value": request["i"]}])


def report(request: dict, context: Context) -> Result:
    context.report("step 1", {"loss": 0.5})
    time.sleep(request["seconds"])
    return Result()


def give_nonsense(request: dict, context: Context) -> Result:
    return Result([{"value": object()}])


MODULE = "toy_trials"


def toy(function: str, *, needs=(), where=None, limit=None, label="", **request) -> Trial:
    return Trial(
        f"{MODULE}:{function}",
        request,
        needs=needs,
        where={key: str(value) for key, value in (where or {}).items()},
        columns={"experiment": "toy", "model": "none", "task": "luck"},
        limit=limit,
        label=label,
    )


def sweep(n_trials: int, *, log: Path | None = None, seconds: float = 0.0) -> list[Trial]:
    """Trials with needs: every fifth leaves a checkpoint, and the one after it needs it."""
    where = {"log": log} if log else {}
    trials: list[Trial] = []
    for seed in range(n_trials):
        needs = [trials[-1].hash] if seed % 5 == 1 else []
        request = {"seed": seed, "seconds": seconds, "checkpoint": seed % 5 == 0}
        trials.append(toy("measure", needs=needs, where=where, label=f"seed {seed}", **request))
    return trials
