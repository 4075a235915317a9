"""The adapter seam: what every family must be able to do, in one abstract class.

A :class:`Family` is bound to one model. It names the model's pieces (layers, projections, norms),
rearranges its layers, and runs its forward pass piece by piece, on states of any leading shape
``(..., D)``: a padded batch ``(B, L, D)`` and a packed one ``(T, D)`` alike. What is between the
pieces, attention over keys and the choice of which tokens to compute, belongs to the caller.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers import PreTrainedModel

from microtome.edits.depth import DepthRules
from microtome.errors import EditError, RequestError
from microtome.families.anatomy import Part, Published, Shape, split_heads
from microtome.families.catalogue import FamilyFacts, facts_of
from microtome.families.embedder import embedder_of
from microtome.families.head_kinds import HeadKind, Reads, head_of
from microtome.families.stack import LayerStack


class Family(ABC):
    """One encoder family, bound to one model."""

    parts: tuple[Part, ...]
    norms: ClassVar[tuple[str, ...]]  # paths of a layer's norms
    uses_segments: ClassVar[bool] = True
    # False: rotated by position after the projection, or read by ``position_scores``
    keys_are_linear: ClassVar[bool] = True
    published: ClassVar[Published] = {}  # where files name the parts otherwise than modules do

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        self.config = model.config
        self.facts: FamilyFacts = facts_of(model.config.model_type)
        self.body: Any = model.base_model  # transformers' modules are untyped
        self.head: HeadKind | None = head_of(model)
        self.embedder = embedder_of(model)

    # --- structure -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The family's name, as in ``list``."""
        return self.facts.name

    @property
    def shape(self) -> Shape:
        """The model's sizes, read from its config."""
        names, config = self.facts.config, self.config
        width = getattr(config, names.width)
        return Shape(
            n_layers=getattr(config, names.layers),
            n_heads=getattr(config, names.heads),
            width=width,
            inner=getattr(config, names.inner),
            vocabulary=getattr(config, names.vocabulary),
            embedding_width=self.word_embeddings.shape[1],
            n_positions=self.n_positions,
        )

    @property
    def n_positions(self) -> int:
        """How many tokens a text may have."""
        return int(getattr(self.config, self.facts.config.positions))

    @property
    def stack(self) -> LayerStack:
        """How the layers are stacked, as the config says it."""
        groups = self.facts.groups
        n_groups = None if groups is None else int(getattr(self.config, groups))
        return self.facts.stack(int(getattr(self.config, self.facts.config.layers)), n_groups)

    @property
    def depth_rules(self) -> DepthRules:
        """What depth edits may do here."""
        return self.stack.rules

    @property
    def sharing(self) -> tuple[int, ...]:
        """For every layer, the first layer with the same weights; itself unless shared."""
        return self.stack.sharing

    @property
    @abstractmethod
    def layers(self) -> list[Any]:
        """The block applied at each depth; shared blocks appear once for every application."""

    @property
    @abstractmethod
    def layers_path(self) -> str:
        """Where the layers live, as a prefix of parameter names: ``bert.encoder.layer``."""

    def layer_prefix(self, index: int) -> str:
        """The prefix of the parameter names of layer ``index``."""
        return f"{self.layers_path}.{index}"

    def part(self, name: str) -> Part:
        """The projection called ``name`` (one of ``PART_NAMES``)."""
        return next(part for part in self.parts if part.name == name)

    def module(self, index: int, part: str) -> nn.Module:
        """The module that holds a projection of layer ``index``."""
        module: nn.Module = self.layers[index].get_submodule(self.part(part).path)
        return module

    def head_rows(self, head: int) -> slice:
        """A head's rows of the query (a group's key has fewer), its columns of the output."""
        width = self.shape.head_width
        return slice(head * width, (head + 1) * width)

    # --- surgery, in place: called on private copies only ------------------------------------

    def arrange_(self, order: tuple[int, ...]) -> None:
        """Put copies of the layers in ``order``; the first use of a layer keeps its module."""
        old, used, new = self.layers, set[int](), []
        for source in order:
            new.append(old[source] if source not in used else self.copy_of(old[source]))
            used.add(source)
        self.set_layers_(new)
        setattr(self.config, self.facts.config.layers, len(new))
        for index, layer in enumerate(new):
            for module in layer.modules():
                if hasattr(module, "layer_idx"):
                    module.layer_idx = index

    def copy_of(self, layer: nn.Module) -> nn.Module:
        """An untied copy of a layer that still reads the model's config object."""
        # The memo keeps every config the layer points to: a copied config would miss later changes.
        configs = {id(m.config): m.config for m in layer.modules() if hasattr(m, "config")}
        return copy.deepcopy(layer, configs)

    def set_layers_(self, layers: list[nn.Module]) -> None:
        """Replace the stack of blocks."""
        parent, _, attribute = self.layers_path.rpartition(".")
        setattr(self.model.get_submodule(parent), attribute, nn.ModuleList(layers))

    def unshare_(self) -> None:
        """Give every depth a copy of a shared layer."""
        raise EditError(f"unshare() needs shared layers, but {self.name} models share no layers")

    # --- the forward pass, in pieces ---------------------------------------------------------

    @abstractmethod
    def embed(self, ids: Tensor, positions: Tensor, segments: Tensor) -> Tensor:
        """The state at depth 0: ids, 0-based positions within the text, segments → (..., D)."""

    def attention_input(self, index: int, states: Tensor) -> Tensor:
        """What layer ``index`` projects: the states, or in pre-norm families the normed states."""
        return states

    def project(
        self, index: int, states: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key, value of layer ``index``: (..., D) → three of (..., H, Dh)."""
        query, key = self.project_for_maps(index, states, positions)
        value = split_heads(self.module(index, "value")(states), self.shape.head_width)
        return query, key, value

    def project_for_maps(
        self, index: int, states: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Query and key alone, which are all that a map needs."""
        query, key = (
            split_heads(self.module(index, name)(states), self.shape.head_width)
            for name in ("query", "key")
        )
        return query, key

    def window(self, index: int) -> int | None:
        """Tokens further apart than this don't see each other in layer ``index``; None: all do."""
        return None

    @property
    def scaling(self) -> float:
        """What attention scores are multiplied by."""
        return float(self.shape.head_width**-0.5)

    def position_scores(
        self, index: int, length: int, query: Tensor, key: Tensor | None
    ) -> Tensor | None:
        """What positions add to the scaled q·k in texts of ``length`` tokens; None: nothing.

        ``query`` (n, H, Q, Dh) has the first Q tokens of every text, not scaled; ``key``
        (n, H, L, Dh) may be None only where ``keys_are_linear``. What comes back broadcasts to
        (n, H, Q, L).
        """
        return None

    def position_flops(self, length: int) -> float:
        """What transformers' matrix products for ``position_scores`` cost a layer in one text.

        Less what a layer's linear modules would cost if all of them were for tokens.
        """
        return 0.0

    @property
    @abstractmethod
    def attention_dropout(self) -> float:
        """The dropout rate on attention weights, in training."""

    def project_output(self, index: int, context: Tensor) -> Tensor:
        """The attention's output projection, bias included: (..., H·Dh) → (..., D)."""
        projected: Tensor = self.module(index, "attention_output")(context)
        return projected

    @abstractmethod
    def attention_residual(self, index: int, states: Tensor, projected: Tensor) -> Tensor:
        """Close the attention half: a layer's input, its projected context → residual, norm."""

    def attention_output(self, index: int, states: Tensor, context: Tensor) -> Tensor:
        """Output projection, residual and norm of layer ``index``: (..., D)."""
        return self.attention_residual(index, states, self.project_output(index, context))

    @abstractmethod
    def feed_forward(self, index: int, states: Tensor) -> Tensor:
        """The feed-forward half of layer ``index``, residual and norm included."""

    def final_norm(self, states: Tensor) -> Tensor:
        """What comes between the last layer and the head; inner states need it too to be read."""
        return states

    # --- readouts and heads ------------------------------------------------------------------

    @property
    def word_embeddings(self) -> Tensor:
        """The word embedding matrix (V, E)."""
        weight: Tensor = self.body.get_input_embeddings().weight
        return weight

    def tied_features(self, states: Tensor) -> Tensor:
        """States on the way to a comparison with the word embeddings: (..., D) → (..., E)."""
        return self.final_norm(states)

    @abstractmethod
    def mlm_features(self, states: Tensor) -> Tensor:
        """The MLM head up to its decoder, from states after ``final_norm``: (..., D) → (..., E)."""

    @abstractmethod
    def mlm_norm(self) -> nn.LayerNorm:
        """The last step of ``mlm_features``: scaling it scales the features."""

    @abstractmethod
    def mlm_decoder(self) -> nn.Linear:
        """The MLM head's last projection (V, E): apart, so that the vocabulary can go in chunks."""

    @property
    def reads(self) -> Reads:
        """Which final states the head, or the embedder, looks at."""
        if self.head == "classification":
            return self.classifier_reads
        return "first" if self.embedder is not None and self.embedder.reads_first_only else "all"

    @property
    def classifier_reads(self) -> Reads:
        """Which final states a classifier looks at."""
        return "first"

    @property
    def by_token(self) -> bool:
        """Whether every token has an answer, not every text."""
        return self.head in ("token-classification", "question-answering")

    def answer_first(self, first: Tensor) -> Tensor:
        """The answer from first tokens' final states (n, D) where ``reads`` is "first"."""
        return self.classify(first) if self.embedder is None else self.embedder.project(first)

    def before_mean(self, states: Tensor) -> Tensor:
        """What a classifier that reads the mean does to single tokens before it is taken."""
        return states

    @abstractmethod
    def classify(self, pooled: Tensor) -> Tensor:
        """Logits (n, labels) from one final state per text (n, D), chosen as ``reads`` says."""

    def pool(self, first: Tensor) -> Tensor:
        """The pre-trained pooler on first tokens' states (n, D); refused where there is none."""
        raise RequestError(f"this {self.name} model has no pooler", "take cls or mean")

    def pooler_layer(self) -> nn.Linear:
        """The linear layer of the pooler, which a tanh follows; refused where there is none."""
        raise RequestError(f"this {self.name} model has no pooler", "take cls or mean")

    def answer(self, states: Tensor) -> Tensor:
        """Start and end logits of a question-answering head: (..., D) → (..., 2)."""
        logits: Tensor = self.model.qa_outputs(states)
        return logits

    def tag(self, states: Tensor) -> Tensor:
        """Logits of a token-classification head: (..., D) → (..., labels)."""
        dropout = getattr(self.model, "dropout", nn.Identity())  # EuroBERT has none here
        logits: Tensor = self.model.classifier(dropout(states))
        return logits
