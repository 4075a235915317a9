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
from pathlib import Path

import numpy as np
import torch

from microtome.models import load, resolve
from microtome.observe import Texts, stream
from microtome.observe.patterns import EMBEDDED, PATTERNS, SHIPPED, PatternCounts, load_classifier
from microtome.training.patterns.training import EPOCHS, train_folder

MEAN_LENGTH = {"short": 25, "pairs": 55}  # tokens, about those of SST-2 and of MRPC


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
    import workloads
    from measuring import peak_mb

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
    parser.add_argument("--maps", type=Path, default=EMBEDDED)
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
