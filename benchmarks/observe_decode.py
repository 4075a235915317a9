"""J2: every depth read through the MLM head, against full logits from plain transformers."""

from __future__ import annotations

import torch

import rivals
import workloads
from measuring import Bar, Clock, Row, finish, options
from microtome.families import adapt
from microtome.observe import decode, readout_of
from microtome.observe.scanning import VocabularyScan

N_TEXTS = 16


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
    found: dict[str, list[int]] = {}

    def ours(early_exit: bool) -> None:
        made = decode(model, texts, vocabulary, early_exit=early_exit)
        found["ours"] = made.right.sum((1, 2)).tolist()

    def rival(name: str, to: int | None) -> None:
        found[name] = rivals.decoded_counts(model, texts, to)

    timed = clock.rounds(
        {
            "pad-128": lambda: rival("pad-128", rivals.NAIVE_LENGTH),
            "full scan": lambda: ours(False),
            "dynamic padding": lambda: rival("dynamic padding", None),
            "early exit": lambda: ours(True),
        },
        n_rounds,
    )
    assert found["ours"] == found["pad-128"] == found["dynamic padding"], found
    n_tokens = len(texts.ids)
    flops = algorithm_flops(workloads.SHAPES["base"], n_tokens, n_tokens - 2 * N_TEXTS)
    seconds = timed["full scan"]
    row = Row(
        "J2 decode all depths, base, sst2 lengths, full scan",
        seconds,
        {name: timed[name] for name in ("pad-128", "dynamic padding")},
        roofline=flops / seconds / timed["mm"],
        notes=f"{N_TEXTS} texts, {origin}; early exit {timed['early exit']:.2f} s",
    )
    row.bars = [
        Bar("vs pad-128", row.ratios["pad-128"], 7.0),
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
        {name: lambda scan=scan: scan.right(features, ids) for name, scan in scans.items()},
        max(7, 3 * n_rounds),
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
