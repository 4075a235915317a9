"""Fit an MLM head to an encoder that has none: how the head shipped for all-MiniLM was made.

python tools/fit_readout.py minilm --text FILES --steps 600 --out DIR

Takes documents from the files by turns until there are enough tokens for the steps; prints what the
head gives back of masked tokens of the documents that it wasn't fitted on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from microtome.models import load, load_tokenizer
from microtome.training.mlm.readout import fit_readout
from microtome.training.mlm.text import read_corpus

CHARACTERS_PER_STEP = 8_000  # 32 rows of 64 tokens: each is seen about once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--text", nargs="+", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    documents = read_corpus(tuple(given.text), heldout_share=0.01).training
    step = max(1, sum(map(len, documents)) // (CHARACTERS_PER_STEP * given.steps))
    fitted = fit_readout(
        load(given.model), load_tokenizer(given.model), documents[::step],
        steps=given.steps, seed=given.seed,
    )  # fmt: skip
    fitted.save(given.out)
    print(fitted.facts)


if __name__ == "__main__":
    main()
