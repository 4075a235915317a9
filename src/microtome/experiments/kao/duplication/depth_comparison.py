"""Every depth against the baseline, over seeds: differences, intervals, verdicts in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kit.learning import has_learnt, no_better, not_learnt
from microtome.experiments.kit.wording import change
from microtome.papers.answer import CANT_TELL
from microtome.statistics import SeedDifference, compare_seeds, holm, over_seeds
from microtome.views import TidyRow, TidyRows

SCAN = "scan"  # the strategy of rows in which a block is repeated
SELECTION = "selection"  # the stage of rows that tell what the best depth is worth
SAME_ROWS, OTHER_ROWS = "same rows, one run each", "other rows and seeds"
ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class TrainedDepth:
    """All runs of one edit: a row for each seed."""

    strategy: str
    n_layers: int
    edit: str
    rows: tuple[TidyRow, ...]

    @property
    def scores(self) -> tuple[float, ...]:
        """A score for each seed."""
        return tuple(row["value"] for row in self.rows)

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return sum(self.scores) / len(self.scores)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Student's interval over seeds, from three of them on."""
        found = over_seeds(self.scores).interval
        return (None, None) if found is None else (found.low, found.high)


@dataclass(frozen=True)
class DepthComparison:
    """One depth against the baseline; ``p_holm`` is corrected for the number of depths tried."""

    depth: TrainedDepth
    baseline: TrainedDepth
    difference: SeedDifference
    p_holm: float | None

    @property
    def verdict(self) -> str:
        """better, worse, or can't tell."""
        interval = self.difference.interval
        if interval is None or interval.low <= 0 <= interval.high:
            return CANT_TELL
        word = "better" if self.difference.value > 0 else "worse"
        sure = self.p_holm is not None and self.p_holm <= ALPHA
        return word if sure else f"{word} alone, {CANT_TELL} after correction"

    @property
    def sentence(self) -> str:
        """One sentence without its full stop."""
        difference = self.difference
        what = f"{self.depth.n_layers} layers against {self.baseline.n_layers}"
        if self.depth.strategy != "first":
            what = f"{what} ({self.depth.edit})"
        if difference.interval is None:
            gain = change(difference.value)
            return f"{what}: {gain}{no_better(self.depth.rows)}, {difference.remark}"
        seeds = str(difference.n_edited)
        if difference.n_base != difference.n_edited:
            seeds = f"{difference.n_edited} and {difference.n_base}"
        gain = change(difference.value, difference.interval.low, difference.interval.high)
        remark = no_better(self.depth.rows)
        text = f"{what}: {gain} over {seeds} seeds{remark}, {self.verdict}"
        if self.verdict == CANT_TELL and difference.detectable is not None:
            text += f"; smallest detectable difference: {100 * difference.detectable:.1f} points"
        return text


def primary_rows(rows: TidyRows) -> list[TidyRow]:
    """The fine-tuned runs' rows of the task's primary metric."""
    return [r for r in rows if r.get("stage") == "finetuned" and r["metric"] == r["primary"]]


def trained_depths(rows: TidyRows) -> list[TrainedDepth]:
    """The runs by edit: the baseline first, then by strategy and number of layers."""
    by_edit: dict[tuple[str, int, str], dict[int, TidyRow]] = {}
    for row in primary_rows(rows):
        key = (row["strategy"], row["layers"], row["edit"])
        by_edit.setdefault(key, {})[row["seed"]] = row
    order = sorted(by_edit, key=lambda key: (key[0] != BASELINE, key[0], key[1], key[2]))
    return [
        TrainedDepth(*key, tuple(by_edit[key][seed] for seed in sorted(by_edit[key])))
        for key in order
    ]


def baseline_of(depths: Sequence[TrainedDepth]) -> TrainedDepth | None:
    """The runs of the unedited model."""
    return next((depth for depth in depths if depth.strategy == BASELINE), None)


def baseline_not_learnt(rows: TidyRows) -> str:
    """Why no depth is compared; empty where the baseline has learnt, or nothing was trained."""
    baseline = baseline_of(trained_depths(rows))
    return "" if baseline is None else not_learnt(baseline.rows, "The unedited model")


def compare_depths(depths: Sequence[TrainedDepth]) -> list[DepthComparison]:
    """Every other depth against the baseline.

    Nothing where the baseline has no run yet, or has learnt nothing that an edit could change.
    """
    baseline = baseline_of(depths)
    others = [depth for depth in depths if depth.strategy != BASELINE]
    if baseline is None or not has_learnt(baseline.rows):
        return []
    differences = [compare_seeds(depth.scores, baseline.scores) for depth in others]
    tested = [difference.p for difference in differences if difference.p is not None]
    corrected = iter(holm(tested).tolist() if tested else [])
    return [
        DepthComparison(
            depth, baseline, difference, None if difference.p is None else next(corrected)
        )
        for depth, difference in zip(others, differences, strict=True)
    ]
