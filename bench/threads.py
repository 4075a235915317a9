"""How OpenMP's threads should wait: spinning (its default), briefly, asleep, or not (one thread).

python bench/threads.py [--rounds N] [--json]

Four processes do the same work in turns, in short slices, alone and next to one busy process. A
slice counts by its fastest round where we are alone (others only ever add time) and by its median
next to the busy process. Not part of ``make bench``: nothing here is compared with a bar.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

SETTINGS = {
    "spinning": {},
    "short spin": {"GOMP_SPINCOUNT": "2000"},  # ours: src/microtome/threads.py
    "passive": {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
BUSY = "while True: pass"
PAUSE = 0.05  # seconds in which the threads of the process before fall asleep


def works() -> dict[str, Callable[[], object]]:
    """A slice of each work: small products, a pass and a training step of a model, large ones."""
    import torch
    from transformers import AutoModelForSequenceClassification, BertConfig

    torch.manual_seed(0)
    small, square = torch.randn(128, 384), torch.randn(384, 384)
    large = torch.randn(1536, 1536)
    config = BertConfig(
        num_hidden_layers=6, hidden_size=384, num_attention_heads=12, intermediate_size=1536
    )
    model = AutoModelForSequenceClassification.from_config(config).eval()
    ids = torch.randint(1000, (16, 32))

    def products() -> None:
        for _ in range(200):
            torch.mm(small, square)

    @torch.no_grad()
    def forward() -> None:
        for _ in range(2):
            model(ids)

    def step() -> None:
        model(ids, labels=ids[:, 0] % 2).loss.backward()

    def large_products() -> None:
        torch.mm(large, large)

    return {
        "200 products 128 × 384 × 384": products,
        "2 passes of 6 × 384, 16 texts": forward,
        "forward and backward, 16 texts": step,
        "a product 1536 × 1536 × 1536": large_products,
    }


def answer() -> None:
    """In the child: a slice for every name that comes in, its seconds out."""
    slices = works()
    for work in slices.values():
        work()
    print(json.dumps(list(slices)), flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        slices[line.strip()]()
        print(time.perf_counter() - started, flush=True)


class Child:
    """A process with one setting of OpenMP; asleep until it is asked."""

    def __init__(self, variables: dict[str, str]) -> None:
        rest = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--child"], env=rest | variables, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        self.stdin, self.stdout = stdin, stdout
        self.works: list[str] = json.loads(self.stdout.readline())

    def seconds(self, work: str) -> float:
        time.sleep(PAUSE)
        self.stdin.write(work + "\n")
        self.stdin.flush()
        return float(self.stdout.readline())


def measure(n_rounds: int) -> dict:
    """Seconds by work, condition and setting."""
    children = {name: Child(variables) for name, variables in SETTINGS.items()}
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    names = next(iter(children.values())).works
    times: dict[tuple[str, str, str], list[float]] = {
        (w, c, s): [] for w in names for c in ("alone", "busy") for s in SETTINGS
    }
    try:
        for _ in range(n_rounds):
            for condition, sent in (("alone", signal.SIGSTOP), ("busy", signal.SIGCONT)):
                busy.send_signal(sent)
                for work in names:
                    for setting, child in children.items():
                        times[work, condition, setting].append(child.seconds(work))
    finally:
        busy.kill()
        busy.wait()
        for child in children.values():
            child.process.kill()
            child.process.wait()
    chosen: dict[str, Callable[[list[float]], float]] = {"alone": min, "busy": statistics.median}
    return {
        work: {c: {s: chosen[c](times[work, c, s]) for s in SETTINGS} for c in chosen}
        for work in names
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        answer()
        return
    load = os.getloadavg()[0]
    measured = measure(given.rounds)
    if given.json:
        print(json.dumps({"benchmark": "threads", "load": load, "works": measured}))
        return
    print(f"{os.cpu_count()} cores, load {load:.1f} before; milliseconds, and times spinning's\n")
    print(f"| work | | {' | '.join(SETTINGS)} |\n|---|---|{'---|' * len(SETTINGS)}")
    for work, conditions in measured.items():
        for condition, seconds in conditions.items():
            base = seconds["spinning"]
            cells = (f"{1000 * s:.1f} ({s / base:.2f}×)" for s in seconds.values())
            where = "alone" if condition == "alone" else "next to a busy process"
            print(f"| {work} | {where} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
