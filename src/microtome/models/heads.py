"""Which task head a checkpoint has, read from its config and tensor names; no torch here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from microtome.errors import RequestError, UnsupportedFamily
from microtome.models.checkpoint import Checkpoint

HeadName = Literal["mlm", "classification", "question-answering", "none"]

HEADS: tuple[HeadName, ...] = ("mlm", "classification", "question-answering", "none")

_ENDINGS: tuple[tuple[str, HeadName], ...] = (
    ("ForMaskedLM", "mlm"),
    ("ForSequenceClassification", "classification"),
    ("ForQuestionAnswering", "question-answering"),
    ("Model", "none"),
)
_REFUSED = {
    "ForTokenClassification": "token classification",
    "ForMultipleChoice": "multiple choice",
    "ForCausalLM": "causal language modelling",
    "LMHeadModel": "causal language modelling",
    "ForNextSentencePrediction": "next-sentence prediction",
}

# The first parts of tensor names in a checkpoint file, by the head that they belong to. The names
# of the encoder's tensors never begin with one of these, in any family.
HEAD_TENSORS: dict[str, tuple[str, ...]] = {
    "mlm": (
        "cls.predictions.",
        "lm_head.",
        "generator_predictions.",
        "generator_lm_head.",
        "vocab_transform.",
        "vocab_layer_norm.",
        "vocab_projector.",
        "predictions.",
        "head.",
        "decoder.",
    ),
    "classification": ("classifier.", "pre_classifier."),
    "question-answering": ("qa_outputs.",),
    # Of pre-training, next to the masked LM: next sentence, sentence order, replaced tokens.
    "pretraining": ("cls.seq_relationship.", "sop_classifier.", "discriminator_predictions."),
}
ALL_HEAD_TENSORS = tuple(prefix for prefixes in HEAD_TENSORS.values() for prefix in prefixes)


def own_head(checkpoint: Checkpoint) -> HeadName:
    """The head that a checkpoint was saved with; an unsupported one is refused by name."""
    config = checkpoint.config
    if config.get("problem_type") == "multi_label_classification":
        raise UnsupportedFamily(
            f"{checkpoint.folder} is a multi-label classifier",
            "supported heads: masked LM, classification with one label per text, regression, "
            "question answering, none",
        )
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        return _head_by_tensors(tensor.name for tensor in checkpoint.tensors)
    name = str(architectures[0])[:100]
    if name.endswith("ForPreTraining"):
        return _pretraining_head(tensor.name for tensor in checkpoint.tensors)
    for ending, head in _ENDINGS:
        if name.endswith(ending) and not name.endswith("LMHeadModel"):
            # Embedders keep the name of the masked LM that they were trained from, not its head.
            is_gone = head == "mlm" and _is_headless(checkpoint)
            return "none" if is_gone else head
    what = next((text for end, text in _REFUSED.items() if name.endswith(end)), "an unknown task")
    raise UnsupportedFamily(
        f"{checkpoint.folder} is a {name}: {what} is not supported",
        "supported heads: masked LM, sequence classification, question answering, none; "
        "load it with head='none' for the encoder alone",
    )


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
