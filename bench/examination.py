"""J9: a whole quick examination of a base-size classifier, and where its time goes.

python bench/examination.py [--json] [--shape base] [--rows 872]

Random weights, rows of SST-2 (``MICROTOME_TEST_DATA`` or ../shared). The plain loop's estimate is
of the same cuts and heads on the same rows: a pass each by plain transformers, batches of 32 padded
to their longest text, timed on one batch of typical lengths. Healing isn't in it: its minute is a
minute for both. Seconds of the parts are CPU seconds of all workers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from kit import rivals, workloads
from kit.measuring import Row, finish
from microtome.runs import open_run

BATCH = 32


def saved_classifier(shape: str, out: Path) -> Path:
    """A folder as users have it: random weights and a real tokenizer of the same vocabulary."""
    workloads.classifier(shape).save_pretrained(out)
    for file in workloads.embedder().glob("*token*"):
        shutil.copy(file, out)
    shutil.copy(workloads.embedder() / "vocab.txt", out)
    return out


def plain_seconds(shape: str) -> float:
    """Wall seconds of one row in one pass of plain transformers, with all threads."""
    model = workloads.classifier(shape)
    texts = workloads.texts(workloads.lengths("sst2", BATCH)[0])
    batch = rivals.padded(texts)
    taken = []
    with torch.no_grad():
        for _ in range(5):
            started = time.perf_counter()
            model(**batch)
            taken.append(time.perf_counter() - started)
    return min(taken) / BATCH


def passes(rows: Iterable[Mapping[str, object]], n_layers: int) -> float:
    """Passes of single rows that the plain loop needs for these results, in whole models.

    A cut is as much of one as it keeps layers; layers below a disabled head aren't spared.
    """
    units = {}
    for row in rows:
        changed = row.get("edit") or (row.get("layer"), row.get("head"))
        kept = row.get("layers")
        share = kept / n_layers if isinstance(kept, int) else 1.0
        units[row["experiment"], changed] = share * float(str(row["n"]))
    return sum(units.values())


def examined(shape: str, n_rows: int, folder: Path) -> Row:
    model = saved_classifier(shape, folder / "model")
    command = [
        *(sys.executable, "-c", "from microtome.cli import main; main()", "examine", str(model)),
        *("--task", "sst2", "--data", str(workloads.SHARED / "data/glue/SST-2")),
        *("--limit", str(n_rows), "--out", str(folder / "run"), "--quiet", "--json"),
    ]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    parts = json.loads(done.stdout)["parts"]
    assert all(part["status"] == "done" for part in parts), parts
    result = open_run(folder / "run")
    of_part: dict[str, float] = defaultdict(float)
    for record in result.records.values():
        of_part[record.name.split(".")[0]] += record.cpu_seconds
    n_layers = int(workloads.SHAPES[shape]["num_hidden_layers"])
    swept = [row for row in result.rows if row["experiment"] in ("layer-removal", "head-disabling")]
    needed = passes([row for row in swept if row["primary"]], n_layers)
    notes = ", ".join(
        f"{part} {taken:.0f}" for part, taken in sorted(of_part.items(), key=lambda one: -one[1])
    )
    row = Row(f"J9 an examination, {shape}, {n_rows} rows", seconds)
    row.rivals["plain loop of the same cuts and heads"] = needed * plain_seconds(shape)
    row.notes = f"CPU seconds: {notes}; the plain loop passes over all rows {needed / n_rows:.0f}×"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--shape", choices=workloads.SHAPES, default="base")
    parser.add_argument("--rows", type=int, default=872)
    given = parser.parse_args()
    given.threads, given.clock = os.cpu_count(), "wall"
    with tempfile.TemporaryDirectory() as folder:
        row = examined(given.shape, given.rows, Path(folder))
    finish("examination", [row], given)


if __name__ == "__main__":
    main()
