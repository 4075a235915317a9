"""Weights in the layout that oneDNN's products like best, for as long as a sweep lasts.

A sweep multiplies by the same few matrices thousands of times. Laid out anew once, they take less
time than as they are stored where the CPU has AVX-512; with AVX2 alone they take more
(docs/performance.md). The answers differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from microtome.families.seam import Family


class PackedWeights(TorchFunctionMode):
    """While it is entered, in this thread, linear layers of a model's blocks use packed weights.

    The model isn't touched. The copies go with this object, so a weight that is changed afterwards
    is never answered for by an old copy. Where packing doesn't pay (another CPU, device or type),
    all is as without it.

        with PackedWeights(family, n_rows=1600):
            ...
    """

    def __init__(self, family: Family, *, n_rows: int) -> None:
        super().__init__()
        linear = {
            id(module.weight): module.weight.detach()
            for layer in family.layers
            for module in layer.modules()
            if isinstance(module, nn.Linear) and _can_be_packed(module.weight)
        }
        self._packed = {
            place: torch.ops.mkldnn._reorder_linear_weight(weight, n_rows)
            for place, weight in linear.items()
        }

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the function gives
        """Every call of torch comes by here; all but the products with packed weights pass."""
        if func is functional.linear and not kwargs:
            given, weight, *bias = args
            packed = self._packed.get(id(weight))
            if packed is not None and given.dtype == torch.float32 and given.numel():
                return _product(given, packed, bias[0] if bias else None)
        return func(*args, **(kwargs or {}))


def _product(given: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(given, packed, bias, "none", [], "")
    return product


def is_worthwhile() -> bool:
    """Whether this CPU and this torch multiply faster by packed weights; the same in every run."""
    has_onednn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return has_onednn and torch.backends.cpu.get_cpu_capability() == "AVX512"


def _can_be_packed(weight: Tensor) -> bool:
    return is_worthwhile() and weight.device.type == "cpu" and weight.dtype == torch.float32
