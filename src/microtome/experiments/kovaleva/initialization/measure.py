"""Scores of the pre-trained model under untrained heads, of a frozen probe, of a constant answer.

The fine-tunings are trials of ``kit.training``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.training import score_rows
from microtome.experiments.kit.trial_inputs import opened_rows, training_rows
from microtome.families import adapt
from microtome.models.source import Source, resolve
from microtome.models.tokenizers import load_tokenizer
from microtome.observe import predict, states
from microtome.observe.evaluation import encode_for, scored
from microtome.observe.forward import text_means
from microtome.runs import Context, Result
from microtome.tasks import Dataset, Encoded, Evaluation, evaluate_logits
from microtome.tasks.task import SINGLE_ANSWER_KINDS
from microtome.training.finetune.heads import load_for_task
from microtome.training.probe import majority, probe


def score_untrained_heads(request: Mapping[str, Any], context: Context) -> Result:
    """The pre-trained model as it is, under one random head after another."""
    dataset = opened_rows(request, context)
    source = resolve(Path(context.where[MODEL]))
    rows = []
    for seed, evaluation in _evaluations(source, dataset, request["heads"], context):
        rows += score_rows({"start": "pretrained", "seed": seed}, dataset, evaluation)
        context.report(f"head {seed + 1} of {request['heads']}")
    return Result(rows=rows)


def _evaluations(
    source: Source, dataset: Dataset, n_heads: int, context: Context
) -> Iterator[tuple[int, Evaluation]]:
    """The scores of each head, by its seed; the encoder runs once, because the heads share it.

    A head that does something to every token (question answering, or a mean that is taken late)
    is run in full, once per head.
    """
    labels = dict(enumerate(dataset.labels)) or None
    read: Tensor | None = None  # (n, D)
    encoded: Encoded | None = None
    for seed in range(n_heads):
        model = load_for_task(source, dataset.task, seed=seed, new_head=True, device=context.device)
        family = adapt(model)
        encoded = encoded or encode_for(model, load_tokenizer(source), dataset)
        if family.head != "classification" or family.reads == "late":
            yield seed, scored(model, dataset, encoded, predict(model, encoded))
            continue
        read = _read_states(model, encoded) if read is None else read
        with torch.inference_mode():
            logits = family.classify(read).float().cpu().numpy()
        yield seed, evaluate_logits(dataset, logits, labels)


def _read_states(model: PreTrainedModel, encoded: Encoded) -> Tensor:
    """What a classification head reads of every text: (n, D), in the order of the texts."""
    family = adapt(model)
    gathered: Tensor | None = None
    for chunk, depths in states(model, encoded):
        last = family.final_norm(depths[-1])
        read = text_means(last, chunk) if family.reads == "mean" else last[chunk.first_rows]
        if gathered is None:
            gathered = read.new_empty(len(encoded.offsets) - 1, read.shape[-1])
        gathered[torch.from_numpy(chunk.texts).to(read.device)] = read
    assert gathered is not None
    return gathered


def probe_frozen(request: Mapping[str, Any], context: Context) -> Result:
    """A linear probe on the frozen model's [CLS] state, and the commonest label."""
    train, dev = training_rows(request, context)
    train = train.fraction(request["fraction"], seed=0)
    if train.task.kind not in SINGLE_ANSWER_KINDS:
        return Result()  # a probe reads one state per text, and gives one label or number
    context.report("collect the frozen states")
    probed = probe(
        resolve(Path(context.where[MODEL])),
        train,
        dev,
        recipe="converged",
        scratch=context.scratch,
        device=context.device,
    )
    references = {"probe": probed.depths[-1], "majority": majority(train, dev)}
    rows = [
        row
        for start, evaluation in references.items()
        for row in score_rows({"start": start, "seed": None}, dev, evaluation)
    ]
    return Result(rows=rows)
