"""A trim's rows as a frontier, tables and words."""

from __future__ import annotations

import math

from microtome.experiments.field.trim.choice import (
    Wish,
    acceptable,
    base_of,
    cuts_of,
    has_learnt,
    is_fast,
    judged,
    nearest,
    recommended,
    shallower,
    where_picked,
)
from microtome.experiments.kit import learning
from microtome.experiments.kit.wording import change, counted, metric_name, percent
from microtome.values import format_ranges
from microtome.views import Cell, Curve, Series, Table, TidyRow, TidyRows, View, series_of, table_of

PERCENT = ("value", "value_low", "value_high", "delta", "low", "high", "pick_value", "pick_low")


def sentence(rows: TidyRows, wish: Wish) -> str:
    """What to cut and what that costs; or why nothing is recommended, and what comes nearest."""
    base = base_of(rows)
    if not has_learnt(rows):
        return _not_learnt(base)
    cut = recommended(rows, wish)
    if cut is not None:
        return f"{_kept(cut, base)}: {_price(cut, base)}.{_caveat(cut, wish)}"
    close = nearest(rows, wish)
    if close is None:
        return "Every cut gives one answer only: none is recommended."
    said = f"{_why_none(rows, wish)} The nearest: {_kept(close, base)}: {_price(close, base, wish)}"
    lose = acceptable(rows, wish)
    accept = "" if lose is None else f"; by the rows that pick, --lose {100 * lose:g} would save it"
    return f"{said}{accept}."


def _not_learnt(base: TidyRow) -> str:
    picked = where_picked(base)
    # Rows of earlier versions don't say who trained it.
    longer = "Train it longer first: --least-steps 300."
    advice = longer if base.get("fine_tuned", True) else "Is it made for these rows and labels?"
    return (
        f"The model hasn't learnt the task: its {metric_name(base['metric'])} is"
        f" {percent(picked['value'])}{learning.no_better([picked])}. {advice}"
    )


def _kept(cut: TidyRow, base: TidyRow) -> str:
    if cut["edit"].startswith("keep("):
        layers = cut["edit"][len("keep(") : -1].replace("-", " to ")
        what = f"Keep layer{'' if layers.isdigit() else 's'} {layers} of {base['layers']}"
    else:
        what = f"Make {cut['layers']} layers of {base['layers']} by {cut['edit']}"
    return what if cut["healed"] else f"{what}, without training"


def _price(cut: TidyRow, base: TidyRow, wish: Wish | None = None) -> str:
    changed = change(cut["delta"], cut["low"], cut["high"])
    speed = _pace(cut["speed"], None if wish is None else wish.speed)
    smaller = 1 - cut["parameters"] / base["parameters"]
    size = f"{percent(smaller)} smaller" if smaller >= 0 else f"{percent(-smaller)} larger"
    return f"{changed} of {metric_name(cut['metric'])}, {speed}, {size}"


def _pace(speed: float | None, wished: float | None) -> str:
    if speed is None:
        return "speed not measurable now"
    return f"{1 / speed:.1f}× slower" if speed < 1 else f"{times(speed, wished)} faster"


def times(speed: float, wished: float | None = None) -> str:
    """A speed as a factor; one that is too low isn't rounded up to what was wished for."""
    if wished is None or speed >= wished or round(speed, 1) < wished:
        return f"{speed:.1f}×"
    return f"{math.floor(100 * speed) / 100:.2f}×"


def _caveat(cut: TidyRow, wish: Wish) -> str:
    """A choice on some rows is no promise for others."""
    if wish.lose is None or cut["low"] > -wish.lose:
        return ""
    return (
        f" The {cut['n']:,} {cut['unit']} that score it don't exclude a loss of more than"
        f" {loss_in_words(wish.lose)}; those that picked it do."
    )


def _why_none(rows: TidyRows, wish: Wish) -> str:
    if not any(is_fast(cut, wish) for cut in shallower(rows)):
        return f"No cut is {wish.speed:g}× as fast as the base."
    return f"No cut is sure to lose less than {loss_in_words(wish.lose or 0)}."


def loss_in_words(lose: float) -> str:
    """What may be lost: 1 point, 2.5 points."""
    shown = f"{100 * lose:g}"
    return f"{shown} point" if shown == "1" else f"{shown} points"


def finding(rows: TidyRows, wish: Wish | None = None) -> str:
    """The recommendation by a wish, how much was tried, and what other data says."""
    wish = wish or Wish()
    parts = (
        sentence(rows, wish), _deeper(rows), _tried(rows), _diverged(rows),
        elsewhere(rows, recommended(rows, wish)),
    )  # fmt: skip
    return " ".join(part for part in parts if part)


def _deeper(rows: TidyRows) -> str:
    """Whether more layers help, where they were tried."""
    base = base_of(rows)
    more = [row for row in cuts_of(rows) if row["layers"] > base["layers"]]
    if not more:
        return ""
    best = max(more, key=lambda row: row["pick_value"])
    return f"More depth: {_kept(best, base)}: {_price(best, base)}."


def _tried(rows: TidyRows) -> str:
    n_tried = sum(row["stage"] == "screened" for row in rows)
    healed = [row for row in rows if row["stage"] == "healed"]
    return (
        f"{counted(n_tried, 'cut')} tried without training, {counted(len(healed), 'size')} healed."
    )


def _diverged(rows: TidyRows) -> str:
    lost = [row["layers"] for row in rows if row["stage"] == "healed" and row["diverged"]]
    if not lost:
        return ""
    sizes = format_ranges(sorted(lost))
    return f"The healing of {sizes} layers diverged: take a smaller --healing-rate."


def elsewhere(rows: TidyRows, cut: TidyRow | None) -> str:
    """What a cut costs on the other data; empty where there is none."""
    found = [
        f"{row['task']} {change(row['delta'], row['low'], row['high'])}"
        for row in rows
        if row["stage"] == "also" and cut is not None and _is_same(row, cut)
    ]
    return f"On other data: {', '.join(found)}." if found else ""


def _is_same(row: TidyRow, cut: TidyRow) -> bool:
    return bool(row["edit"] == cut["edit"] and row["healed"] == cut["healed"])


def frontier(rows: TidyRows, wish: Wish | None = None) -> Curve:
    """Score with interval against speed: healed, without training, and one constant answer."""
    base = base_of(rows)
    lines: list[Series] = []
    for name, healed in (("healed", True), ("without training", False)):
        cuts = [row for row in cuts_of(rows) if row["healed"] == healed and row["speed"]]
        line = sorted([base, *cuts], key=lambda row: row["speed"])
        ends = ("value_low", "value_high")
        if cuts:
            lines.append(series_of(name, line, "speed", "value", ends=ends, notes="edit"))
    speeds = [row["speed"] for row in judged(rows) if row["speed"]]
    # A correlation's is 0, which would squeeze everything else into a line.
    constant = learning.constant_line([base], speeds) if base["constant_value"] else ()
    title = f"What a cut costs and saves: {base['n']:,} {base['unit']} that nothing was picked on"
    wish = wish or Wish()
    cut, axis = recommended(rows, wish), "speed relative to the base"
    return Curve(
        title, axis, base["metric"], (*lines, *constant), says=what_is_enough(rows, wish),
        divider=None if cut is None else cut["speed"],
        divider_label="" if cut is None else cut["edit"],
    )  # fmt: skip


def what_is_enough(rows: TidyRows, wish: Wish) -> str:
    """How many layers are sure to be enough, on both halves of the rows; empty where none is."""
    cut, base = recommended(rows, wish), base_of(rows)
    if cut is None or wish.lose is None or cut["low"] <= -wish.lose:
        return ""
    return f"{cut['layers']} of {base['layers']} layers lose less than {loss_in_words(wish.lose)}"


def front(rows: TidyRows) -> tuple[View, ...]:
    """For the front page: the frontier and its table."""
    return frontier(rows), _table(rows)


def _table(rows: TidyRows) -> Table:
    columns = (
        "cut", "layers", "healed", "score", "change", "low", "high", "parameters", "speed", "ms",
    )  # fmt: skip
    base = base_of(rows)
    lines: list[tuple[Cell, ...]] = [
        ("as it is", base["layers"], "", base["value"], None, None, None, base["parameters"], 1.0,
         base["latency_ms"])
    ]  # fmt: skip
    for row in cuts_of(rows):
        change_cells = (row["delta"], row["low"], row["high"])
        prices = (row["parameters"], row["speed"], row["latency_ms"])
        healed = "yes" if row["healed"] else ""
        lines.append((row["edit"], row["layers"], healed, row["value"], *change_cells, *prices))
    title = "The best cut of every size, picked on other rows; ms for one text"
    return Table(title, columns, tuple(lines), percent=("score", "change", "low", "high"))


def views(rows: TidyRows) -> tuple[View, ...]:
    """The frontier, its table, other data, the training, and what was screened."""
    shown: list[View] = [*front(rows)]
    if also := [row for row in rows if row["stage"] == "also"]:
        columns = ("task", "edit", "layers", "metric", "value", "delta", "low", "high", "n")
        shown.append(table_of("The healed cuts on other data", also, columns, percent=PERCENT))
    healed = [row for row in rows if row["stage"] == "healed"]
    trained = ("edit", "layers", "steps", "texts", "contenders", "diverged")
    shown.append(table_of("What was trained", healed, trained))
    screened = sorted(
        (row for row in rows if row["stage"] == "screened"), key=lambda row: -row["pick_value"]
    )
    title = "All cuts without training, by their score on the rows that pick"
    ranked = ("edit", "layers", "pick_value")
    shown.append(table_of(title, screened, ranked, percent=PERCENT))
    return tuple(shown)


def summary(rows: TidyRows) -> dict[str, object]:
    """The recommended cut and what it costs."""
    cut = recommended(rows, Wish())
    names = ("edit", "layers", "healed", "value", "delta", "low", "high", "speed", "parameters")
    return {"recommended": None if cut is None else {name: cut[name] for name in names}}
