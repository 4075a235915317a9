"""The kinds of heads that transformers' classes have, by their names; no torch here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from transformers import PreTrainedModel

HeadKind = Literal["mlm", "classification", "token-classification", "question-answering", "other"]
Reads = Literal["first", "mean", "late", "all"]  # late: the mean of ``before_mean``

_HEAD_OF_CLASS: dict[str, HeadKind | None] = {
    "ForMaskedLM": "mlm",
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "HeadModel": "other",
    "Model": None,
}

EMBEDDER = "_microtome_embedder"
"""The attribute by which a model carries its embedder, which transformers' classes don't know."""


def head_of(model: PreTrainedModel) -> HeadKind | None:
    """Which head a model has; "other" is one that edits keep, and that nothing here measures."""
    name = type(model).__name__
    return next((head for end, head in _HEAD_OF_CLASS.items() if name.endswith(end)), "other")


def is_embedder(model: PreTrainedModel) -> bool:
    """Whether a model carries what makes embeddings of its states."""
    return getattr(model, EMBEDDER, None) is not None
