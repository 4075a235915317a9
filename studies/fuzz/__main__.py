"""Every reader under fuzz: figures for docs/reliability.md.

    python studies/fuzz [TARGET…] [--minutes 1] [--seed 0]

A target is a reader with valid files that are made here, at random. Some are read as they are:
every row must come back. Most are made wrong first (bytes, lines, values of JSON): what comes out
is the rows that an independent reading gives, or an error of ours in one line; within a second of
the processor and a gigabyte of memory. Each target runs in a process of its own, for so many
minutes of the processor. What was found is in --out, the smallest files of each kind, and the exit
is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from loop import prepared

SLOWER = 100  # times as long by the clock as by the processor: others use the machine, too


def targets() -> dict:
    """Every target by its name."""
    import annotation
    import folders
    import rows
    import tables

    modules = (tables, rows, annotation, folders)
    return {target.name: target for module in modules for target in module.TARGETS}


def try_in_process(name: str, minutes: float, seed: int, place: Path) -> None:
    """What a child does."""
    trial = prepared(targets()[name], place / "files")
    try:
        trial.go(minutes, seed)
    finally:
        trial.note()


def try_target(name: str, minutes: float, seed: int, out: Path) -> dict:
    """What a child told; a child that died is a finding, with the files that it read."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, name, "--minutes", str(minutes), "--seed", str(seed)]
        environment = {**os.environ, "MICROTOME_FUZZ": folder}
        log = Path(folder) / "log"
        with log.open("w") as errors:
            try:
                done = subprocess.run(
                    [*command, "--child", folder], env=environment, stderr=errors, stdout=errors,
                    timeout=SLOWER * 60 * minutes + 300, check=False,
                )  # fmt: skip
                died = "" if done.returncode == 0 else f"the process ended with {done.returncode}"
            except subprocess.TimeoutExpired:
                died = "the process hung"
        told = Path(folder) / "found.json"
        found = json.loads(told.read_text()) if told.exists() else {"runs": 0, "findings": []}
        if died:
            files = {
                str(file.relative_to(Path(folder) / "files")): file.read_bytes().decode("latin-1")
                for file in sorted((Path(folder) / "files").rglob("*")) if file.is_file()
            }  # fmt: skip
            trace = log.read_text(errors="replace")[-3000:]
            found["findings"].append({"what": died, "files": files, "trace": trace, "times": 1})
    for number, finding in enumerate(found["findings"]):
        for file, content in finding["files"].items():
            kept = out / f"{name}-{number}" / file
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(content.encode("latin-1"))
        (out / f"{name}-{number}.txt").write_text(finding["what"] + "\n\n" + finding["trace"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=1, help="of the processor, per target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    known = list(targets())
    if unknown := sorted(set(asked.targets) - set(known)):
        sys.exit(f"no target is called {unknown[0]}; there are {', '.join(known)}")
    if asked.child:
        try_in_process(asked.targets[0], asked.minutes, asked.seed, asked.child)
        return
    n_findings = 0
    print(f"{'target':<12}{'runs':>10}{'read':>10}{'refused':>10}{'seconds':>9}  findings")
    for name in asked.targets or known:
        started = time.perf_counter()
        found = try_target(name, asked.minutes, asked.seed, asked.out)
        n_findings += len(found["findings"])
        figures = "".join(f"{found.get(key, 0):>10,}" for key in ("runs", "read", "refused"))
        seconds = time.perf_counter() - started
        print(f"{name:<12}{figures}{seconds:>9.0f}  {len(found['findings'])}", flush=True)
        for number, finding in enumerate(found["findings"]):
            print(f"    {finding['what']} ({finding['times']} times): {asked.out}/{name}-{number}")
    sys.exit(1 if n_findings else 0)


if __name__ == "__main__":
    main()
