"""J2: every depth read through the MLM head, against full logits from plain transformers.

Ours decodes one full chunk of tokens, as a data set has many of. The rivals decode every other
text of it by length, and their time is multiplied by two: a padded row costs what a row costs.
"""

from __future__ import annotations

from functools import partial

import torch

from kit import rivals, workloads
from kit.measuring import Bar, Clock, Row, finish, options, reached
from microtome.families import adapt
from microtome.observe import decode, readout_of
from microtome.observe.scanning import VocabularyScan

N_TEXTS = 30  # about 750 tokens: one chunk


def algorithm_flops(sizes: dict[str, int], n_tokens: int, n_read: int) -> int:
    width, inner, n_layers = (
        sizes["hidden_size"],
        sizes["intermediate_size"],
        sizes["num_hidden_layers"],
    )
    body = n_layers * 2 * (4 * width**2 + 2 * width * inner)
    read = (n_layers + 1) * 2 * (width * workloads.N_TOKENS + width**2)
    return n_tokens * body + n_read * read


def decoding(clock: Clock, n_rounds: int) -> Row:
    model = workloads.masked_lm("base")
    lengths, origin = workloads.lengths("sst2", N_TEXTS)
    texts, vocabulary = workloads.texts(lengths), workloads.plain_vocabulary()
    halved = workloads.half(lengths)
    fewer = workloads.taken(texts, halved)
    found: dict[str, list[int]] = {}

    def ours(name: str, early_exit: bool) -> None:
        made = decode(model, texts, vocabulary, early_exit=early_exit)
        found[name] = made.right[:, halved].sum((1, 2)).tolist()

    def rival(name: str, to: int | None) -> None:
        found[name] = rivals.decoded_counts(model, fewer, to)

    timed = clock.rounds(
        {
            "full scan": lambda: ours("full scan", False),
            "pad-128": lambda: rival("pad-128", rivals.NAIVE_LENGTH),
            "dynamic padding": lambda: rival("dynamic padding", None),
            "early exit": lambda: ours("early exit", True),
        },
        n_rounds,
    )
    assert all(counts == found["pad-128"] for counts in found.values()), found
    scale = N_TEXTS / len(halved)
    n_tokens = len(texts.ids)
    flops = algorithm_flops(workloads.SHAPES["base"], n_tokens, n_tokens - 2 * N_TEXTS)
    seconds = timed["full scan"]
    row = Row(
        "J2 decode all depths, base, sst2 lengths, full scan",
        seconds,
        {name: timed[name] * scale for name in ("pad-128", "dynamic padding")},
        roofline=flops / seconds / timed["mm"],
        notes=f"{N_TEXTS} texts, {n_tokens} tokens, {origin}; rivals on {len(halved)} of them"
        f" ({len(fewer.ids)} tokens), time × {scale:g}; early exit {timed['early exit']:.2f} s;"
        f" {clock.how_often()}",
    )
    row.bars = [
        Bar("vs pad-128", row.ratios["pad-128"], reached(8.0, 7.0)),
        Bar("of roofline", row.roofline or 0.0, 0.85, asserted=False),
    ]
    return row


def cost_of_early_exit(clock: Clock, n_rounds: int) -> Row:
    """The worst case: all tokens are right, so no row ever leaves."""
    family = adapt(workloads.masked_lm("base"))
    readout = readout_of(family)
    ids = torch.randint(1000, workloads.N_TOKENS, (400,)).sort().values
    features = readout.weight[ids] * 100
    scans = {
        name: VocabularyScan(readout, early_exit=name == "early exit")
        for name in ("early exit", "full scan")
    }
    assert all(bool(scan.right(features, ids).all()) for scan in scans.values())
    timed = clock.rounds(
        {name: partial(scan.right, features, ids) for name, scan in scans.items()},
        max(15, 3 * n_rounds),  # they take a fifth of a second
    )
    row = Row(
        "J2 vocabulary scan when every token is right",
        timed["early exit"],
        {"full scan": timed["full scan"]},
    )
    row.bars = [
        Bar("cost of early exit", timed["early exit"] / timed["full scan"], 1.05, at_least=False)
    ]
    return row


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    with torch.inference_mode():
        rows = [decoding(clock, given.rounds), cost_of_early_exit(clock, given.rounds)]
    finish("observe_decode", rows, given)


if __name__ == "__main__":
    main()
