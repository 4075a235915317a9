"""The trial of ensembling: stored logits in, the scores of all ensembles out. No model is run.

``baseline``: all seeds of the unmodified model. ``top-k``: the k best deeper runs among those
better than the baseline's mean. ``all better``: all of those. Then pairs of equal size from equally
many candidates, C deeper runs and C baseline runs: the best k of either, better or not; and the
deeper runs that are better, against as many of the baseline's best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kao.ensembling.plan import RUN
from microtome.experiments.kit.paired_comparison import Outcome, as_metric, compare
from microtome.experiments.kit.stored_predictions import (
    Indices,
    Judge,
    Logits,
    on_rows,
    score_on,
    stored_logits,
)
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import opened_rows
from microtome.runs import Context, Result
from microtome.statistics import Interval, accuracy_interval, bootstrap, halves
from microtome.statistics.selection import HALF_LEVEL
from microtome.tasks.scoring.constant import answer_columns

NONE, SAME_ROWS, OTHER_ROWS = "none", "same rows", "other rows"


def ensemble(request: Mapping[str, Any], context: Context) -> Result:
    """Sum the stored probabilities, rule by rule, and score."""
    judge = Judge.of(opened_rows(request, context), Path(context.where[MODEL]))
    arrays = Path(context.where[RUN]) / "arrays"
    logits = {
        Member(layers, seed, strategy): stored_logits(arrays / f"{hash}.npz")
        for hash, layers, seed, strategy in request["members"]
    }
    rows = ensemble_rows(Ensembles(judge, logits), top=request["top"], n_splits=request["halves"])
    return Result(rows=rows, summary={judge.metric: rows[0]["value"]})


class Member(NamedTuple):
    """One fine-tuned run: its layers, its seed, and how the layers were made."""

    layers: int
    seed: int
    strategy: str

    @property
    def text(self) -> str:
        """13:0 is seed 0 with 13 layers; another strategy than the papers' is named."""
        plain = f"{self.layers}:{self.seed}"
        return plain if self.strategy in (BASELINE, "first") else f"{plain} ({self.strategy})"


Members = tuple[Member, ...]
Choose = Callable[[Indices, np.random.Generator], tuple[Members, Members]]
"""The ensemble that is picked on some rows, and the one that it is compared with."""
Pick = tuple[NDArray[np.bool_], Members, Members]
"""One half of the rows, as a mask, and what was chosen on it."""


@dataclass
class Ensembles:
    """Stored runs, alone and together; an ensemble is computed once."""

    judge: Judge
    logits: dict[Member, Logits]
    _known: dict[Members, dict[str, Outcome]] = field(default_factory=dict)

    @cached_property
    def baseline(self) -> Members:
        """The runs of the unmodified model."""
        return tuple(sorted(member for member in self.logits if member.strategy == BASELINE))

    @cached_property
    def deeper(self) -> Members:
        """The runs with more layers."""
        most = max(member.layers for member in self.baseline)
        return tuple(sorted(member for member in self.logits if member.layers > most))

    def together(self, members: Members) -> Logits:
        """The logits of an ensemble."""
        return self.judge.ensemble([self.logits[member] for member in members])

    def outcomes(self, members: Members) -> dict[str, Outcome]:
        """Every metric of an ensemble, of one member too."""
        members = tuple(sorted(members))
        if members not in self._known:
            self._known[members] = self.judge.outcomes(self.together(members))
        return self._known[members]

    def score(self, member: Member, rows: Indices | None = None) -> float:
        """One run's score on the primary metric."""
        return score_on(self.outcomes((member,))[self.judge.metric], rows)

    def better(self, rows: Indices | None = None) -> list[Member]:
        """Deeper runs that beat the baseline's mean on these rows, best first."""
        base = float(np.mean([self.score(member, rows) for member in self.baseline]))
        scores = {member: self.score(member, rows) for member in self.deeper}
        above = (member for member in self.deeper if scores[member] > base)
        return sorted(above, key=lambda member: -scores[member])

    def best(self, candidates: Sequence[Member], k: int, rows: Indices | None = None) -> Members:
        """The k best of some candidates on these rows."""
        scores = {member: self.score(member, rows) for member in candidates}
        return tuple(sorted(sorted(candidates, key=lambda member: -scores[member])[:k]))


def ensemble_rows(stored: Ensembles, *, top: int, n_splits: int) -> list[dict[str, Any]]:
    """All rules: the papers' way on the same rows, then picked on other rows."""
    rows = _fixed(stored, BASELINE, stored.baseline, NONE, len(stored.baseline))
    if not stored.deeper:
        return rows
    n_deeper = len(stored.deeper)
    rules: dict[str, Choose] = {
        f"top-{top}": lambda part, rng: (tuple(sorted(stored.better(part)[:top])), ()),
        "all better": lambda part, rng: (tuple(sorted(stored.better(part))), ()),
    }
    papers = {f"top-{top}": stored.better()[:top], "all better": stored.better()}
    for rule, members in papers.items():
        if members:  # where no deeper run is better there is no such ensemble
            rows += _fixed(stored, rule, tuple(sorted(members)), SAME_ROWS, n_deeper)
    for rule, choose in rules.items():
        rows += _honest(stored, rule, _picks(stored, choose, n_splits), n_deeper)
    return rows + _of_equal_size(stored, top=top, n_splits=n_splits)


def _of_equal_size(stored: Ensembles, *, top: int, n_splits: int) -> list[dict[str, Any]]:
    """Deeper ensembles and baseline ones of their size, from as many candidates."""
    equal = min(len(stored.baseline), len(stored.deeper))
    size = min(top, equal)

    def drawn(rng: np.random.Generator) -> tuple[list[Member], list[Member]]:
        deeper, base = (
            [among[place] for place in rng.choice(len(among), equal, replace=False)]
            for among in (stored.deeper, stored.baseline)
        )
        return deeper, base

    def the_best(part: Indices, rng: np.random.Generator) -> tuple[Members, Members]:
        deeper, base = drawn(rng)
        return stored.best(deeper, size, part), stored.best(base, size, part)

    def the_better(part: Indices, rng: np.random.Generator) -> tuple[Members, Members]:
        deeper, base = drawn(rng)
        better = tuple(sorted(set(stored.better(part)) & set(deeper)))
        return better, stored.best(base, len(better), part)

    pairs = {
        (f"deeper {size} of {equal}", f"{BASELINE} {size} of {equal}"): the_best,
        (f"deeper better of {equal}", f"{BASELINE} as many of {equal}"): the_better,
    }
    rows = []
    for (deeper, base), choose in pairs.items():
        picks = _picks(stored, choose, n_splits)
        rows += _honest(stored, deeper, picks, equal)
        rows += _honest(stored, base, [(half, second, ()) for half, _, second in picks], equal)
    return rows


def _picks(stored: Ensembles, choose: Choose, n_splits: int) -> list[Pick]:
    """What a rule picks on one half of the rows, for many halves."""
    dataset, rng = stored.judge.dataset, np.random.default_rng(0)
    return [
        (half, *choose(np.flatnonzero(half), rng))
        for half in halves(dataset.n_scored, clusters=dataset.scored_clusters, n_splits=n_splits)
    ]


def _fixed(
    stored: Ensembles, rule: str, members: Members, selection: str, n_candidates: int
) -> list[dict[str, Any]]:
    """An ensemble scored on all rows, and its gain over the baseline ensemble."""
    clusters = stored.judge.dataset.scored_clusters
    base = stored.outcomes(stored.baseline)
    evaluation = stored.judge.evaluation(stored.together(members))
    rows = []
    for metric, outcome in stored.outcomes(members).items():
        difference = compare(outcome, base[metric], clusters).difference
        gain = (difference.value, difference.low, difference.high)
        rows.append(
            _row(
                rule, _names(members), metric, evaluation.scores[metric],
                (0.0, None, None) if rule == BASELINE else gain, selection, n_candidates,
            )
            | answer_columns(stored.judge.dataset, evaluation, metric)
        )  # fmt: skip
    return rows


def _honest(
    stored: Ensembles, rule: str, picks: Sequence[Pick], n_candidates: int
) -> list[dict[str, Any]]:
    """Picked on one half of the rows and scored on the other, many times.

    Values are means over the halves; ends are medians of 97.5 % intervals. Where nothing is picked,
    or nothing to compare with, the baseline's own ensemble is taken.
    """
    chosen: Counter[Members] = Counter()
    scored: dict[str, list[tuple[float, ...]]] = {name: [] for name in stored.judge.metrics}
    for half, *pair in picks:
        members, base = (ensemble or stored.baseline for ensemble in pair)
        chosen[members] += 1
        other = np.flatnonzero(~half)
        for metric, on_halves in scored.items():
            on_halves.append(_score_and_gain(stored, members, base, metric, other))
    commonest, count = chosen.most_common(1)[0]
    evaluation = stored.judge.evaluation(stored.together(commonest))
    named = f"{_names(commonest)} ({100 * count / len(picks):.0f} % of the picks)"
    rows = []
    for metric, on_halves in scored.items():
        table = np.array(on_halves)
        value, gain = table[:, 0].mean(), table[:, 3].mean()
        low, high, gain_low, gain_high = np.median(table[:, [1, 2, 4, 5]], axis=0).tolist()
        # Where the baseline was taken on most halves the medians are its own, and may miss the
        # mean.
        score = Interval(
            float(value), min(low, value), max(high, value), stored.judge.dataset.n_scored
        )
        ends_of_gain = (float(gain), min(gain_low, gain), max(gain_high, gain))
        rows.append(
            _row(rule, named, metric, score, ends_of_gain, OTHER_ROWS, n_candidates)
            | answer_columns(stored.judge.dataset, evaluation, metric)
        )
    return rows


def _score_and_gain(
    stored: Ensembles, members: Members, baseline: Members, metric: str, rows: Indices
) -> tuple[float, ...]:
    """The score with its interval, and the gain over ``baseline`` with its own, on some rows."""
    clusters = stored.judge.dataset.scored_clusters
    groups = None if clusters is None else clusters[rows]
    outcome = on_rows(stored.outcomes(members)[metric], rows)
    base = on_rows(stored.outcomes(baseline)[metric], rows)
    score = _interval(outcome, groups)
    gain = compare(outcome, base, groups, level=HALF_LEVEL).difference
    return score.value, score.low, score.high, gain.value, gain.low, gain.high


def _interval(outcome: Outcome, clusters: NDArray[np.int64] | None) -> Interval:
    if isinstance(outcome, np.ndarray) and np.isin(outcome, (0.0, 1.0)).all():
        return accuracy_interval(outcome, clusters=clusters, level=HALF_LEVEL)
    return bootstrap(as_metric(outcome), clusters=clusters, level=HALF_LEVEL)


def _row(
    rule: str,
    members: str,
    metric: str,
    score: Interval,
    gain: tuple[float, float | None, float | None],
    selection: str,
    n_candidates: int,
) -> dict[str, Any]:
    return {
        "rule": rule, "members": members, "metric": metric, "value": score.value,
        "low": score.low, "high": score.high, "n": score.n, "selection": selection,
        "candidates": n_candidates, "gain": gain[0], "gain_low": gain[1], "gain_high": gain[2],
    }  # fmt: skip


def _names(members: Members) -> str:
    return ", ".join(member.text for member in members)
