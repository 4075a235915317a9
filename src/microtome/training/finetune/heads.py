"""The model with a head for a task: its own where that fits, a fresh one where it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from microtome.errors import RequestError
from microtome.models import Source, load
from microtome.models.checkpoint import Checkpoint, look_at
from microtome.models.heads import (
    CROSS_ENCODER_KEYS,
    LABELLED,
    MULTI_LABEL,
    HeadName,
    job_of,
    own_head,
    stored_labels,
)
from microtome.models.provenance import attach, provenance_of
from microtome.tasks.encoding.texts import EMBEDDED_KINDS
from microtome.tasks.scoring.labels import plain_label
from microtome.tasks.task import Kind, Task

HEAD_OF_KIND: Mapping[Kind, HeadName] = {
    "classification": "classification",
    "regression": "classification",
    "multilabel": "classification",
    "reranking": "classification",
    "tokens": "token-classification",
    "spans": "question-answering",
}
"""The head that is trained on each kind of data; an embedder has none."""

DEFAULT_POOLING = "mean"
RELEVANCE = "relevance"
# CrossEncoder then gives probabilities, and the folder says what it is for.
_CROSS_ENCODER_SETTINGS = {"activation_fn": "torch.nn.modules.activation.Sigmoid"}
_NEW_HEAD = "name the task it was trained for, or ask for a new head (new_head=True)"


def load_for_task(
    source: Source,
    task: Task,
    *,
    seed: int,
    new_head: bool = False,
    pooling: str | None = None,
    device: str | torch.device = "cpu",
) -> PreTrainedModel:
    """Load ``source`` for ``task``. A head made for something else is refused, not thrown away.

    ``new_head`` replaces any head; a fresh one is drawn from ``seed`` alone. Texts that are
    compared need an embedder: a sentence-transformers folder as it is, or an encoder without a task
    head, pooled by ``pooling`` (the mean unless named).
    """
    assert source.path is not None
    checkpoint = look_at(source.path, links_into=source.links_into)
    if task.kind in EMBEDDED_KINDS:
        return _load_embedder(source, checkpoint, task, pooling, device)
    if pooling is not None:
        raise RequestError(
            f"pooling was given, but {task.name} ({task.kind}) trains a head", "leave it out"
        )
    own = own_head(checkpoint)
    is_fresh = new_head or own in ("mlm", "none")
    if is_fresh:
        labels = labels_of(task)
        model = load(
            source, head=HEAD_OF_KIND[task.kind], id2label=labels, head_seed=seed, device=device
        )
    else:
        _check_fit(source.name, checkpoint, own, task)
        model = load(source, device=device)
    _describe_(model, task, is_fresh=is_fresh)
    return model


def pooling_notes(source: Source, task: Task, pooling: str | None) -> tuple[str, ...]:
    """A note where an embedder is made of an encoder that nobody said how to pool."""
    assert source.path is not None
    if task.kind not in EMBEDDED_KINDS or pooling is not None:
        return ()
    sentence = look_at(source.path, links_into=source.links_into).sentence
    if sentence is not None and sentence.is_embedder:
        return ()
    return (f"{source.name} doesn't say how it is pooled: the mean is taken (--pooling cls|mean)",)


def labels_of(task: Task) -> dict[int, str] | None:
    """A fresh head's outputs by name; None for a head without labels."""
    if task.kind == "reranking":
        return {0: RELEVANCE}
    if task.kind == "regression":
        return {0: task.name}
    return dict(enumerate(task.labels)) if task.kind in HEAD_OF_KIND and task.labels else None


def _load_embedder(
    source: Source,
    checkpoint: Checkpoint,
    task: Task,
    pooling: str | None,
    device: str | torch.device,
) -> PreTrainedModel:
    if checkpoint.sentence is not None and checkpoint.sentence.is_embedder:
        return load(source, pooling=pooling, device=device)
    own = own_head(checkpoint)
    if own in LABELLED:
        raise RequestError(
            f"{source.name} has a {own} head, and {task.name} ({task.kind}) needs an embedder",
            "give a sentence-transformers folder, or an encoder without a task head",
        )
    return load(source, pooling=pooling or DEFAULT_POOLING, device=device)


def _describe_(model: PreTrainedModel, task: Task, *, is_fresh: bool) -> None:
    """Let the config say what the head is for, and name its outputs."""
    config: PreTrainedConfig = model.config
    unnamed = list(config.id2label.values()) == stored_labels({"num_labels": config.num_labels})
    if task.kind in ("classification", "multilabel") or (task.kind == "tokens" and unnamed):
        config.id2label = dict(enumerate(task.labels))
        config.label2id = {label: index for index, label in enumerate(task.labels)}
    if task.kind == "regression":
        config.problem_type = "regression"
    if task.kind == "multilabel":
        config.problem_type = MULTI_LABEL
    if not is_fresh:
        return
    for key in CROSS_ENCODER_KEYS:  # of the head before
        if hasattr(config, key):
            delattr(config, key)
    if task.kind == "reranking":
        config.sentence_transformers = dict(_CROSS_ENCODER_SETTINGS)
        origin = provenance_of(model)
        assert origin is not None
        attach(model, replace(origin, is_cross_encoder=True))


def _check_fit(name: str, checkpoint: Checkpoint, own: HeadName, task: Task) -> None:
    needed = HEAD_OF_KIND[task.kind]
    if own != needed:
        raise RequestError(
            f"{name} has a {own} head, and {task.name} ({task.kind}) needs one for {needed}",
            _NEW_HEAD,
        )
    if own != "classification":  # tags are matched with the rows'
        return
    gives_several = job_of(checkpoint) == "multilabel"
    if gives_several != (task.kind == "multilabel"):
        one, several = "one label per text", "several labels per text"
        gives, has = (several, one) if gives_several else (one, several)
        raise RequestError(f"{name} gives {gives}, and {task.name} has {has}", _NEW_HEAD)
    found = stored_labels(checkpoint.config)
    expected = list((labels_of(task) or {}).values())
    sizes = (1, 2) if task.kind == "reranking" else (len(expected),)
    if len(found) not in sizes:
        raise RequestError(
            f"{name} has a head with {len(found)} outputs ({', '.join(found)}), and {task.name} "
            f"({task.kind}) needs {' or '.join(map(str, sizes))}",
            _NEW_HEAD,
        )
    generic = all(label == f"LABEL_{index}" for index, label in enumerate(found))
    same = list(map(plain_label, found)) == list(map(plain_label, expected))
    if task.kind in ("classification", "multilabel") and not generic and not same:
        raise RequestError(
            f"{name} has a head for the labels {', '.join(found)}, and {task.name} has "
            f"{', '.join(expected)}",
            _NEW_HEAD,
        )
