"""Attention to features as rows: one per checkpoint, feature and head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.kit.head_tables import head_rows, head_scores, p_of_mean
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import opened_model, opened_texts
from microtome.experiments.kovaleva.linguistic_features.plan import BASE
from microtome.models.loading import load
from microtome.observe import stream
from microtome.observe.linguistic.random_draws import Draws
from microtome.observe.linguistic.received_attention import (
    MarkedAttention,
    RandomMarks,
    Units,
    feature_marks,
    units_of,
)
from microtome.runs import Context, Result
from microtome.tasks.annotation.features import FEATURES, Feature, parse_features
from microtome.tasks.annotation.passages import AnnotatedTexts

Values = NDArray[np.float32]  # (texts, layers, heads)


@dataclass(frozen=True, eq=False)
class Received:
    """What every feature receives in every head of a model, and what counted as a token."""

    marked: MarkedAttention
    random: RandomMarks
    units: Units


def score_features(request: Mapping[str, Any], context: Context) -> Result:
    """Every feature in every head, of the model and of its base where there is one."""
    model, tokenizer = opened_model(context)
    models = {request["checkpoint"]: model}
    if BASE in context.where:
        models["pretrained"] = load(Path(context.where[BASE]), head="none", device=context.device)
    elif context.needs:  # fine-tuned here: the subject itself is what it came from
        models["pretrained"] = load(Path(context.where[MODEL]), head="none", device=context.device)
    texts = opened_texts(request, context, model, tokenizer)
    features = (*FEATURES, *parse_features(request["features"]))
    received = {}
    for checkpoint, looked_at in models.items():
        context.report(f"attention of the {checkpoint} model over {len(texts)} texts")
        received[checkpoint] = received_by(looked_at, texts, features, mode=request["mode"])
    rows = feature_rows(received, texts)
    return Result(rows=[{"mode": request["mode"], **row} for row in rows])


def received_by(
    model: PreTrainedModel, texts: AnnotatedTexts, features: tuple[Feature, ...], *, mode: str
) -> Received:
    """One pass of a model over the texts."""
    units = units_of(texts, mode=mode)
    marks = feature_marks(texts, units, features)
    pool = units.is_leader & ~texts.special
    marked = MarkedAttention(marks, pool, units.received)
    random = RandomMarks(marks, pool, units.received, Draws(texts.clusters))
    stream(model, texts, [marked, random])
    return Received(marked, random, units)


def feature_rows(received: Mapping[str, Received], texts: AnnotatedTexts) -> list[dict[str, Any]]:
    """One row per checkpoint, feature and head; a feature that no text has gives none."""
    rows = []
    for checkpoint, of_model in received.items():
        for feature, values in of_model.marked.values.items():
            if np.isnan(values).all():
                continue
            base = None
            if checkpoint == "finetuned" and "pretrained" in received:
                base = received["pretrained"].marked.values[feature]
            rows += [
                {"checkpoint": checkpoint, "feature": feature, **row}
                for row in _head_rows(of_model, feature, base, texts.clusters)
            ]
    return rows


def _head_rows(
    received: Received, feature: str, base: Values | None, clusters: NDArray[np.int64] | None
) -> list[dict[str, Any]]:
    values, control = received.marked.values[feature], received.marked.control[feature]
    score, scaled, chance, excess = (
        head_scores(each, clusters=clusters)
        for each in (
            values,
            values * received.units.sizes[:, None, None],
            control,
            values - control,
        )
    )
    changes = dict.fromkeys(("change", "change_low", "change_high", "p_change"))
    if base is not None:
        change = head_scores(values - base, clusters=clusters)
        p_change = p_of_mean(values - base, clusters=clusters)
        tables = (change.mean, change.low, change.high, p_change)
        changes = dict(zip(changes, tables, strict=True))
    return head_rows(
        {
            "attention": score.mean, "low": score.low, "high": score.high, "n": score.n,
            "times_length": scaled.mean, "control": chance.mean, "excess": excess.mean,
            "excess_low": excess.low, "excess_high": excess.high,
            "p_maxt": received.random.tests[feature].p_max, **changes,
        }
    )  # fmt: skip
