"""Where a training step's time goes: CPU time of one thread, by kind of torch's operators."""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kit import workloads
from microtome.training.finetune.loop import train
from microtome.training.recipe import Seeds
from training_steps import BATCH, RECIPE, examples

N_STEPS = {"minilm": 4, "base": 2}
KINDS = {
    "products of linear layers": ("_linear_pointwise", "addmm", "aten::mm"),
    "attention": ("bmm", "softmax", "scaled_dot"),
    "dropout masks": ("bernoulli", "div_"),
    "GELU": ("gelu",),
    "norm of the gradients, clipping, AdamW, its first zeros":
        ("adamw", "_foreach", "vector_norm", "zeros_like"),
    "layer norms, embeddings": ("layer_norm", "embedding", "index", "coalesce", "sparse"),
    "sums for biases, additions, multiplications": ("aten::sum", "aten::add", "aten::mul"),
}  # fmt: skip


class Operators(TorchDispatchMode):
    """While it is entered, adds up the thread's time by kind, on the way forward and back."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = defaultdict[str, float](float)

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operator gives
        started = time.thread_time()
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        kinds = (kind for kind, parts in KINDS.items() if any(part in name for part in parts))
        self.seconds[next(kinds, "views, copies, others")] += time.thread_time() - started
        return result


def trained(shape: str) -> Callable[[], list[float]]:
    """A training of a few steps, which gives each one's seconds but for the first and the last."""
    own, _ = examples(BATCH * N_STEPS[shape])
    model = workloads.classifier(shape)

    def run() -> list[float]:
        marks = [time.thread_time()]
        seeds = Seeds.of(0)
        train(model, own, RECIPE, seeds=seeds, progress=lambda _: marks.append(time.thread_time()))
        return [end - start for start, end in pairwise(marks[1:-1])]

    return run


def main() -> None:
    torch.set_num_threads(1)
    for shape in sys.argv[1:] or N_STEPS:
        run = trained(shape)
        step = statistics.median(run())
        print(f"{shape}: a step of {BATCH} rows takes {1e3 * step:.0f} ms")
        with Operators() as operators:
            run()
        for kind, seconds in sorted(operators.seconds.items(), key=lambda item: -item[1]):
            print(f"  {1e3 * seconds / N_STEPS[shape]:7.1f} ms  {kind}")


if __name__ == "__main__":
    main()
