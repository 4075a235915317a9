"""kill -9 of an examination, again and again: the same report, measured speeds apart.

Speeds (the column ``speed``, taken by one trial) are a measurement and differ from run to run; they
are the one exception. Here they are masked in the records, and the pages written anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from microtome.examination import rebuild
from support.labelled_texts import write_cats
from support.tiny import save_tiny

TIMED = [
    "speed",
    "speed_low",
    "speed_high",
    "latency_ms",
    "batch_ms",
]  # measured, never twice alike

# A process that has loaded everything and computed nothing: each pass is a fork of it.
DRIVER = """
import os, random, signal, sys, time
from pathlib import Path

import pyarrow.json, pyarrow.parquet, scipy.stats, torch, transformers
from microtome import examination
from microtome.cli import run
from microtome.experiments import all_experiments
from microtome.experiments.kao.decoding import measure
from microtome.experiments.kao.layer_removal import measure
from microtome.experiments.kit import training
from microtome.experiments.kovaleva.head_disabling import measure
from microtome.report import writing
from microtome.runs.machine import commit

writing.can_write_pdf = lambda: False  # as in the process that writes the pages anew
all_experiments(), commit()  # the source tree may change while the passes go on


def start(folder):
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        os._exit(run(["examine", *sys.argv[3:], "--workers", "0", "--out", str(folder)]))
    return child


def is_over(child):
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def n_stored(folder):
    return len([p for p in folder.glob("records/*.json") if not p.name.startswith(".")])


draw = random.Random(0)
undisturbed, killed = map(Path, sys.argv[1:3])
assert os.waitpid(start(undisturbed), 0)[1] == 0
moments = [
    lambda: (killed / "run.json").exists(),  # the fine-tuning is under way
    *(lambda n=n: n_stored(killed) >= n for n in (1, 2, 5, 8)),
    lambda: (killed / "results.parquet").exists(),  # the page is being made
    lambda: (killed / "figures").exists(),
]
for reached in moments:
    child = start(killed)
    while not reached() and not is_over(child):
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    was_killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    print("kill", int(was_killed), n_stored(killed), flush=True)
assert os.waitpid(start(killed), 0)[1] == 0
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """An undisturbed examination, a killed one, and (was it killed?, records then) per kill."""
    folder = tmp_path_factory.mktemp("kills")
    model = save_tiny(folder / "base", "bert", with_tokenizer=True)
    data = write_cats(folder / "rows.csv")
    undisturbed, killed = folder / "undisturbed", folder / "killed"
    places = [str(p) for p in (undisturbed, killed, model)]
    command = [sys.executable, "-c", DRIVER, *places, "--data", str(data)]
    command += ["--epochs", "3"]
    settings = {"MICROTOME_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("kill ")]
    kills = [(int(was_killed), int(n_stored)) for _, was_killed, n_stored in lines]
    return undisturbed, killed, kills


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def written_again(folder: Path, copy: Path, *, speed: float | None = None) -> dict[str, bytes]:
    """The report of a run's records, every measured speed in them replaced if one is given."""
    copy.mkdir()
    shutil.copy(folder / "run.json", copy)
    shutil.copytree(folder / "records", copy / "records")
    for path in (copy / "records").iterdir():
        record = json.loads(path.read_text())
        for row in record["rows"]:
            for column in TIMED:
                if speed is not None and column in row:
                    row[column] = speed
        path.write_text(json.dumps(record))
    report = rebuild(copy)
    tree = {f"{name}/": files(copy / name) for name in ("figures", "tables")}
    return {"page": report.read_bytes()} | {
        folder + name: content for folder, found in tree.items() for name, content in found.items()
    }


def test_the_kills_came_while_there_was_something_to_lose(runs):
    undisturbed, _, kills = runs
    n_trials = len(json.loads((undisturbed / "run.json").read_text())["trials"])
    assert len(kills) == 7
    assert sum(was_killed for was_killed, _ in kills) >= 5
    assert sum(n_stored < n_trials for _, n_stored in kills) >= 3


def test_a_killed_examination_ends_with_the_same_report_speeds_apart(runs, tmp_path):
    undisturbed, killed, _ = runs
    own = written_again(killed, tmp_path / "own")
    assert own["page"] == (killed / "report.html").read_bytes()
    masked = [
        written_again(folder, tmp_path / folder.name, speed=1.0) for folder in (undisturbed, killed)
    ]
    assert masked[0].keys() == masked[1].keys() >= {"page", "tables/layer-removal-rows.csv"}
    for name in masked[0]:
        assert masked[0][name] == masked[1][name], name


def test_its_table_is_the_same_speeds_apart(runs):
    import pyarrow.parquet

    tables = [pyarrow.parquet.read_table(folder / "results.parquet") for folder in runs[:2]]
    assert tables[0].num_rows > 20
    assert tables[0].drop_columns(TIMED).equals(tables[1].drop_columns(TIMED))


def test_its_predictions_and_weights_are_the_same(runs):
    undisturbed, killed, _ = runs
    assert files(undisturbed / "checkpoints") == files(killed / "checkpoints")
    names = [sorted(path.name for path in (folder / "arrays").iterdir()) for folder in runs[:2]]
    assert names[0] == names[1]
    for name in names[0]:
        with (
            np.load(undisturbed / "arrays" / name) as one,
            np.load(killed / "arrays" / name) as other,
        ):
            assert set(one) == set(other)
            for key in set(one) - {"speeds"}:
                assert (one[key] == other[key]).all(), (name, key)
