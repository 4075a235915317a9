"""Claims about the distance that weights went, answered from rows, each with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from microtome.experiments.kit.answer import above, all_of, enough_seeds, is_about, verdict
from microtome.experiments.kit.seed_curves import by_seed, size_name, sizes
from microtome.experiments.singh.weight_drift.report import (
    FEWEST_LAYERS,
    GROWS,
    drift,
    rank_correlation,
    sizes_or_base,
    steepness,
    trends,
)
from microtome.papers.answer import CANT_TELL, Answer, Unit
from microtome.statistics import over_seeds
from microtome.views import TidyRows

DECISIVE_LAYERS = 6  # a rank correlation of fewer is large by chance


def claims(rows: TidyRows) -> dict[str, Answer]:
    """How far weights went, in the paper's terms.

    It grows with depth where the rank correlation of layer and distance is 0.5 or more in every
    seed, and doesn't where it is 0 or less in every seed; three seeds and six layers at least
    decide. The interval is from the seed with the least to the one with the largest correlation.
    """
    curve = drift(rows, sizes_or_base(rows)[0])
    if len(curve) < FEWEST_LAYERS:
        words = "the layers share their weights, or are fewer than three"
        return {"depth": Answer(words, CANT_TELL)}
    rho = rank_correlation(curve)
    rhos = trends(rows)
    grows = min(rhos) >= GROWS and steepness(curve) > 0
    holds = True if grows else False if max(rhos) <= 0 else None
    if not enough_seeds(rows) or len(curve) < DECISIVE_LAYERS:
        holds = None
    words = f"rank correlation of layer and distance {rho:+.2f}".replace("-", "−")
    depth = Answer(words, verdict(holds), rho, min(rhos), max(rhos), "")
    answers = {"depth": depth}
    if is_about(rows, ("cola",)):
        answers["cola"] = Answer(f"from one task alone: {words}", CANT_TELL, *_numbers(depth))
    if len(sizes(rows)) > 1:
        answers["data"] = _with_data(rows, sizes(rows))
    return answers


def _numbers(found: Answer) -> tuple[float | None, float | None, float | None, Unit]:
    return found.value, found.low, found.high, found.unit


def _with_data(rows: TidyRows, fractions: Sequence[float]) -> Answer:
    """Whether the curve shifts up and gets steeper with every larger size, seed by seed.

    Holds where the distance grows with depth at the largest size in each of three seeds or more,
    and both the shift and the gain of steepness are sure over them, from each size to the next;
    doesn't hold where one of these is sure to be the other way round.
    """
    levels = [_means_and_slopes(of_seed, fractions) for of_seed in by_seed(rows).values()]
    votes = [
        slopes[0] > 0 and all(more > less for of in (means, slopes) for more, less in pairwise(of))
        for means, slopes in levels
    ]
    gains = [
        above(over_seeds([of_seed[which][i] - of_seed[which][i + 1] for of_seed in levels]), 0.0)
        for which in (0, 1)
        for i in range(len(fractions) - 1)
    ]
    holds = all_of(gains)
    if holds and not all(votes):
        holds = None
    numbers = "; ".join(
        f"{size_name(fraction)}: mean {mean:.3g}, steepness {slope:.3g}"
        for fraction, mean, slope in zip(
            fractions, *_means_and_slopes(rows, fractions), strict=True
        )
    )
    matched = any(row.get("match_steps") for row in rows)
    remark = "as many updates each" if matched else "more data also meant more updates"
    words = f"so in {sum(votes)} of {len(votes)} seeds; {numbers} ({remark})"
    return Answer(words, verdict(holds), sum(votes) / len(votes), unit="%")


def _means_and_slopes(
    rows: TidyRows, fractions: Sequence[float]
) -> tuple[list[float], list[float]]:
    """The mean distance and its slope over layers, at every size."""
    curves = [drift(rows, fraction) for fraction in fractions]
    means = [sum(curve.values()) / len(curve) for curve in curves]
    return means, [steepness(curve) for curve in curves]
