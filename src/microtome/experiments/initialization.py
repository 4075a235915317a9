"""Initialisation (Kovaleva et al. 2019, "Change in self-attention patterns after fine-tuning").

The task's score from three starts: the pre-trained model without fine-tuning, the model fine-tuned
from normal-random weights, and the model fine-tuned from its pre-trained weights. The paper reports
35.9 points between the first and the last on average, and random starts that end below the
pre-trained model alone on STS-B and QNLI. The first of them has an untrained classifier, so it is
scored with 20 random heads; a probe that is trained on the frozen model stands beside it (start
``probe``), and the answer that reads nothing (start ``majority``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.experiments.experiment import Experiment
from microtome.experiments.finetuning import (
    OPTIONS,
    SEEDS,
    Arm,
    arm_trial,
    checked_fraction,
    training_rows,
)
from microtome.experiments.initialization_words import finding, measured, summary, views
from microtome.experiments.options import Option
from microtome.experiments.subject import MODEL, Subject, opened_rows
from microtome.runs import Context, Result, Trial

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from microtome.models import Source
    from microtome.tasks import Dataset, Evaluation

NAME = "initialization"


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """The untrained heads, the frozen probe, and both fine-tunings once per seed."""
    if subject.has_task_head:
        raise RequestError(
            f"{subject.model} is fine-tuned already, and initialization compares the starts",
            "give the pre-trained model",
        )
    arms = [
        arm_trial(
            subject, NAME, settings,
            Arm(about={"start": start}, edits=edits.format(seed=seed), seed=seed,
                label=f"fine-tune from {words}, seed {seed}"),
        )
        for start, edits, words in (
            ("finetuned", "", "pre-trained weights"),
            ("random", "randomize(seed={seed})", "random weights"),
        )
        for seed in settings["seeds"]
    ]  # fmt: skip
    heads = subject.trial(
        "initialization:untrained_heads", NAME, {"heads": settings["heads"]},
        label="score untrained heads",
    )  # fmt: skip
    beside = subject.trial(
        "initialization:frozen",
        NAME,
        {"fraction": checked_fraction(settings)},
        label="probe the frozen model",
    )
    return [heads, beside, *arms]


def untrained_heads(request: Mapping[str, Any], context: Context) -> Result:
    """The pre-trained model as it is, under one random head after another."""
    from microtome.models import resolve
    from microtome.tasks import evaluate_logits

    dataset = opened_rows(request, context)
    source = resolve(Path(context.where[MODEL]))
    labels = dict(enumerate(dataset.labels)) or None
    rows = []
    for seed, answers in _answers(source, dataset, range(request["heads"]), context):
        found = answers if not _is_array(answers) else evaluate_logits(dataset, answers, labels)
        rows += score_rows("pretrained", found, seed)
        context.report(f"head {seed + 1} of {request['heads']}")
    return Result(rows=rows)


def _is_array(answers: object) -> bool:
    return hasattr(answers, "shape")


def _answers(
    source: Source, dataset: Dataset, seeds: range, context: Context
) -> Iterator[tuple[int, Any]]:
    """Logits of each head; the encoder runs once, because the heads share it.

    A question-answering head reads all tokens and is run in full, once per head.
    """
    import torch

    from microtome.evaluation import encode_for, scored
    from microtome.families import adapt
    from microtome.models import load_tokenizer
    from microtome.observe import predict
    from microtome.training.heads import load_for_task

    read: Tensor | None = None
    encoded = None
    for seed in seeds:
        model = load_for_task(source, dataset.task, seed=seed, new_head=True, device=context.device)
        family = adapt(model)
        encoded = encoded or encode_for(model, load_tokenizer(source), dataset)
        if family.head != "classification":
            yield seed, scored(model, dataset, encoded, predict(model, encoded))
            continue
        read = _read_states(model, encoded) if read is None else read
        with torch.inference_mode():
            logits: NDArray[np.float32] = family.classify(read).float().cpu().numpy()
        yield seed, logits


def _read_states(model: Any, encoded: Any) -> Tensor:  # noqa: ANN401  # model and token arrays
    """What a classification head reads of every text: (n, D), in the order of the texts."""
    import torch

    from microtome.families import adapt
    from microtome.observe import states
    from microtome.observe.forward import text_means

    family = adapt(model)
    gathered: Tensor | None = None
    for chunk, depths in states(model, encoded):
        last = family.final_norm(depths[-1])
        own = text_means(last, chunk) if family.reads == "mean" else last[chunk.first_rows]
        if gathered is None:
            gathered = own.new_empty(len(encoded.offsets) - 1, own.shape[-1])
        gathered[torch.from_numpy(chunk.texts).to(own.device)] = own
    assert gathered is not None
    return gathered


def frozen(request: Mapping[str, Any], context: Context) -> Result:
    """A linear probe on the frozen model's [CLS] state, and the commonest label."""
    from microtome.models import resolve
    from microtome.training import majority, probe

    train, dev = training_rows(request, context)
    train = train.fraction(request["fraction"], seed=0)
    if train.task.kind == "span":
        return Result()  # a probe reads one state per text, an answer is a place
    context.report("collect the frozen states")
    probed = probe(
        resolve(Path(context.where[MODEL])), train, dev, recipe="converged",
        scratch=context.scratch, device=context.device,
    )  # fmt: skip
    rows = score_rows("probe", probed.depths[-1], None)
    return Result(rows=[*rows, *score_rows("majority", majority(train, dev), None)])


def score_rows(start: str, found: Evaluation, seed: int | None) -> list[dict[str, Any]]:
    """One row per metric."""
    return [
        {
            "start": start, "seed": seed, "metric": name, "value": score.value,
            "low": score.low, "high": score.high, "n": score.n,
        }
        for name, score in found.scores.items()
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name=NAME,
    section="Kovaleva et al. 2019, Change in self-attention patterns after fine-tuning",
    question="What does pre-training bring, and what does fine-tuning?",
    method=__doc__ or "",
    columns=("start", "seed", "metric", "value", "low", "high", "n"),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=(
        SEEDS,
        Option("heads", 20, "untrained heads on the pre-trained model", "whole"),
        *OPTIONS,
    ),
    measured=measured,
)
