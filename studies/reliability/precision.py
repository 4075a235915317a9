"""How far results move with the threads, with padding, and with the checkpoint's precision.

python studies/reliability/precision.py [MODEL…] [--limit 100]

Each model is measured as it is: one thread, packed, fp32 weights. Then again with two threads, from
a checkpoint of the same weights in fp16 and in bf16, and (the outputs) by plain transformers on
padded batches. The table has the largest change of each kind of number, and the flips: cells of
text, yes and no, and intervals that are now on another side of zero. Exit 1 if two threads or fp16
flip anything: bf16 keeps 8 bits of every weight, and is another model.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")  # torch may use fewer than this, never more
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from microtome.experiments import find_experiment
from microtome.models import load, resolve, tokenizer_of
from microtome.models.source import minilm_folder
from microtome.observe.evaluation import encode_for
from microtome.observe.predicting import states
from microtome.observe.texts import Encoded
from microtome.replication import replicate, replication_of
from microtome.study import Wanted, Workers, study
from microtome.tasks import DataSpec, open_data

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared"))
HERE = Workers(n_workers=0, progress=False)
SCORES, DELTAS = ("value", "value_low", "value_high"), ("delta", "low", "high")
TIMED = ("speed", "speed_low", "speed_high", "latency_ms", "batch_ms", "bytes")
GIVEN = ("input_ids", "attention_mask", "token_type_ids")
VARIANTS = {"2 threads": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class MeasuredModel:
    """A model, the rows that it is measured on, the experiments, and a paper's exhibits."""

    folder: Callable[[], Path]
    rows: Callable[[int], DataSpec]
    experiments: tuple[str, ...]
    exhibits: tuple[str, tuple[str, ...]] | None = None


def _stsb(limit: int) -> DataSpec:
    return DataSpec("stsb", SHARED / "data" / "glue" / "STS-B", limit=limit)


MODELS = {
    "nano-bert": MeasuredModel(
        lambda: resolve("nano-bert").path,
        lambda limit: DataSpec("micro-sentiment", limit=limit),
        ("decoding", "layer-similarity"),
        ("kao2021", ("Figure 2",)),
    ),
    "minilm": MeasuredModel(minilm_folder, _stsb, ("head-disabling", "layer-removal")),
    "bge-small": MeasuredModel(
        lambda: SHARED / "models" / "bge-small-en", _stsb, ("head-disabling", "layer-removal")
    ),
}


@dataclass(frozen=True)
class Moved:
    """What one variant moved in one model; outputs as a share of the largest state."""

    model: str
    variant: str
    outputs: float
    scores: float | None = None  # of 1, as the deltas
    deltas: float | None = None
    flips: tuple[str, ...] | None = None

    def line(self) -> str:
        """A row of the table; points, as people read scores."""
        points = [None if x is None else f"{100 * x:.2g}" for x in (self.scores, self.deltas)]
        flipped = None if self.flips is None else str(len(self.flips))
        cells = [self.model, self.variant, f"{self.outputs:.1g}", *points, flipped]
        return f"| {' | '.join('' if cell is None else cell for cell in cells)} |"


Rows = dict[str, list[Mapping[str, object]]]


def rows_of(folder: Path, about: MeasuredModel, limit: int, out: Path) -> Rows:
    """The rows of each experiment, and the verdicts of the claims."""
    found: Rows = {}
    for name in about.experiments:
        experiment = find_experiment(name)
        subject = experiment.subject(str(folder), about.rows(limit), {})
        found[name] = list(study(subject, [Wanted(name)], out / name, workers=HERE).part(name).rows)
    if about.exhibits:
        paper, only = about.exhibits
        asked = replication_of(paper, models=[str(folder)], only=only, limit=limit)
        done = replicate(asked, out / paper, workers=HERE).as_json()
        claims = [claim for exhibit in done["exhibits"] for claim in exhibit["claims"]]
        found["verdicts"] = [{"key": c["key"], "verdict": c["verdict"]} for c in claims]
    return found


def largest(one: Rows, other: Rows, columns: tuple[str, ...]) -> float | None:
    """The largest change of a number in these columns; None where there is none."""
    changes = [
        abs(float(a[name]) - float(b[name]))
        for before, after in paired(one, other)
        for a, b in zip(before, after, strict=True)
        for name in columns
        if isinstance(a.get(name), float) and isinstance(b.get(name), float)
    ]
    return max(changes, default=None)


def paired(one: Rows, other: Rows) -> list[tuple[list, list]]:
    """The rows of both, experiment by experiment; as many, in the same order."""
    assert {k: len(v) for k, v in one.items()} == {k: len(v) for k, v in other.items()}
    return [(one[name], other[name]) for name in one]


def flips(one: Rows, other: Rows) -> tuple[str, ...]:
    """Cells of text and of yes and no that differ, and intervals on another side of zero."""
    found = []
    for before, after in paired(one, other):
        for a, b in zip(before, after, strict=True):
            found += [
                f"{name}: {a[name]} → {b[name]}"
                for name in a
                if isinstance(a[name], str | bool) and name not in ("model", *TIMED)
                if a[name] != b[name]
            ]
            if side(a) != side(b):
                found.append(f"{a.get('variant') or a.get('edit')}: {side(a)} → {side(b)}")
    return tuple(found)


def side(row: Mapping[str, object]) -> str:
    """Where the interval of a change is: what is said to hurt or to help hangs on it."""
    low, high = row.get("low"), row.get("high")
    if row.get("delta") is None or not isinstance(low, float) or not isinstance(high, float):
        return ""
    return "below" if high < 0 else "above" if low > 0 else "around"


def outputs(folder: Path, rows: DataSpec) -> NDArray[np.float32]:
    """The states of every token (T, D) at the last depth, packed."""
    model, texts = load(folder), texts_of(folder, rows)
    found = np.empty((len(texts.ids), model.config.hidden_size), dtype=np.float32)
    for chunk, depths in states(model, texts):
        found[chunk.tokens] = depths[-1].numpy()
    return found


def texts_of(folder: Path, rows: DataSpec) -> Encoded:
    """The rows as tokens."""
    model = load(folder)
    return encode_for(model, tokenizer_of(model), open_data(rows))


@torch.inference_mode()
def padded(folder: Path, rows: DataSpec) -> NDArray[np.float32]:
    """The same by plain transformers, sixteen texts to a padded batch."""
    texts, plain = texts_of(folder, rows), AutoModel.from_pretrained(folder, dtype=torch.float32)
    plain.eval()
    found = np.empty((len(texts.ids), plain.config.hidden_size), dtype=np.float32)
    places = list(itertools.pairwise(texts.offsets.tolist()))
    for first in range(0, len(places), 16):
        batch = places[first : first + 16]
        width = max(end - start for start, end in batch)
        given = {name: torch.zeros(len(batch), width, dtype=torch.long) for name in GIVEN}
        for row, (start, end) in enumerate(batch):
            given["input_ids"][row, : end - start] = torch.tensor(texts.ids[start:end])
            given["attention_mask"][row, : end - start] = 1
            if texts.segments is not None:
                pieces = torch.tensor(texts.segments[start:end])
                given["token_type_ids"][row, : end - start] = pieces
        answers = plain(**given).last_hidden_state
        for row, (start, end) in enumerate(batch):
            found[start:end] = answers[row, : end - start].numpy()
    return found


def copied(folder: Path, dtype: torch.dtype, out: Path) -> Path:
    """The checkpoint with every weight rounded to ``dtype``."""
    shutil.copytree(folder, out)
    weights = load_file(folder / "model.safetensors")
    rounded = {n: w.to(dtype) if w.is_floating_point() else w for n, w in weights.items()}
    save_file(rounded, out / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config.pop("torch_dtype", None)
    config["dtype"] = str(dtype).removeprefix("torch.")
    (out / "config.json").write_text(json.dumps(config))
    return out


def measured(name: str, limit: int, root: Path) -> list[Moved]:
    """What each variant moves in one model."""
    about = MODELS[name]
    folder = copied(about.folder(), torch.float32, root / "fp32" / name)
    rows = about.rows(limit)
    torch.set_num_threads(1)
    before, table = (
        outputs(folder, rows),
        rows_of(folder, about, limit, root / "runs" / "fp32" / name),
    )
    scale = float(np.abs(before).max())
    plain = float(np.abs(padded(folder, rows) - before).max()) / scale
    moved = [Moved(name, "padded, plain transformers", plain)]
    for variant, dtype in VARIANTS.items():
        torch.set_num_threads(2 if variant == "2 threads" else 1)
        other = copied(folder, dtype, root / variant / name)
        change = float(np.abs(outputs(other, rows) - before).max()) / scale
        again = rows_of(other, about, limit, root / "runs" / variant / name)
        changes = (largest(table, again, columns) for columns in (SCORES, DELTAS))
        moved.append(Moved(name, variant, change, *changes, flips(table, again)))
    return moved


def main() -> int:
    """Measure the models that were named, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"Default: {', '.join(MODELS)}.")
    parser.add_argument("--limit", type=int, default=100, help="Rows of each task.")
    given = parser.parse_args()
    if unknown := sorted({*given.models} - MODELS.keys()):
        sys.exit(f"no model is called {unknown[0]}: expected {', '.join(MODELS)}")
    print("| model | variant | states | scores | changes | flips |\n|---|---|---|---|---|---|")
    n_flips = 0
    with tempfile.TemporaryDirectory() as place:
        os.environ["MICROTOME_CACHE"] = f"{place}/cache"
        for name in given.models or MODELS:
            for each in measured(name, given.limit, Path(place)):
                print(each.line(), flush=True)
                flipped = each.flips or ()  # none are looked for in padded batches
                n_flips += len(flipped) if each.variant != "bf16" else 0
                print("".join(f"    {flip}\n" for flip in flipped), end="", file=sys.stderr)
    return 1 if n_flips else 0


if __name__ == "__main__":
    sys.exit(main())
