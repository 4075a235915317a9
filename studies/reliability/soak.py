"""Mixed work for an hour on one machine: nothing grows, and no temporary folder is left.

python studies/reliability/soak.py [--minutes 60] [--pause 20] [--json F]

Four processes work at once, each for the whole time: an explorer that a page uses, runs with a
worker, examinations, and runs on Ray, each of those in a process of its own (a process that joins
and leaves Ray keeps three sockets). After every round and a pause each is looked at: memory, open
files, threads, sockets, processes that it started, and what lies in its temporary folder. The first
quarter of the rounds fills what is kept; after it nothing may grow. Exit 1 if anything did.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from frozen import frozen_source

sys.path.insert(0, frozen_source())

from exploring import Explored, Opened
from jobs import Job, job_of, removed
from passes import load_everything

from microtome.cli import run

MOST_MEMORY = 16.0  # MB that the last quarter may have more than the second: an allocator's play
LEAST_ROUNDS = 8
RESTS = {"run": 1, "examine": 1, "ray": 3}  # pauses after a round: starting Ray costs the most


@dataclass(frozen=True)
class Sample:
    """A process at rest; ``memory`` in MB."""

    memory: float
    files: int
    threads: int
    sockets: int
    started: int
    temporary: int


def sample(pid: int, folder: Path) -> Sample:
    """What a process has, how many have its temporary folder, and how much lies there."""
    here = Path("/proc") / str(pid)
    links = [str(link.readlink()) for link in (here / "fd").iterdir() if link.is_symlink()]
    pages = int((here / "statm").read_text().split()[1])
    return Sample(
        memory=pages * resource.getpagesize() / 2**20,
        files=len(links),
        threads=len(list((here / "task").iterdir())),
        sockets=sum(link.startswith("socket:") for link in links),
        started=sum(1 for _ in started_in(folder)),
        temporary=sum(1 for _ in folder.rglob("*")),
    )


def started_in(folder: Path) -> Iterator[Path]:
    """Programs that were started with this temporary folder, whoever their parent is by now."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}".encode() in path.read_bytes().split(b"\0"):
                yield path
        except OSError:  # it has just ended
            continue


def grown(samples: Sequence[Sample]) -> list[str]:
    """What the last quarter of the rounds has more of than the second."""
    quarter = len(samples) // 4
    if len(samples) < LEAST_ROUNDS:
        return [f"expected at least {LEAST_ROUNDS} rounds, got {len(samples)}"]
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    medians = [statistics.median(each.memory for each in some) for some in (early, late)]
    found = []
    if medians[1] > medians[0] + MOST_MEMORY:
        found.append(f"memory: {medians[0]:.0f} MB, then {medians[1]:.0f} MB")
    for name in ("files", "threads", "sockets", "started", "temporary"):
        most = [max(getattr(each, name) for each in some) for some in (early, late)]
        if most[1] > most[0]:
            found.append(f"{name}: {most[0]}, then {most[1]}")
    return found


def own_folder(name: str, root: Path) -> Path:
    """The temporary folder of what is started next."""
    folder = root / "tmp" / name
    folder.mkdir(parents=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return folder


@dataclass(frozen=True)
class Work:
    """Something that goes on until ``stop``, looked at after each turn and a pause."""

    root: Path
    folder: Path
    stop: float
    pause: float

    def go_on(self, turn: Callable[[int], bool], pid: int) -> None:
        """A line of ``samples`` for every turn that came about."""
        number = 0
        while time.monotonic() < self.stop or number < LEAST_ROUNDS:
            came_about = turn(number)
            gc.collect()
            time.sleep(self.pause)
            if came_about:
                with (self.root / "samples").open("a") as out:
                    out.write(json.dumps(asdict(sample(pid, self.folder))) + "\n")
            number += 1

    def samples(self) -> list[Sample]:
        """Those that were taken."""
        lines = (self.root / "samples").read_text().splitlines()
        return [Sample(**json.loads(line)) for line in lines]


def again_and_again(job: Job, work: Work, on_ray: bool) -> None:
    """What a process does: the same command, each time in a new place."""

    def turn(number: int) -> bool:
        place = job.root / f"place-{number}"
        place.mkdir()
        if on_ray:
            ended = job.do(place, "--executor", "ray")
            came_about, said = ended.code == 0, ended.said
        else:
            with redirect_stdout(StringIO()):
                came_about, said = run(job.arguments(place)) == 0, "see above"
        # Ray gives up after half a minute on a busy machine.
        assert came_about or "Ray didn't start" in said, said
        removed(place)
        return came_about

    work.go_on(turn, os.getpid())


def use(page: Opened, out: Path, number: int) -> bool:
    """An edit that wasn't there before: its text, its maps, its score; and it is saved."""
    edit = f"remove({number % 2}) | reinit(0, seed={number})"
    asked = {
        "text": {"text": "the cat", "edit": edit},
        "attention": {"text": "the cat", "edit": edit, "which": "after"},
        "score": {"edit": edit},
        "save": {"edit": edit, "folder": f"saved-{number}"},
    }
    for name, body in asked.items():
        assert page.post(name, body) == 200, (name, page.last)
    shutil.rmtree(out / f"saved-{number}")
    return True


def soaked(root: Path, minutes: float, pause: float) -> dict[str, list[Sample]]:
    """All four at once for so long; the samples of each."""
    fork = multiprocessing.get_context("fork")
    stop, works, processes = time.monotonic() + 60 * minutes, {}, []
    for name, pauses in RESTS.items():
        job = job_of("examine" if name == "examine" else "run", root / name)
        job.workers = "1" if name == "run" else "0"
        works[name] = Work(job.root, own_folder(name, root), stop, pauses * pause)
        given = (job, works[name], name == "ray")
        processes.append(fork.Process(target=again_and_again, args=given, name=name))
        processes[-1].start()
    work = Work(root / "explore", own_folder("explore", root), stop, pause)
    explored, out = Explored(work.root), work.root / "out"
    with Opened(explored, out) as page:
        work.go_on(lambda number: use(page, out, number), page.process.pid)
        for process in processes:
            process.join()
    failed = [process.name for process in processes if process.exitcode != 0]
    assert not failed, f"ended early: {', '.join(failed)}"
    return {"explore": work.samples()} | {name: each.samples() for name, each in works.items()}


def main() -> int:
    """Soak, and print what each process had early and late."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--pause", type=float, default=20, help="seconds between two rounds")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="soak-"))
    os.environ["MICROTOME_CACHE"] = str(root / "cache")
    os.environ["RAY_TMPDIR"] = str(root / "ray")  # Ray keeps the logs of its sessions there
    load_everything()
    samples = soaked(root, given.minutes, given.pause)
    if given.json:
        told = {name: [asdict(each) for each in some] for name, some in samples.items()}
        given.json.write_text(json.dumps(told, indent=1))
    problems = {name: grown(some) for name, some in samples.items()}
    for name, some in samples.items():
        quarter = len(some) // 4
        print(f"{name:<9}{len(some):>4} rounds; after a quarter {some[quarter]}, last {some[-1]}")
    left = [str(path) for path in (root / "tmp").glob("*/*")]
    for problem in [*(f"{n}: {p}" for n, some in problems.items() for p in some), *left]:
        print(f"    {problem}")
    removed(root)
    return 1 if left or any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
