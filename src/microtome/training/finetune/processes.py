"""Several processes that train one model: each takes its rows of every batch, gradients add up.

Started by ``accelerate launch`` or ``torchrun``, which set the environment that this reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Processes:
    """This process's number among ``count``."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this one writes the files."""
        return self.rank == 0

    def sum_gradients(self, parameters: Iterable[Tensor], loss: float) -> float:
        """Add up gradients and loss over all processes; gives the total loss."""
        if self.count == 1:
            return loss
        values = list(parameters)
        device = values[0].device
        # A layer that was dropped has no gradient in any process, and must not get one here.
        used = torch.tensor([float(value.grad is not None) for value in values], device=device)
        distributed.all_reduce(used, op=distributed.ReduceOp.MAX)
        shared = [value for value, is_used in zip(values, used.tolist(), strict=True) if is_used]
        gradients = [torch.zeros_like(v) if v.grad is None else v.grad.to_dense() for v in shared]
        total = torch.tensor([loss], device=device)
        flat = torch.cat([total, *(gradient.flatten() for gradient in gradients)])
        distributed.all_reduce(flat)
        parts = torch.split(flat[1:], [gradient.numel() for gradient in gradients])
        for value, part in zip(shared, parts, strict=True):
            value.grad = part.view_as(value).clone()
        return float(flat[0])

    def wait(self) -> None:
        """Until every process is here."""
        if self.count > 1:
            distributed.barrier()


def own_device(device: torch.device | str) -> torch.device:
    """``cuda`` means this process's own GPU where a launcher started several."""
    rank = os.environ.get("LOCAL_RANK")
    return torch.device(f"cuda:{rank}" if str(device) == "cuda" and rank else device)


def join_processes() -> Processes:
    """The processes of this launch: one, unless a launcher set RANK and WORLD_SIZE."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Processes()
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return Processes(distributed.get_rank(), distributed.get_world_size())
