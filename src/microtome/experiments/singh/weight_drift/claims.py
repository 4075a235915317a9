"""Claims about the distance that weights went, answered from rows, each with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from microtome.experiments.kit.answer import enough_seeds, is_about, verdict
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
from microtome.views import TidyRows


def claims(rows: TidyRows) -> dict[str, Answer]:
    """How far weights went, in the paper's terms.

    It grows with depth where the rank correlation of layer and distance is 0.5 or more in every
    seed, and doesn't where it is 0 or less in every seed; the interval is from the seed with the
    least to the one with the largest correlation.
    """
    curve = drift(rows, sizes_or_base(rows)[0])
    if len(curve) < FEWEST_LAYERS:
        words = "the layers share their weights, or are fewer than three"
        return {"depth": Answer(words, CANT_TELL)}
    rho = rank_correlation(curve)
    rhos = trends(rows)
    grows = min(rhos) >= GROWS and steepness(curve) > 0
    holds = True if grows else False if max(rhos) <= 0 else None
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

    Holds where it does in all of three seeds or more, doesn't hold where it does in none.
    """
    votes = [
        all(
            more > less
            for levels in _means_and_slopes(of_seed, fractions)
            for more, less in pairwise(levels)
        )
        for of_seed in by_seed(rows).values()
    ]
    holds = None if any(votes) != all(votes) or not enough_seeds(rows) else all(votes)
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
