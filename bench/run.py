"""All benchmarks, one process each: ``make bench``. Prints one table; fails where a bar is missed.

python bench/run.py [--only NAME] [--json] [--threads N] [--clock wall|cpu] [--rounds N] [--busy]

With ``--busy`` J1, J2 and J5 are run alone and then next to one spinning process: how much of each
quiet ratio is left (60 % is wanted).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from microtome.threads import prepare

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Benchmark:
    """A script that prints one JSON document with ``--json`` and exits 1 where a bar is missed."""

    name: str
    summary: str
    timed: bool = True  # takes --threads, --clock, --rounds


BENCHMARKS = (
    Benchmark("observe_sweep", "head and layer sweep (J1)"),
    Benchmark("observe_search", "head and layer sweep of an embedder on a search"),
    Benchmark("observe_embedding", "embedding a corpus (J7)"),
    Benchmark("observe_cuts", "all single cuts and a greedy search (J8)"),
    Benchmark("observe_decode", "decoding of every depth (J2)"),
    Benchmark("observe_attention", "attention statistics (J3)"),
    Benchmark("observe_memory", "memory while the data grow"),
    Benchmark("explorer", "an edit on the explorer's page"),
    Benchmark("training_probes", "frozen probing on cached states (J4)"),
    Benchmark("training_steps", "fine-tuning steps (J5)"),
    Benchmark("training_healing", "healing a cut embedder (J6)"),
    Benchmark("startup", "the help, and the first line of a command", timed=False),
    Benchmark("runs_overhead", "what the machinery of runs costs", timed=False),
)

BUSY = ("observe_sweep", "observe_decode", "training_steps")
KEPT = 0.6  # of the quiet ratio, next to a busy process: wanted, and reported


def run(one: Benchmark, passed: list[str]) -> dict:
    """One benchmark's document, with what it said and whether all of its bars hold."""
    command = [sys.executable, str(FOLDER / f"{one.name}.py"), "--json"]
    started = time.perf_counter()
    done = subprocess.run(
        command + (passed if one.timed else []), capture_output=True, text=True, check=False
    )
    lines = done.stdout.strip().splitlines()
    document = json.loads(lines[-1]) if lines else {"benchmark": one.name}
    failure = "" if done.returncode == 0 else done.stderr.strip()[-2000:] or "failed"
    return document | {"failure": failure, "total_seconds": time.perf_counter() - started}


def shown(document: dict) -> str:
    """A document as a table: its rows, or its plain figures."""
    from kit.measuring import Bar, Row, table

    title = f"## {document['benchmark']} ({document['total_seconds']:.0f} s)"
    if "rows" in document:
        rows = [
            Row(**{k: v for k, v in row.items() if k not in ("ratios", "bars")})
            for row in document["rows"]
        ]
        for row, raw in zip(rows, document["rows"], strict=True):
            row.bars = [Bar(**bar) for bar in raw["bars"]]
        body = table(rows)
    else:
        skipped = ("benchmark", "failure", "total_seconds")
        body = "\n".join(f"{k}: {v}" for k, v in document.items() if k not in skipped)
    failure = f"\nMISSED: {document['failure']}" if document["failure"] else ""
    return f"{title}\n{body}{failure}\n"


@contextmanager
def busy_process() -> Iterator[None]:
    """One process that only spins, for as long as this lasts."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


def next_to_busy_process(names: Sequence[str], passed: list[str]) -> list[dict]:
    """Each benchmark alone, then busy: its ratios in both, and the share that is left."""
    found = []
    for one in (one for one in BENCHMARKS if one.name in names):
        print(f"{one.name}: alone, then busy", file=sys.stderr)
        quiet = run(one, passed)
        with busy_process():
            busy = run(one, passed)
        for alone, pressed in zip(quiet.get("rows", []), busy.get("rows", []), strict=True):
            for rival, ratio in alone["ratios"].items():
                kept = pressed["ratios"][rival] / ratio
                found.append({"work": alone["work"], "rival": rival, "quiet": ratio,
                              "busy": pressed["ratios"][rival], "kept": kept})  # fmt: skip
    return found


def busy_table(found: Sequence[dict]) -> str:
    """The shares as a Markdown table."""
    lines = ["| work | rival | alone | busy | left |", "|---|---|---|---|---|"]
    for row in found:
        short = "" if row["kept"] >= KEPT else f" (wanted: {KEPT:.0%})"
        lines.append(
            f"| {row['work']} | {row['rival']} | {row['quiet']:.1f}× | {row['busy']:.1f}×"
            f" | {row['kept']:.0%}{short} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[one.name for one in BENCHMARKS], action="append")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--busy", action="store_true", help="next to one spinning process")
    for option in ("--threads", "--clock", "--rounds"):
        parser.add_argument(option)
    given = parser.parse_args()
    passed = [
        part
        for option in ("threads", "clock", "rounds")
        if (value := getattr(given, option)) is not None
        for part in (f"--{option}", value)
    ]
    prepare()  # as the command line does: the benchmarks' processes inherit it
    if given.busy:
        found = next_to_busy_process(given.only or BUSY, passed)
        print(json.dumps(found) if given.json else busy_table(found))
        return
    documents = []
    for one in BENCHMARKS:
        if given.only and one.name not in given.only:
            continue
        print(f"{one.name}: {one.summary}", file=sys.stderr)
        documents.append(run(one, passed))
        if not given.json:
            print(shown(documents[-1]), flush=True)
    if given.json:
        print(json.dumps(documents))
    if any(document["failure"] for document in documents):
        sys.exit(1)


if __name__ == "__main__":
    main()
