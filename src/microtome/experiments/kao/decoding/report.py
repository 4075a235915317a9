"""Rows of decoding as curves and words: over depths, after fine-tuning, with more layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microtome.experiments.kit.wording import percent, points
from microtome.values import format_ranges
from microtome.views import Curve, Sentences, Series, TidyRow, TidyRows, View, series_of

CLEAR = 0.1  # how far the curve must be above its control before anything is claimed
HIGH = 0.8  # what the papers call decodable
MOVED = 0.05  # a depth that fine-tuning has changed
MORE_LAYERS = 0.5  # ALBERT-base's six extra layers are half as many as it has


def curve_rows(rows: TidyRows, checkpoint: str | None = None) -> list[TidyRow]:
    """One checkpoint's rows over its depths: the subject's unless another is named."""
    unedited = [row for row in rows if not row.get("edit")]
    if checkpoint is None and unedited:
        # The subject's curve is planned first; the related checkpoint's follows.
        checkpoint = unedited[0].get("checkpoint")
    by_depth = {row["depth"]: row for row in unedited if row.get("checkpoint") == checkpoint}
    return [by_depth[depth] for depth in sorted(by_depth)]


def inner_rows(curve: Sequence[TidyRow]) -> list[TidyRow]:
    """The depths between the embeddings and the last state."""
    return [row for row in curve if 0 < row["depth"] < row["layers"]]


def deeper_rows(rows: TidyRows) -> list[TidyRow]:
    """The last states of deeper models, by their number of layers."""
    by_count = {row["layers"]: row for row in rows if row.get("edit")}
    return [by_count[n_layers] for n_layers in sorted(by_count)]


def half_as_deep_again(rows: TidyRows) -> TidyRow | None:
    """The last state with half as many layers again, as ALBERT-base's six extra ones are.

    Or with more, but less than twice as many; None where no model was as deep.
    """
    own = curve_rows(rows)[-1]["layers"]
    enough = own * (1 + MORE_LAYERS)
    return next((row for row in deeper_rows(rows) if enough <= row["layers"] < 2 * own), None)


def views(rows: TidyRows) -> tuple[View, ...]:
    """The curve with its control, what else was asked for, and the first text."""
    curve, deeper = curve_rows(rows), deeper_rows(rows)
    series = _lines(f"decoded ({curve[0]['readout']})", curve, "depth")
    if related := _related_curve(rows):
        name = f"{related[0]['checkpoint']} ({related[0]['readout']})"
        series.insert(1, _lines(name, related, "depth")[0])
    title = "Tokens that come back at every depth"
    said = what_inner_depths_hold(curve)
    shown: list[View] = [Curve(title, "depth", "token accuracy", tuple(series), says=said)]
    if deeper:
        title = "Tokens that come back from the last state of deeper models"
        lines = tuple(_lines("last state", deeper, "layers"))
        said = how_deep_it_reads(deeper)
        shown.append(Curve(title, "layers", "token accuracy", lines, says=said))
    return (*shown, _sentences(curve))


def what_inner_depths_hold(curve: Sequence[TidyRow]) -> str:
    """Which inner depths are sure to beat their control, or that none does; empty in between."""
    inner = inner_rows(curve)
    above = [row["depth"] for row in inner if row["low"] - row["control"] >= CLEAR]
    if above:
        depths = format_ranges(above).replace("-", " to ").replace(",", ", ")
        some = len(above) < len(inner)
        what = f"depth{'' if len(above) == 1 else 's'} {depths}" if some else "every inner depth"
        return f"{what[0].upper()}{what[1:]} can be read beyond the random blocks"
    if inner and all(row["high"] - row["control"] < CLEAR for row in inner):
        return "Random blocks can be read as well as the model's"
    return ""


def how_deep_it_reads(deeper: Sequence[TidyRow]) -> str:
    """Up to how many layers the last state is sure to be readable; empty where none is sure."""
    lost = next((row["layers"] for row in deeper if row["high"] < HIGH), None)
    if lost is not None:
        return f"With {lost} layers the last state can no longer be read"
    if all(row["low"] >= HIGH for row in deeper):
        return f"The last state can be read up to {deeper[-1]['layers']} layers"
    return ""


def _related_curve(rows: TidyRows) -> list[TidyRow]:
    """The other checkpoint's: the head's donor, or the subject fine-tuned."""
    subject = curve_rows(rows)[0].get("checkpoint")
    others = {row.get("checkpoint") for row in rows} - {subject}
    return curve_rows(rows, str(others.pop())) if others else []


def _lines(name: str, rows: TidyRows, x: str) -> list[Series]:
    """All tokens, the token after [CLS], and the control."""
    return [
        series_of(name, rows, x, "accuracy", ends=("low", "high")),
        series_of("token after [CLS]", rows, x, "first_token_accuracy"),
        series_of("control: random blocks", rows, x, "control", is_control=True),
    ]


def _sentences(rows: Sequence[TidyRow]) -> Sentences:
    return Sentences(
        title="One text, decoded at every depth",
        tokens=tuple(rows[0]["input"].split(" ")),
        decoded=tuple((f"depth {r['depth']}", tuple(r["decoded"].split(" "))) for r in rows),
    )


def finding(rows: TidyRows) -> str:
    """Which depths speak the output layer's language, compared with the control."""
    parts = (_depths_finding(curve_rows(rows)), tuning_finding(rows), deeper_finding(rows))
    return " ".join(filter(None, parts))


def _depths_finding(curve: Sequence[TidyRow]) -> str:
    last = f"The last depth gives back {percent(curve[-1]['accuracy'])} of the tokens"
    readout = f"through the {curve[0]['readout']} readout"
    inner = inner_rows(curve)
    if not inner:
        return f"{last} {readout}; the model has no inner depth."
    high = [row for row in inner if row["accuracy"] >= HIGH]
    above = [row for row in inner if row["accuracy"] - row["control"] >= CLEAR]
    n_high = f"{len(high)} of {len(inner)} inner depths give" if high else "No inner depth gives"
    words = f"{n_high} back at least 80 % of the tokens {readout}. {last}."
    if len(above) < len(inner) / 2:
        return (
            f"{words} Random blocks do as well at {len(inner) - len(above)} of {len(inner)} inner"
            " depths: this shows the residual path, and nothing is claimed about the layers."
        )
    return f"{words} Random blocks are clearly below at {len(above)} of {len(inner)} inner depths."


def tuning_finding(rows: TidyRows) -> str:
    """Which depths fine-tuning has changed; empty where only one checkpoint was decoded."""
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


def deeper_finding(rows: TidyRows) -> str:
    """How far the last state can still be read as layers are added; empty without deeper models."""
    deeper = deeper_rows(rows)
    if not deeper:
        return ""
    first, last = deeper[0], deeper[-1]
    words = f"With {first['layers']} layers the last state gives back {percent(first['accuracy'])}"
    if len(deeper) > 1:
        words += f", with {last['layers']} {percent(last['accuracy'])}"
    words += f" (random blocks {percent(last['control'])})"
    low = [row["layers"] for row in deeper if row["accuracy"] < HIGH]
    if not low:
        return f"{words}; it never falls below 80 %."
    if low == [row["layers"] for row in deeper if row["layers"] >= low[0]]:
        return f"{words}; below 80 % from {low[0]} layers on."
    return f"{words}; it falls below 80 % first with {low[0]} layers."


def summary(rows: TidyRows) -> dict[str, Any]:
    """The ends of the curves."""
    curve, deeper = curve_rows(rows), deeper_rows(rows)
    ends = {
        "readout": curve[0]["readout"],
        "accuracy_last": curve[-1]["accuracy"],
        "control_last": curve[-1]["control"],
        "first_token_last": curve[-1]["first_token_accuracy"],
    }
    if deeper:
        ends["deepest"] = deeper[-1]["layers"]
        ends["accuracy_deepest"] = deeper[-1]["accuracy"]
    return ends
