"""A sentence embedder's last part: states of a text → one vector, as sentence-transformers does it.

The transformers library knows nothing of it, so a model carries it as a value: pooling, then steps
(dense layers, norms). It is read from a folder by ``models.sentence_transformers``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from microtome.errors import RequestError
from microtome.families.head_kinds import EMBEDDER

PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
POOLING_MODES: tuple[PoolingMode, ...] = get_args(PoolingMode)
"""In the order in which a folder that only marks several of them concatenates them."""

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "Tanh": torch.tanh,
    "ReLU": functional.relu,
    "GELU": functional.gelu,
    "SiLU": functional.silu,
    "Sigmoid": torch.sigmoid,
    "Identity": lambda values: values,
}
"""The activations of a Dense module, by the names of torch's classes."""

DOCUMENT_PROMPTS = ("document", "passage", "corpus")


class Step(Protocol):
    """One step after pooling: (n, D) → (n, D')."""

    def __call__(self, pooled: Tensor, /) -> Tensor:
        """The vectors after the step."""
        ...


@dataclass(frozen=True)
class Dense:
    """A linear layer, an activation, and for some the input added again."""

    weight: Tensor  # (D', D)
    bias: Tensor | None
    activation: str
    adds_input: bool = False
    input_weight: Tensor | None = None  # (D', D) where the widths differ

    def __call__(self, pooled: Tensor) -> Tensor:
        """(n, D) → (n, D')."""
        bias = None if self.bias is None else self.bias.to(pooled)
        raised = functional.linear(pooled, self.weight.to(pooled), bias)
        raised = ACTIVATIONS[self.activation](raised)
        if not self.adds_input:
            return raised
        if self.input_weight is None:
            return raised + pooled
        return raised + functional.linear(pooled, self.input_weight.to(pooled))


@dataclass(frozen=True)
class LayerNorm:
    """A norm with learnt scale and shift."""

    weight: Tensor
    bias: Tensor

    def __call__(self, pooled: Tensor) -> Tensor:
        """(n, D) → (n, D)."""
        weight, bias = self.weight.to(pooled), self.bias.to(pooled)
        return functional.layer_norm(pooled, weight.shape, weight, bias)


@dataclass(frozen=True)
class Normalize:
    """Length 1."""

    def __call__(self, pooled: Tensor) -> Tensor:
        """(n, D) → (n, D)."""
        return functional.normalize(pooled, dim=-1)


@dataclass(frozen=True)
class Embedder:
    """How the states of a text become its embedding, and what its texts should look like.

    ``path`` is where a folder keeps the encoder: "" for most, "0_Transformer" for old ones.
    ``is_folder`` is False where a bare encoder was given a pooling by name.
    """

    modes: tuple[PoolingMode, ...]
    steps: tuple[Step, ...] = ()
    include_prompt: bool = True  # False: the prompt's tokens are read, but not pooled
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None  # by name
    max_length: int | None = None
    similarity: str = "cosine"  # how embeddings are compared in a search
    path: str = ""
    is_folder: bool = False

    @property
    def reads_first_only(self) -> bool:
        """Whether the first token's state is all it looks at."""
        return self.modes == ("cls",) and self.include_prompt

    def prompt(self, name: str | None = None) -> str:
        """The text put before every text: the prompt called ``name``, else the default one.

        A model without a prompt of that name is refused, naming those that it has.
        """
        if name is None:
            return self.prompts[self.default_prompt] if self.default_prompt is not None else ""
        if name not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise RequestError(f"the model has no prompt {name!r}", f"its prompts: {known}")
        return self.prompts[name]

    def prompt_of_role(self, role: Literal["query", "document"]) -> str:
        """The prompt of a search's queries or documents, by the names that models give it."""
        names = ("query",) if role == "query" else DOCUMENT_PROMPTS
        return self.prompt(next((name for name in names if name in self.prompts), None))

    def pool(self, states: Tensor, n_prompt: int = 0) -> Tensor:
        """Texts of one length (n, L, D), of whose tokens ``n_prompt`` are a prompt → (n, k·D)."""
        skipped = 0 if self.include_prompt else min(n_prompt, states.shape[1] - 1)
        return torch.cat([_pooled(mode, states, skipped) for mode in self.modes], dim=-1)

    def project(self, pooled: Tensor) -> Tensor:
        """The steps after pooling: (n, k·D) → (n, D')."""
        for step in self.steps:
            pooled = step(pooled)
        return pooled


class _HasAttributes(Protocol):
    def __setattr__(self, name: str, value: object, /) -> None: ...


Model = TypeVar("Model", bound=_HasAttributes)


def attach_embedder(model: Model, embedder: Embedder) -> Model:
    """Let ``model`` carry its embedder; gives the same model back."""
    setattr(model, EMBEDDER, embedder)  # copied with the model, not in its state_dict
    return model


def embedder_of(model: nn.Module) -> Embedder | None:
    """What turns this model's states into embeddings; None where it isn't an embedder."""
    return cast("Embedder | None", getattr(model, EMBEDDER, None))


def _pooled(mode: PoolingMode, states: Tensor, skipped: int) -> Tensor:
    """One way of pooling: (n, L, D) → (n, D)."""
    pooled = states[:, skipped:]
    if mode == "cls":
        return pooled[:, 0]
    if mode == "lasttoken":
        return pooled[:, -1]
    if mode == "max":
        return pooled.amax(1)
    if mode == "mean":
        return pooled.mean(1)
    if mode == "mean_sqrt_len_tokens":
        return pooled.sum(1) / math.sqrt(pooled.shape[1])
    # Later tokens weigh more; a prompt that is left out still counts as places.
    places = torch.arange(skipped + 1, states.shape[1] + 1, device=states.device)
    weights = (places / places.sum()).to(states.dtype)  # (L,)
    return (pooled * weights[:, None]).sum(1)
