"""The class of every head's map of every example, and the shares of the classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.kit.trial_inputs import opened_model, opened_rows
from microtome.experiments.kovaleva.attention_patterns.examples import example_maps
from microtome.experiments.kovaleva.attention_patterns.plan import CLASSIFIER
from microtome.observe import stream, vocabulary_of
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.observe.patterns import PatternCounts, load_classifier, second_texts, token_kinds
from microtome.observe.patterns.counting import (
    FIRST,
    NOTHING,
    PUNCTUATION,
    SEPARATOR,
    STRIPED,
    WORD,
)
from microtome.observe.patterns.network import PATTERNS
from microtome.observe.patterns.shares import corrected, drawn_mistakes, drawn_shares, mistakes
from microtome.runs import Context, Result

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
KINDS = {"on_cls": FIRST, "on_sep": SEPARATOR, "on_punctuation": PUNCTUATION, "on_other": WORD}


@dataclass(frozen=True, eq=False)
class ClassifiedMaps:
    """What a pass over the texts gave; ``confusion`` (true, given) is the classifier's.

    ``examples`` are, by pattern, the columns of a map that is kept whole.
    """

    patterns: Bytes  # (texts, layers, heads)
    stripes: Bytes  # the kind of token that a striped map's strongest column is on
    confusion: NDArray[np.int64]
    pairs: bool
    clusters: NDArray[np.int64] | None = None
    examples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def classify(request: Mapping[str, Any], context: Context) -> Result:
    """Stream all maps through the classifier; one byte of each is kept."""
    classified = classified_maps(request, context)
    rows = [{"checkpoint": request["checkpoint"], **row} for row in share_rows(classified)]
    heterogeneous = next(
        row for row in rows if row["layer"] is None and row["pattern"] == "heterogeneous"
    )
    return Result(
        rows=rows,
        summary={"heterogeneous": heterogeneous["share"]},
        arrays={"patterns": classified.patterns, "stripes": classified.stripes},
    )


def classified_maps(request: Mapping[str, Any], context: Context) -> ClassifiedMaps:
    """The class of every head's map of every example."""
    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context).limit(request["examples"])
    texts = encode_for(model, tokenizer, dataset)
    classifier = load_classifier(context.where[CLASSIFIER])
    second = second_texts(texts)
    vocabulary = vocabulary_of(tokenizer)
    counts = PatternCounts(classifier, second=second, kinds=token_kinds(texts, vocabulary))
    stream(
        model,
        texts,
        [counts],
        progress=lambda done, n: context.report(f"{done} of {n} texts"),
        device=context.device,
    )
    return ClassifiedMaps(
        counts.found,
        counts.stripes,
        classifier.confusion,
        pairs=bool(second.any()),
        clusters=text_clusters(dataset, texts),
        examples=example_maps(model, texts, counts.found, vocabulary, device=context.device),
    )


def share_rows(classified: ClassifiedMaps, *, seed: int = 0) -> list[dict[str, Any]]:
    """One row per pattern: of every head, every layer (head None), and all (layer None too)."""
    rates = mistakes(classified.confusion, pairs=classified.pairs)
    drawn_rates = drawn_mistakes(classified.confusion, seed, pairs=classified.pairs)
    rows: list[dict[str, Any]] = []
    for layer, head, patterns, stripes in _parts(classified):
        by_text = shares_by_text(patterns)
        shares = by_text.mean(axis=0)
        drawn = drawn_shares(by_text, seed, classified.clusters)
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        true_shares = corrected(shares, rates)
        ends = _corrected_ends(drawn, drawn_rates) if head is None else None
        for k, pattern in enumerate(PATTERNS):
            if pattern == "block" and not classified.pairs:
                continue  # one text has no blocks
            row = {
                "layer": layer, "head": head, "pattern": pattern, "share": float(shares[k]),
                "low": float(low[k]), "high": float(high[k]), "n": len(patterns),
                "n_maps": patterns.size, "corrected": float(true_shares[k]),
                "corrected_low": None if ends is None else float(ends[0][k]),
                "corrected_high": None if ends is None else float(ends[1][k]),
            }  # fmt: skip
            example = classified.examples.get(pattern, {}) if layer is None else {}
            rows.append({**row, **where_stripes_fall(stripes, patterns, k), **example})
    return rows


def _parts(classified: ClassifiedMaps) -> Iterator[tuple[int | None, int | None, Bytes, Bytes]]:
    patterns, stripes = classified.patterns, classified.stripes
    n_texts, n_layers, n_heads = patterns.shape
    yield None, None, patterns.reshape(n_texts, -1), stripes.reshape(n_texts, -1)
    for i in range(n_layers):
        yield i, None, patterns[:, i], stripes[:, i]
        for j in range(n_heads):
            yield i, j, patterns[:, i, j : j + 1], stripes[:, i, j : j + 1]


def shares_by_text(patterns: Bytes) -> Floats:
    """Each text's shares of the classes (texts, 5)."""
    return np.stack([(patterns == k).mean(axis=1) for k in range(len(PATTERNS))], axis=1)


def where_stripes_fall(stripes: Bytes, patterns: Bytes, pattern: int) -> dict[str, float | None]:
    """Shares of a striped pattern's maps by what their strongest column is on."""
    kinds = stripes[(patterns == pattern) & (stripes != NOTHING)]
    if pattern not in STRIPED or not kinds.size:
        return dict.fromkeys(KINDS)
    return {name: float((kinds == kind).mean()) for name, kind in KINDS.items()}


def _corrected_ends(drawn: Floats, drawn_rates: Floats) -> Floats:
    """Both kinds of chance together: which texts, and which maps the mistakes were counted on."""
    ends: Floats = np.quantile(corrected(drawn, drawn_rates), [0.025, 0.975], axis=0)
    return ends
