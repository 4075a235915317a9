"""Attention maps of fine-tuned models compared with the pre-trained model's, map by map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.kit.head_tables import HeadScores, head_rows, head_scores
from microtome.experiments.kit.subject import CHECKPOINT, MODEL
from microtome.experiments.kit.trial_inputs import opened_rows, opened_tokenizer
from microtome.experiments.kovaleva.attention_drift.plan import AGAIN, BASE
from microtome.models.loading import load
from microtome.observe import HeadMeans, reductions, stream
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.runs import Context, Result
from microtome.tasks import Dataset, Encoded

MEASURES = {
    "cosine": reductions.cosine,
    "other_heads": reductions.cosine_to_other_heads,
    "jensen_shannon": reductions.jensen_shannon,
}
Scores = Mapping[str, tuple[HeadScores, HeadScores]]  # per measure: of heads, of whole layers


def compare(request: Mapping[str, Any], context: Context) -> Result:
    """Every fine-tuned model's maps with the pre-trained one's, and with the other fine-tunings'.

    Rows come seed by seed; a model that was fine-tuned already has seed None.
    """
    model_folder = Path(context.where[MODEL])
    trained = sorted((seed, _checkpoint(context, need)) for need, seed in request["seeds"].items())
    folders: dict[int | None, Path] = dict(trained) or {None: model_folder}
    base = _encoder(context.where.get(BASE, model_folder), context)
    models = {seed: _encoder(folder, context) for seed, folder in folders.items()}
    again = [_encoder(context.where[AGAIN], context)] if AGAIN in context.where else []
    dataset = opened_rows(request, context)
    texts = encode_for(base, opened_tokenizer(model_folder), dataset)
    rows = []
    for seed, model in models.items():
        context.report(f"compare the maps of {'the model' if seed is None else f'seed {seed}'}")
        scores = drift_scores(model, base, texts, dataset)
        others = [other for other in (*models.values(), *again) if other is not model]
        floor = seed_floor(model, others, texts)
        rows += [{"seed": seed, **row} for row in drift_rows(scores, floor)]
    return Result(rows=rows, summary={"lowest cosine": min(row["cosine"] for row in rows)})


def _checkpoint(context: Context, need: str) -> Path:
    folder = context.needs[need].checkpoint
    assert folder is not None
    return folder / CHECKPOINT


def _encoder(folder: str | Path, context: Context) -> PreTrainedModel:
    return load(Path(folder), head="none", device=context.device)


def drift_scores(
    model: PreTrainedModel, base: PreTrainedModel, texts: Encoded, dataset: Dataset
) -> Scores:
    """Each measure of two models' maps: per head, and per layer (the mean of its heads)."""
    means = {name: HeadMeans(measure, keep=True) for name, measure in MEASURES.items()}
    stream(model, texts, list(means.values()), other=base)
    clusters = text_clusters(dataset, texts)
    scores = {}
    for name, mean in means.items():
        assert mean.values is not None
        scores[name] = (
            head_scores(mean.values, clusters=clusters),
            head_scores(mean.values.mean(axis=-1), clusters=clusters),
        )
    return scores


def seed_floor(
    model: PreTrainedModel, others: list[PreTrainedModel], texts: Encoded
) -> NDArray[np.float64] | None:
    """The mean cosine (layers, heads) with other fine-tunings; None where there is no other."""
    tables = []
    for other in others:
        means = HeadMeans(reductions.cosine)
        stream(model, texts, [means], other=other)
        tables.append(means.mean)
    return np.asarray(np.mean(tables, axis=0)) if tables else None


def drift_rows(
    scores: Scores,
    floor: NDArray[np.float64] | None,  # (layers, heads)
) -> list[dict[str, Any]]:
    """A row per head, and one per whole layer (head null)."""
    of_layers = None if floor is None else floor.mean(axis=1)
    rows = []
    for level, means in enumerate((floor, of_layers)):
        cosine, others, divergence = (scores[name][level] for name in MEASURES)
        rows += head_rows(
            {
                "cosine": cosine.mean, "low": cosine.low, "high": cosine.high, "n": cosine.n,
                "other_heads_cosine": others.mean, "seed_cosine": means,
                "jensen_shannon": divergence.mean, "jensen_shannon_low": divergence.low,
                "jensen_shannon_high": divergence.high,
            }
        )  # fmt: skip
    return rows
