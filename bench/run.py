"""All benchmarks, one process each: ``make bench``. Prints one table; fails where a bar is missed.

python bench/run.py [--only NAME] [--json] [--threads N] [--clock wall|cpu] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

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
    Benchmark("runs_overhead", "what the machinery of runs costs", timed=False),
)


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
    from measuring import Bar, Row, table

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[one.name for one in BENCHMARKS], action="append")
    parser.add_argument("--json", action="store_true")
    for option in ("--threads", "--clock", "--rounds"):
        parser.add_argument(option)
    given = parser.parse_args()
    passed = [
        part
        for option in ("threads", "clock", "rounds")
        if (value := getattr(given, option)) is not None
        for part in (f"--{option}", value)
    ]
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
