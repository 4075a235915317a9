"""Rows of patching as maps, a table and words."""

from __future__ import annotations

from typing import Any

from microtome.experiments.field.patching.plan import CHANGED, GROUPS
from microtome.experiments.kit.wording import counted, percent
from microtome.views import HeatMap, Table, TidyRow, TidyRows, View, table_of

NAMES = {
    "first": "the first token", CHANGED: "the changed tokens", "masked": "the mask",
    "before": "others before", "between": "others between", "after": "others after",
    "separators": "separators",
}  # fmt: skip
HALF = 0.5  # what carries the answer restores at least this share
WHOLE = 0.999  # what the head reads restores all at the last depth
RESTORED = "restored share"


def views(rows: TidyRows) -> tuple[View, ...]:
    """Depth by group of positions, the first pairs token by token, and the table."""
    return (_group_map(rows), *_token_maps(rows), _table(rows))


def _group_map(rows: TidyRows) -> HeatMap:
    groups = groups_of(rows)
    depths = range(n_layers_of(rows) + 1)
    values = tuple(tuple(share_of(rows, group, depth) for group in groups) for depth in depths)
    title = f"Restored share by depth and position, {counted(n_pairs_of(rows), 'pair')}"
    return HeatMap(
        title, "depth", "clean state of", tuple(map(str, depths)),
        tuple(NAMES[group].removeprefix("the ") for group in groups), values, RESTORED,
    )  # fmt: skip


def _token_maps(rows: TidyRows) -> list[HeatMap]:
    """The first pairs: depth by token, the changed ones as clean → corrupted."""
    tokens = of_stage(rows, "token")
    pairs = {row["pair"]: row for row in of_stage(rows, "pair")}
    maps = []
    for number in dict.fromkeys(row["pair"] for row in tokens):
        mine = [row for row in tokens if row["pair"] == number]
        columns = tuple(_named(row) for row in mine if row["depth"] == 0)
        depths = range(1 + max(row["depth"] for row in mine))
        values = tuple(
            tuple(row["share"] for row in mine if row["depth"] == depth) for depth in depths
        )
        changes = ", ".join(name for name in columns if "→" in name)
        title = f"Pair {number + 1}, {changes}: {asked(pairs[number])}"
        maps.append(
            HeatMap(
                title, "depth", "clean state of", tuple(map(str, depths)), columns, values, RESTORED
            )
        )
    return maps


def _named(row: TidyRow) -> str:
    """A token; a changed one with what it became."""
    if row["token"] == row["corrupted_token"]:
        return str(row["token"])
    return f"{row['token']} → {row['corrupted_token']}"


def asked(pair: TidyRow) -> str:
    """What is asked of a pair, and what both runs say: positive − negative, 3.1 → −2.0."""
    question = pair["answer"] if pair["other"] is None else f"{pair['answer']} − {pair['other']}"
    ends = (f"{pair[name]:.1f}".replace("-", "−") for name in ("clean_value", "corrupted_value"))
    return f"{question}, {' → '.join(ends)}"


def _table(rows: TidyRows) -> Table:
    columns = ("depth", "group", "share", "low", "high", "n")
    title = "Restored share of the difference, intervals over pairs"
    return table_of(title, of_stage(rows, "group"), columns, percent=columns[2:5])


def of_stage(rows: TidyRows, stage: str) -> list[TidyRow]:
    """The rows of groups, of tokens, of pairs, or of what was left out."""
    return [row for row in rows if row["stage"] == stage]


def groups_of(rows: TidyRows) -> list[str]:
    """The groups of positions that the pairs have."""
    there = {row["group"] for row in of_stage(rows, "group")}
    return [group for group in GROUPS if group in there]


def n_layers_of(rows: TidyRows) -> int:
    """N, the last depth."""
    return max(int(row["depth"]) for row in of_stage(rows, "group"))


def n_pairs_of(rows: TidyRows) -> int:
    """How many pairs were patched."""
    return len(of_stage(rows, "pair"))


def cell(rows: TidyRows, group: str, depth: int) -> TidyRow:
    """The row of a group at a depth."""
    return next(
        row for row in of_stage(rows, "group") if (row["group"], row["depth"]) == (group, depth)
    )


def share_of(rows: TidyRows, group: str, depth: int) -> float:
    """What one position of a group restores at a depth."""
    share: float = cell(rows, group, depth)["share"]
    return share


def read_group(rows: TidyRows) -> str | None:
    """The group that alone restores all at the last depth: the head reads it. None: no single one.

    Where the first token is a changed one, that is the changed tokens.
    """
    last = n_layers_of(rows)
    return next((g for g in groups_of(rows) if share_of(rows, g, last) >= WHOLE), None)


def carried_from(rows: TidyRows) -> int | None:
    """The depth from which on the group that the head reads restores half or more."""
    group, last = read_group(rows), n_layers_of(rows)
    if group is None:
        return None
    below = [depth for depth in range(last + 1) if share_of(rows, group, depth) < HALF]
    return 1 + max(below, default=-1)


def changed_until(rows: TidyRows) -> int:
    """The depth up to which the changed tokens restore half or more; at depth 0 they do."""
    depths = range(n_layers_of(rows) + 1)
    below = [depth for depth in depths if share_of(rows, CHANGED, depth) < HALF]
    return max(0, min(below, default=len(depths)) - 1)


def finding(rows: TidyRows) -> str:
    """From which depth on the answer is where the head reads it, and how far the change holds it.

    At the last depth it is there by construction: then the changed tokens are told of first.
    """
    parts = [_carries(rows), _changed(rows)]
    if carried_from(rows) in (n_layers_of(rows), None):
        parts.reverse()
    return " ".join(part for part in (*parts, _left_out(rows)) if part)


def _carries(rows: TidyRows) -> str:
    """Where the position that the head reads takes over."""
    group, start, last = read_group(rows), carried_from(rows), n_layers_of(rows)
    if group is None or start is None:
        return f"At depth {last}, the last, no single position holds it."
    if start == last > 0:
        return (
            f"{_capital(group)} holds it at depth {last} alone, where the head reads it: one depth"
            f" before, its clean state restores {restored(cell(rows, group, last - 1))}."
        )
    verb = "carry" if group == CHANGED else "carries"
    return (
        f"From depth {start} of {last} on, {NAMES[group]} {verb} the answer: the clean state"
        f" restores {restored(cell(rows, group, start))} of the difference"
        f" ({counted(cell(rows, group, start)['n'], 'pair')})."
    )


def _changed(rows: TidyRows) -> str:
    """How far up the changed tokens hold it, and whether anything does in between."""
    until, start, last = changed_until(rows), carried_from(rows), n_layers_of(rows)
    if read_group(rows) == CHANGED or not last:
        return ""
    if until:
        words = (
            f"The changed tokens carry the answer up to depth {until} of {last}: there they restore"
            f" {restored(cell(rows, CHANGED, until))}"
        )
    else:  # at depth 0 they restore all: no other token differs
        words = f"After one layer the changed tokens restore {restored(cell(rows, CHANGED, 1))}"
    between = range(until + 1, last + 1 if start is None else start)
    if between and not any(
        share_of(rows, group, depth) >= HALF for group in groups_of(rows) for depth in between
    ):
        words += "; above, no position holds half of it on average"
    return f"{words}."


def _capital(group: str) -> str:
    return NAMES[group][0].upper() + NAMES[group][1:]


def _left_out(rows: TidyRows) -> str:
    """What wasn't patched, and why."""
    reasons = [f"{row['n']} ({row['reason']})" for row in of_stage(rows, "left out")]
    return f"Left out: {', '.join(reasons)}." if reasons else ""


def restored(row: TidyRow) -> str:
    """A share with its interval: 83.1 % (74.0 to 90.2)."""
    if row["low"] is None:
        return percent(row["share"])
    low, high = (percent(row[end]).removesuffix(" %") for end in ("low", "high"))
    return f"{percent(row['share'])} ({low} to {high})"


def summary(rows: TidyRows) -> dict[str, Any]:
    """Where the answer is read and from which depth on, how far the change holds it, all shares."""
    depths = range(n_layers_of(rows) + 1)
    return {
        "reads": read_group(rows),
        "carried_from": carried_from(rows),
        "changed_until": changed_until(rows),
        "pairs": n_pairs_of(rows),
        "left_out": {row["reason"]: row["n"] for row in of_stage(rows, "left out")},
        "shares": {
            group: [share_of(rows, group, depth) for depth in depths] for group in groups_of(rows)
        },
    }
