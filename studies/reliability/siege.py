"""The long jobs under every fault we could think of: what was tried, and what was lost.

python studies/reliability/siege.py [JOB…] [--faults kills,disk,…] [--times 20] [--json F]

Jobs: run examine trim replicate explore. A job that is disturbed and run again must end with the
rows, answers and weights of an undisturbed one; nothing may be torn at any moment, no finished
record written again; whatever can't go on says so in one line, with exit 1 or 2. Exit 1 if anything
was lost; the places of what was lost are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from frozen import frozen_source

sys.path.insert(0, frozen_source())

from exploring import EXPLORER_FAULTS, Explored
from faults import FAULTS, Tried
from jobs import JOBS, job_of
from mounted import MOUNTED
from passes import load_everything

ALL = {**FAULTS, **MOUNTED}


def main() -> int:
    """Besiege the jobs that were named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="Default: all.")
    parser.add_argument("--faults", default=",".join(ALL))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    names, faults = given.jobs or [*JOBS, "explore"], given.faults.split(",")
    if unknown := sorted({*names} - {*JOBS, "explore"} | {*faults} - ALL.keys()):
        sys.exit(f"no job and no fault is called {unknown[0]}: see --help")
    root = Path(tempfile.mkdtemp(prefix="microtome-siege-"))
    os.environ["MICROTOME_CACHE"] = str(root / "cache")
    os.environ["TMPDIR"] = tempfile.tempdir = str(root / "tmp")
    (root / "tmp").mkdir()
    load_everything()
    done = [tried for name in names for tried in besieged(name, root, faults, given)]
    if given.json:
        given.json.write_text(json.dumps([asdict(each) for each in done], indent=1))
    n_lost = sum(len(each.lost) for each in done)
    print(f"{sum(each.attempts for each in done)} attempts, {n_lost} losses")
    if not n_lost:
        shutil.rmtree(root, ignore_errors=True)
        return 0
    print(f"what was lost is in {root}")
    return 1


def besieged(name: str, root: Path, faults: list[str], given: argparse.Namespace) -> list[Tried]:
    """Every fault on one job."""
    if name == "explore":
        job, known = Explored(root / name), EXPLORER_FAULTS
    else:
        job, known = job_of(name, root / name), ALL
        job.measure(time.monotonic)
    done = []
    for fault in [each for each in faults if each in known]:
        tried, started = Tried(name, fault), time.monotonic()
        known[fault](job, tried, given.times, random.Random(f"{given.seed} {name} {fault}"))
        endings = ", ".join(f"{n} {how}" for how, n in sorted(tried.endings.items()))
        print(
            f"{name:<10}{fault:<10}{tried.attempts:>4} attempts ({endings}),"
            f" {tried.rounds} compared, {len(tried.lost)} lost,"
            f" {time.monotonic() - started:.0f} s",
            flush=True,
        )
        for each in tried.lost:
            print(f"    {each}", flush=True)
        done.append(tried)
    return done


if __name__ == "__main__":
    sys.exit(main())
