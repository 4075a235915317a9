"""What the machinery of runs costs: 10,000 trivial trials on local workers, and going on with them.

The bars: under 2 ms per trial, every record written with fsync; starting again on the finished
run in under 2 s (a fresh process, imports included, best of three). The bare cost of writing such
files here, with the same fsyncs, is measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from microtome.files import write_all
from microtome.runs import Context, Result, Trial, run

BAR_MS_PER_TRIAL = 2.0
BAR_RESTART_SECONDS = 2.0
BATCH = 16  # records that typically come in together


def measure(request: dict, context: Context) -> Result:
    """The least a trial can do."""
    return Result([{"value": request["i"]}], {"value": request["i"]})


def sweep(n_trials: int) -> list[Trial]:
    columns = {"experiment": "overhead", "model": "none", "task": "none"}
    return [
        Trial("runs_overhead:measure", {"i": i}, columns=columns, label=f"trial {i}")
        for i in range(n_trials)
    ]


def timed_pass(folder: Path, n_trials: int, workers: int) -> tuple[float, int]:
    """Seconds for one pass, trials made and table written included, and how many it ran."""
    started = time.perf_counter()
    result = run(
        sweep(n_trials), folder, {"n": n_trials}, workers=workers, progress=sys.stderr.isatty()
    )
    assert result.ok, result.failed[:3]
    assert len(result.rows) == n_trials
    return time.perf_counter() - started, result.n_run


def restart_seconds(folder: Path, n_trials: int, workers: int) -> tuple[float, float]:
    """The same sweep in a fresh process, which must run nothing: seconds, and seconds of CPU."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import runs_overhead\n"
        f"from pathlib import Path\n"
        f"_, n_run = runs_overhead.timed_pass(Path({str(folder)!r}), {n_trials}, {workers})\n"
        f"assert n_run == 0, n_run"
    )
    started, cpu_before = time.perf_counter(), cpu_of_children()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started, cpu_of_children() - cpu_before


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def bare_ms(folder: Path, content: bytes, n_files: int) -> float:
    """Milliseconds per file for the writing alone, in batches."""
    folder.mkdir()
    started = time.perf_counter()
    for first in range(0, n_files, BATCH):
        write_all(folder, {f"{i}.json": content for i in range(first, first + BATCH)})
    return (time.perf_counter() - started) / n_files * 1e3


def measured(n_trials: int, workers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        seconds, n_run = timed_pass(folder, n_trials, workers)
        assert n_run == n_trials
        record = next((folder / "records").iterdir()).read_bytes()
        restarts = [restart_seconds(folder, n_trials, workers) for _ in range(3)]
        return {
            "trials": n_trials,
            "workers": workers,
            "seconds": seconds,
            "ms_per_trial": seconds / n_trials * 1e3,
            "ms_per_bare_file": bare_ms(Path(temporary) / "bare", record, 1600),
            "restart_seconds": min(seconds for seconds, _ in restarts),
            "restart_cpu_seconds": min(cpu for _, cpu in restarts),
            "load": os.getloadavg()[0],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))  # so that workers find runs_overhead
    figures = measured(options.trials, options.workers)
    if options.json:
        print(json.dumps({"benchmark": "runs_overhead", **figures}))
    else:
        print(
            f"{figures['trials']:,} trivial trials, {figures['workers']} workers, "
            f"{os.cpu_count()} cores, load {figures['load']:.0f}"
        )
        rows = [
            ("per trial", f"{figures['ms_per_trial']:.2f} ms", f"< {BAR_MS_PER_TRIAL:g} ms"),
            ("bare file of that size", f"{figures['ms_per_bare_file']:.2f} ms", ""),
            (
                "start again, all done",
                f"{figures['restart_seconds']:.2f} s",
                f"< {BAR_RESTART_SECONDS:g} s",
            ),
        ]
        rows.append(("  of it, CPU", f"{figures['restart_cpu_seconds']:.2f} s", ""))
        for name, value, bar in rows:
            print(f"  {name:<24}{value:>10}   {bar}")
    assert figures["ms_per_trial"] < BAR_MS_PER_TRIAL, figures
    assert figures["restart_seconds"] < BAR_RESTART_SECONDS, figures


if __name__ == "__main__":
    main()
