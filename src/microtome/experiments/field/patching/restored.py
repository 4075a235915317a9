"""What patches restored, as rows: by group over all pairs, and token by token of a few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from microtome.experiments.field.patching.pair_file import Input
from microtome.experiments.field.patching.pairs import Pair
from microtome.experiments.field.patching.plan import COLUMNS, GROUPS
from microtome.experiments.field.patching.positions import group_of, group_patches, token_patches
from microtome.experiments.field.patching.questions import FloatArray
from microtome.experiments.field.patching.states import Patch, Patched
from microtome.statistics import SumMetric, bootstrap, value_of
from microtome.statistics.weighted import ratio

LEAST_PAIRS = 5  # for an interval: fewer, drawn again, say little of other pairs
Row = dict[str, Any]
NOTHING: Mapping[str, Any] = {**dict.fromkeys(COLUMNS), "unit": "pairs"}  # what n counts
Names = Callable[[int], tuple[str, str | None]]
"""What the answer of a pair is called, and the one it is held against."""


@dataclass(frozen=True, eq=False)
class Restored:
    """Pairs, and the values of their answers with each of ``patches`` (depths, patches)."""

    pairs: Sequence[Pair]
    patches: Sequence[Patch]
    found: Patched

    @property
    def gaps(self) -> FloatArray:
        """The difference of the clean and the corrupted answer (pairs,)."""
        return self.found.clean - self.found.corrupted

    def by_group(self) -> list[Row]:
        """A row per depth and group of positions.

        The share of a group is a ratio of sums over the pairs that have it: what patching one of
        its positions restores, on average over them, and the difference. So a pair counts by how
        much its answers differ, and one where they hardly do can't make a share explode.
        """
        place = {patch: column for column, patch in enumerate(self.patches)}
        moved: dict[str, list[FloatArray]] = {}
        numbers: dict[str, list[int]] = {}
        for number, pair in enumerate(self.pairs):
            for group, patches in group_patches(number, pair).items():
                columns = [place[patch] for patch in patches]
                values = self.found.values[:, columns].mean(1)
                moved.setdefault(group, []).append(values - self.found.corrupted[number])
                numbers.setdefault(group, []).append(number)
        return [
            row
            for group in GROUPS
            if group in moved
            for row in self._rows(group, np.array(moved[group]), np.array(numbers[group]))
        ]

    def _rows(self, group: str, moved: FloatArray, numbers: np.ndarray[Any, Any]) -> list[Row]:
        """The rows of one group, from what moved in every pair (pairs, depths)."""
        gaps = self.gaps[numbers]
        units = np.array([self.pairs[number].texts.row for number in numbers])
        rows = []
        for depth, column in enumerate(moved.T):
            metric = restored_share(column, gaps)
            low = high = None
            if len(np.unique(units)) >= LEAST_PAIRS:
                interval = bootstrap(metric, clusters=units)
                low, high = interval.low, interval.high
            rows.append(
                {
                    **NOTHING, "stage": "group", "depth": depth, "group": group,
                    "share": value_of(metric), "low": low, "high": high, "n": len(gaps),
                }
            )  # fmt: skip
        return rows

    def by_token(self, n_pairs: int) -> list[Row]:
        """A row per depth and position of the first pairs."""
        shares = self.found.shares(self.patches)
        place = {patch: column for column, patch in enumerate(self.patches)}
        rows = []
        for number, pair in enumerate(self.pairs[:n_pairs]):
            for patch in token_patches(number, pair):
                (position,) = patch.positions
                one = {
                    **NOTHING, "stage": "token", "pair": number, "position": position, "n": 1,
                    "token": pair.clean.tokens[position],
                    "corrupted_token": pair.corrupted.tokens[position],
                    "group": group_of(pair, position),
                }  # fmt: skip
                column = shares[:, place[patch]].tolist()
                rows += [
                    {**one, "depth": depth, "share": share} for depth, share in enumerate(column)
                ]
        return rows

    def by_pair(self, names: Names) -> list[Row]:
        """A row per pair: its texts, what is asked, and the answers of both runs."""
        rows = []
        for number, pair in enumerate(self.pairs):
            clean, clean_pair = _both(pair.texts.clean)
            corrupted, corrupted_pair = _both(pair.texts.corrupted)
            answer, other = names(number)
            rows.append(
                {
                    **NOTHING, "stage": "pair", "pair": number, "clean": clean,
                    "corrupted": corrupted, "clean_pair": clean_pair,
                    "corrupted_pair": corrupted_pair, "answer": answer, "other": other,
                    "clean_value": float(self.found.clean[number]),
                    "corrupted_value": float(self.found.corrupted[number]),
                }
            )  # fmt: skip
        return rows


def restored_share(moved: FloatArray, gaps: FloatArray) -> SumMetric:
    """Σ what was restored / Σ what there is to restore, every pair in the direction of its gap."""
    sign = np.sign(gaps)
    none = np.empty((0, 2))  # no share is the worst or the best
    return SumMetric(np.stack([sign * moved, sign * gaps], 1), _ratio, none, none)


def _ratio(sums: FloatArray) -> FloatArray:
    return ratio(sums[:, 0], sums[:, 1])


def left_out_rows(left_out: Counter[str]) -> list[Row]:
    """A row per reason why pairs, or rows to make them of, were left out."""
    return [
        {**NOTHING, "stage": "left out", "reason": reason, "n": n}
        for reason, n in left_out.most_common()
    ]


def patches_to_measure(pairs: Iterable[Pair], n_examples: int) -> list[Patch]:
    """Every patch once: of all groups, and of every token of the first pairs."""
    patches: dict[Patch, None] = {}
    for number, pair in enumerate(pairs):
        for some in group_patches(number, pair).values():
            patches |= dict.fromkeys(some)
        if number < n_examples:
            patches |= dict.fromkeys(token_patches(number, pair))
    return list(patches)


def _both(given: Input) -> tuple[str, str | None]:
    return (given, None) if isinstance(given, str) else given
