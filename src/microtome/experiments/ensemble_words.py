"""Rows of ensembling as a table and words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.experiments.experiment import Rows, percent, points
from microtome.experiments.strategies import BASELINE
from microtome.experiments.verdicts import CANT_TELL
from microtome.views import View, table_of

Row = Mapping[str, Any]
COLUMNS = (
    "rule", "selection", "candidates", "metric", "value", "gain", "gain_low", "gain_high",
)  # fmt: skip
PERCENT = ("value", "gain", "gain_low", "gain_high")


def views(rows: Rows) -> tuple[View, ...]:
    """Every ensemble, and how it was picked; then who is in it."""
    title = "Ensembles (gain: over the baseline's; deeper … of: over the baseline's of that size)"
    scores = table_of(title, [dict(row) for row in rows], COLUMNS, percent=PERCENT)
    who = ("rule", "selection", "members")
    members = table_of("Their members, as layers:seed", [dict(r) for r in primary(rows)], who)
    return scores, members


def primary(rows: Rows) -> list[Row]:
    """The rows of the metric that is picked by: the first."""
    return [row for row in rows if row["metric"] == rows[0]["metric"]]


def of_rule(rows: Rows, rule: str, selection: str) -> Row | None:
    """The row of one rule; ``rule`` may be its beginning."""
    own = (row for row in primary(rows) if row["selection"] == selection)
    return next((row for row in own if row["rule"].startswith(rule)), None)


def finding(rows: Rows) -> str:
    """The papers' ensembles against the baseline's, on the same rows and on others."""
    base = of_rule(rows, BASELINE, "none")
    assert base is not None
    n_seeds = len(base["members"].split(", "))
    start = (
        f"{n_seeds} baseline runs together score {percent(base['value'])} {base['metric']}"
        f" ({percent(base['low'])} to {percent(base['high'])})."
    )
    rules = [_rule_words(rows, rule) for rule in ("top-", "all better")]
    return " ".join(text for text in (start, *rules, _equal_words(rows)) if text)


def _rule_words(rows: Rows, rule: str) -> str:
    same, other = (of_rule(rows, rule, how) for how in ("same rows", "other rows"))
    if other is None:
        return ""
    honest = f"picked on other rows: {_gain(other)}, {_verdict(other)}"
    name = str(other["rule"])
    if same is None:
        return f"No deeper run beats the baseline's mean, so there is no {name}; {honest}."
    return (
        f"Deeper models, {name} ({same['members']}): {_gain(same)} on the rows that picked them;"
        f" {honest}."
    )


def _equal_words(rows: Rows) -> str:
    deeper = of_rule(rows, "deeper", "other rows")
    base = of_rule(rows, BASELINE, "other rows")
    if deeper is None or base is None:
        return ""
    size = str(deeper["rule"]).removeprefix("deeper ")
    return (
        f"Of equal size from equally many candidates ({size}): deeper runs"
        f" {percent(deeper['value'])}, baseline runs {percent(base['value'])}:"
        f" {_gain(deeper)}, {_verdict(deeper)}."
    )


def _gain(row: Row) -> str:
    ends = (points(row[end]).removeprefix("+") for end in ("gain_low", "gain_high"))
    return f"{points(row['gain'])} points ({' to '.join(ends)})"


def _verdict(row: Row) -> str:
    if row["gain_low"] > 0:
        return "better than the baseline's ensemble"
    return "worse than the baseline's ensemble" if row["gain_high"] < 0 else CANT_TELL


def summary(rows: Rows) -> dict[str, Any]:
    """The baseline's ensemble, and what the picked ones gain on other rows."""
    base, top, better = (
        of_rule(rows, *which)
        for which in ((BASELINE, "none"), ("top-", "other rows"), ("all better", "other rows"))
    )
    assert base is not None
    found: dict[str, Any] = {"baseline": base["value"]}
    if top is not None and better is not None:
        found |= {"gain_top": top["gain"], "gain_all_better": better["gain"]}
    return found


def measured(rows: Rows) -> dict[str, str]:
    """The papers' claim, from these rows."""
    words = " ".join(filter(None, (_rule_words(rows, "top-"), _equal_words(rows))))
    return {"ensembles": words} if words else {}
