"""Frozen probing: a linear classifier on the states of every depth, trained on one cached pass.

Probing depth d is removing the top N − d layers, freezing the rest and training the classifier
(Singh et al. §4.4), without running the frozen part once per classifier and epoch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedModel

from microtome import surgery
from microtome.edits import Edit, Edits
from microtome.edits.grammar import as_edits
from microtome.errors import DataError, RequestError
from microtome.families import adapt
from microtome.models import Source, fetched, load, resolve, tokenizer_of
from microtome.observe.evaluation import encode_for
from microtome.tasks import Dataset, Evaluation
from microtome.tasks.scoring.evaluation import evaluate_logits
from microtome.tasks.task import SINGLE_ANSWER_KINDS
from microtome.training.finetune.examples import check_trainable
from microtome.training.probe.fitting import LinearProbes, Pooler, fit_converged, fit_paper
from microtome.training.probe.states import Feature, FloatArray, cache_states, check_features
from microtome.training.recipe import Recipe, Seeds

ProbeRecipe = Literal["paper", "converged"]

PAPER = Recipe(learning_rate=2e-5, batch_size=32, epochs=3)


@dataclass(frozen=True, eq=False)
class ProbeData:
    """States of training and dev rows at every depth, (N + 1, n, D) for each feature."""

    name: str
    train: Dataset
    dev: Dataset
    train_states: Mapping[Feature, FloatArray]
    dev_states: Mapping[Feature, FloatArray]
    pooler: Pooler | None = None  # where a trained one begins


@dataclass(frozen=True, eq=False)
class Probed:
    """The probes' scores on dev; ``depths[d]`` reads the state after d layers."""

    name: str
    task: str
    feature: Feature
    recipe: ProbeRecipe
    n_rows: int
    depths: tuple[Evaluation, ...]
    probes: LinearProbes

    def rows(self) -> list[dict[str, object]]:
        """One row per depth and metric; ``removed`` counts the layers above."""
        return [
            {
                "depth": depth,
                "removed": len(self.depths) - 1 - depth,
                "metric": metric,
                "value": score.value,
                "low": score.low,
                "high": score.high,
                "n": score.n,
            }
            for depth, evaluation in enumerate(self.depths)
            for metric, score in evaluation.scores.items()
        ]


@contextmanager
def collect(
    model: str | PathLike[str] | Source,
    train: Dataset,
    dev: Dataset,
    *,
    features: Sequence[Feature] = ("cls",),
    edits: Edit | Edits | str | None = None,
    scratch: str | PathLike[str] | None = None,
    device: str | torch.device = "cpu",
) -> Iterator[ProbeData]:
    """Run the frozen encoder once over both sets; gives the states of every depth.

    They are files in ``scratch`` (None: the system's temporary folder) until the block ends.
    ``features``: ``cls`` the first token's state, ``mean`` over all tokens, ``pooler`` through the
    pre-trained pooler, ``trained-pooler`` through a pooler that is trained along. ``edits`` come
    first: ``randomize(seed=0)`` gives the random-encoder baseline.

    Example::

        with collect("nano-bert", train, dev, features=("cls", "mean")) as data:
            by_depth = probe_depths(data, feature="mean", recipe="converged").rows()
    """
    check_trainable(train, dev)
    check_features(features)
    if train.task.kind == "spans":
        raise RequestError(
            f"a probe reads one state per text, and {train.task.name} needs places in a passage",
            "probe a classification or regression task",
        )
    if train.task.kind not in SINGLE_ANSWER_KINDS:
        raise RequestError(
            f"a probe gives one label or number per text, and {train.task.name} is"
            f" {train.task.kind}",
            "probe a classification or regression task",
        )
    source = fetched(model if isinstance(model, Source) else resolve(model))
    encoder = frozen_encoder(source, edits, device=device)
    tokenizer = tokenizer_of(encoder)
    pooler = Pooler.of(adapt(encoder)) if "trained-pooler" in features else None
    with tempfile.TemporaryDirectory(prefix="microtome-states-", dir=scratch) as folder:
        train_states, dev_states = (
            cache_states(
                encoder,
                encode_for(encoder, tokenizer, dataset),
                Path(folder) / part,
                features=features,
            )
            for part, dataset in (("train", train), ("dev", dev))
        )
        yield ProbeData(source.name, train, dev, train_states, dev_states, pooler)


def frozen_encoder(
    model: str | PathLike[str] | Source,
    edits: Edit | Edits | str | None = None,
    *,
    device: str | torch.device = "cpu",
) -> PreTrainedModel:
    """The model without its head, after ``edits``, which are certified; with its tokenizer."""
    chosen = as_edits(edits)
    base = load(fetched(model if isinstance(model, Source) else resolve(model)), head="none",
                device=device)  # fmt: skip
    encoder = surgery.apply(chosen, base)
    if len(chosen):
        surgery.certify_weights(chosen, base, encoder).require()
    return encoder


def probe_depths(
    data: ProbeData,
    *,
    feature: Feature = "cls",
    recipe: ProbeRecipe = "paper",
    settings: Recipe = PAPER,
    seed: int = 0,
    seeds: Seeds | None = None,
    fraction: float = 1.0,
) -> Probed:
    """Train the classifiers of all depths on the cached rows and score them on dev.

    ``recipe``: ``paper`` trains as fine-tuning does, with ``settings``; ``converged`` solves for
    the minimum. ``fraction`` takes part of the training rows: below 1 a share, from 2 on a number.
    """
    pooler = data.pooler if feature == "trained-pooler" else None
    _check(data, feature, recipe, has_pooler=pooler is not None)
    part = data.train.fraction(fraction, seed=seed)
    states = data.train_states[feature]
    if len(part) < len(data.train):
        states = states[:, np.searchsorted(data.train.positions, part.positions)]
    kind, seeds = part.task.kind, seeds or Seeds.of(seed)
    n_outputs = 1 if kind == "regression" else len(part.labels)
    if recipe == "converged":
        probes = fit_converged(states, part.targets, kind, n_outputs)
    else:
        probes = fit_paper(
            states,
            part.targets,
            kind,
            n_outputs,
            settings,
            init_seed=seeds.init,
            data_seed=seeds.data,
            pooler=pooler,
        )
    logits = probes.logits(data.dev_states[feature])
    labels = dict(enumerate(part.labels)) or None
    depths = tuple(evaluate_logits(data.dev, of_depth, labels) for of_depth in logits)
    return Probed(data.name, part.task.name, feature, recipe, len(part), depths, probes)


def _check(data: ProbeData, feature: Feature, recipe: ProbeRecipe, *, has_pooler: bool) -> None:
    if feature not in data.train_states:
        raise RequestError(
            f"feature must be one that was collected ({', '.join(data.train_states)}),"
            f" got {feature!r}"
        )
    if recipe not in ("paper", "converged"):
        raise RequestError(f"recipe must be paper or converged, got {recipe!r}")
    if has_pooler and recipe == "converged":
        raise RequestError(
            "recipe must be paper for the feature trained-pooler, got converged, which solves for"
            " linear classifiers"
        )


def probe(
    model: str | PathLike[str] | Source,
    train: Dataset,
    dev: Dataset,
    *,
    feature: Feature = "cls",
    recipe: ProbeRecipe = "paper",
    settings: Recipe = PAPER,
    edits: Edit | Edits | str | None = None,
    seed: int = 0,
    fraction: float = 1.0,
    scratch: str | PathLike[str] | None = None,
    device: str | torch.device = "cpu",
) -> Probed:
    """Collect and train in one call, on the rows of ``fraction`` only; gives scores by depth.

    Example: ``probe("nano-bert", train, dev, recipe="converged").rows()``
    """
    part = train.fraction(fraction, seed=seed)
    with collect(
        model, part, dev, features=(feature,), edits=edits, scratch=scratch, device=device
    ) as data:
        return probe_depths(data, feature=feature, recipe=recipe, settings=settings, seed=seed)


def random_encoder(
    model: str | PathLike[str] | Source,
    train: Dataset,
    dev: Dataset,
    *,
    feature: Feature = "cls",
    recipe: ProbeRecipe = "paper",
    seed: int = 0,
    fraction: float = 1.0,
) -> Probed:
    """The baseline that knows nothing: the same probes on an encoder with random weights."""
    edits = f"randomize(seed={seed})"
    return probe(
        model, train, dev, feature=feature, recipe=recipe, edits=edits, seed=seed, fraction=fraction
    )


def majority(train: Dataset, dev: Dataset) -> Evaluation:
    """The baseline that reads nothing: the commonest training label, or the mean number."""
    check_trainable(train, dev)
    if train.task.kind == "regression":
        constant = np.full((len(dev), 1), float(np.mean(train.targets)))
        return evaluate_logits(dev, constant)
    if train.task.kind != "classification":
        raise DataError(f"{train.task.name} has no labels that could be the commonest")
    counts = np.bincount(train.targets.astype(np.int64), minlength=len(train.labels))
    logits = np.zeros((len(dev), len(train.labels)))
    logits[:, counts.argmax()] = 1.0
    return evaluate_logits(dev, logits, dict(enumerate(train.labels)))
