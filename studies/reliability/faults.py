"""What is done to a job, again and again, until it is through; each gives what was tried and lost.

Every fault drives the same command into the same place until it is done, checks the laws after each
pass, and then compares what is there with an undisturbed run. A round that is done before there
were enough attempts is followed by another one in a new place.
"""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jobs import Job, removed
from laws import Stored, differences, kept, stored, torn
from passes import Before, Ended, Pass, nothing

from microtome import files

PATIENCE = 900.0  # seconds after which a pass hangs, however busy the machine is
MOST_PASSES = 200  # in one round: a job that never gets through is a failure, too


@dataclass
class Tried:
    """How often a fault was tried, how each pass ended, and what was lost."""

    job: str
    fault: str
    attempts: int = 0
    rounds: int = 0  # compared with the undisturbed run
    endings: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    told: dict[str, int] = field(default_factory=dict)  # lines of error

    def note(self, ended: Ended) -> None:
        """Count an ending; one that isn't clear is a loss."""
        how = "killed" if ended.code is None else f"exit {ended.code}"
        self.endings[how] = self.endings.get(how, 0) + 1
        for line in ended.errors:
            self.told[line] = self.told.get(line, 0) + 1
        if not ended.is_clear:
            self.lost.append(f"no clear line (exit {ended.code}): {ended.said[-1500:]}")


def checked(job: Job, place: Path, before: Stored, tried: Tried) -> None:
    """The laws that hold at every moment."""
    tried.lost += [*kept(before, stored(place)), *torn(place)]


def finished(job: Job, place: Path, tried: Tried) -> None:
    """The laws of a run that is through; its place is removed unless something was lost."""
    tried.rounds += 1
    tried.lost += [*torn(place), *differences(place, job.undisturbed)]
    if not tried.lost:
        removed(place)


def killed(job: Job, tried: Tried, times: int, draw: random.Random, before: Before) -> None:
    """kill -9 at random moments of the whole job."""
    while tried.attempts < times and not tried.lost:
        place = job.root / f"{tried.fault}-{tried.rounds}"
        for _ in range(MOST_PASSES):
            had = stored(place)
            ended = _killed_once(job, place, draw.uniform(0, job.seconds / 2), before)
            tried.attempts += ended.code is None
            tried.note(ended)
            checked(job, place, had, tried)
            if ended.code is not None or tried.attempts >= times:
                break
        tried.note(job.do(place, before=before))
        finished(job, place, tried)


def _killed_once(job: Job, place: Path, seconds: float, before: Before) -> Ended:
    """A pass that has so long: its whole group dies, workers too."""
    return job.start(place, before=before).wait(seconds)


def kills(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """kill -9 at random moments."""
    killed(job, tried, times, draw, nothing)


def clock(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """kill -9 while the wall clock jumps by hours, forward and back."""
    real, seed = time.time, draw.randrange(2**32)

    def jumping() -> None:
        jumps = random.Random(seed)
        time.time = lambda: real() + jumps.uniform(-12, 12) * 3600

    killed(job, tried, times, draw, jumping)


def drivers(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """A second driver in the same folder, and the first killed at some moment."""
    while tried.attempts < times and not tried.lost:
        place = job.root / f"drivers-{tried.rounds}"
        for _ in range(MOST_PASSES):
            had = stored(place)
            first = job.start(place)
            time.sleep(draw.uniform(0, job.seconds / 4))
            second = _second_driver(job, place)
            one = first.wait(draw.uniform(0, job.seconds / 2))
            other = second.wait()
            tried.attempts += 1
            tried.note(one), tried.note(other)
            checked(job, place, had, tried)
            if 0 in (one.code, other.code) or tried.lost:
                break
        finished(job, place, tried)


def _second_driver(job: Job, place: Path) -> Pass:
    return Pass(job.arguments(place), job.root / "said-too")


def disk(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """A disk that is full at random fsyncs, run after run."""

    def full() -> Before:
        left, real = iter(range(draw.randrange(40))), os.fsync

        def fsync(descriptor: int) -> None:
            if next(left, None) is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        return lambda: setattr(files.os, "fsync", fsync)

    while tried.attempts < times and not tried.lost:
        place = job.root / f"disk-{tried.rounds}"
        for _ in range(min(MOST_PASSES, times - tried.attempts)):
            had, ended = stored(place), job.do(place, before=full())
            tried.attempts += 1
            tried.note(ended)
            checked(job, place, had, tried)
            if ended.code == 0 or tried.lost:
                break
        tried.note(job.do(place))
        finished(job, place, tried)


def memory(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """A worker whose address space has little room left: any allocation may be refused."""
    job.workers = "1"
    while tried.attempts < times and not tried.lost:
        place = job.root / f"memory-{tried.rounds}"
        for _ in range(min(MOST_PASSES, times - tried.attempts)):
            driver = job.start(place, "--retry-failed")
            time.sleep(draw.uniform(0, job.seconds))
            room = int(2 ** draw.uniform(20, 26))
            tried.attempts += sum(_limited(worker, room) for worker in _children(driver.pid))
            ended = driver.wait(PATIENCE)
            tried.note(ended)
            checked(job, place, {}, tried)
            if ended.code is None:
                tried.lost.append(f"it hangs: {ended.said[-1500:]}")
            if ended.code == 0 or tried.lost:
                break
        tried.note(job.do(place, "--retry-failed"))
        finished(job, place, tried)
    job.workers = "0"


def _limited(worker: int, room: int) -> bool:
    """Let a process have so many bytes more than it has; whether it was still there."""
    try:
        pages = int(Path(f"/proc/{worker}/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + room
        resource.prlimit(worker, resource.RLIMIT_AS, (limit, limit))
    except OSError:
        return False
    return True


def inputs(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """Killed; then a file that it reads is gone, or another one; then it is back."""
    place = job.root / "inputs"
    weights = job.model / "model.safetensors"
    while tried.attempts < times and not tried.lost:
        for path in (weights, job.model / "config.json", *job.data):
            for change in (_lose, _alter):
                had = stored(place)
                tried.note(_killed_once(job, place, draw.uniform(0, job.seconds / 2), nothing))
                checked(job, place, had, tried)
                begun = (place / "run" / "run.json").exists()
                _with_another(job, place, path, change, tried, begun=begun)
    tried.note(job.do(place))
    finished(job, place, tried)


def _with_another(
    job: Job,
    place: Path,
    path: Path,
    change: Callable[[Path], None],
    tried: Tried,
    *,
    begun: bool,
) -> None:
    """The command while ``path`` isn't what it was: refused, and nothing is touched."""
    had, copy = stored(place), path.with_name(f"kept-{path.name}")
    shutil.copy2(path, copy)
    change(path)
    ended = job.do(place) if begun or change is _lose else None
    copy.replace(path)
    if ended is None:
        return
    tried.attempts += 1
    tried.note(ended)
    if ended.code == 0:
        tried.lost.append(f"{path.name} ({change.__name__}) went unnoticed")
    checked(job, place, had, tried)


def _lose(path: Path) -> None:
    path.unlink()


def _alter(path: Path) -> None:
    """Another content of the same kind: the last byte of weights, a word, a setting."""
    content = path.read_bytes()
    match path.suffix:
        case ".safetensors":
            changed = content[:-1] + bytes([content[-1] ^ 1])
        case ".json":
            changed = content.replace(b"1e-12", b"1e-10")
        case _:
            changed = content.replace(b"cat", b"dog", 1)
    assert changed != content, path
    path.write_bytes(changed)


def workers(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """kill -9 of the worker process; the driver goes on with another."""
    while tried.attempts < times and not tried.lost:
        place = job.root / f"workers-{tried.rounds}"
        job.workers = "1"
        driver = job.start(place)
        for _ in range(2):  # the third death would be the trial's end
            time.sleep(draw.uniform(1, 1 + job.seconds))
            for child in _children(driver.pid):
                os.kill(child, signal.SIGKILL)
                tried.attempts += 1
        tried.note(driver.wait())
        job.workers = "0"
        finished(job, place, tried)


def _children(parent: int) -> Iterator[int]:
    """The processes whose parent this is."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == parent:
            yield int(path.parent.name)


FAULTS = {
    "kills": kills, "clock": clock, "drivers": drivers, "disk": disk, "memory": memory,
    "inputs": inputs, "workers": workers,
}  # fmt: skip
