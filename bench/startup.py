"""How soon a command says something: ``--help``, and the first line of ``decode --text``.

python bench/startup.py [--json]

Cold means a new process; files are in the system's cache, as they are the second time on. Each is
started a few times, and the fastest counts: others only ever add time. On a busy machine the CPU
seconds of the whole command tell more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from kit.measuring import Bar, Row, finish

COMMANDS = (
    # what, arguments, seconds to the first line, whether the bar fails the run
    ("--help", ("--help",), 0.25, True),
    ("decode --text", ("decode", "nano-bert", "--text", "The cat sat on the mat."), 5.0, False),
)
TIMES = 3


def first_line(arguments: tuple[str, ...]) -> tuple[float, float]:
    """Seconds to the first line on stdout, and CPU seconds of the whole command."""
    before = os.times()
    started = time.perf_counter()
    command = [sys.executable, "-c", "from microtome.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), f"microtome {arguments[0]} said nothing"
        seconds = time.perf_counter() - started
        process.stdout.read()
    after = os.times()
    cpu = after.children_user + after.children_system
    return seconds, cpu - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.threads, given.clock = os.cpu_count(), "wall"
    rows = []
    for what, arguments, limit, asserted in COMMANDS:
        found = [first_line(arguments) for _ in range(TIMES)]
        seconds, cpu = min(one[0] for one in found), min(one[1] for one in found)
        row = Row(f"first line of microtome {what}", seconds, notes=f"{cpu:.2f} s of CPU in all")
        row.bars = [Bar("seconds", seconds, limit, at_least=False, asserted=asserted)]
        rows.append(row)
    finish("startup", rows, given)


if __name__ == "__main__":
    main()
