"""Claims about the distance that weights went, answered from rows, each with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from microtome.experiments.kit.seed_curves import size_name, sizes
from microtome.experiments.kit.wording import enough_seeds, verdict
from microtome.experiments.singh.weight_drift.report import (
    FEWEST_LAYERS,
    drift,
    rank_correlation,
    sizes_or_base,
    steepness,
)
from microtome.views import TidyRows

GROWS = 0.5  # "grows with depth": the least rank correlation of layer and distance


def claims(rows: TidyRows) -> dict[str, str]:
    """How far weights went, in the paper's terms."""
    curve = drift(rows, sizes_or_base(rows)[0])
    if len(curve) < FEWEST_LAYERS:
        return {"depth": "can't tell: the layers share their weights, or are fewer than three"}
    rho = rank_correlation(curve)
    holds = True if rho >= GROWS and steepness(curve) > 0 else False if rho <= 0 else None
    numbers = f"rank correlation of layer and distance {rho:+.2f}".replace("-", "−")
    answers = {"depth": f"{verdict(holds)}: {numbers}"}
    if rows[0].get("task") == "cola":
        answers["cola"] = f"can't tell from one task: {numbers}"
    if len(sizes(rows)) > 1:
        answers["data"] = _with_data(rows, sizes(rows))
    return answers


def _with_data(rows: TidyRows, fractions: Sequence[float]) -> str:
    """Whether the curve shifts up and gets steeper with every larger size, seed by seed."""
    by_seed = {row["seed"]: [r for r in rows if r["seed"] == row["seed"]] for row in rows}
    votes = [
        all(
            more > less
            for levels in _means_and_slopes(of_seed, fractions)
            for more, less in pairwise(levels)
        )
        for of_seed in by_seed.values()
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
    return f"{verdict(holds)}: so in {sum(votes)} of {len(votes)} seeds; {numbers} ({remark})"


def _means_and_slopes(
    rows: TidyRows, fractions: Sequence[float]
) -> tuple[list[float], list[float]]:
    """The mean distance and its slope over layers, at every size."""
    curves = [drift(rows, fraction) for fraction in fractions]
    means = [sum(curve.values()) / len(curve) for curve in curves]
    return means, [steepness(curve) for curve in curves]
