"""The trials of duplication: a last state decoded, blocks repeated, and the best depth picked.

The papers show the deeper models "picked based on their performance": the best of many single runs
against a mean, on the same rows. Here the rows are halved at random many times; for each seed, the
depth with the best mean over the *other* seeds on one half is compared with the baseline, both
trained with *this* seed, on the other half. One gain per seed comes out, and Student's interval
over the seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import parse
from microtome.experiments.kao.duplication.depth_comparison import (
    OTHER_ROWS,
    SAME_ROWS,
    SCAN,
    SELECTION,
)
from microtome.experiments.kit.controlled_decoding import decode_with_control, random_blocks
from microtome.experiments.kit.paired_comparison import Outcome, as_metric
from microtome.experiments.kit.stored_predictions import Judge, score_on, stored_logits
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import opened_model, opened_rows
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models.heads import LABELLED
from microtome.observe import decode as decode_depths
from microtome.observe import predict, readout_of, vocabulary_of
from microtome.observe.evaluation import (
    EMBEDDER,
    check_fit,
    encode_for,
    head_name,
    scored,
    text_clusters,
)
from microtome.runs import Context, Result
from microtome.statistics import halves, over_seeds
from microtome.tasks import Dataset, Encoded
from microtome.tasks.encoding.texts import EMBEDDED_KINDS
from microtome.tasks.scoring.constant import answer_columns

TOKEN_ACCURACY = "token_accuracy"  # noqa: S105  # a metric's name
N_HALVES = 100
Scores = NDArray[np.float64]
BySeed = Mapping[int, Outcome]


def decode(request: Mapping[str, Any], context: Context) -> Result:
    """Edit, then decode the last state through the unedited model's head, with its control."""
    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    edited, control = model, random_blocks(model)
    if request["edit"]:
        edited, control = (parse(request["edit"])(each) for each in (edited, control))
    depth = adapt(edited).shape.n_layers
    decoding, controlled = decode_with_control(
        edited, tokenizer, encoded, readout_of(adapt(model), request["readout"]),
        control=control, depths=[depth],
    )  # fmt: skip
    share = decoding.interval(depth, clusters=text_clusters(dataset, encoded))
    row = {
        "layers": depth, "strategy": request["strategy"], "edit": request["edit"], "seed": None,
        "stage": "decoded", "metric": TOKEN_ACCURACY, "value": share.value, "low": share.low,
        "high": share.high, "n": decoding.n_tokens, "control": float(controlled.accuracy()[0]),
        "readout": decoding.readout,
    }  # fmt: skip
    return Result(rows=[row], summary={TOKEN_ACCURACY: share.value})


def scan_blocks(request: Mapping[str, Any], context: Context) -> Result:
    """Every block of layers from one layer on, once more after itself, without training.

    A model with a task head is scored on the task; any other is decoded, and the number is the
    share of tokens that its last state gives back.
    """
    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    compares = head_name(model) == EMBEDDER and dataset.task.kind in EMBEDDED_KINDS
    has_head = adapt(model).head in LABELLED or compares
    if has_head:
        check_fit(model, dataset)
    encoded = encode_for(model, tokenizer, dataset)
    rows = []
    for last, edit in _blocks(request["first"], adapt(model)):
        edited = parse(edit)(model) if edit else model
        score = (
            _task_score(edited, model, dataset, encoded)
            if has_head
            else _decoded_score(edited, model, tokenizer, dataset, encoded, request["readout"])
        )
        rows.append(
            {
                "layers": adapt(edited).shape.n_layers, "strategy": SCAN, "edit": edit,
                "seed": None, "first_layer": request["first"] if edit else None,
                "last_layer": last, **score,
            }
        )  # fmt: skip
    return Result(rows=rows, summary={rows[-1]["metric"]: rows[-1]["value"]})


def _blocks(first: int, family: Family) -> Iterator[tuple[int | None, str]]:
    """(last layer, edit) of every block that begins at ``first``."""
    if first == family.depth_rules.first_copied:
        yield None, ""
    for last in range(first, family.shape.n_layers):
        yield last, str(parse(f"repeat({first}-{last})"))


def _task_score(
    edited: PreTrainedModel, model: PreTrainedModel, dataset: Dataset, encoded: Encoded
) -> dict[str, Any]:
    """The task's metric, without training."""
    metric = dataset.task.primary
    assert metric is not None
    evaluation = scored(model, dataset, encoded, predict(edited, encoded))
    score = evaluation.scores[metric]
    return {
        "stage": "zero-shot", "metric": metric, "value": score.value, "low": score.low,
        "high": score.high, "n": score.n, **answer_columns(dataset, evaluation, metric),
    }  # fmt: skip


def _decoded_score(
    edited: PreTrainedModel,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    dataset: Dataset,
    encoded: Encoded,
    readout: str,
) -> dict[str, Any]:
    """The share of tokens that the last state gives back through the unedited model's head."""
    depth = adapt(edited).shape.n_layers
    decoding = decode_depths(
        edited, encoded, vocabulary_of(tokenizer), readout=readout_of(adapt(model), readout),
        depths=[depth],
    )  # fmt: skip
    share = decoding.interval(depth, clusters=text_clusters(dataset, encoded))
    return {
        "stage": "decoded", "metric": TOKEN_ACCURACY, "value": share.value, "low": share.low,
        "high": share.high, "n": decoding.n_tokens, "readout": decoding.readout,
    }  # fmt: skip


@dataclass(frozen=True)
class Picked:
    """A gain over the baseline, on which rows it was picked, and the depth picked most often."""

    selection: str
    n_layers: int
    share: float  # of the picks
    value: float
    low: float | None
    high: float | None
    n: int

    def row(self, strategy: str, metric: str) -> dict[str, Any]:
        """As a row of the experiment; ``value`` is a gain."""
        return {
            "layers": self.n_layers, "strategy": strategy, "edit": None, "seed": None,
            "stage": SELECTION, "selection": self.selection, "metric": metric, "value": self.value,
            "low": self.low, "high": self.high, "n": self.n, "share": self.share,
        }  # fmt: skip


def pick_depth(request: Mapping[str, Any], context: Context) -> Result:
    """What the best depth is worth, from the stored logits of all runs."""
    dataset = opened_rows(request, context)
    judge = Judge.of(dataset, Path(context.where[MODEL]))
    by_depth: dict[int, dict[int, Outcome]] = {}
    for n_layers, seed, trial in request["arms"]:
        arrays = context.needs[trial].arrays
        assert arrays is not None
        outcome = judge.outcomes(stored_logits(arrays))[judge.metric]
        by_depth.setdefault(n_layers, {})[seed] = outcome
    baseline = by_depth.pop(request["n_baseline"])
    picks = [picked_as_in_the_papers(by_depth, baseline)]
    if honest := picked_on_other_rows(by_depth, baseline, clusters=dataset.scored_clusters):
        picks.append(honest)
    return Result(rows=[pick.row(request["strategy"], judge.metric) for pick in picks])


def picked_as_in_the_papers(by_depth: Mapping[int, BySeed], baseline: BySeed) -> Picked:
    """The best of one run per depth against the baseline's mean, all on the same rows."""
    base = float(np.mean([score_on(outcome) for outcome in baseline.values()]))
    firsts = {n_layers: score_on(runs[min(runs)]) for n_layers, runs in by_depth.items()}
    best = max(firsts, key=lambda n_layers: firsts[n_layers])
    return Picked(SAME_ROWS, best, 1.0, firsts[best] - base, None, None, len(firsts))


def picked_on_other_rows(
    by_depth: Mapping[int, BySeed],
    baseline: BySeed,
    *,
    clusters: NDArray[np.int64] | None = None,
    n_splits: int = N_HALVES,
    seed: int = 0,
) -> Picked | None:
    """The gain of the depth that other rows and other seeds pick; None from a single seed."""
    seeds = sorted(set.intersection(*(set(runs) for runs in (baseline, *by_depth.values()))))
    if len(seeds) < 2:
        return None
    n_rows = as_metric(next(iter(baseline.values()))).n_rows
    here = halves(n_rows, clusters=clusters, n_splits=n_splits, seed=seed)
    depths = sorted(by_depth)
    # (depths, seeds, halves): scores where a depth is picked, and gains where it is scored.
    picked_on = np.stack([[_scores(by_depth[k][s], here) for s in seeds] for k in depths])
    base = np.stack([_scores(baseline[s], ~here) for s in seeds])
    gains = np.stack([[_scores(by_depth[k][s], ~here) for s in seeds] for k in depths]) - base
    picks: Counter[int] = Counter()
    by_seed = []
    for place in range(len(seeds)):
        other_seeds = np.delete(picked_on, place, axis=1).mean(axis=1)  # (depths, halves)
        best = other_seeds.argmax(axis=0)
        picks.update(depths[index] for index in best.tolist())
        by_seed.append(float(gains[best, place, np.arange(n_splits)].mean()))
    over = over_seeds(by_seed)
    low, high = (None, None) if over.interval is None else (over.interval.low, over.interval.high)
    n_layers, count = picks.most_common(1)[0]
    return Picked(OTHER_ROWS, n_layers, count / picks.total(), over.value, low, high, len(seeds))


def _scores(outcome: Outcome, rows: NDArray[np.bool_]) -> Scores:
    """The score on each of many sets of rows (R, n) → (R,)."""
    return as_metric(outcome)(rows.astype(np.float64))
