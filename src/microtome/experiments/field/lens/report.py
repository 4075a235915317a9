"""Rows of the lens as curves, a table, a sentence read in two ways, and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microtome.experiments.kit.wording import counted
from microtome.values import format_ranges
from microtome.views import Curve, Sentences, Series, Table, TidyRow, TidyRows, View, series_of

AGREES = 0.9  # of the tokens have the last depth's top token: the depth agrees with it
NAMES = {"direct": "read directly", "lens": "through the lens", "control": "control: random blocks"}


def views(rows: TidyRows) -> tuple[View, ...]:
    """KL and agreement by depth, one text in both ways, and the figures."""
    kl = Curve(
        "How far each depth's answer is from the last one's", "depth", "KL, nats",
        tuple(_line(rows, name, "kl", ("low", "high")) for name in NAMES), percent=False,
    )  # fmt: skip
    agreeing = Curve(
        "Tokens whose top token is the last depth's", "depth", "share of tokens",
        tuple(
            _line(rows, name, "agreement", ("agreement_low", "agreement_high")) for name in NAMES
        ),
    )  # fmt: skip
    return (
        kl,
        agreeing,
        _sentences(rows),
        _table(rows, "KL (nats) and agreement with the last depth", "kl", "agreement"),
        _table(rows, "Tokens that come back at every depth", "accuracy"),
    )


def _line(rows: TidyRows, name: str, column: str, ends: tuple[str, str]) -> Series:
    return series_of(
        NAMES[name], of_reading(rows, name), "depth", column, ends=ends,
        is_control=name == "control",
    )  # fmt: skip


def _table(rows: TidyRows, title: str, *measures: str) -> Table:
    """A line per depth: each measure by reading."""
    readings = [of_reading(rows, name) for name in NAMES]
    columns = ("depth", *(f"{name} {measure}" for measure in measures for name in NAMES))
    lines = tuple(
        (depth[0]["depth"], *(row[measure] for measure in measures for row in depth))
        for depth in zip(*readings, strict=True)
    )
    shares = tuple(name for name in columns if name.endswith(("agreement", "accuracy")))
    return Table(title, columns, lines, percent=shares)


def _sentences(rows: TidyRows) -> Sentences:
    both = zip(of_reading(rows, "direct"), of_reading(rows, "lens"), strict=True)
    return Sentences(
        title="One text, read at every depth directly and through the lens",
        tokens=tuple(rows[0]["input"].split(" ")),
        decoded=tuple(
            (f"depth {row['depth']}, {name}", tuple(row["decoded"].split(" ")))
            for pair in both
            for name, row in zip(("direct", "lens"), pair, strict=True)
        ),
    )


def of_reading(rows: TidyRows, name: str) -> list[TidyRow]:
    """The rows of one reading, by depth."""
    return sorted((row for row in rows if row["reading"] == name), key=lambda row: row["depth"])


def inner_rows(rows: TidyRows, name: str) -> list[TidyRow]:
    """Those of the depths between the embeddings and the last state."""
    return [row for row in of_reading(rows, name) if 0 < row["depth"] < row["layers"]]


def agrees_from(curve: Sequence[TidyRow]) -> int | None:
    """The depth from which on nine in ten tokens have the last depth's top token; None: never."""
    below = [row["depth"] for row in curve if row["agreement"] < AGREES]
    first = 1 + max(below, default=-1)
    return None if first > curve[-1]["depth"] else first


def finding(rows: TidyRows) -> str:
    """Which depths know more than an affine map finds by itself; KL half-way; what agrees."""
    return f"{against_control(rows)}. {half_way(rows)}. {agreement(rows)}."


def closer_rows(rows: TidyRows) -> list[TidyRow]:
    """Inner depths that are surely closer to the last one through the lens than the control is."""
    return [row for row in inner_rows(rows, "lens") if row["below_control_low"] > 0]


def against_control(rows: TidyRows) -> str:
    """Which inner depths the lens tells something about: those where the control is worse."""
    inner, closer = inner_rows(rows, "lens"), closer_rows(rows)
    if not inner:
        return "The model has no inner depth, so nothing is claimed about its layers"
    than = "what the last one says than a map fitted to random blocks finds"
    if not closer:
        return f"No inner depth holds more of {than}: nothing is claimed about the layers"
    if len(closer) == len(inner):
        n_depths = f"All {len(inner)} inner depths hold" if len(inner) > 1 else "Depth 1 holds"
        return f"{n_depths} more of {than}"
    depths = format_ranges(row["depth"] for row in closer)
    return (
        f"Of {len(inner)} inner depths, {depths} {'hold' if len(closer) > 1 else 'holds'} more of"
        f" {than}; of the others nothing is claimed"
    )


def half_row(rows: TidyRows, name: str) -> TidyRow:
    """A reading at the middle depth, which is chosen before anything is measured."""
    half: int = rows[0]["layers"] // 2
    return next(row for row in of_reading(rows, name) if row["depth"] == half)


def half_way(rows: TidyRows) -> str:
    """KL from the last depth at the middle one, by reading."""
    direct, lens, control = (half_row(rows, name) for name in NAMES)
    return (
        f"Half-way, at depth {lens['depth']}, its KL from the last depth is {with_interval(lens)}"
        f" nats through the lens, {with_interval(direct)} directly and"
        f" {with_interval(control)} with random blocks"
        f" ({lens['n']:,} {'masked tokens' if lens['masked'] else 'tokens'},"
        f" {counted(lens['n_texts'], 'text')})"
    )


def nats(value: float) -> str:
    """A divergence with two digits that say something: 1.24, 0.017."""
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def ends(row: TidyRow) -> str:
    """The interval of a row's divergence: 0.016 to 0.019."""
    return f"{nats(row['low'])} to {nats(row['high'])}"


def with_interval(row: TidyRow) -> str:
    """A row's divergence with its interval."""
    return f"{nats(row['kl'])} ({ends(row)})"


def agreement(rows: TidyRows) -> str:
    """From which depth on each reading has the last depth's top token, nine times in ten."""
    last = rows[0]["layers"]
    direct, lens, control = (agrees_from(of_reading(rows, name)) for name in NAMES)
    ours = f"{_from(lens, last)} through the lens"
    if lens == direct:
        ours = f"{ours} as well as directly"
    else:
        ours = f"{ours}, {_from(direct, last)} directly"
    words = (
        f"Nine in ten tokens have the last depth's top token {ours},"
        f" and {_from(control, last)} with random blocks"
    )
    if control is not None and lens is not None and control <= lens < last:
        return f"{words}: the top token shows what a map does, not the layers"
    return words


def _from(depth: int | None, last: int) -> str:
    if depth is None:
        return "at no depth"
    if depth == last:
        return "only at the last depth"
    return f"from depth {depth} of {last} on" if depth else "at all depths"


def summary(rows: TidyRows) -> dict[str, Any]:
    """The depths that agree with the last, and KL by depth, of each reading."""
    curves = {name: of_reading(rows, name) for name in NAMES}
    return {
        "readout": rows[0]["readout"],
        "agrees_from": {name: agrees_from(curve) for name, curve in curves.items()},
        "kl": {name: [row["kl"] for row in curve] for name, curve in curves.items()},
    }
