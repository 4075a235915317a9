"""The embedded models against what they should be: figures for docs/embedded-models.md.

    python studies/nano.py curves    decoding of held-out text, with control
    python studies/nano.py sst2      nano-bert against its shape untrained

``curves`` needs the files that the models were trained from (``--text``), in the same order: their
last documents were held out. It fails where a model misses its bar. ``sst2`` needs the
sentence-level SST-2 (MICROTOME_TEST_DATA, or ../shared): every arm trains at three learning rates,
is scored on training rows that were held out, and the best rate trains all seeds, scored on dev.
Some random starts never leave chance, so there are more of them. Its trainings, about three minutes
of one core each, are in ``--out``; what is there isn't trained again. ``--arm`` trains one arm
alone, so that two can run at once. It fails where the interval isn't above 0.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

import torch

from commands import DATA
from microtome import files
from microtome.edits import Extend
from microtome.models import content_hash, load, load_tokenizer, resolve
from microtome.statistics import compare_seeds, over_seeds
from microtome.tasks import Dataset, DataSpec, open_data
from microtome.training.finetune import finetune
from microtome.training.mlm import text
from microtome.training.mlm.building import token_ids
from microtome.training.mlm.forward import decoding_curve, heldout_scores, random_blocks
from microtome.training.mlm.rows import cut
from microtome.training.recipe import Recipe

DEEPER = {"nano-bert": (16, 20, 24), "nano-albert": (18, 24, 36, 50)}
RATES = (1e-4, 3e-4, 1e-3)
ARMS = {"pre-trained": None, "random": "randomize(seed={seed})"}
BARS = {"nano-bert": 0.22, "nano-albert": 0.18}  # masked top-1 on held-out text
TEXT = [DATA / "text" / f"{name}.txt.xz" for name in ("novels", "wiki_00", "wiki_01")]
N_SEEDS = {"pre-trained": 8, "random": 20}
RECIPE = Recipe(batch_size=32, epochs=3, max_length=64)
COLLAPSED = 0.6  # accuracy below which a training never left chance


def curves(files: list[Path], n_rows: int) -> None:
    """Token accuracy at every depth of held-out Wikipedia, and of the last state when deeper."""
    corpus = text.read_corpus(tuple(files), heldout_share=0.01)
    for name, depths in DEEPER.items():
        began = time.perf_counter()
        model, wrapped = load(name), load_tokenizer(name)
        print(f"{name}: loaded in {time.perf_counter() - began:.2f} s")
        tokenizer = wrapped.backend_tokenizer
        tokens = token_ids(tokenizer)
        stream = text.token_stream(tokenizer, corpus.heldout)
        record = json.loads((resolve(name).path / "pretraining.json").read_text())["text"]
        if hashlib.sha256(stream.tobytes()).hexdigest() != record["heldout_sha256"]:
            sys.exit(f"{name} was made of other text; give the files that its card names, in order")
        rows = cut(stream, length=128, offset=0, tokens=tokens)
        scores = heldout_scores(model, rows, tokens=tokens, common=record["commonest_token"])
        print(f"  masked top-1 {scores.accuracy:.3f} (mixed {scores.accuracy_mixed:.3f}),")
        print(f"  always the commonest token {scores.unigram:.3f}, {scores.n:,} masked tokens")
        shown = rows[:n_rows]
        curve = decoding_curve(model, shown, tokens=tokens)
        control = decoding_curve(random_blocks(model), shown, tokens=tokens)
        print("  depth    " + " ".join(f"{depth:>5}" for depth in range(len(curve))))
        print("  decoded  " + " ".join(f"{value:5.3f}" for value in curve))
        print("  control  " + " ".join(f"{value:5.3f}" for value in control))
        for depth in depths:
            last = decoding_curve(Extend(depth)(model), shown, tokens=tokens)[-1]
            print(f"  extend({depth}): {last:.3f}", flush=True)
        if scores.accuracy < BARS[name] or curve[-1] < control[-1] + 0.2:
            sys.exit(f"{name} misses its bar")


def sst2(out: Path, n_seeds: dict[str, int]) -> None:
    """nano-bert and the same shape from random weights, each at its best learning rate."""
    train = open_data(DataSpec("sst2-sentence", DATA / "sst2_sentence", "train"))
    dev = open_data(DataSpec("sst2-sentence", DATA / "sst2_sentence", "dev"))
    inner, heldout = train.held_out()
    points = {}
    for arm in n_seeds:
        folder = out / f"{arm}-{content_of(arm, train, dev)[:12]}"
        folder.mkdir(parents=True, exist_ok=True)
        picked = {
            rate: accuracy(folder / f"{rate:g}-pick.json", arm, rate, 0, inner, heldout)
            for rate in RATES
        }
        best = max(picked, key=lambda rate: picked[rate])
        points[arm] = [
            accuracy(folder / f"{best:g}-{seed}.json", arm, best, seed, train, dev)
            for seed in range(n_seeds[arm])
        ]
        shown = ", ".join(f"{rate:g}: {value:.3f}" for rate, value in picked.items())
        print(f"{arm}: held-out train rows {shown}; at {best:g} on dev")
        print("  " + " ".join(f"{value:.4f}" for value in points[arm]))
        print(f"  mean {over_seeds(points[arm])}")
    if points.keys() != ARMS.keys():
        return
    difference = compare_seeds(points["pre-trained"], points["random"])
    print(f"difference: {difference}")
    others = {arm: [v for v in values if v > COLLAPSED] for arm, values in points.items()}
    print(f"  without those at chance: {compare_seeds(others['pre-trained'], others['random'])}")
    if difference.interval is None or difference.interval.low <= 0:
        sys.exit("that pre-training is worth something isn't shown")


def content_of(arm: str, train: Dataset, dev: Dataset) -> str:
    """What decides an arm's trainings; random weights need only the shape and the vocabulary."""
    folder = resolve("nano-bert").path
    weights = content_hash(folder) if arm == "pre-trained" else ""
    decides = [
        *((folder / name).read_text() for name in ("config.json", "tokenizer.json")),
        weights,
        train.content_hash,
        dev.content_hash,
        json.dumps(RECIPE.as_json()),
    ]
    return hashlib.sha256("\n".join(decides).encode()).hexdigest()


def accuracy(file: Path, arm: str, rate: float, seed: int, train: Dataset, dev: Dataset) -> float:
    """Fine-tuned once: the score on ``dev``, which ``file`` keeps."""
    if file.is_file():
        return float(json.loads(file.read_text()))
    edits = ARMS[arm]
    done = finetune(
        "nano-bert",
        train,
        dev,
        edits=edits and edits.format(seed=seed),
        recipe=RECIPE.but(learning_rate=rate),
        seed=seed,
    )
    value = done.scores["accuracy"].value
    files.write_json(file, value)
    print(f"{arm} {file.stem}: {value:.4f} in {done.seconds:.0f} s", flush=True)
    return value


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("part", choices=("curves", "sst2"))
    options.add_argument("--text", nargs="+", type=Path, default=TEXT)
    options.add_argument("--rows", type=int, default=256)
    options.add_argument("--seeds", type=int, default=N_SEEDS["pre-trained"], help="of nano-bert")
    options.add_argument("--random-seeds", type=int, default=N_SEEDS["random"])
    options.add_argument("--arm", choices=ARMS, help="this one alone")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--out", type=Path, default=Path("microtome-runs/nano-studies"))
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.part == "curves":
        curves(given.text, given.rows)
    else:
        n_seeds = {"pre-trained": given.seeds, "random": given.random_seeds}
        sst2(given.out, n_seeds if given.arm is None else {given.arm: n_seeds[given.arm]})


if __name__ == "__main__":
    main()
