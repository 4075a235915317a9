"""The class of every head's map of every example, and the shares of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.experiments.kit.trial_inputs import opened_model, opened_rows
from microtome.experiments.kovaleva.attention_patterns.plan import CLASSIFIER
from microtome.experiments.kovaleva.attention_patterns.share_rows import ClassifiedMaps, share_rows
from microtome.observe import stream, vocabulary_of
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.observe.patterns import PatternCounts, load_classifier, second_texts, token_kinds
from microtome.runs import Context, Result


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
    counts = PatternCounts(
        classifier, second=second, kinds=token_kinds(texts, vocabulary_of(tokenizer))
    )
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
    )
