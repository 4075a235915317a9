"""Greedy sets of heads: one pass for all sets of all halves, against one pass for every set.

    python bench/head_sets.py MODEL --task TASK [--data DIR] [--rows 400] [--splits 3]

Heads are ranked at random for every half, so the sets are as different as they can be; what equal
sets of several halves save comes on top. Prints seconds of both ways, taken by turns.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from microtome import load, load_tokenizer
from microtome.experiments.kovaleva.head_disabling.head_sets import SIZES
from microtome.families import adapt
from microtome.observe import sweep
from microtome.observe.evaluation import encode_for
from microtome.tasks import DataSpec, open_data


def leading_sets(n_layers: int, n_heads: int, n_splits: int) -> list[tuple[str, ...]]:
    """The leading 2, 4, 8, 16 of all heads, for each of some random rankings."""
    heads = [f"{i}.{j}" for i in range(n_layers) for j in range(n_heads)]
    rng = np.random.default_rng(0)
    rankings = [rng.permutation(heads).tolist() for _ in range(n_splits)]
    sets = {tuple(sorted(r[:size])) for r in rankings for size in SIZES if 1 < size <= len(heads)}
    return sorted(sets)


def main() -> None:
    """Time both ways once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--task", required=True)
    parser.add_argument("--data")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--splits", type=int, default=3)
    asked = parser.parse_args()
    model, tokenizer = load(asked.model), load_tokenizer(asked.model)
    dataset = open_data(DataSpec(asked.task, path=asked.data, limit=asked.rows))
    encoded = encode_for(model, tokenizer, dataset)
    shape = adapt(model).shape
    sets = leading_sets(shape.n_layers, shape.n_heads, asked.splits)
    seconds = {"one by one": 0.0, "together": 0.0}
    start = time.perf_counter()
    together = sweep(model, encoded, sets).logits
    seconds["together"] = time.perf_counter() - start
    for place, heads in enumerate(sets):
        start = time.perf_counter()
        alone = sweep(model, encoded, [heads]).logits[0]
        seconds["one by one"] += time.perf_counter() - start
        assert np.allclose(alone, together[place], rtol=1e-3, atol=1e-3)
    ratio = seconds["one by one"] / seconds["together"]
    said = ", ".join(f"{way} {taken:.1f} s" for way, taken in seconds.items())
    print(f"{len(sets)} sets on {len(dataset)} rows: {said}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
