"""A comparison's rows as a figure, tables and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microtome.experiments.kit import learning
from microtome.experiments.kit.wording import change, percent
from microtome.models.source import short_names
from microtome.views import Curve, HeatMap, Series, Table, TidyRow, TidyRows, View, table_of

SIGNIFICANT = 0.05  # after Holm's correction
PERCENT = ("value", "value_low", "value_high", "constant_value", "delta", "low", "high")


def scores_of(rows: TidyRows) -> list[TidyRow]:
    """Every model's row by the primary metric, with its time, in the order they were named."""
    times = {row["model"]: row for row in rows if row["stage"] == "time"}
    timed = ("latency_ms", "speed", "speed_low", "speed_high")
    return [
        {**row, **{name: times[row["model"]][name] for name in timed}}
        for row in rows
        if row["stage"] == "score" and row["metric"] == row["primary"]
    ]


def differences_of(rows: TidyRows) -> list[TidyRow]:
    """A row for every pair: the later named model minus the earlier."""
    return [row for row in rows if row["stage"] == "difference"]


def finding(rows: TidyRows) -> str:
    """Which model is best and how sure that is, which is fastest, and which haven't learnt.

    That comes first where it is said of the best one.
    """
    scores = scores_of(rows)
    names = short_names([row["model"] for row in scores])
    lost = [row for row in scores if not learning.has_learnt([row])]
    parts = [_best(rows, names), _fastest(scores, names)]
    parts.insert(0 if _highest(scores) in lost else 2, _not_learnt(lost, names))
    return " ".join(part for part in parts if part)


def _highest(scores: TidyRows) -> TidyRow:
    return max(scores, key=lambda row: row["value"])


def _best(rows: TidyRows, names: Mapping[str, str]) -> str:
    best = _highest(scores_of(rows))
    name = names[best["model"]]
    score = f"{best['metric']} {percent(best['value'])} on {best['n']:,} {best['unit']}"
    gains = list(_gains(best["model"], differences_of(rows)))
    sure = _listed([gain for gain in gains if gain["p_holm"] < SIGNIFICANT], names)
    unsure = _listed([gain for gain in gains if gain["p_holm"] >= SIGNIFICANT], names)
    if not unsure:
        return f"{name} is best ({score}): compared with {sure}."
    if not sure:
        return f"No model is sure to be best. {name} is highest ({score}): compared with {unsure}."
    return f"{name} is highest ({score}): better than {sure}; not sure to be better than {unsure}."


def _gains(best: str, differences: TidyRows) -> Iterator[TidyRow]:
    """The differences of one model from each other one, whichever was named first."""
    for row in differences:
        if row["model"] == best:
            yield row
        elif row["compared_with"] == best:
            turned = {"delta": -row["delta"], "low": -row["high"], "high": -row["low"]}
            yield {**row, **turned, "model": best, "compared_with": row["model"]}


def _listed(gains: TidyRows, names: Mapping[str, str]) -> str:
    """Each model with the difference from it."""
    return ", ".join(
        f"{names[gain['compared_with']]} {change(gain['delta'], gain['low'], gain['high'])}"
        for gain in gains
    )


def _fastest(scores: TidyRows, names: Mapping[str, str]) -> str:
    """Compared with the first model; a ratio whose quartiles enclose 1 is no difference."""
    first, fastest = scores[0], max(scores, key=lambda row: row["speed"])
    if fastest["speed_low"] <= 1:
        took = f"{first['latency_ms']:.1f} ms for one text"
        return f"No model is measurably faster than {names[first['model']]} ({took})."
    return (
        f"{names[fastest['model']]} is fastest: {fastest['latency_ms']:.1f} ms for one text,"
        f" {fastest['speed']:.1f}× as fast as {names[first['model']]}."
    )


def _not_learnt(lost: TidyRows, names: Mapping[str, str]) -> str:
    if not lost:
        return ""
    listed = ", ".join(
        f"{names[row['model']]} ({percent(row['value'])}, the constant {percent(constant)})"
        for row in lost
        for constant in (row["constant_value"],)
    )
    return f"No better than {learning.CONSTANT}, so the task isn't learnt: {listed}."


def front(rows: TidyRows) -> tuple[View, ...]:
    """Score against time, and the two tables that say it in numbers."""
    return _score_against_time(rows), _scores(rows), _differences(rows)


def views(rows: TidyRows) -> tuple[View, ...]:
    """All pairs in one map; every metric, where the task has several."""
    every = [row for row in rows if row["stage"] == "score"]
    names = short_names(list(dict.fromkeys(row["model"] for row in every)))
    columns = ("model", "metric", "value", "value_low", "value_high", "n", "constant_value")
    shown = [{**row, "model": names[row["model"]]} for row in every]
    by_metric = table_of("Every metric of the task", shown, columns, percent=PERCENT)
    return (_map(rows), by_metric) if len(every) > len(names) else (_map(rows),)


def _score_against_time(rows: TidyRows) -> Curve:
    scores = scores_of(rows)
    names = short_names([row["model"] for row in scores])
    dots = [
        Series(
            names[row["model"]], (row["latency_ms"],), (row["value"],), (row["value_low"],),
            (row["value_high"],),
        )
        for row in scores
    ]  # fmt: skip
    # Masks differ with the tokenizer, and so does what one answer to all of them scores.
    constants = {row["constant_value"] for row in scores}
    places = [row["latency_ms"] for row in scores]
    # A correlation's is 0, which would squeeze everything else into a line.
    line = learning.constant_line(scores, places) if len(constants) == 1 and any(constants) else ()
    first = scores[0]
    title = f"Score and time of every model: {first['n']:,} {first['unit']}"
    return Curve(title, "milliseconds for one text", first["metric"], (*dots, *line))


def _scores(rows: TidyRows) -> Table:
    scores = scores_of(rows)
    names = short_names([row["model"] for row in scores])
    columns = (
        "model", "value", "value_low", "value_high", "constant_value", "parameters",
        "latency_ms", "speed",
    )  # fmt: skip
    shown = [{**row, "model": names[row["model"]]} for row in scores]
    title = f"{scores[0]['metric']}, size and time; speed relative to the first"
    return table_of(title, shown, columns, percent=PERCENT)


def _differences(rows: TidyRows) -> Table:
    names = short_names([row["model"] for row in scores_of(rows)])
    shown = [
        {**row, "model": names[row["model"]], "compared_with": names[row["compared_with"]]}
        for row in differences_of(rows)
    ]
    columns = ("model", "compared_with", "delta", "low", "high", "n", "p", "p_holm")
    return table_of("Every pair, row by row", shown, columns, percent=PERCENT)


def _map(rows: TidyRows) -> HeatMap:
    names = short_names([row["model"] for row in scores_of(rows)])
    places = {model: place for place, model in enumerate(names)}
    values: list[list[float | None]] = [[None] * len(names) for _ in names]
    marked = []
    for row in differences_of(rows):
        later, earlier = places[row["model"]], places[row["compared_with"]]
        values[later][earlier], values[earlier][later] = row["delta"], -row["delta"]
        if row["p_holm"] < SIGNIFICANT:
            marked += [(later, earlier), (earlier, later)]
    labels = tuple(names.values())
    return HeatMap(
        "Difference of every pair: the row's model minus the column's", "model", "compared with",
        labels, labels, tuple(map(tuple, values)), "difference in points", tuple(marked),
        diverging=True, mark_label="significant after Holm's correction",
    )  # fmt: skip
