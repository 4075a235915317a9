"""Faults of the disk itself: a small tmpfs, and one that has become read-only. They need root."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults import Tried, checked, finished
from jobs import Job
from laws import stored

MOST_STEPS = 200


def can_mount() -> str:
    """Why no disk can be mounted here; "" where one can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "mounting a disk needs root on Linux"
    with tempfile.TemporaryDirectory() as place:
        done = _mount("-t", "tmpfs", "tmpfs", place)
        if done.returncode == 0:
            subprocess.run(["umount", place], check=True)
        return done.stderr.strip()


def _mount(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *options], capture_output=True, text=True, check=False)


@contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[None]:
    """A disk of so much room at ``place``."""
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def remount(place: Path, option: str) -> None:
    """Change a mounted disk."""
    subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)


def small(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """A small disk that grows a little whenever it is full, until the job is through."""
    if reason := can_mount():
        tried.endings[f"left out: {reason}"] = 1
        return
    size = _kilobytes(job.root / "undisturbed")
    while tried.attempts < times and not tried.lost:
        place = job.root / f"small-{tried.rounds}"
        room = draw.randrange(8, 100)
        with small_disk(place, room):
            for _ in range(MOST_STEPS):
                had = stored(place)
                ended = job.do(place)
                tried.attempts += ended.code != 0
                tried.note(ended)
                checked(job, place, had, tried)
                if ended.code == 0 or tried.lost:
                    break
                if "space" not in ended.said and "full" not in ended.said:
                    tried.lost.append(f"doesn't say what is wrong: {ended.said}")
                room += draw.randrange(4, max(8, size // 6))
                remount(place, f"size={room}k")
            finished(job, place, tried)


def read_only(job: Job, tried: Tried, times: int, draw: random.Random) -> None:
    """Killed; then the disk is read-only for a pass; then it can be written again."""
    if reason := can_mount():
        tried.endings[f"left out: {reason}"] = 1
        return
    while tried.attempts < times and not tried.lost:
        place = job.root / f"readonly-{tried.rounds}"
        with small_disk(place, 2**16):
            for _ in range(MOST_STEPS):
                had = stored(place)
                ended = job.start(place).wait(draw.uniform(0, job.seconds / 2))
                tried.note(ended)
                checked(job, place, had, tried)
                remount(place, "ro")
                had, refused = stored(place), job.do(place)
                remount(place, "rw")
                tried.attempts += 1
                tried.note(refused)
                checked(job, place, had, tried)
                if tried.lost or ended.code == 0 or tried.attempts >= times:
                    break
            tried.note(job.do(place))
            finished(job, place, tried)


def _kilobytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 1024


MOUNTED = {"small": small, "readonly": read_only}
