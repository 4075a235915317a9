"""Rows of ensembling as tables and words."""

from __future__ import annotations

from typing import Any

from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kit.learning import CONSTANT, not_learnt
from microtome.experiments.kit.wording import change, counted, percent
from microtome.papers.answer import CANT_TELL
from microtome.views import TidyRow, TidyRows, View, table_of

COLUMNS = (
    "rule", "selection", "candidates", "metric", "value", "gain", "gain_low", "gain_high",
    "one_answer",
)  # fmt: skip
PERCENT = ("value", "gain", "gain_low", "gain_high")


def views(rows: TidyRows) -> tuple[View, ...]:
    """Every ensemble, how it was picked, one constant answer; then who is in them."""
    title = "Ensembles (gain: over the baseline's; deeper … of: over the baseline's of that size)"
    constants = {row["metric"]: row.get("constant_value") for row in rows}
    constant_rows = [
        {"rule": CONSTANT, "metric": metric, "value": value}
        for metric, value in constants.items()
        if value is not None
    ]
    scores = table_of(title, [*rows, *constant_rows], COLUMNS, percent=PERCENT)
    who = ("rule", "selection", "members")
    members = table_of("Their members, as layers:seed", primary(rows), who)
    return scores, members


def primary(rows: TidyRows) -> list[TidyRow]:
    """The rows of the metric that is picked by: the first."""
    return [row for row in rows if row["metric"] == rows[0]["metric"]]


def row_of(rows: TidyRows, rule: str, selection: str) -> TidyRow | None:
    """The row of one rule; ``rule`` may be its beginning."""
    selected = (row for row in primary(rows) if row["selection"] == selection)
    return next((row for row in selected if row["rule"].startswith(rule)), None)


def baseline_of(rows: TidyRows) -> TidyRow:
    """All runs of the unmodified model as one."""
    base = row_of(rows, BASELINE, "none")
    assert base is not None
    return base


def baseline_not_learnt(rows: TidyRows) -> str:
    """Why no ensemble is compared; empty where the baseline's has learnt the task."""
    return not_learnt([baseline_of(rows)], "The ensemble of baseline runs")


def finding(rows: TidyRows) -> str:
    """Deeper against baseline runs at equal size, then the papers' ensembles."""
    if why := baseline_not_learnt(rows):
        return why
    base = baseline_of(rows)
    n_seeds = len(base["members"].split(", "))
    baseline = (
        f"{counted(n_seeds, 'baseline run')} together {'scores' if n_seeds == 1 else 'score'}"
        f" {percent(base['value'])} {base['metric']}"
        f" ({percent(base['low'])} to {percent(base['high'])})."
    )
    rules = (rule_finding(rows, rule) for rule in ("top-", "all better"))
    return " ".join(filter(None, (equal_size_finding(rows), baseline, *rules)))


def rule_finding(rows: TidyRows, rule: str) -> str:
    """One of the papers' rules, on the rows that picked its members and on others."""
    same, other = (row_of(rows, rule, how) for how in ("same rows", "other rows"))
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


def equal_size_finding(rows: TidyRows) -> str:
    """Ensembles of equal size from equally many candidates; empty without deeper runs."""
    deeper = row_of(rows, "deeper", "other rows")
    base = row_of(rows, BASELINE, "other rows")
    if deeper is None or base is None:
        return ""
    size = str(deeper["rule"]).removeprefix("deeper ")
    return (
        f"Of equal size from equally many candidates ({size}), deeper runs score"
        f" {percent(deeper['value'])} and baseline runs {percent(base['value'])}:"
        f" {_gain(deeper)}, {_verdict(deeper)}."
    )


def _gain(row: TidyRow) -> str:
    return change(row["gain"], row["gain_low"], row["gain_high"])


def _verdict(row: TidyRow) -> str:
    if row["gain_low"] > 0:
        return "better than the baseline's ensemble"
    return "worse than the baseline's ensemble" if row["gain_high"] < 0 else CANT_TELL


def summary(rows: TidyRows) -> dict[str, Any]:
    """The baseline's ensemble, and what the picked ones gain on other rows."""
    top, better = (row_of(rows, rule, "other rows") for rule in ("top-", "all better"))
    numbers: dict[str, Any] = {"baseline": baseline_of(rows)["value"]}
    if top is not None and better is not None and not baseline_not_learnt(rows):
        numbers |= {"gain_top": top["gain"], "gain_all_better": better["gain"]}
    return numbers
