"""Which task head a model or checkpoint has, and the job that it is for; no torch here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from microtome.errors import RequestError, UnsupportedFamily
from microtome.families.head_kinds import head_of, is_embedder
from microtome.models.checkpoint import Checkpoint
from microtome.models.provenance import provenance_of
from microtome.models.sentence_transformers.folder import sentence_settings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

HeadName = Literal[
    "mlm", "classification", "token-classification", "question-answering", "none", "other"
]
"""A head by what its class computes; "other" is a class that edits keep and nothing measures."""

HEADS: tuple[HeadName, ...] = (
    "mlm", "classification", "token-classification", "question-answering", "none",
)  # fmt: skip
LABELLED: tuple[HeadName, ...] = ("classification", "token-classification", "question-answering")
"""The heads that are made for a task."""

_ENDINGS: tuple[tuple[str, HeadName], ...] = (
    ("ForMaskedLM", "mlm"),
    ("ForSequenceClassification", "classification"),
    ("ForTokenClassification", "token-classification"),
    ("ForQuestionAnswering", "question-answering"),
    ("HeadModel", "other"),
    ("Model", "none"),
)

Job = Literal[
    "classification", "regression", "multilabel", "tokens", "spans", "embedding", "reranking",
    "mlm", "none",
]  # fmt: skip

JOBS_OF_KIND: Mapping[str, tuple[Job, ...]] = {
    "classification": ("classification", "reranking"),
    "regression": ("regression", "reranking"),
    "multilabel": ("multilabel",),
    "tokens": ("tokens",),
    "spans": ("spans",),
    "similarity": ("embedding",),
    "retrieval": ("embedding",),
    "reranking": ("reranking", "regression", "classification"),
    "text": ("mlm",),
}
"""The jobs whose models can answer each kind of data; sizes of heads are checked apart."""

MULTI_LABEL = "multi_label_classification"
CROSS_ENCODER_KEYS = ("sentence_transformers", "sbert_ce_default_activation_function")
"""What CrossEncoder writes into config.json, by version."""

# The first parts of tensor names in a checkpoint file, by the head that they belong to. The names
# of the encoder's tensors never begin with one of these, in any family.
HEAD_TENSORS: dict[str, tuple[str, ...]] = {
    "mlm": (
        "cls.predictions.",
        "lm_head.",
        "lm_predictions.",
        "generator_predictions.",
        "generator_lm_head.",
        "vocab_transform.",
        "vocab_layer_norm.",
        "vocab_projector.",
        "predictions.",
        "head.",
        "decoder.",
    ),
    "classification": ("classifier.", "pre_classifier.", "dense."),
    "question-answering": ("qa_outputs.",),
    # Of pre-training, next to the masked LM: next sentence, sentence order, replaced tokens.
    "pretraining": (
        "cls.seq_relationship.",
        "sop_classifier.",
        "discriminator_predictions.",
        "mask_predictions.",
    ),
}
ALL_HEAD_TENSORS = tuple(prefix for prefixes in HEAD_TENSORS.values() for prefix in prefixes)


def job_of(model: PreTrainedModel | Checkpoint) -> Job:
    """The job of a loaded model, or of a checkpoint that was looked at.

    ``job_of(load("minilm"))`` is "embedding". A sequence classifier with one output is a regression
    unless its folder says that it is a cross-encoder. A head that no job has is refused by name.
    """
    if isinstance(model, Checkpoint):
        if model.sentence is not None and model.sentence.is_embedder:
            return "embedding"
        n_labels, is_scorer = len(stored_labels(model.config)), is_cross_encoder(model)
        return _job(own_head(model), model.config.get("problem_type"), n_labels, is_scorer)
    if is_embedder(model):
        return "embedding"
    origin, head = provenance_of(model), head_of(model) or "none"
    if head == "other":
        raise RequestError(
            f"a {type(model).__name__} has no job that is measured", "operate edits it as it is"
        )
    is_scorer = origin is not None and origin.is_cross_encoder
    return _job(head, model.config.problem_type, model.config.num_labels, is_scorer)


def is_cross_encoder(checkpoint: Checkpoint) -> bool:
    """Whether a folder says that sentence-transformers scores pairs of texts with it."""
    says_so = sentence_settings(checkpoint.root).get("model_type") == "CrossEncoder"
    return says_so or any(key in checkpoint.config for key in CROSS_ENCODER_KEYS)


def own_head(checkpoint: Checkpoint) -> HeadName:
    """The head that a checkpoint was saved with; one that can't be measured is refused by name."""
    if checkpoint.sentence is not None and checkpoint.sentence.is_embedder:
        return "none"  # its config may name a head that the file doesn't have
    name = architecture_of(checkpoint.config)
    if name is None:
        return _head_by_tensors(tensor.name for tensor in checkpoint.tensors)
    if name.endswith("ForPreTraining"):
        return _pretraining_head(tensor.name for tensor in checkpoint.tensors)
    head = _head_of_class(name)
    if head == "other":
        raise UnsupportedFamily(
            f"{checkpoint.folder} is a {name}, a head that isn't measured",
            "measured: masked LM, sequence and token classification, question answering, sentence "
            "embedding; operate edits it as it is, and head='none' loads the encoder alone",
        )
    # Embedders keep the name of the masked LM that they were trained from, not its head.
    return "none" if head == "mlm" and _is_headless(checkpoint) else head


def saved_head(checkpoint: Checkpoint) -> tuple[HeadName, str | None]:
    """The head that a checkpoint was saved with, whatever it is, and the class of an "other" one.

    Surgery needs no known head: it keeps the class.
    """
    is_embedder = checkpoint.sentence is not None and checkpoint.sentence.is_embedder
    name = None if is_embedder else architecture_of(checkpoint.config)
    if name is None or _head_of_class(name) != "other":
        return own_head(checkpoint), None
    return "other", name


def architecture_of(config: Mapping[str, object]) -> str | None:
    """The class that a config names; None where it names none."""
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        return None
    return str(architectures[0])[:100]


def _is_headless(checkpoint: Checkpoint) -> bool:
    names = [tensor.name for tensor in checkpoint.tensors]
    return bool(names) and not any(map(is_head_tensor, names))


def checked_head(head: str) -> HeadName:
    """A head by its name."""
    for known in HEADS:
        if head == known:
            return known
    raise RequestError(f"head must be one of {', '.join(HEADS)}, got {head!r}")


def stored_labels(config: Mapping[str, object]) -> list[str]:
    """The outputs of a stored classification head; transformers leaves two unnamed ones out.

    ``stored_labels(look_at(folder).config)`` might be ``["negative", "positive"]``.
    """
    labels = config.get("id2label")
    if isinstance(labels, dict) and labels:
        ordered = sorted(labels.items(), key=lambda item: int(item[0]))
        return [str(label) for _, label in ordered]
    n_labels = config.get("num_labels")
    return [f"LABEL_{index}" for index in range(n_labels if isinstance(n_labels, int) else 2)]


def is_head_tensor(name: str) -> bool:
    """Whether a tensor of a checkpoint file belongs to a task head, not to the encoder."""
    return name.startswith(ALL_HEAD_TENSORS)


def is_pooler_tensor(name: str) -> bool:
    """Whether a tensor is the pooler's: a layer on top that only some heads and classes have."""
    return "pooler" in name.split(".")[:2]


def _job(head: HeadName, problem: object, n_labels: int, is_scorer: bool) -> Job:
    if head == "token-classification":
        return "tokens"
    if head == "question-answering":
        return "spans"
    if head != "classification":
        return "mlm" if head == "mlm" else "none"
    if problem == MULTI_LABEL:
        return "multilabel"
    if is_scorer and n_labels <= 2:
        return "reranking"
    return "regression" if n_labels == 1 or problem == "regression" else "classification"


def _head_of_class(name: str) -> HeadName:
    return next((head for ending, head in _ENDINGS if name.endswith(ending)), "other")


def _pretraining_head(names: Iterable[str]) -> HeadName:
    """BERT and ALBERT pre-train a masked LM; ELECTRA's discriminator has no words to predict."""
    return _head_by_tensors(name for name in names if not name.startswith("discriminator"))


def _head_by_tensors(names: Iterable[str]) -> HeadName:
    present = set(names)
    # ModernBERT's classifier has tensors of its masked-LM head, too: the masked LM comes last.
    for head in ("classification", "question-answering", "mlm"):
        if any(name.startswith(HEAD_TENSORS[head]) for name in present):
            return head
    return "none"
