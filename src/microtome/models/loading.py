"""Load a checkpoint as what it is, or refuse it: never a model that is partly random unasked."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

import torch
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families.embedder import Embedder, attach_embedder
from microtome.models.building import HeadChoice, build_config, build_model
from microtome.models.checkpoint import Checkpoint, look_at
from microtome.models.configuration import size
from microtome.models.contents import content_hash_of
from microtome.models.heads import (
    LABELLED,
    checked_head,
    is_cross_encoder,
    own_head,
    saved_head,
)
from microtome.models.provenance import Base, Provenance, attach, read_history
from microtome.models.quiet import quiet_transformers
from microtome.models.sentence_transformers.embedder_files import bare_embedder, read_embedder
from microtome.models.source import Source, fetched, resolve


def load(
    name: str | PathLike[str] | Source,
    *,
    head: str | None = None,
    num_labels: int | None = None,
    id2label: Mapping[int, str] | None = None,
    head_seed: int = 0,
    device: str | torch.device = "cpu",
    allow_pickle: bool = False,
    revision: str | None = None,
    attention: str = "sdpa",
    dtype: torch.dtype | None = None,
    pooling: str | None = None,
) -> PreTrainedModel:
    """Load a model in eval mode, with its provenance; it computes in fp32 unless ``dtype`` says.

    ``load("nano-bert", head="classification", num_labels=3)`` has a classifier to be trained.
    ``head`` forces a task head (``mlm``, ``classification``, ``token-classification``,
    ``question-answering``, ``none``); ``saved`` is the class that the checkpoint names, whatever it
    is. A head that the checkpoint lacks, or one with new labels (``num_labels``, ``id2label``), is
    fresh: its weights are random and depend on ``head_seed`` alone.
    A sentence-transformers folder is an embedder; ``pooling`` (``cls`` or ``mean``) makes one of an
    encoder without a task head.
    """
    source = fetched(
        name if isinstance(name, Source) else resolve(name, revision=revision),
        allow_pickle=allow_pickle,
    )
    assert source.path is not None
    checkpoint = look_at(source.path, links_into=source.links_into, allow_pickle=allow_pickle)
    labels = _labels(num_labels, id2label)
    embeds = _check_pooling(checkpoint, head, pooling)
    choice = _head_choice(
        checkpoint, "none" if pooling else head, has_labels=labels is not None, seed=head_seed
    )
    provenance = _provenance(source, checkpoint, choice)
    with quiet_transformers():
        config = build_config(checkpoint, choice, labels)
        model = build_model(
            checkpoint, config, choice, attention=attention, dtype=dtype or torch.float32
        )
    model.register_forward_pre_hook(refuse_head_mask, with_kwargs=True)
    if embeds and choice.head == "none":
        attach_embedder(model, _embedder(checkpoint, pooling))
    return attach(model.to(device).eval(), provenance)


def refuse_head_mask(
    module: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    """Refuse ``head_mask``: transformers 5 takes it without a word, and it does nothing at all."""
    if kwargs.get("head_mask") is not None:
        raise RequestError(
            "head_mask was given, and transformers ignores it since version 5",
            "switch a head off with the edit disable(LAYER.HEAD), for example disable(3.7)",
        )


def nonfinite_tensors(model: torch.nn.Module) -> list[str]:
    """The names of the parameters with a NaN or an infinity in them."""
    return [name for name, value in model.named_parameters() if not bool(value.isfinite().all())]


def _labels(num_labels: int | None, id2label: Mapping[int, str] | None) -> dict[int, str] | None:
    if id2label is not None:
        labels = {int(index): str(label) for index, label in id2label.items()}
        n_labels = len(labels) if num_labels is None else num_labels
        if sorted(labels) != list(range(n_labels)):
            raise RequestError(
                f"expected id2label with the keys 0 to {n_labels - 1}, got {sorted(labels)}"
            )
        return labels
    if num_labels is None:
        return None
    if num_labels < 1:
        raise RequestError(f"num_labels must be at least 1, got {num_labels}")
    return {index: f"LABEL_{index}" for index in range(num_labels)}


def _check_pooling(checkpoint: Checkpoint, head: str | None, pooling: str | None) -> bool:
    """Whether the model is to be an embedder; a pooling that it can't have is refused."""
    folder = checkpoint.sentence
    is_folder = folder is not None and folder.is_embedder
    if pooling is None:
        return is_folder and head in (None, "saved")
    if head not in (None, "none", "saved"):
        raise RequestError(f"pooling was given with the head {head!r}", "give one of the two")
    if not is_folder and own_head(checkpoint) in LABELLED:
        raise RequestError(
            f"pooling was given, but {checkpoint.root} has a {own_head(checkpoint)} head",
            "pooling makes an embedder of an encoder without a task head",
        )
    return True


def _embedder(checkpoint: Checkpoint, pooling: str | None) -> Embedder:
    asked = None if pooling is None else bare_embedder(pooling)
    if checkpoint.sentence is None or not checkpoint.sentence.is_embedder:
        assert asked is not None
        return asked
    width = size(checkpoint.config, checkpoint.facts.config, "width") or 0
    stored = read_embedder(checkpoint.sentence, width)
    if asked is not None and asked.modes != stored.modes:
        modes = ", ".join(stored.modes)
        raise RequestError(
            f"pooling {pooling} was given, but {checkpoint.root} pools by {modes}",
            "leave it out: the folder says how it is pooled",
        )
    return stored


def _head_choice(
    checkpoint: Checkpoint, head: str | None, *, has_labels: bool, seed: int
) -> HeadChoice:
    if head == "none":
        # The encoder alone is there under every head, also under one that is refused by name.
        return HeadChoice("none", "none", is_fresh=False, seed=seed)
    if head == "saved" and not has_labels:
        stored, architecture = saved_head(checkpoint)
        return HeadChoice(stored, stored, is_fresh=False, seed=seed, architecture=architecture)
    stored = own_head(checkpoint)
    chosen = stored if head is None else checked_head(head)
    if has_labels and chosen not in LABELLED:
        raise RequestError(
            f"the head {chosen!r} has no labels", 'give labels with head="classification" only'
        )
    return HeadChoice(stored, chosen, is_fresh=chosen != stored or has_labels, seed=seed)


def _provenance(source: Source, checkpoint: Checkpoint, choice: HeadChoice) -> Provenance:
    content = content_hash_of(checkpoint)
    assert source.path is not None
    # A folder is known by its last part: a saved card shouldn't tell where it was.
    public_name = source.path.resolve().name if source.kind == "folder" else source.name
    history = read_history(checkpoint.root)
    base, edits = history or (Base(public_name, content), ())
    return Provenance(
        name=source.name,
        kind=source.kind,
        path=source.path,
        content_hash=content,
        dtype=checkpoint.dtype,
        family=checkpoint.facts.name,
        head=choice.head,
        head_is_fresh=choice.is_fresh and choice.head != "none",
        revision=source.revision,
        base=base,
        edits=edits,
        is_cross_encoder=is_cross_encoder(checkpoint) and not choice.is_fresh,
    )
