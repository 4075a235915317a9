"""Attention on frame links in every head, and what the heads that follow them are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import Unshare
from microtome.errors import DataError
from microtome.experiments.kit.head_tables import head_rows, head_scores, name_of
from microtome.experiments.kit.paired_comparison import Outcome, VariantSweep
from microtome.experiments.kit.stored_predictions import score_on
from microtome.experiments.kit.trial_inputs import opened_model, opened_rows
from microtome.experiments.kovaleva.frame_relations.examples import shown_text, with_examples
from microtome.experiments.kovaleva.frame_relations.exemplars import (
    Clustered,
    encode_exemplars,
    link_of,
    read_exemplars,
    selected,
)
from microtome.experiments.kovaleva.frame_relations.plan import FRAMES
from microtome.experiments.kovaleva.frame_relations.report import (
    BACK,
    FORWARD,
    MOST_DISABLED,
    linked_heads,
)
from microtome.families import adapt
from microtome.observe import stream, sweep, vocabulary_of
from microtome.observe.evaluation import check_fit, encode_for, outcome, scored
from microtome.observe.linguistic.link_attention import LinkAttention, RandomPairs, placements_of
from microtome.observe.linguistic.random_draws import Draws
from microtome.observe.reductions import SampledMaps
from microtome.observe.vocabulary import Vocabulary
from microtome.runs import Context, Result
from microtome.tasks.annotation.passages import AnnotatedTexts
from microtome.tasks.dataset import Dataset
from microtome.tasks.scoring.constant import answer_columns

COSTS = (
    "metric", "value", "disabled_value", "delta", "delta_low", "delta_high", "delta_p_holm",
    "one_answer", "constant_value",
)  # fmt: skip


def score_links(request: Mapping[str, Any], context: Context) -> Result:
    """Links in every head in both directions, and what linked heads are worth to the task."""
    model, tokenizer = opened_model(context)
    path = context.where.get(FRAMES)
    context.report("read the exemplars")
    exemplars, dropped = selected(list(read_exemplars(None if path is None else Path(path))))
    family = adapt(model)
    most = int(min(family.n_positions, tokenizer.model_max_length))
    texts = encode_exemplars(exemplars, tokenizer, max_length=most, segments=family.uses_segments)
    context.report(f"attention over {len(texts)} exemplars")
    found = frame_rows(model, exemplars, texts, vocabulary_of(tokenizer))
    rows = [row | dict.fromkeys(COSTS) for row in found]
    if request["disable"]:
        heads = linked_heads(rows)[:MOST_DISABLED]
        costs = costs_of_disabling(model, tokenizer, opened_rows(request, context), heads)
        for row in heads:
            row |= costs[name_of(row)]
    summary = {"exemplars": len(exemplars), "left out": sum(dropped.values())}
    return Result(rows=rows, summary=summary)


def costs_of_disabling(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    dataset: Dataset,
    heads: Sequence[Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """The task's metric with each head disabled, against the model as it is, on the same rows.

    ``value``, ``one_answer`` and ``constant_value`` are of the model as it is.
    """
    if not heads:
        return {}
    check_fit(model, dataset)
    if adapt(model).stack.is_shared:  # one depth's head can't be disabled while layers share
        model = Unshare()(model)
    encoded = encode_for(model, tokenizer, dataset)
    metric = dataset.task.primary
    assert metric is not None
    names = [name_of(row) for row in heads]
    swept = sweep(model, encoded, names)

    def outcome_of(logits: NDArray[Any]) -> Outcome:
        return outcome(dataset, scored(model, dataset, encoded, logits), metric)

    variants = {name: outcome_of(logits) for name, logits in zip(names, swept.logits, strict=True)}
    whole = scored(model, dataset, encoded, swept.baseline)
    base = outcome(dataset, whole, metric)
    about = {"value": score_on(base), **answer_columns(dataset, whole, metric, encoded)}
    sweep_of_heads = VariantSweep(variants, base, dataset.scored_clusters)
    return {
        row["target"]: {
            "metric": metric, "disabled_value": row["value"], "delta": row["delta"],
            "delta_low": row["low"], "delta_high": row["high"], "delta_p_holm": row["p_holm"],
            **about,
        }
        for row in sweep_of_heads.rows(metric)
    }  # fmt: skip


def frame_rows(
    model: PreTrainedModel,
    exemplars: Sequence[Clustered],
    texts: AnnotatedTexts,
    vocabulary: Vocabulary,
) -> list[dict[str, Any]]:
    """A row per direction and head; two heads' have their map of an exemplar."""
    links = {text: link_of(exemplar, texts, text) for text, (exemplar, _) in enumerate(exemplars)}
    links = {text: link for text, link in links.items() if link}
    if not links:
        raise DataError("no predicate or element has a word piece in any sentence")
    turned = {text: tuple((k, q) for q, k in link) for text, link in links.items()}
    reductions = {
        direction: LinkAttention(
            {text: [placements_of(link, texts.sides_of(text))] for text, link in directed.items()},
            Draws(texts.clusters),
        )
        for direction, directed in ((FORWARD, links), (BACK, turned))
    }
    pairs = RandomPairs({text: len(link) for text, link in links.items()}, ~texts.special)
    sampled = SampledMaps([shown_text(links, texts)])
    stream(model, texts, [*reductions.values(), pairs, sampled])
    rows = [
        {"direction": direction, **row}
        for direction, reduction in reductions.items()
        for row in _head_rows(reduction, pairs.values, texts)
    ]
    return with_examples(rows, sampled, links, exemplars, texts, vocabulary)


def _head_rows(
    reduction: LinkAttention, random_pairs: NDArray[np.float32], texts: AnnotatedTexts
) -> list[dict[str, Any]]:
    # The count control is of the same exemplars as the score.
    by_count = np.where(np.isnan(reduction.values), np.nan, random_pairs)
    score, control, stripe, count, excess = (
        head_scores(values, clusters=texts.clusters)
        for values in (
            reduction.values, reduction.control, reduction.stripe, by_count,
            reduction.values - reduction.control,
        )
    )  # fmt: skip
    return head_rows(
        {
            "score": score.mean, "low": score.low, "high": score.high, "n": score.n,
            "control": control.mean, "stripe_control": stripe.mean, "count_control": count.mean,
            "excess": excess.mean, "excess_low": excess.low, "excess_high": excess.high,
            "p": reduction.test.p, "p_max": reduction.test.p_max, "n_alone": reduction.n_alone,
        }
    )  # fmt: skip
