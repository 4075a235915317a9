"""J10: how time and memory grow with rows, with their lengths, and with the layers.

Small models do it, in processes of their own of one thread each, as many at a time as there are
threads. Seconds are CPU time. An exponent is the slope of log seconds by log size between the two
largest sizes, where what every call costs no longer counts: 1 is as many times as much as there is
more. Memory is above model and texts, at its peak, between the same two: a few hundred rows don't
fill a chunk. What an answer holds grows with the rows and is told apart. A model of 24 × 1024 is
run once.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from kit import workloads
from kit.measuring import Bar, Row, finish, options, peak_mb
from microtome.observe import HeadMeans, decode, reductions, stream, sweep
from microtome.observe.layer_orders import predict_orders

SMALL = {"hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 512}
LARGE = {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
N_TOKENS = 4000  # of the small vocabulary
ROWS, LENGTHS, LAYERS = (500, 5000, 50_000), (16, 64, 256, 512), (6, 12, 24)
FLAT = 1.1  # how much the peak may grow with the rows, the answer not counted
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


@dataclass(frozen=True)
class Size:
    """How much there is to do."""

    n_rows: int = 32
    length: int = 16
    n_layers: int = 2
    large: bool = False


@dataclass(frozen=True)
class Taken:
    """What a job took, and what it came to: MB at the peak, and MB of its answer."""

    seconds: float
    peak: float
    answer: float


def works(size: Size) -> dict[str, Callable[[], object]]:
    """Every job on its model and the same texts."""
    sizes = (LARGE if size.large else SMALL) | {
        "num_hidden_layers": size.n_layers,
        "vocab_size": N_TOKENS,
    }
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**sizes)).eval()
    masked = BertForMaskedLM(BertConfig(**sizes)).eval()
    rng = np.random.default_rng(0)
    texts = workloads.texts(rng.integers(size.length // 2, size.length + 1, size.n_rows))
    texts.ids[:] %= N_TOKENS
    vocabulary = workloads.plain_vocabulary()
    middle = [f"{size.n_layers // 2}.{head}" for head in range(4)]
    return {
        "head sweep": lambda: sweep(model, texts, middle if size.large else None).logits,
        "decoding": lambda: decode(masked, texts, vocabulary, special=True).right,
        "attention statistics": lambda: stream(model, texts, [HeadMeans(reductions.entropy)]),
        "all single cuts": lambda: predict_orders(model, texts, cuts(size.n_layers)),
    }


def cuts(n_layers: int) -> list[tuple[int, ...]]:
    """All layers but one, for each of them."""
    return [tuple(i for i in range(n_layers) if i != out) for out in range(n_layers)]


def taken(job: str, size: Size) -> Taken:
    """One job, in this process."""
    torch.set_num_threads(1)
    libc = ctypes.CDLL(None)
    # glibc keeps freed memory for later; with fixed thresholds blocks go back at once, and the
    # high-water mark shows what was in use.
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, 65536)
        libc.mallopt(M_TRIM_THRESHOLD, 65536)
    works(Size(n_rows=4))[job]()  # code and buffers of the first call aren't the data's
    work, answer = works(size)[job], []
    started = time.process_time()
    peak = peak_mb(lambda: answer.append(work()))
    seconds = time.process_time() - started
    n_bytes = answer[0].nbytes if isinstance(answer[0], np.ndarray) else 0
    return Taken(seconds, float("nan") if peak is None else peak, n_bytes / 2**20)


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """The slope of log seconds by log size, between the two largest."""
    (before, after), (one, other) = sizes[-2:], seconds[-2:]
    return math.log(other / one) / math.log(after / before)


def growth(job: str, what: str, sizes: tuple[int, ...], found: list[Taken]) -> Row:
    seconds = [one.seconds for one in found]
    steps = ", ".join(f"{n:,}: {one.seconds:.2f} s, {one.peak:.1f} MB" for n, one in
                      zip(sizes, found, strict=True))  # fmt: skip
    row = Row(
        f"J10 {job} by {what}", seconds[-1], peak_mb=found[-1].peak,
        notes=f"exponent {exponent(sizes, seconds):.2f}; {steps}",
    )  # fmt: skip
    if what == "rows":
        own = [one.peak - one.answer for one in found]
        row.notes += f", {found[-1].answer:.1f} MB of it the answer"
        row.bars = [Bar("memory", own[-1] / own[-2], FLAT, at_least=False, asserted=False)]
    return row


def main() -> None:
    given = options(__doc__)
    jobs = ("head sweep", "decoding", "attention statistics", "all single cuts")
    scales = {
        "rows": {n: Size(n_rows=n) for n in ROWS},
        "length": {n: Size(length=n) for n in LENGTHS},
        "layers": {n: Size(n_layers=n) for n in LAYERS},
    }
    # Forked: torch and transformers are imported once. The longest begin first.
    with multiprocessing.get_context("fork").Pool(given.threads, maxtasksperchild=1) as pool:
        calls = {
            (job, what, n): pool.apply_async(taken, (job, size))
            for what, by_size in scales.items()
            for n, size in reversed(by_size.items())
            for job in jobs
        }
        large = {
            job: pool.apply_async(taken, (job, Size(n_rows=8, n_layers=24, large=True)))
            for job in jobs
        }
        found = {key: call.get() for key, call in calls.items()}
        once = {job: call.get() for job, call in large.items()}
    rows = [
        growth(job, what, tuple(by_size), [found[job, what, n] for n in by_size])
        for what, by_size in scales.items()
        for job in jobs
    ]
    rows += [
        Row(f"J10 {job}, 24 × 1024, 8 texts", one.seconds, peak_mb=one.peak)
        for job, one in once.items()
    ]
    finish("observe_growth", rows, given)


if __name__ == "__main__":
    main()
