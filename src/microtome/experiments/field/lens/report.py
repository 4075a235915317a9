"""Rows of the lens as curves, a table, a sentence read in two ways, and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microtome.experiments.kit.wording import counted
from microtome.views import Curve, Sentences, Table, TidyRow, TidyRows, View, series_of

AGREES = 0.9  # of the tokens have the last depth's top token: the depth agrees with it
NAMES = {"direct": "read directly", "lens": "through the lens", "control": "control: random blocks"}


def views(rows: TidyRows) -> tuple[View, ...]:
    """KL and agreement by depth, every figure, and one text in both ways."""
    kl = Curve(
        "How far each depth's answer is from the last one's", "depth", "KL, nats",
        tuple(_line(rows, name, "kl", ("low", "high")) for name in NAMES), percent=False,
    )  # fmt: skip
    agreement = Curve(
        "Tokens whose top token is the last depth's", "depth", "share of tokens",
        tuple(
            _line(rows, name, "agreement", ("agreement_low", "agreement_high")) for name in NAMES
        ),
    )  # fmt: skip
    return (kl, agreement, _table(rows), _sentences(rows))


def _line(rows: TidyRows, name: str, column: str, ends: tuple[str, str]) -> Any:  # noqa: ANN401
    return series_of(
        NAMES[name], of_reading(rows, name), "depth", column, ends=ends,
        is_control=name == "control",
    )  # fmt: skip


def _table(rows: TidyRows) -> Table:
    """A line per depth: each measure by reading."""
    measures = ("kl", "agreement", "accuracy")
    readings = [of_reading(rows, name) for name in NAMES]
    columns = ("depth", *(f"{name} {measure}" for measure in measures for name in NAMES))
    lines = tuple(
        (depth[0]["depth"], *(row[measure] for measure in measures for row in depth))
        for depth in zip(*readings, strict=True)
    )
    shares = tuple(name for name in columns if name.endswith(measures[1:]))
    return Table(
        "Every depth: KL (nats), agreement with the last depth, tokens that come back", columns,
        lines, percent=shares,
    )  # fmt: skip


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
    """From which depth on both readings agree with the last, and what an affine map does alone."""
    return f"{_agreement(rows)} {_half_way(rows)} {_against_control(rows)}"


def _agreement(rows: TidyRows) -> str:
    """From which depth on each reading has the last depth's top token, nine times in ten."""
    last = rows[0]["layers"]
    direct, lens, control = (agrees_from(of_reading(rows, name)) for name in NAMES)
    words = (
        "Through the lens nine in ten tokens have the last depth's top token"
        f" {_from(lens, last)}; read directly, {_from(direct, last)};"
        f" with a map fitted to random blocks, {_from(control, last)}"
    )
    if control is not None and lens is not None and control <= lens < last:
        return f"{words}, so these depths show what the map does, not the layers."
    return f"{words}."


def _from(depth: int | None, last: int) -> str:
    if depth is None:
        return "at no depth"
    if depth == last:
        return f"only at the last depth, {last}"
    return f"from depth {depth} of {last} on" if depth else "at all depths"


def _half_way(rows: TidyRows) -> str:
    """The three readings at the middle depth, which is chosen before anything is measured."""
    half = rows[0]["layers"] // 2
    direct, lens, control = (of_reading(rows, name)[half] for name in NAMES)
    return (
        f"Half-way, at depth {half}, the KL from the last depth is {_with_interval(lens)} nats"
        f" through the lens, {_with_interval(direct)} directly and {_with_interval(control)} with"
        f" random blocks ({lens['n']:,} tokens, {counted(lens['n_texts'], 'text')})."
    )


def _with_interval(row: TidyRow) -> str:
    return f"{row['kl']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def _against_control(rows: TidyRows) -> str:
    """At how many inner depths the lens reads more than an affine map finds by itself."""
    inner = inner_rows(rows, "lens")
    if not inner:
        return "The model has no inner depth."
    sure = [row for row in inner if row["below_control_low"] > 0]
    of_all = f"{len(sure) or 'none'} of {counted(len(inner), 'inner depth')}"
    if len(sure) <= len(inner) / 2:
        return (
            f"The lens is surely closer than this control at {of_all}: elsewhere an affine map"
            " alone does as well, and nothing is claimed about the layers."
        )
    return f"The lens is surely closer than this control at {of_all}."


def summary(rows: TidyRows) -> dict[str, Any]:
    """The depths that agree with the last, and KL by depth, of each reading."""
    curves = {name: of_reading(rows, name) for name in NAMES}
    return {
        "readout": rows[0]["readout"],
        "agrees_from": {name: agrees_from(curve) for name, curve in curves.items()},
        "kl": {name: [row["kl"] for row in curve] for name, curve in curves.items()},
    }
