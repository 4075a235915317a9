"""kill -9 of a trim, again and again: the same table and the same weights, measured times apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from support.trimming.cases import case

TIMED = ["speed", "speed_low", "speed_high", "latency_ms", "batch_ms"]

# A process that has loaded everything and computed nothing: each pass is a fork of it.
DRIVER = """
import os, random, signal, sys, time
from pathlib import Path

import pyarrow.json, pyarrow.parquet, scipy.stats, torch, transformers
from microtome.cli import run
from microtome.experiments import all_experiments
from microtome.experiments.field.trim import healing, measure
from microtome.report import writing
from microtome.runs.machine import commit
from microtome.trimming import trim

writing.can_write_pdf = lambda: False  # they would take longer than the trim
healing.SAVE_MINUTES = 0.0  # every step is stored, so that kills come between steps, too
all_experiments(), commit()


def start(folder):
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        places = ["--run", str(folder), "--out", str(folder) + ".out"]
        os._exit(run(["trim", *sys.argv[3:], "--workers", "0", "--quiet", *places]))
    return child


def is_over(child):
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def n_stored(folder):
    return len([p for p in folder.glob("records/*.json") if not p.name.startswith(".")])


def has(folder, pattern):
    try:
        return any(folder.rglob(pattern))
    except FileNotFoundError:  # folders come and go
        return False


draw = random.Random(0)
undisturbed, killed = map(Path, sys.argv[1:3])
assert os.waitpid(start(undisturbed), 0)[1] == 0
moments = [
    lambda: (killed / "run.json").exists(),
    lambda: n_stored(killed) >= 1,
    lambda: n_stored(killed) >= 2,
    lambda: n_stored(killed) >= 3,
    lambda: has(killed, "first-*.finetuning"),
    lambda: has(killed, "first-*.finetuning/*"),
    lambda: has(killed, "then-*.finetuning"),
    lambda: has(killed, "then-*.finetuning/*"),
    lambda: has(killed, "healing.json"),
    lambda: n_stored(killed) >= 5,
    lambda: (killed / "results.parquet").exists(),
    lambda: Path(str(killed) + ".out").exists(),
]
for reached in moments:
    child = start(killed)
    while not reached() and not is_over(child):
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.2))
    os.kill(child, signal.SIGKILL)
    was_killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    print("kill", int(was_killed), n_stored(killed), flush=True)
    if Path(str(killed) + ".out").exists():
        break
if not Path(str(killed) + ".out").exists():
    assert os.waitpid(start(killed), 0)[1] == 0
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """An undisturbed trim, a killed one, and (was it killed?, records then) per kill."""
    root = tmp_path_factory.mktemp("kills")
    model, data = case("classification", root)
    undisturbed, killed = root / "undisturbed", root / "killed"
    wish = ["--steps", "100", "--layers", "2", "--lose", "99"]
    places = [str(place) for place in (undisturbed, killed, model)]
    settings = {"MICROTOME_CACHE": str(root / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *places, *data, *wish],
        env=os.environ | settings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("kill ")]
    return undisturbed, killed, [(int(was), int(n_stored)) for _, was, n_stored in lines]


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_kills_came_while_there_was_something_to_lose(runs):
    undisturbed, _, kills = runs
    n_trials = len(json.loads((undisturbed / "run.json").read_text())["trials"])
    assert len(kills) >= 10
    assert sum(was_killed for was_killed, _ in kills) >= 10
    assert sum(n_stored < n_trials for _, n_stored in kills) >= 8


def test_a_killed_trim_ends_with_the_same_table_times_apart(runs):
    tables = [pyarrow.parquet.read_table(folder / "results.parquet") for folder in runs[:2]]
    assert tables[0].num_rows == 7  # three screened, one healed, three judged
    timed = [name for name in TIMED if name in tables[0].column_names]
    assert tables[0].drop_columns(timed).equals(tables[1].drop_columns(timed))


def test_its_weights_and_answers_are_the_same(runs):
    undisturbed, killed, _ = runs
    weights = files(undisturbed / "checkpoints")
    assert any(name.endswith("model.safetensors") for name in weights)
    assert weights == files(killed / "checkpoints")
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


def test_the_saved_model_is_the_same(runs):
    undisturbed, killed, _ = runs
    one, other = (Path(f"{folder}.out") / "model.safetensors" for folder in (undisturbed, killed))
    assert one.read_bytes() == other.read_bytes()
