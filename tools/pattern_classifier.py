"""The classifier of attention patterns: train it, examine it, and time it.

python tools/pattern_classifier.py train [--maps FOLDER] [--out FILE]    a few CPU minutes
python tools/pattern_classifier.py figures [--classifier FILE]           what it is worth
python tools/pattern_classifier.py rate [--texts 64] [--threads 1]       maps per second
python tools/pattern_classifier.py rate --base --texts 250               144 heads
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from microtome.models import load, resolve
from microtome.observe import Texts, stream
from microtome.observe.patterns import PATTERNS, SHIPPED, PatternCounts, load_classifier
from patterns.maps import LABELS, load_labels, load_maps
from patterns.training import EPOCHS, save_classifier, train
from patterns.validation import cross_validate, figures_of

MEAN_LENGTH = {"short": 25, "pairs": 55}  # tokens, about those of SST-2 and of MRPC


def train_folder(folder: Path, out: Path, *, seed: int, epochs: int) -> None:
    """Train on all of a folder's maps; what cross-validation said goes into the same file."""
    maps = load_maps(folder)
    labels = load_labels(folder / "labels.csv", maps)
    done = cross_validate(maps, labels, seed=seed, epochs=epochs, progress=said("fold", "F1"))
    network = train(maps, labels, seed=seed, epochs=epochs, progress=said("epoch", "loss"))
    figures = figures_of(folder, maps, done)
    save_classifier(out, network, confusion=done.confusion, figures=figures)


def said(step: str, name: str) -> Callable[[int, float], None]:
    return lambda n, value: print(f"{step} {n}: {name} {value:.3f}", file=sys.stderr, flush=True)


def figures(path: Path) -> None:
    classifier = load_classifier(path)
    told = dict(classifier.figures)
    print(json.dumps({k: v for k, v in told.items() if not isinstance(v, list)}, indent=2))
    for name, table in (("held out", classifier.confusion), ("passes", told["passes_confusion"])):
        print(f"\n{name}: rows true (pass 1), columns given (pass 2)")
        print("\t".join(("", *PATTERNS)))
        for pattern, row in zip(PATTERNS, table, strict=True):
            print("\t".join((pattern, *map(str, row))))


def rate(n_texts: int, path: Path, *, base: bool) -> None:
    """Maps per second through model and classifier, and memory at n and 4 n texts.

    all-MiniLM has 72 heads; ``base`` is BERT-base's shape with random weights, 144 heads.
    """
    sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
    from kit import workloads
    from kit.measuring import peak_mb

    model = workloads.classifier("base") if base else load(resolve("minilm").path)
    classifier = load_classifier(path)
    n_heads = model.config.num_hidden_layers * model.config.num_attention_heads
    lengths = {"short": MEAN_LENGTH["short"]} if base else MEAN_LENGTH
    for name, mean in lengths.items():
        for n in (n_texts, 4 * n_texts):
            rng = np.random.default_rng(0)
            n_tokens = np.clip(rng.poisson(mean, n), 5, 128)
            texts = Texts.of([rng.integers(1000, 20000, k).tolist() for k in n_tokens])
            marks = np.zeros(len(texts.ids), dtype=bool)
            kinds = marks.astype(np.uint8)
            counts = PatternCounts(classifier, second=marks, kinds=kinds)
            started = time.process_time()
            used = peak_mb(lambda: stream(model, texts, [counts]))  # noqa: B023
            seconds = time.process_time() - started
            maps = n * n_heads
            print(
                f"{name}: {maps:,} maps, {seconds:.1f} CPU s, {maps / seconds:,.0f} maps/s,"
                f" peak {used or float('nan'):.0f} MB"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["train", "figures", "rate"])
    parser.add_argument("--maps", type=Path, default=LABELS)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    parser.add_argument("--classifier", type=Path, default=SHIPPED)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--base", action="store_true", help="rate: BERT-base's shape")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.what == "train":
        train_folder(given.maps, given.out, seed=given.seed, epochs=given.epochs)
        figures(given.out)
    elif given.what == "figures":
        figures(given.classifier)
    else:
        rate(given.texts, given.classifier, base=given.base)


if __name__ == "__main__":
    main()
