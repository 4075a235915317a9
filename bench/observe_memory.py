"""Memory above the model while the data grow: it must stay flat.

A small model does it: what grows would grow with the number of texts, whatever the model. Each
size runs in a process of its own, because freed memory may stay with the process; of one thread,
and as many at a time as there are threads, because it isn't time that is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    PreTrainedModel,
)

from kit import workloads
from kit.measuring import Bar, Row, finish, options, peak_mb
from microtome.observe import HeadMeans, Texts, decode, reductions, stream, sweep
from microtome.threads import FEW_COMPILED

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
# job, fewest and most texts
JOBS = (("head sweep", 128, 2000), ("decoding", 100, 5000), ("attention statistics", 100, 5000))
MOST = 2.0  # MB that the peak may grow by, the answer to 50 times the texts included
WARM = 400  # texts: their chunks have more numbers of rows than products are kept
LENGTHS = (None, 384)  # of J3: those of SST-2, and long texts


def texts_of(n_texts: int) -> Texts:
    texts = workloads.texts(workloads.lengths("sst2", n_texts)[0])
    texts.ids[:] %= 3000
    texts.ids[:] += 1000
    return texts


def work_of(job: str, model: PreTrainedModel, texts: Texts) -> Callable[[], object]:
    vocabulary = workloads.plain_vocabulary()
    return {
        "head sweep": lambda: sweep(model, texts),
        "decoding": lambda: decode(model, texts, vocabulary),
        "attention statistics": lambda: stream(model, texts, [HeadMeans(reductions.entropy)]),
    }[job]


def peak(job: str, n_texts: int) -> float:
    """MB above the model for one job."""
    torch.manual_seed(0)
    config = BertConfig(vocab_size=4000, **SMALL)
    head = BertForMaskedLM if job == "decoding" else BertForSequenceClassification
    model = head(config).eval()
    # Warm up: thread pools, and the compiled products, of which a limited number is kept for all
    # numbers of rows that come, aren't the data's.
    work_of(job, model, texts_of(WARM))()
    found = peak_mb(work_of(job, model, texts_of(n_texts)))
    return float("nan") if found is None else found


def peak_of_two_base_models(length: int | None) -> float:
    """MB above two models of base size for their attention statistics."""
    one, two = workloads.classifier("base", 0), workloads.classifier("base", 1)
    lengths = np.full(workloads.LONG_TEXTS, length) if length else workloads.lengths("sst2", 32)[0]
    texts = workloads.texts(lengths)
    measures = (reductions.cosine, reductions.entropy, reductions.on_first, reductions.distance)
    means = [HeadMeans(measure) for measure in measures]
    found = peak_mb(lambda: stream(one, texts, means, other=two))
    return float("nan") if found is None else found


def in_own_process(call: str) -> tuple[float, float]:
    """What the call gives in a fresh process, and the seconds it took there."""
    code = (
        f"import sys, torch; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"torch.set_num_threads(1)\n"
        f"import observe_memory; print(observe_memory.{call})"
    )
    # glibc keeps freed memory for later; with fixed thresholds blocks go back at once, and the
    # high-water mark shows what was in use.
    thresholds = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    fixed = os.environ | FEW_COMPILED | thresholds
    command, started = [sys.executable, "-c", code], time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=fixed)
    return float(done.stdout.split()[-1]), time.perf_counter() - started


def main() -> None:
    given = options(__doc__)
    rows = []
    with ThreadPoolExecutor(given.threads) as pool:
        pairs = [
            [pool.submit(in_own_process, f"peak({job!r}, {n})") for n in (many, few)]
            for job, few, many in JOBS
        ]
        whole = [
            pool.submit(in_own_process, f"peak_of_two_base_models({length})") for length in LENGTHS
        ]
    for (job, few, many), pair in zip(JOBS, pairs, strict=True):
        (high, took), (low, before) = (one.result() for one in pair)
        row = Row(
            f"memory of {job}, {few} and {many} texts",
            before + took,
            peak_mb=high,
            notes=f"{low:.1f} MB, then {high:.1f} MB above the model",
        )
        row.bars = [Bar("MB more", high - low, MOST, at_least=False)]
        rows.append(row)
    for length, one in zip(LENGTHS, whole, strict=True):
        high, took = one.result()
        work = f"memory of J3, {f'{length} tokens' if length else 'sst2 lengths'}"
        row = Row(work, took, peak_mb=high)
        row.bars = [Bar("MB above the models", high, 150, at_least=False)]
        rows.append(row)
    finish("observe_memory", rows, given)


if __name__ == "__main__":
    main()
