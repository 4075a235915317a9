"""Products by oneDNN where it is twice as fast as what torch takes by itself.

torch gives float32 products on a CPU to MKL, which leaves AVX-512 alone on processors that aren't
Intel's; oneDNN, which torch has on board as well, uses it (docs/performance.md). The weights stay
as they are stored. Answers and gradients differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

FEWEST_MULTIPLICATIONS = 2_000_000
"""A call of oneDNN takes 10 µs to set up: a smaller product is done sooner than that."""


class FastProducts(TorchFunctionMode, ContextDecorator):
    """While it is entered, in this thread, linear layers multiply by the faster library.

    Forward passes, and backward passes of what was computed in it. No model is touched. Where it
    wouldn't pay (another CPU, device or type, a small product), all is as without it.

        with FastProducts():
            model(**batch).loss.backward()
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the function gives
        """Every call of torch comes by here; all but linear layers pass."""
        if func is functional.linear and not kwargs and _pays(args[0], args[1]):
            if torch.is_grad_enabled():
                return _Linear.apply(*args)  # type: ignore[no-untyped-call]
            return _product(*args)
        return func(*args, **(kwargs or {}))


class _Linear(torch.autograd.Function):
    """``functional.linear`` with a gradient."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's context is untyped
        given: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
    ) -> Tensor:
        ctx.save_for_backward(given, weight)
        return _product(given, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        given, weight = ctx.saved_tensors
        needed = (*ctx.needs_input_grad, False)[:3]  # without a bias there are two
        rows, columns = slope.flatten(0, -2), given.flatten(0, -2)  # (T, out), (T, in)
        slopes = (
            _product(rows, weight.mT).view_as(given) if needed[0] else None,
            _product(rows.mT, columns.mT) if needed[1] else None,
            rows.sum(0) if needed[2] else None,
        )
        return slopes[: len(ctx.needs_input_grad)]


def _product(given: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``given · weightᵀ + bias``: (…, in), (out, in), (out,) → (…, out)."""
    # The operator reads a strided bias as if it were contiguous.
    whole = None if bias is None else bias.contiguous()
    product: Tensor = torch.ops.mkldnn._linear_pointwise(given, weight, whole, "none", [], "")
    return product


def _pays(given: Tensor, weight: Tensor) -> bool:
    return (
        given.numel() * len(weight) >= FEWEST_MULTIPLICATIONS
        and given.dtype == weight.dtype == torch.float32
        and given.device.type == weight.device.type == "cpu"
        and is_worthwhile()
    )


@cache
def is_worthwhile() -> bool:
    """Whether oneDNN multiplies faster on this CPU; the same in every run.

    Measured on AMD. On Intel MKL uses AVX-512 too, so little is gained or lost there; not run here.
    """
    has_onednn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return has_onednn and torch.backends.cpu.get_cpu_capability() == "AVX512"
