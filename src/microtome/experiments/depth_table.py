"""Every depth against the baseline, over seeds: differences, intervals, verdicts in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Rows, points
from microtome.experiments.strategies import BASELINE
from microtome.experiments.verdicts import CANT_TELL

if TYPE_CHECKING:
    from microtome.statistics import SeedDifference

SELECTION = "selection"  # the stage of rows that tell what the best depth is worth
SAME, OTHER = "same rows, one run each", "other rows and seeds"
Row = Mapping[str, Any]
ALPHA = 0.05


@dataclass(frozen=True)
class Arm:
    """All runs of one edit: a score for each seed."""

    strategy: str
    n_layers: int
    edit: str
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return sum(self.scores) / len(self.scores)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Student's interval over seeds, from three of them on."""
        from microtome.statistics import over_seeds

        found = over_seeds(self.scores).interval
        return (None, None) if found is None else (found.low, found.high)


@dataclass(frozen=True)
class Against:
    """One depth against the baseline; ``p_holm`` is corrected for the number of depths tried."""

    arm: Arm
    baseline: Arm
    difference: SeedDifference
    p_holm: float | None

    @property
    def verdict(self) -> str:
        """better, worse, or can't tell."""
        found = self.difference
        if found.interval is None or found.interval.low <= 0 <= found.interval.high:
            return CANT_TELL
        word = "better" if found.value > 0 else "worse"
        sure = self.p_holm is not None and self.p_holm <= ALPHA
        return word if sure else f"{word} alone, {CANT_TELL} after correction"

    @property
    def words(self) -> str:
        """One sentence without its full stop."""
        found, arm = self.difference, self.arm
        what = f"{arm.n_layers} layers against {self.baseline.n_layers}"
        if arm.strategy != "first":
            what = f"{what} ({arm.edit})"
        start = f"{what}: {points(found.value)} points"
        if found.interval is None:
            return f"{start}, {found.remark}"
        ends = (points(end).removeprefix("+") for end in (found.interval.low, found.interval.high))
        seeds = str(found.n_edited)
        if found.n_base != found.n_edited:
            seeds = f"{found.n_edited} and {found.n_base}"
        text = f"{start}, interval {' to '.join(ends)} over {seeds} seeds: {self.verdict}"
        if self.verdict == CANT_TELL and found.detectable is not None:
            text += f"; {100 * found.detectable:.1f} would have been seen"
        return text


def primary_rows(rows: Rows) -> list[Row]:
    """The fine-tuned runs' rows of the task's primary metric."""
    return [r for r in rows if r.get("stage") == "finetuned" and r["metric"] == r["primary"]]


def arms_of(rows: Rows) -> list[Arm]:
    """The runs by edit: the baseline first, then by strategy and number of layers."""
    found: dict[tuple[str, int, str], dict[int, float]] = {}
    for row in primary_rows(rows):
        key = (row["strategy"], row["layers"], row["edit"])
        found.setdefault(key, {})[row["seed"]] = row["value"]
    order = sorted(found, key=lambda key: (key[0] != BASELINE, key[0], key[1], key[2]))
    return [Arm(*key, tuple(found[key][seed] for seed in sorted(found[key]))) for key in order]


def compared(arms: Sequence[Arm]) -> list[Against]:
    """Every other arm against the baseline."""
    from microtome.statistics import compare_seeds, holm

    baseline = next((arm for arm in arms if arm.strategy == BASELINE), None)
    others = [arm for arm in arms if arm.strategy != BASELINE]
    if baseline is None:
        return []
    found = [compare_seeds(arm.scores, baseline.scores) for arm in others]
    tested = [one.p for one in found if one.p is not None]
    corrected = iter(holm(tested).tolist() if tested else [])
    return [
        Against(arm, baseline, one, None if one.p is None else next(corrected))
        for arm, one in zip(others, found, strict=True)
    ]
