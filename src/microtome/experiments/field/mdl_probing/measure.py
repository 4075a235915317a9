"""The trials of MDL probing: the bits of every label at every depth, and what they add up to."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.experiments.field.mdl_probing.labels import Labels
from microtome.experiments.field.mdl_probing.plan import (
    CONTROL,
    FREQUENCIES,
    PRETRAINED,
    RANDOM,
    REAL,
    UNIFORM,
    coded_rows,
)
from microtome.experiments.kit.head_tables import head_scores
from microtome.experiments.kit.stored_predictions import stored_arrays
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import training_rows
from microtome.models import tokenizer_of
from microtome.models.source import resolve
from microtome.observe.evaluation import encode_for
from microtome.runs import Context, Result
from microtome.tasks import Encoded, TaggedTexts
from microtome.training.probe.fitting import standardized
from microtome.training.probe.online_code import PENALTIES, Blocks, frequency_code, online_code
from microtome.training.probe.probes import frozen_encoder
from microtome.training.probe.states import (
    Feature,
    FloatArray,
    cache_states,
    cache_word_states,
)

Bits = NDArray[np.float64]
TARGETS = (REAL, CONTROL)
COMPARED = ("saved", "selectivity")
NOTHING = {f"{name}{end}": None for name in COMPARED for end in ("", "_low", "_high")}


def code(request: Mapping[str, Any], context: Context) -> Result:
    """The bits of every text's or word's labels, real and random ones, at every depth."""
    train, _ = training_rows(request, context)
    rows = coded_rows(train, request["rows"].get("limit"), request["rows"].get("seed", 0))
    source = resolve(context.where[MODEL])
    encoder = frozen_encoder(source, request["edits"] or None, device=context.device)
    encoded = encode_for(encoder, tokenizer_of(encoder), rows)
    labels = Labels.of(rows, encoded, seed=request["seed"])
    blocks = Blocks.of(labels.row_of, labels.n_classes, seed=request["seed"])
    penalties = PENALTIES if request["penalty"] is None else (request["penalty"],)
    found: dict[str, list[Bits]] = {target: [] for target in labels.targets}
    with tempfile.TemporaryDirectory(prefix="microtome-states-", dir=context.scratch) as folder:
        states = cached(encoder, encoded, Path(folder), request["feature"])
        for depth, at_depth in enumerate(states):
            context.report(f"depth {depth} of {len(states) - 1}")
            scaled, _, _ = standardized(at_depth)
            for target, columns in labels.targets.items():
                found[target].append(
                    sum_over(
                        online_code(scaled, column, labels.n_classes, blocks, penalties=penalties)
                        for column in columns.T
                    )
                )
    arrays = {target: np.stack(depths) for target, depths in found.items()}  # (depths, n)
    for target, columns in labels.targets.items():
        by_column = (frequency_code(column, labels.n_classes, blocks) for column in columns.T)
        arrays[f"{FREQUENCIES} {target}"] = sum_over(by_column)[None]
    sizes = {"n_classes": labels.n_classes, "n_columns": labels.targets[REAL].shape[1]}
    arrays |= {name: np.array(size) for name, size in sizes.items()}
    return Result(arrays={**arrays, "clusters": labels.clusters})


def sum_over(columns: Iterator[Bits]) -> Bits:
    """The bits of all labels of each text."""
    return np.asarray(np.stack(list(columns)).sum(axis=0))


def cached(
    encoder: PreTrainedModel, encoded: Encoded, folder: Path, feature: Feature
) -> FloatArray:
    """The states (N + 1, n, D) of texts, or of words at their first pieces."""
    if isinstance(encoded, TaggedTexts):
        return cache_word_states(encoder, encoded, folder)
    return cache_states(encoder, encoded, folder, features=(feature,))[feature]


def compare(request: Mapping[str, Any], context: Context) -> Result:
    """Code lengths by depth, and how much shorter they are than the controls', label by label."""
    stored = {
        encoder: stored_arrays(place)
        for encoder, trial in request["trials"].items()
        if (place := context.needs[trial].arrays) is not None
    }
    ours = stored[PRETRAINED]
    n_classes, n_columns = int(ours["n_classes"]), int(ours["n_columns"])
    per_label = {
        (encoder, target): arrays[target] / n_columns
        for encoder, arrays in stored.items()
        for target in TARGETS
    }
    for target in TARGETS:
        frequencies = ours[f"{FREQUENCIES} {target}"] / n_columns
        per_label[FREQUENCIES, target] = frequencies
        per_label[UNIFORM, target] = np.full_like(frequencies, math.log2(n_classes))
    about = {key: request[key] for key in ("feature", "seed", "unit")} | {"n_classes": n_classes}
    rows = []
    for (encoder, target), bits in per_label.items():
        columns = {"bits_per_label": bits}
        if encoder == PRETRAINED:
            columns["saved"] = per_label[RANDOM, target] - bits
        if encoder in stored and target == REAL:
            columns["selectivity"] = per_label[encoder, CONTROL] - bits
        for number, found in enumerate(means(columns, ours["clusters"])):
            depth = number if encoder in stored else None
            row = {**about, "encoder": encoder, "target": target, "depth": depth, **NOTHING}
            n_labels = bits.shape[1] * n_columns
            row |= found | {"n": n_labels, "bits": found["bits_per_label"] * n_labels}
            row["compression"] = math.log2(n_classes) / found["bits_per_label"]
            rows.append(row)
    return Result(rows=rows)


def means(columns: Mapping[str, Bits], clusters: NDArray[np.int64]) -> list[dict[str, Any]]:
    """By depth, the mean of each column (depths, n), with its interval over texts or clusters."""
    found: list[dict[str, Any]] = [{} for _ in next(iter(columns.values()))]
    for name, by_depth in columns.items():
        low, high = ("low", "high") if name == "bits_per_label" else (f"{name}_low", f"{name}_high")
        scores = head_scores(by_depth.T, clusters=clusters)
        for row, *ends in zip(found, scores.mean, scores.low, scores.high, strict=True):
            numbers = (None if math.isnan(end) else float(end) for end in ends)
            row |= dict(zip((name, low, high), numbers, strict=True))
    return found
