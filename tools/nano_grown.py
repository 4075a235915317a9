"""Make an embedded model as its record says: grown from 3 to 12 layers.

    python tools/nano_grown.py nano-bert --text NOVELS WIKI_0 WIKI_1 --extra FILE --out DIR

Settings and stages are those of the model's ``pretraining.json``. nano-bert then had lessons
(``tools/nano_lessons.py``). The same command resumes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from microtome.models import resolve
from pretraining.schedule import GrownSchedule
from pretraining.training import GrownRequest, pretrain_grown

NAMES = (
    "family", "layers", "width", "heads", "embedding", "vocabulary", "positions", "lowercase",
    "seed", "warm_start", "summary_words", "matrix_rate", "matrix_decay", "other_rate",
    "heldout_share", "license",
)  # fmt: skip


def recorded(name: str, **changes: object) -> tuple[GrownRequest, GrownSchedule]:
    """The request and the schedule of an embedded model's record."""
    path = resolve(name).path
    assert path is not None
    recipe = json.loads((path / "pretraining.json").read_text(encoding="utf-8"))["recipe"]
    schedule = GrownSchedule.from_json(recipe["plan"])
    settings = {key: recipe[key] for key in NAMES}
    return GrownRequest(**settings, stages=schedule.stages, **changes), schedule


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("nano-bert", "nano-albert"))
    parser.add_argument("--text", nargs="+", type=Path, required=True)
    parser.add_argument("--extra", nargs="*", type=Path, default=[])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    request, schedule = recorded(
        given.name, text=tuple(given.text), extra_text=tuple(given.extra), out=given.out, threads=1
    )
    pretrain_grown(request, schedule, progress=lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
