"""What a trial's function opens where it runs: the rows and the model that its request names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import Unshare
from microtome.errors import ModelError
from microtome.experiments.kit.annotated_text import TREEBANK, opened_passages
from microtome.experiments.kit.subject import (
    CANDIDATES,
    CHECKPOINT,
    DATA,
    DEV_DATA,
    MODEL,
    POOLING,
    TRAINING,
)
from microtome.families import adapt
from microtome.models.loading import load
from microtome.models.tokenizers import load_tokenizer
from microtome.runs import Context
from microtome.surgery import apply, certify_weights
from microtome.tasks.annotation.passages import AnnotatedTexts, encode_passages
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.dataset import Dataset
from microtome.tasks.reading.opening import open_data, open_training


def data_of(request: Mapping[str, Any], context: Context) -> DataSpec:
    """The rows of a trial: what its request says, and where its context finds them."""
    # A trial that learns and measures nothing has the place of the training rows alone.
    data = context.where.get(DATA, context.where.get(TRAINING))
    places = (data, context.where.get(DEV_DATA), context.where.get(CANDIDATES))
    path, dev_path, candidates = (None if place is None else Path(place) for place in places)
    return DataSpec.of_json(request["rows"], path=path, dev_path=dev_path, candidates=candidates)


def opened_rows(request: Mapping[str, Any], context: Context) -> Dataset:
    """The measured rows."""
    return open_data(data_of(request, context))


def training_rows(request: Mapping[str, Any], context: Context) -> tuple[Dataset, Dataset]:
    """The training side of the subject's data, whole, and the rows that are measured."""
    data = data_of(request, context)
    train, dev = open_training(data)
    return train, dev.limit(data.limit, seed=data.seed)


def opened_model(context: Context) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model of a trial: the one that a needed trial fine-tuned, else the subject's own."""
    pooling = None if is_fine_tuned(context) else context.where.get(POOLING)
    return load_with_tokenizer(model_place(context), device=context.device, pooling=pooling)


def load_with_tokenizer(
    folder: Path, *, device: str, pooling: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A checkpoint with its tokenizer; one that has none is refused."""
    tokenizer = opened_tokenizer(folder)
    return load(folder, device=device, pooling=pooling), tokenizer


def opened_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a checkpoint; one that has none is refused."""
    tokenizer = load_tokenizer(folder)
    if tokenizer is None:
        raise ModelError(f"{folder} has no tokenizer", "put tokenizer.json next to the weights")
    return tokenizer


def opened_unshared(context: Context) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, str]:
    """As ``opened_model``, every layer with weights of its own, and the edit that made it so.

    ALBERT applies one layer at every depth: what is done to one layer would be done to all. The
    edit is empty where nothing was shared.
    """
    model, tokenizer = opened_model(context)
    if not adapt(model).stack.is_shared:
        return model, tokenizer, ""
    edit = Unshare()
    unshared = apply(edit, model)
    certify_weights(edit, model, unshared).require()
    return unshared, tokenizer, edit.text


def model_place(context: Context) -> Path:
    """The folder of the model that a trial looks at.

    Needed trials may leave checkpoints of other things (a fitted readout): those hold no model.
    """
    checkpoints = [need.checkpoint for need in context.needs.values() if need.checkpoint]
    tuned = [folder / CHECKPOINT for folder in checkpoints]
    return next((folder for folder in tuned if folder.is_dir()), Path(context.where[MODEL]))


def is_fine_tuned(context: Context) -> bool:
    """Whether the model that a trial looks at was fine-tuned by a trial that it needs."""
    return model_place(context) != Path(context.where[MODEL])


def opened_texts(
    request: Mapping[str, Any],
    context: Context,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> AnnotatedTexts:
    """A trial's annotated text as its model takes it: of the task's length, or the longest."""
    family = adapt(model)
    asked = request["rows"].get("max_length")
    most = int(min(family.n_positions, tokenizer.model_max_length, asked or math.inf))
    treebank, dataset = context.where.get(TREEBANK), None
    if request["text"] != TREEBANK:
        dataset = opened_rows(request, context)
        most = min(most, dataset.task.hyperparameters.max_length)
    place = None if treebank is None else Path(treebank)
    passages = opened_passages(request, treebank=place, dataset=dataset)
    return encode_passages(passages, tokenizer, max_length=most, segments=family.uses_segments)
