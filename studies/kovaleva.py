"""Kovaleva et al. on all-MiniLM and real data: figures for docs/figures-kovaleva.md.

python studies/kovaleva.py [--only NAME] [--limit 200]

NAME: treebank, words, published, framenet, embedded, mrpc, rte; without it all of them.

Needs the extras ``english`` and ``linguistics``, and real data (MICROTOME_TEST_DATA, or ../shared).
Every study is a run below ``--out`` with its report.html; the same command again goes on. A study
whose data isn't there is left out, and says so.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commands import DATA, ROOT
from microtome.experiments import find_experiment, subject_of
from microtome.papers import claims
from microtome.study import Study, Wanted, Workers, study
from microtome.tasks import DataSpec

TREEBANK = DATA / "ud_ewt" / "en_ewt-ud-dev.conllu"
FRAMES = DATA / "frames"
FOLDERS = {"mrpc": "MRPC", "rte": "RTE"}
PUBLISHED = FRAMES / "framenet_examples_published.txt"
NEEDED = {
    "treebank": (TREEBANK,),
    "words": (TREEBANK,),
    "published": (PUBLISHED,),
    "framenet": (FRAMES / "framenet_v15",),
    **{name: (DATA / "glue" / folder, TREEBANK, PUBLISHED) for name, folder in FOLDERS.items()},
}
RECIPE: dict[str, Any] = {"learning_rate": 1e-4, "epochs": 3}
MODEL = "minilm"


def told(done: Study, file: Path) -> None:
    """Print every finding with what the paper says, and keep it as JSON."""
    kept: dict[str, Any] = {}
    for part in done.parts:
        name = part.experiment.name
        if part.problems:
            print(f"{name}: {part.problems[0]}", flush=True)
            continue
        answers = part.experiment.claims(part.rows)
        kept[name] = {
            "finding": part.finding,
            "summary": part.experiment.summary(part.rows),
            "claims": {one.key: [one.words, answers.get(one.key)] for one in claims(name)},
        }
        print(f"\n{name}\n{part.finding}", flush=True)
        for key, (words, answer) in kept[name]["claims"].items():
            print(f"  {key}: paper {words!r}; measured: {answer}", flush=True)
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")


def studied(rows: DataSpec, wanted: list[Wanted], out: Path, *, model: str | Path = MODEL) -> Study:
    subject = subject_of(str(model), rows, needs_rows=find_experiment(wanted[0].name).needs_rows)
    return study(subject, wanted, out, workers=Workers(n_workers=1))


def treebank(out: Path, limit: int | None) -> Study:
    """The pre-trained encoder on UD English EWT: features in pieces, and links."""
    text = {"treebank": str(TREEBANK)}
    wanted = [Wanted("linguistic-features", text), Wanted("token-links", text)]
    return studied(DataSpec(limit=limit), wanted, out)


def words(out: Path, limit: int | None) -> Study:
    """The same in words: sums over key pieces, means over query pieces."""
    text = {"treebank": str(TREEBANK), "mode": "word"}
    return studied(DataSpec(limit=limit), [Wanted("linguistic-features", text)], out)


def published(out: Path, limit: int | None) -> Study:
    """The 473 sentences that the paper used."""
    frames = {"frames": str(PUBLISHED)}
    return studied(DataSpec(), [Wanted("frame-relations", frames)], out)


def framenet(out: Path, limit: int | None) -> Study:
    """The part of FrameNet 1.5 that is at hand, through the paper's filters."""
    frames = {"frames": str(FRAMES / "framenet_v15")}
    return studied(DataSpec(), [Wanted("frame-relations", frames)], out)


def embedded(out: Path, limit: int | None) -> Study:
    """The frames of the embedded text."""
    return studied(DataSpec(), [Wanted("frame-relations")], out)


def task(name: str, out: Path, limit: int | None, fraction: float) -> Study:
    """Fine-tuned on a task: drift, starts, [CLS], shared words, difference maps on a treebank."""
    text = {"treebank": str(TREEBANK), "finetune": True}
    recipe = {**RECIPE, "fraction": fraction}
    wanted = [
        Wanted("attention-drift", {**recipe, "seeds": [0, 1]}),
        Wanted("initialization", recipe),
        Wanted("token-links", {**recipe, "finetune": True}),
        Wanted("linguistic-features", {**recipe, **text}),
    ]
    rows = DataSpec(task=name, path=DATA / "glue" / FOLDERS[name], split="dev", limit=limit)
    return studied(rows, wanted, out)


def disabled_frames(name: str, tuned: Study, out: Path, limit: int | None) -> Study:
    """The published sentences through the fine-tuned model, whose found heads are disabled."""
    (checkpoint,) = [
        tuned.folder / "checkpoints" / key / "model"
        for key, record in tuned.result.records.items()
        if record.checkpoint and record.request["seed"] == 0
    ]
    frames = {"frames": str(PUBLISHED)}
    rows = DataSpec(task=name, path=DATA / "glue" / FOLDERS[name], split="dev", limit=limit)
    return studied(rows, [Wanted("frame-relations", frames)], out, model=checkpoint)


SIMPLE: Mapping[str, Any] = {
    "treebank": treebank,
    "words": words,
    "published": published,
    "framenet": framenet,
    "embedded": embedded,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*SIMPLE, *FOLDERS], action="append")
    parser.add_argument(
        "--limit", type=int, help="texts or rows that are measured; all unless given"
    )
    parser.add_argument(
        "--fraction", type=float, default=1.0, help="training rows of mrpc and rte: share or number"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "kovaleva")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only or [*SIMPLE, *FOLDERS]:
        print(f"\n== {name}", flush=True)
        if missing := [path for path in NEEDED.get(name, ()) if not path.exists()]:
            print(f"left out, {missing[0]} isn't there", flush=True)
            continue
        if name in SIMPLE:
            told(SIMPLE[name](given.out / name, given.limit), given.out / f"{name}.json")
            continue
        done = task(name, given.out / name, given.limit, given.fraction)
        told(done, given.out / f"{name}.json")
        frames = disabled_frames(name, done, given.out / f"{name}-frames", given.limit)
        told(frames, given.out / f"{name}-frames.json")


if __name__ == "__main__":
    main()
