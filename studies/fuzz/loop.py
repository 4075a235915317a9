"""One target, tried until its time is up: valid files, and valid files made wrong."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from mutations import mutated

from microtome.errors import MicrotomeError

CPU_SECONDS = 1.0
MORE_MEMORY = 2**30  # bytes, beyond what the process has before the first input
LONGEST_MESSAGE = 2_100  # each of message and hint has a limit of 1,000

Files = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """Valid files, and what reading them must give; None: whatever it gives is fine."""

    files: Files
    expected: object = None


@dataclass(frozen=True)
class Target:
    """A reader, and what it reads.

    ``independent`` reads the same bytes another way, and gives None where it has no opinion.
    ``folder`` holds further files that stay as they are; ``whole`` files are never changed.
    """

    name: str
    case: Callable[[Random], Case]
    read: Callable[[Path], object]
    independent: Callable[[Files], object] = lambda files: None
    folder: Path | None = None
    whole: tuple[str, ...] = ()
    seconds: float = CPU_SECONDS


class TooSlow(BaseException):
    """Not an Exception: no handler of a reader may catch it."""


class Wrong(Exception):
    """A law that doesn't hold."""


@dataclass
class Finding:
    """What came out instead of rows or an error of ours, and the smallest files that do it."""

    what: str
    files: Files
    trace: str
    times: int = 1


@dataclass
class Fuzzing:
    """A target under way, in ``place``."""

    target: Target
    place: Path
    runs: int = 0
    read: int = 0
    refused: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)

    def go(self, minutes: float, seed: int) -> None:
        """Try for ``minutes``, or until the process has had as many of the processor's."""
        rng = Random(f"{self.target.name} {seed}")
        for _ in range(3):  # imports and caches aren't what is measured
            self.try_one(self.target.case(rng), seconds=60)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY, resource.RLIM_INFINITY))
        stop = time.process_time() + 60 * minutes
        while time.process_time() < stop:
            case = self.target.case(rng)
            if rng.random() < 0.85:
                names = sorted(case.files.keys() - set(self.target.whole))
                name = rng.choice(names)
                is_json = name.endswith((".json", ".jsonl"))
                changed = mutated(case.files[name], rng, as_json=is_json)
                files = case.files | {name: changed}
                case = Case(files, self.target.independent(files))
                self.try_one(case)
            else:
                self.try_one(case, valid=True)

    def try_one(self, case: Case, *, valid: bool = False, seconds: float = 0) -> None:
        """Read once; what is wrong with it becomes a finding."""
        self.runs += 1
        limit = seconds or self.target.seconds
        found = self.outcome(case, valid, limit)
        if found is not None and found.what.startswith("TooSlow"):
            found = self.outcome(case, valid, limit)  # a pause of the machine isn't a finding
        if found is None:
            return
        known = self.findings.setdefault(found.what, found)
        if known is not found:
            known.times += 1
            if _size(found.files) < _size(known.files):
                known.files = found.files
        self.note()

    def outcome(self, case: Case, valid: bool, seconds: float) -> Finding | None:
        if self.target.folder is None:
            shutil.rmtree(self.place)
        write(case.files, self.place)
        try:
            with CpuLimit(seconds), warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)  # numbers that overflow
                given = self.target.read(self.place)
        except MicrotomeError as error:
            self.refused += 1
            problem = message_problem(error)
            if valid and case.expected is not None:
                problem = f"a valid file is refused: {str(error)[:200]}"
            return None if problem is None else Finding(problem, case.files, "")
        except (Exception, TooSlow, MemoryError) as error:  # noqa: BLE001 - that is the question
            return Finding(*_told(error, case.files))
        self.read += 1
        if case.expected is not None and given != case.expected:
            what = f"rows differ: {_difference(given, case.expected)}"
            return Finding(what.split(":")[0], case.files, what)
        return None

    def note(self) -> None:
        """What is known so far, where the parent finds it if this process dies."""
        told = {
            "runs": self.runs, "read": self.read, "refused": self.refused,
            "findings": [vars(f) | {"files": {n: c.decode("latin-1") for n, c in f.files.items()}}
                         for f in self.findings.values()],
        }  # fmt: skip
        (self.place.parent / "found.json").write_text(json.dumps(told))


def write(files: Mapping[str, bytes], place: Path) -> None:
    """Put the files into ``place``."""
    for name, content in files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def message_problem(error: MicrotomeError) -> str | None:
    """What is wrong with an error of ours; None if it is one short line of characters."""
    text = str(error)
    where = _place(error)
    if not text.isprintable():
        return f"a message with {next(c for c in text if not c.isprintable())!r} in it at {where}"
    return (
        f"a message of over {LONGEST_MESSAGE} characters at {where}"
        if (len(text) > LONGEST_MESSAGE)
        else None
    )


def prepared(target: Target, place: Path) -> Fuzzing:
    """The trial of a target, with the files that stay as they are."""
    if target.folder is not None:
        shutil.copytree(target.folder, place)
    place.mkdir(parents=True, exist_ok=True)
    return Fuzzing(target, place)


def _told(error: BaseException, files: Files) -> tuple[str, Files, str]:
    kind = type(error).__name__
    return f"{kind} at {_place(error)}", files, "".join(traceback.format_exception(error))


def _place(error: BaseException) -> str:
    """The innermost line of the package, else of whatever raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/microtome/" in frame.filename] or list(frames)
    last = ours[-1]
    return f"{'/'.join(Path(last.filename).parts[-2:])}:{last.name}"


def _difference(given: object, expected: object) -> str:
    if isinstance(given, list) and isinstance(expected, list):
        if len(given) != len(expected):
            return f"{len(given)} rows, {len(expected)} expected"
        at = next(
            i
            for i, pair in enumerate(zip(given, expected, strict=True))
            if len({*map(repr, pair)}) > 1
        )
        return f"row {at} is {str(given[at])[:200]}, expected {str(expected[at])[:200]}"
    return f"{str(given)[:200]}, expected {str(expected)[:200]}"


class CpuLimit:
    """Raise TooSlow in the block after so many seconds of the processor."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGPROF, self._stop)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        raise TooSlow


def _size(files: Files) -> int:
    return sum(map(len, files.values()))
