"""How our benchmarks measure: interleaved rounds, medians, the roofline in the same run."""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch.nn import functional

from microtome.observe.products import FastProducts, is_worthwhile

MM = 1536  # side of the square product that stands for what the machine can do
ENOUGH = 13.0  # seconds: a work that has been measured for so long isn't measured again
SETTLED = 20.0  # seconds: short works are measured for so long together, in more rounds
MOST_ROUNDS = 10


@dataclass
class Bar:
    """A figure that must be reached. ``asserted`` bars fail the run, the others are reported."""

    name: str
    value: float
    limit: float
    at_least: bool = True
    asserted: bool = True

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def reached(with_avx512: float, otherwise: float) -> float:
    """The bar on this CPU: products by oneDNN reach more than those that torch takes by itself."""
    return with_avx512 if is_worthwhile() else otherwise


@dataclass
class Row:
    """One piece of work, and what it took."""

    work: str
    seconds: float
    rivals: dict[str, float] = field(default_factory=dict)  # seconds for the same work
    roofline: float | None = None  # share of what a large product reaches in the same run
    peak_mb: float | None = None  # above the model
    notes: str = ""
    bars: list[Bar] = field(default_factory=list)

    @property
    def ratios(self) -> dict[str, float]:
        return {name: seconds / self.seconds for name, seconds in self.rivals.items()}


class Clock:
    """Wall-clock time; or CPU time of one thread, which other processes disturb less."""

    def __init__(self, kind: str) -> None:
        self.now = time.perf_counter if kind == "wall" else time.process_time
        self.measured: dict[str, int] = {}
        self.factors = torch.randn(MM, MM), torch.randn(MM, MM)
        self.gain = self._gain()

    def seconds(self, work: Callable[[], object]) -> float:
        gc.collect()
        started = self.now()
        work()
        return self.now() - started

    def rounds(self, works: Mapping[str, Callable[[], object]], n_rounds: int) -> dict[str, float]:
        """Median seconds of every piece of work, one after the other in every round.

        A shared machine is fast in one minute and slow in the next, so seconds are those at the
        run's median speed of torch.mm, which is measured before and after every work. Short works
        get more than ``n_rounds``, long ones fewer. The first work is ours and runs at both ends of
        a round: its noise is that of every ratio.
        With them comes ``mm``, the roofline: operations per second of a large product, by torch.mm
        or by oneDNN, whichever is faster here.
        """
        times: dict[str, list[float]] = {name: [] for name in works}  # times speed: operations
        taken = dict.fromkeys(works, 0.0)
        speeds = [self.mm()]
        ours, n_done = next(iter(works)), 0
        while n_done < n_rounds or (sum(taken.values()) < SETTLED and n_done < MOST_ROUNDS):
            n_done += 1
            for name in (*works, ours):
                if taken[name] < ENOUGH:
                    seconds = self.seconds(works[name])
                    speeds.append(self.mm())
                    taken[name] += seconds
                    times[name].append(seconds * (speeds[-2] + speeds[-1]) / 2)
        self.measured = {name: len(own) for name, own in times.items()}
        speed = statistics.median(speeds)
        medians = {name: statistics.median(own) / speed for name, own in times.items()}
        return medians | {"mm": speed * self.gain}

    def how_often(self) -> str:
        """How many times each work of the last rounds was measured, as a note."""
        return "measured: " + ", ".join(f"{name} {n}×" for name, n in self.measured.items())

    def _gain(self) -> float:
        """How many times as fast as torch.mm the fastest large product is: oneDNN's, or itself."""
        left, right = self.factors
        gains = []
        with torch.no_grad():
            for _ in range(5):
                plain = self.seconds(lambda: functional.linear(left, right))
                with FastProducts():
                    gains.append(plain / self.seconds(lambda: functional.linear(left, right)))
        return max(1.0, statistics.median(gains))

    def mm(self) -> float:
        """Operations per second of torch.mm on a large product."""
        left, right = self.factors
        torch.mm(left, right)
        taken = []
        for _ in range(3):  # without the collection of garbage that longer works begin with
            started = self.now()
            torch.mm(left, right)
            taken.append(self.now() - started)
        return 2 * MM**3 / statistics.median(taken)


def peak_mb(work: Callable[[], object]) -> float | None:
    """The highest memory during ``work`` above what there was before; Linux only."""
    status, refs = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not (status.exists() and os.access(refs, os.W_OK)):
        return None
    gc.collect()
    refs.write_text("5")  # resets the high-water mark
    before = _status_mb(status, "VmRSS")
    work()
    return _status_mb(status, "VmHWM") - before


def _status_mb(status: Path, key: str) -> float:
    line = next(row for row in status.read_text().splitlines() if row.startswith(key))
    return int(line.split()[1]) / 1024


def options(description: str | None) -> argparse.Namespace:
    """The options that all of these scripts take; sets the number of threads."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    if given.clock == "cpu" and given.threads != 1:
        parser.error("--clock cpu counts all threads' time: use it with --threads 1")
    torch.set_num_threads(given.threads)
    return given


def finish(name: str, rows: list[Row], given: argparse.Namespace) -> None:
    """Print the rows, and fail where an asserted bar does."""
    report = {
        "benchmark": name,
        "threads": given.threads,
        "clock": given.clock,
        "rows": [asdict(row) | {"ratios": row.ratios} for row in rows],
    }
    print(json.dumps(report) if given.json else table(rows))
    broken = [
        f"{row.work}: {bar.name} is {bar.value:.2f}, the bar is {bar.limit:g}"
        for row in rows
        for bar in row.bars
        if bar.asserted and not bar.holds
    ]
    if broken:
        sys.exit("\n".join(broken))


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| work | seconds | rivals | of roofline | peak MB | bars |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        rivals = ", ".join(
            f"{name} {seconds:.1f} s = {row.ratios[name]:.1f}×"
            for name, seconds in row.rivals.items()
        )
        bars = ", ".join(
            f"{bar.name} {bar.value:.3g} ({'≥' if bar.at_least else '≤'} {bar.limit:g}"
            f"{' ok' if bar.holds else ' MISSED'})"
            for bar in row.bars
        )
        share = "" if row.roofline is None else f"{row.roofline:.0%}"
        memory = "" if row.peak_mb is None else f"{row.peak_mb:.0f}"
        work = row.work + (f" ({row.notes})" if row.notes else "")
        lines.append(f"| {work} | {row.seconds:.2f} | {rivals} | {share} | {memory} | {bars} |")
    return "\n".join(lines)
