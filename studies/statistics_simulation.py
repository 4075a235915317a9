"""Do the intervals cover, do the tests hold their level, is a real gain found?

Draws data with a known truth over a written grid and counts. Writes its tables between the markers
of docs/statistics-checked.md and exits 1 where a bar is missed.

    python studies/statistics_simulation.py                 2,000 repeats, 10 to 15 minutes
    python studies/statistics_simulation.py --repeats 200   a look; the docs stay as they are
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import statistics_cells as one
import statistics_pairs as pairs
import statistics_tried as tried
from microtome import statistics as st
from statistics_cells import Cell

DOCS = Path(__file__).resolve().parent.parent / "docs" / "statistics-checked.md"
BEGIN, END = "<!-- simulation -->", "<!-- end of simulation -->"
REPEATS = 2000
COVERAGE_BAR = 0.93
HEADS = 144
FLIPS = 500  # sign flips inside the study; the default is 2000


@dataclass(frozen=True)
class Coverage:
    """How often a cell's intervals held the truth."""

    cell: Cell
    covered: float
    above: float  # share of intervals wholly above the truth
    below: float
    width: float

    @property
    def passed(self) -> bool:
        return not self.cell.in_grid or self.covered >= COVERAGE_BAR


@dataclass(frozen=True)
class Rate:
    """How often something happened (or a mean), and the bar for it, if any."""

    what: str
    setting: str
    value: float
    bar: str = ""

    @property
    def passed(self) -> bool:
        if not self.bar:
            return True
        sign, limit = self.bar.split()
        return self.value >= float(limit) if sign == "≥" else self.value <= float(limit)


def cover(cell: Cell, repeats: int) -> Coverage:
    """Draws the cell's data ``repeats`` times and counts."""
    drawn = [cell.draw(np.random.default_rng([7, repeat])) for repeat in range(repeats)]
    low, high = np.array([(interval.low, interval.high) for interval in drawn]).T
    truth = cell.true_value()
    above, below = float((low > truth + 1e-12).mean()), float((high < truth - 1e-12).mean())
    return Coverage(cell, 1 - above - below, above, below, float((high - low).mean()))


def cells() -> Iterator[Cell]:
    """The whole grid."""
    yield from one.wilson_cells()
    yield from one.table_cells()
    yield from one.correlation_cells()
    yield from one.mean_cells()
    yield from one.cluster_cells()
    yield from pairs.tango_cells()
    yield from pairs.difference_cells()
    yield from pairs.correlation_difference_cells()
    yield from pairs.cluster_difference_cells()
    yield from one.seed_cells()
    yield from tried.table_tried()
    yield from tried.other_tried()


def honest_rates(n: int, changed: float, alike: bool, repeats: int) -> Iterator[Rate]:
    """No variant gains anything: what do the honest and the papers' way say?"""
    honest, naive = [], []
    for repeat in range(repeats):
        data = pairs.sweep(np.random.default_rng([11, repeat]), n, HEADS, changed, alike=alike)
        honest.append(st.honest_gain(*data, seed=repeat).gain)
        naive.append(st.naive_gain(*data).gain)
    setting = f"null, n={n} heads={HEADS} changed={changed}{' alike' if alike else ''}"
    yield Rate("honest interval holds 0", setting, _share(0.0 in i for i in honest), "≥ 0.93")
    yield Rate("mean honest gain, points", setting, 100 * _mean(i.value for i in honest))
    yield Rate("papers' interval holds 0", setting, _share(0.0 in i for i in naive))
    yield Rate("papers' mean gain, points", setting, 100 * _mean(i.value for i in naive))


def found_rates(n: int, changed: float, gain: float, repeats: int) -> Iterator[Rate]:
    """One variant gains: is it found, and is its gain covered?"""
    gains = []
    for repeat in range(repeats):
        rng = np.random.default_rng([13, repeat])
        data = pairs.sweep(rng, n, HEADS, changed, gain=gain)
        gains.append(st.honest_gain(*data, seed=repeat).gain)
    setting = f"planted +{100 * gain:.0f} points, n={n} heads={HEADS} changed={changed}"
    bar = "≥ 0.9" if n >= 1500 and gain >= 0.04 else ""
    yield Rate("honest interval above 0", setting, _share(i.low > 0 for i in gains), bar)
    bar = "≥ 0.93" if bar else ""  # smaller gains aren't always picked, so the truth is a mixture
    yield Rate("honest interval holds the gain", setting, _share(gain in i for i in gains), bar)


def correction_rates(
    n: int, changed: float, repeats: int, *, gain: float = 0.0, alike: bool = False, loud: int = 0
) -> Iterator[Rate]:
    """Max-T in three scalings against Holm and Benjamini-Hochberg, without and with a real gain."""
    found: dict[str, list[bool]] = defaultdict(list)
    for repeat in range(repeats):
        rng = np.random.default_rng([17, repeat])
        data = pairs.sweep(rng, n, HEADS, changed, gain=gain, alike=alike, loud=loud)
        for name, p in corrected(*data, seed=repeat, all_scalings=gain > 0):
            # Under the null any finding counts, with a real gain only that one.
            found[name].append(bool(p[0] <= 0.05 if gain else (p <= 0.05).any()))
    kind = f"planted +{100 * gain:.0f} points" if gain else "null"
    more = " alike" * alike + f" and 0.1 in {loud} heads" * (loud > 0)
    setting = f"{kind}, n={n} heads={HEADS} changed={changed}{more}"
    for name, events in found.items():
        bar = "≤ 0.08" if not gain and name in ("max-T", "Holm") else ""
        yield Rate(f"{name} rejects", setting, _share(events), bar)


def corrected(
    variants: np.ndarray, base: np.ndarray, seed: int, all_scalings: bool
) -> Iterator[tuple[str, np.ndarray]]:
    """Every correction's p-values."""
    p = st.mcnemar((variants > base).sum(axis=1), (variants < base).sum(axis=1))
    yield "max-T", st.max_t(variants, base, repeats=FLIPS, seed=seed).p
    if all_scalings:
        for scaling in ("full", "none"):
            other = st.max_t(variants, base, repeats=FLIPS, seed=seed, scaling=scaling)
            yield f"max-T (scaling: {scaling})", other.p
    yield "Holm", st.holm(p)
    yield "Benjamini-Hochberg", st.benjamini_hochberg(p)
    yield "McNemar uncorrected", p


def level_rates(repeats: int) -> Iterator[Rate]:
    """The level of the paired tests where nothing differs."""
    for n, changed in ((408, 0.02), (408, 0.1), (1500, 0.06)):
        rng = np.random.default_rng(19)
        counts = rng.multinomial(n, (changed / 2, changed / 2, 1 - changed), size=repeats)
        exact, mid = (st.mcnemar(*counts.T[:2], mid_p=mid_p) for mid_p in (False, True))
        setting = f"null, n={n} changed={changed}"
        yield Rate("exact McNemar rejects", setting, float((exact <= 0.05).mean()), "≤ 0.05")
        yield Rate("mid-p McNemar rejects", setting, float((mid <= 0.05).mean()), "≤ 0.08")
        p = [_swap_p(np.random.default_rng([23, r]), n, changed) for r in range(repeats)]
        yield Rate(
            "swap permutation of Matthews rejects", setting, _share(np.array(p) <= 0.05), "≤ 0.08"
        )


def _swap_p(rng: np.random.Generator, n: int, changed: float) -> float:
    """Two models that differ in a share of rows, which of the two is which left to a coin."""
    gold, base, variant = pairs.answers(rng, n, changed)
    coin = rng.random(n) < 0.5
    ours, theirs = np.where(coin, base, variant), np.where(coin, variant, base)
    return st.swap_permutation(st.matthews(ours, gold), st.matthews(theirs, gold), repeats=500)


def rates(repeats: int) -> Iterator[Rate]:
    """Everything that isn't a coverage."""
    yield from level_rates(repeats)
    for n, changed, alike in ((408, 0.02, False), (408, 0.06, True), (1500, 0.06, False)):
        yield from correction_rates(n, changed, repeats, alike=alike)
        yield from honest_rates(n, changed, alike, repeats)
    yield from correction_rates(408, 0.02, repeats, loud=24)
    yield from correction_rates(408, 0.02, repeats, gain=0.04)
    yield from correction_rates(408, 0.02, repeats, gain=0.04, loud=24)
    for n, changed, gain in ((408, 0.02, 0.04), (1500, 0.02, 0.04), (1500, 0.06, 0.04)):
        yield from found_rates(n, changed, gain, repeats)


def _share(events: Iterator[bool] | Sequence[bool] | np.ndarray) -> float:
    return float(np.mean(list(events)))


def _mean(numbers: Iterator[float]) -> float:
    return float(np.mean(list(numbers)))


def tables(coverages: list[Coverage], others: list[Rate], repeats: int) -> str:
    """The tables as Markdown."""
    lines = [
        f"{repeats:,} repeats.",
        "",
        "| statistic | setting | coverage | too high | too low | mean width |",
        "|---|---|---|---|---|---|",
    ]
    for line in coverages:
        mark = "" if line.cell.in_grid else " (outside the grid)"
        lines.append(
            f"| {line.cell.statistic} | {line.cell.setting}{mark} | {line.covered:.3f} |"
            f" {line.above:.3f} | {line.below:.3f} | {line.width:.4f} |"
        )
    lines += ["", "| what | setting | measured | bar |", "|---|---|---|---|"]
    lines += [f"| {r.what} | {r.setting} | {r.value:.3f} | {r.bar} |" for r in others]
    return "\n".join(lines)


def write(text: str) -> None:
    """Puts the tables between the markers of the docs."""
    before, _, rest = DOCS.read_text().partition(BEGIN)
    DOCS.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    repeats = parser.parse_args().repeats
    coverages = []
    for cell in cells():
        coverages.append(cover(cell, repeats))
        print(f"{coverages[-1].covered:.3f}  {cell.statistic}  {cell.setting}", file=sys.stderr)
    others = []
    for rate in rates(repeats):
        others.append(rate)
        print(f"{rate.value:.3f}  {rate.what}  {rate.setting}", file=sys.stderr)
    text = tables(coverages, others, repeats)
    if repeats == REPEATS:
        write(text)
    print(text)
    failed = [line for line in (*coverages, *others) if not line.passed]
    for line in failed:
        print(f"bar missed: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
