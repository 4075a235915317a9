"""The explorer under faults: what it saves is whole or absent, and it opens again."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from faults import Tried
from jobs import job_of, removed
from laws import digest, torn_model
from mounted import can_mount, remount, small_disk
from passes import Pass

EDIT = "remove(0)"
PATIENCE = 300.0


class Explored:
    """An explorer on a tiny model, and the weights that saving gives."""

    def __init__(self, root: Path) -> None:
        self.root = root
        job = job_of("run", root)
        self.model, self.rows = job.model, job.data[-1]
        with Opened(self, root / "undisturbed") as page:
            started = time.monotonic()
            assert page.save("saved") == 200, page.last
            self.seconds = time.monotonic() - started
        self.weights = digest(root / "undisturbed" / "saved" / "model.safetensors")

    def problems(self, saved: Path) -> list[str]:
        """What is wrong with a folder that was saved, or is absent."""
        found = list(torn_model(saved))
        if saved.exists() and not found and digest(saved / "model.safetensors") != self.weights:
            found.append(f"{saved} has other weights")
        return found


class Opened:
    """A running explorer and the last answer that it gave."""

    def __init__(self, explored: Explored, out: Path) -> None:
        out.mkdir(exist_ok=True)
        said = explored.root / "said"
        self.last = b""
        printed = Path(f"{said}.out")
        printed.unlink(missing_ok=True)  # the one before has printed there, too
        self.process = Pass(
            [
                "explore", str(explored.model), "--data", str(explored.rows), "--out", str(out),
                "--no-browser", "--quiet", "--json",
            ],
            said,
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while "}" not in (printed.read_text() if printed.exists() else ""):
            assert not self.process.is_over, said.read_text()
            assert time.monotonic() < deadline, "the explorer doesn't open"
            time.sleep(0.01)
        address = urlsplit(json.loads(printed.read_text())["address"])
        self.host, self.token = address.netloc, parse_qs(address.query)["token"][0]

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.process.is_over:
            os.kill(self.process.pid, signal.SIGINT)
            assert self.process.wait(60).code == 0, self.process.said.read_text()

    def send(self, name: str, body: dict[str, object]) -> http.client.HTTPConnection:
        """A request whose answer nobody has waited for yet."""
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        connection.request(
            "POST", f"/api/{name}", json.dumps(body), {"X-Microtome-Token": self.token}
        )
        return connection

    def post(self, name: str, body: dict[str, object]) -> int:
        """The status of an answer; ``last`` is its body."""
        connection = self.send(name, body)
        try:
            answer = connection.getresponse()
            self.last = answer.read()
            return answer.status
        finally:
            connection.close()

    def save(self, folder: str) -> int:
        """Save the edited model."""
        return self.post("save", {"edit": EDIT, "folder": folder})


def kills(explored: Explored, tried: Tried, times: int, draw: random.Random) -> None:
    """kill -9 while a model is being saved; the next explorer saves it, or finds it whole."""
    out = explored.root / "kills"
    while tried.attempts < times and not tried.lost:
        saved = out / f"saved-{tried.attempts}"
        with Opened(explored, out) as page:
            connection = page.send("save", {"edit": EDIT, "folder": saved.name})
            tried.note(page.process.wait(draw.uniform(0, 1.2 * explored.seconds)))
            connection.close()
        tried.attempts += 1
        tried.lost += explored.problems(saved)
        if tried.attempts % 5 == 0:
            _saves_again(explored, out, saved, tried)
    removed(out)


def _saves_again(explored: Explored, out: Path, saved: Path, tried: Tried) -> None:
    """After a kill: what is there is refused in words, what isn't is saved."""
    was_there = saved.exists()
    with Opened(explored, out) as page:
        expected, status = (400 if was_there else 200), page.save(saved.name)
        if status != expected:
            tried.lost.append(f"expected {expected}, got {status}: {page.last!r}")
    tried.rounds += 1
    tried.lost += explored.problems(saved)


def drivers(explored: Explored, tried: Tried, times: int, draw: random.Random) -> None:
    """Two explorers save into one folder at once: one of them does, the other says why not."""
    out = explored.root / "drivers"
    with Opened(explored, out) as one, Opened(explored, out) as other:
        while tried.attempts < times and not tried.lost:
            saved = out / f"saved-{tried.attempts}"
            sent = []
            for page in (one, other):
                sent.append(page.send("save", {"edit": EDIT, "folder": saved.name}))
                time.sleep(draw.uniform(0, explored.seconds / 4))
            answers = [connection.getresponse() for connection in sent]
            statuses = sorted(answer.status for answer in answers)
            told = [answer.read() for answer in answers]
            if statuses not in ([200, 400], [200, 422]):
                tried.lost.append(f"expected one to save, got {statuses}: {told}")
            tried.attempts += 1
            _count(tried, statuses)
            tried.lost += explored.problems(saved)
            tried.rounds += 1


def inputs(explored: Explored, tried: Tried, times: int, draw: random.Random) -> None:
    """A file of the open model is gone while it is saved: saved whole, or refused in words."""
    out = explored.root / "inputs"
    files = [each for each in sorted(explored.model.iterdir()) if each.is_file()]
    with Opened(explored, out) as page:
        while tried.attempts < times and not tried.lost:
            saved, path = out / f"saved-{tried.attempts}", files[tried.attempts % len(files)]
            away = path.with_name(f"away-{path.name}")
            path.rename(away)
            _refused_or_saved(explored, page, saved, tried)
            away.rename(path)
    tried.rounds += 1


def _refused_or_saved(explored: Explored, page: Opened, saved: Path, tried: Tried) -> None:
    status = page.save(saved.name)
    tried.attempts += 1
    _count(tried, [status])
    if status not in (200, 400, 422):
        tried.lost.append(f"status {status}: {page.last!r}")
    if status != 200 and saved.exists():
        tried.lost.append(f"{saved} is there, though saving failed")
    tried.lost += explored.problems(saved)


def _on_a_disk(
    explored: Explored, tried: Tried, times: int, option: Callable[[], str], back: str
) -> None:
    """Saves on a disk that ``option`` has spoilt, then ``back`` as it was."""
    if reason := can_mount():
        tried.endings[f"left out: {reason}"] = 1
        return
    out = explored.root / f"disk-{tried.fault}"
    with small_disk(out, 2**16), Opened(explored, out) as page:
        while tried.attempts < times and not tried.lost:
            saved = out / "saved"
            remount(out, option())
            _refused_or_saved(explored, page, saved, tried)
            remount(out, back)
            shutil.rmtree(saved, ignore_errors=True)
            if left := [path.name for path in out.iterdir()]:
                tried.lost.append(f"left behind: {left}")
        if page.save("saved") != 200:
            tried.lost.append(f"doesn't save when it could: {page.last!r}")
        tried.lost += explored.problems(out / "saved")
    tried.rounds += 1


def small(explored: Explored, tried: Tried, times: int, draw: random.Random) -> None:
    """A disk with room for a part of the model."""
    _on_a_disk(explored, tried, times, lambda: f"size={draw.randrange(8, 200)}k", "size=64m")


def read_only(explored: Explored, tried: Tried, times: int, draw: random.Random) -> None:
    """A disk that became read-only."""
    _on_a_disk(explored, tried, times, lambda: "ro", "rw")


def _count(tried: Tried, statuses: list[int]) -> None:
    for status in statuses:
        how = f"HTTP {status}"
        tried.endings[how] = tried.endings.get(how, 0) + 1


EXPLORER_FAULTS = {
    "kills": kills, "drivers": drivers, "inputs": inputs, "small": small, "readonly": read_only,
}  # fmt: skip
