"""Readouts: from a state at any depth to a score for every token of the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor, nn
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.observe.forward import bound

ReadoutName = Literal["auto", "mlm", "tied"]


@dataclass(frozen=True, eq=False)
class Readout:
    """A readout in two steps, so that the vocabulary can go in chunks.

    ``features`` takes states before any final norm (…, D) → (…, E).
    """

    name: str
    features: Callable[[Tensor], Tensor]
    weight: Tensor  # (V, E)
    bias: Tensor | None  # (V,)

    @property
    def n_tokens(self) -> int:
        """V."""
        return int(self.weight.shape[0])


def readout_of(
    family: Family, name: ReadoutName | str = "auto", *, graft: PreTrainedModel | None = None
) -> Readout:
    """The readout called ``name``; ``auto`` is the model's own MLM head, else ``tied``.

    ``graft`` is a model whose MLM head is used instead.
    """
    if name not in get_args(ReadoutName):
        raise RequestError(
            f"readout must be one of {', '.join(get_args(ReadoutName))}, got {name}",
            "a fitted head is handed over as a Readout",
        )
    if graft is not None:
        return grafted(family, graft)
    if name == "auto":
        name = "mlm" if family.head == "mlm" else "tied"
    return own_head(family) if name == "mlm" else tied(family)


def own_head(family: Family) -> Readout:
    """``mlm``: the model's own MLM head."""
    if family.head != "mlm":
        raise RequestError(
            f"readout mlm asked for, but the model has {family.head or 'no'} head",
            "use --readout tied, or --graft MODEL with an MLM head of the same width",
        )
    return _with_head("mlm", family, family)


def grafted(family: Family, donor: PreTrainedModel) -> Readout:
    """``graft``: another checkpoint's MLM head on this model's states."""
    other = adapt(donor)
    if other.head != "mlm":
        raise RequestError(
            f"--graft expects a model with an MLM head, got one with {other.head or 'no'} head"
        )
    ours, theirs = family.shape, other.shape
    for what in ("width", "vocabulary"):
        mine, its = getattr(ours, what), getattr(theirs, what)
        if mine != its:
            raise RequestError(
                f"--graft given a model of {what} {its}, but this one has {what} {mine}",
                "take the checkpoint that this model was fine-tuned from",
            )
    if donor.dtype != family.model.dtype or donor.device != family.model.device:
        other = bound(donor, device=family.model.device, dtype=family.model.dtype)
    return _with_head("graft", family, other)


def tied(family: Family) -> Readout:
    """``tied``: the nearest word embedding by dot product. It shows the residual path only."""
    return Readout("tied", family.tied_features, family.word_embeddings.detach(), None)


def fitted_head(family: Family, transform: nn.Module, decoder: nn.Linear) -> Readout:
    """``fit``: a head trained on the model's last states; ``transform`` (…, D) → (…, E)."""

    def features(states: Tensor) -> Tensor:
        transformed: Tensor = transform(family.final_norm(states))
        return transformed

    bias = None if decoder.bias is None else decoder.bias.detach()
    return Readout("fit", features, decoder.weight.detach(), bias)


def _with_head(name: str, family: Family, head: Family) -> Readout:
    decoder = head.mlm_decoder()
    bias = None if decoder.bias is None else decoder.bias.detach()
    return Readout(
        name,
        # Pre-norm families norm once, at the end: inner states need the body's own norm here.
        lambda states: head.mlm_features(family.final_norm(states)),
        decoder.weight.detach(),
        bias,
    )
