"""The long jobs, each small enough that a whole one takes seconds."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from laws import essence
from passes import Before, Ended, Pass, nothing

from microtome import examination

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.trimming.cases import case  # noqa: E402 - a tiny model that is good at its rows

JOBS = ("run", "examine", "trim", "replicate")


@dataclass
class Job:
    """A command that writes below a place, and what it gives when nothing disturbs it."""

    name: str
    root: Path
    model: Path
    data: tuple[Path, ...]
    options: list[str]
    workers: str = "0"
    undisturbed: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def arguments(self, place: Path, *more: str) -> list[str]:
        """The command line that works in ``place``."""
        if self.name == "trim":
            places = ["--run", str(place / "run"), "--out", str(place / "out")]
        else:
            places = ["--out", str(place / "run")]
        return [self.name, *self.options, *places, "--workers", self.workers, "--quiet", *more]

    def start(self, place: Path, *more: str, before: Before = nothing) -> Pass:
        """The command, under way."""
        place.mkdir(exist_ok=True)
        return Pass(self.arguments(place, *more), self.root / "said", before)

    def do(self, place: Path, *more: str, before: Before = nothing) -> Ended:
        """The command, to its end."""
        return self.start(place, *more, before=before).wait()

    def measure(self, clock: Callable[[], float]) -> None:
        """Run it undisturbed, to compare with."""
        place, started = self.root / "undisturbed", clock()
        ended = self.do(place)
        assert ended.code == 0, ended.said
        self.seconds, self.undisturbed = clock() - started, essence(place)


def job_of(name: str, root: Path) -> Job:
    """The job of that name, its model and data written below ``root``."""
    root.mkdir(parents=True)
    # Of minutes, a slow machine makes fewer steps; of so many, each makes the most there are.
    examination.PROFILES["quick"] = replace(examination.PROFILES["quick"], minutes=10_000.0)
    if name == "replicate":
        return _replication(root)
    model, data = case("classification", root / "case")
    files = tuple(Path(option) for option in data if not option.startswith("--"))
    if name == "run":
        files = files[-1:]  # it learns nothing: what it could learn from isn't read
    options = {
        "run": ["layer-removal", "--model", str(model), *data],
        "examine": [str(model), *data],
        "trim": [str(model), *data, "--steps", "60", "--layers", "2,1", "--lose", "99"],
    }[name]
    return Job(name, root, model, files, options)


def _replication(root: Path) -> Job:
    """Two layers of nano-bert; the embedded tasks are no files that could be lost."""
    model = root / "model"
    cut = Pass(["operate", "nano-bert", "keep(0,5)", "--out", str(model), "--quiet"], root / "said")
    ended = cut.wait()
    assert ended.code == 0, ended.said
    options = ["kovaleva2019", "--models", str(model), "--limit", "12", "--epochs", "1"]
    options += ["--fraction", "32", "--seeds", "0"]
    for exhibit in ("Figure cosine", "Figure disableheadsall", "Table glue-results"):
        options += ["--only", exhibit]
    return Job("replicate", root, model, (), options)


def removed(place: Path) -> None:
    """Clear a place whose attempts are over."""
    shutil.rmtree(place, ignore_errors=True)
