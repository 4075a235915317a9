"""Rows of decoding as curves and words: over depths, after fine-tuning, with more layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microtome.experiments.experiment import Rows, percent, points
from microtome.values import format_ranges
from microtome.views import Curve, Sentences, Series, View

CLEAR = 0.1  # how far the curve must lie above its control before anything is claimed
HIGH = 0.8  # what the papers call decodable
MOVED = 0.05  # a depth that fine-tuning has changed
Row = Mapping[str, Any]


def curve_rows(rows: Rows, checkpoint: str | None = None) -> list[Row]:
    """One checkpoint's rows over its own depths: the subject's unless another is named."""
    whole = [row for row in rows if not row.get("edit")]
    # The subject's curve is planned first; the related checkpoint's follows.
    wanted = checkpoint or (whole[0].get("checkpoint") if whole else None)
    found = {row["depth"]: row for row in whole if row.get("checkpoint") == wanted}
    return [found[depth] for depth in sorted(found)]


def deeper_rows(rows: Rows) -> list[Row]:
    """The last states of deeper models, by their number of layers."""
    found = {row["layers"]: row for row in rows if row.get("edit")}
    return [found[n_layers] for n_layers in sorted(found)]


def views(rows: Rows) -> tuple[View, ...]:
    """The curve with its control, what was asked for beside it, and the first text."""
    own, deeper = curve_rows(rows), deeper_rows(rows)
    series = [
        _series(f"decoded ({own[0]['readout']})", own, "depth"),
        _plain("token behind [CLS]", own, "depth", "first_token_accuracy"),
        _control(own, "depth"),
    ]
    if other := _other(rows):
        name = f"{other[0]['checkpoint']} ({other[0]['readout']})"
        series.insert(1, _series(name, other, "depth"))
    title = "Tokens that come back at every depth"
    found: list[View] = [Curve(title, "depth", "token accuracy", tuple(series))]
    if deeper:
        lines = (
            _series("last state", deeper, "layers"),
            _plain("token behind [CLS]", deeper, "layers", "first_token_accuracy"),
            _control(deeper, "layers"),
        )
        title = "Tokens that come back from the last state of deeper models"
        found.append(Curve(title, "layers", "token accuracy", lines))
    return (*found, _sentences(own))


def _other(rows: Rows) -> list[Row]:
    own = curve_rows(rows)[0].get("checkpoint")
    names = {row.get("checkpoint") for row in rows} - {own}
    return curve_rows(rows, str(names.pop())) if names else []


def _series(name: str, rows: Sequence[Row], x: str) -> Series:
    y, low, high = (tuple(row[column] for row in rows) for column in ("accuracy", "low", "high"))
    return Series(name, tuple(float(row[x]) for row in rows), y, low, high)


def _plain(name: str, rows: Sequence[Row], x: str, column: str) -> Series:
    return Series(name, tuple(float(row[x]) for row in rows), tuple(row[column] for row in rows))


def _control(rows: Sequence[Row], x: str) -> Series:
    xs, ys = tuple(float(row[x]) for row in rows), tuple(row["control"] for row in rows)
    return Series("control: random blocks", xs, ys, is_control=True)


def _sentences(rows: Sequence[Row]) -> Sentences:
    return Sentences(
        title="One text, decoded at every depth",
        tokens=tuple(rows[0]["input"].split(" ")),
        decoded=tuple((f"depth {r['depth']}", tuple(r["decoded"].split(" "))) for r in rows),
    )


def finding(rows: Rows) -> str:
    """Which depths speak the output layer's language, beside what the control does."""
    own = curve_rows(rows)
    inner = [row for row in own if 0 < row["depth"] < own[-1]["layers"]]
    high = [row for row in inner if row["accuracy"] >= HIGH]
    above = [row for row in inner if row["accuracy"] - row["control"] >= CLEAR]
    words = (
        f"Read through the {own[0]['readout']} readout, {len(high)} of {len(inner)} inner depths"
        f" give back at least 80 % of the tokens; the last depth gives back"
        f" {percent(own[-1]['accuracy'])}."
    )
    if len(above) < len(inner) / 2:
        words += (
            f" Random blocks do as well at {len(inner) - len(above)} of {len(inner)} inner depths:"
            " this shows the residual path, and nothing is claimed about the layers."
        )
    else:
        words += f" Random blocks lie clearly below at {len(above)} of {len(inner)} inner depths."
    return " ".join(filter(None, (words, tuning_words(rows), deeper_words(rows))))


def tuning_words(rows: Rows) -> str:
    """Which depths fine-tuning has changed."""
    before = {row["depth"]: row for row in curve_rows(rows, "pretrained")}
    after = {row["depth"]: row for row in curve_rows(rows, "finetuned")}
    both = sorted(before.keys() & after.keys())
    if not both:
        return ""
    moves = {depth: after[depth]["accuracy"] - before[depth]["accuracy"] for depth in both}
    moved = [depth for depth in both if abs(moves[depth]) > MOVED]
    if not moved:
        return f"Fine-tuning moves no depth by more than {100 * MOVED:.0f} points."
    most = max(moved, key=lambda depth: abs(moves[depth]))
    return (
        f"Fine-tuning moves depth {format_ranges(tuple(moved))} of {both[-1]} by more than"
        f" {100 * MOVED:.0f} points, most of all depth {most} ({points(moves[most])})."
    )


def deeper_words(rows: Rows) -> str:
    """How far the last state can still be read as layers are added."""
    deeper = deeper_rows(rows)
    if not deeper:
        return ""
    first, last = deeper[0], deeper[-1]
    fallen = next((row for row in deeper if row["accuracy"] < HIGH), None)
    words = (
        f"With {first['layers']} layers the last state gives back {percent(first['accuracy'])},"
        f" with {last['layers']} {percent(last['accuracy'])} (random blocks"
        f" {percent(last['control'])})"
    )
    return words + (
        "; it never falls below 80 %."
        if fallen is None
        else f"; below 80 % from {fallen['layers']} layers on."
        if all(r["accuracy"] < HIGH for r in deeper if r["layers"] >= fallen["layers"])
        else f"; it falls below 80 % first with {fallen['layers']} layers."
    )


def summary(rows: Rows) -> dict[str, Any]:
    """The ends of the curves."""
    own, deeper = curve_rows(rows), deeper_rows(rows)
    found = {
        "readout": own[0]["readout"],
        "accuracy_last": own[-1]["accuracy"],
        "control_last": own[-1]["control"],
        "first_token_last": own[-1]["first_token_accuracy"],
    }
    if deeper:
        found["deepest"] = deeper[-1]["layers"]
        found["accuracy_deepest"] = deeper[-1]["accuracy"]
    return found


def measured(rows: Rows) -> dict[str, str]:
    """The papers' claims, from the curve that each is about."""
    own = curve_rows(rows)
    first, last = own[-1]["first_token_accuracy"], own[-1]["accuracy"]
    found = {"fine-tuned": tuning_words(rows)}
    if first is not None:
        found["first token"] = f"{percent(first)}; all tokens {percent(last)}"
    inner = [row for row in own if 0 < row["depth"] < row["layers"]]
    high = [row for row in inner if row["accuracy"] >= HIGH]
    as_good = [row for row in inner if row["control"] >= row["accuracy"] - CLEAR]
    found["inner depths"] = f"{len(high)} of {len(inner)}"
    found["control"] = (
        f"random blocks do about as well at {len(as_good)} of {len(inner)} inner depths"
    )
    return {key: text for key, text in found.items() if text}
