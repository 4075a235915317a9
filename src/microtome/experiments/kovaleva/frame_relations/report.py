"""Maps of attention on frame links, the heads that follow them, and what they are worth."""

from __future__ import annotations

from typing import Any

from microtome.experiments.kit.head_tables import head_map, heads_named, name_of, token_map
from microtome.experiments.kit.learning import CONSTANT, constant_of, not_learnt
from microtome.experiments.kit.wording import change, counted, percent
from microtome.views import Panels, Table, TidyRow, TidyRows, View, table_of

FORWARD, BACK = "predicate→element", "element→predicate"
MOST_NAMED = 5
MOST_DISABLED = 8  # of the heads that follow links, strongest first


def forward(rows: TidyRows) -> list[Any]:
    """From the predicate to its elements, as in the paper's example."""
    return [row for row in rows if row["direction"] == FORWARD]


def follows_links(row: TidyRow) -> bool:
    """Whether the head follows links beyond their offset, and beyond chance over all heads."""
    return row["p_max"] is not None and row["p_max"] <= 0.05


def linked_heads(rows: TidyRows) -> list[Any]:
    """The rows of heads that follow links forwards, strongest first."""
    following = [row for row in forward(rows) if follows_links(row)]
    return sorted(following, key=lambda row: -row["excess"])


def which_follow(rows: TidyRows) -> str:
    """The heads that are sure to follow links from the predicate; empty where none is."""
    linked = linked_heads(rows)
    verb = "follows" if len(linked) == 1 else "follow"
    return f"{heads_named(linked, len(forward(rows)))} {verb} frame relations" if linked else ""


def views(rows: TidyRows) -> tuple[View, ...]:
    """The paper's map, what the offset leaves of it, the other direction, and the linked heads."""
    forwards = forward(rows)
    backwards = [row for row in rows if row["direction"] == BACK]
    return (
        head_map("Attention from predicate to elements", forwards, "score",
                 value_label="mean of the largest weight", marked=follows_links, percent=True,
                 says=which_follow(rows)),
        head_map("Beyond the same offset: predicate to elements", forwards, "excess",
                 value_label="points", marked=follows_links, diverging=True, percent=True),
        head_map("Beyond the same offset: element to predicate", backwards, "excess",
                 value_label="points", marked=follows_links, diverging=True, percent=True),
        *example_maps(rows), *annotated_example(rows), _table(forwards),
    )  # fmt: skip


def example_maps(rows: TidyRows) -> tuple[Panels, ...]:
    """The maps of two heads; none of rows that were measured before maps were kept."""
    maps = tuple(
        token_map(f"Head {name_of(row)}", row["example_tokens"], row["example_weights"],
                  marked=[tuple(pair) for pair in row["example_link"]],
                  mark_label="predicate to element")
        for row in rows if row.get("example_weights")
    )  # fmt: skip
    title = "Two heads on an exemplar: those furthest beyond the offset"
    return (Panels(title, maps),) if maps else ()


def annotated_example(rows: TidyRows) -> tuple[Table, ...]:
    """The exemplar of the maps: its words, and what they are in the frame."""
    own = next((row for row in rows if row.get("example_words")), None)
    if own is None:
        return ()
    lines = tuple(zip(own["example_words"], own["example_roles"], strict=True))
    return (Table("An annotated exemplar", ("word", "role"), lines),)


def _table(rows: TidyRows) -> Table:
    most_attention = sorted(rows, key=lambda row: -row["score"])[:5]
    shown = [
        *linked_heads(rows)[:MOST_DISABLED],
        *(row for row in most_attention if not follows_links(row)),
    ]
    columns = (
        "head_name", "score", "control", "stripe_control", "count_control", "excess", "p", "p_max",
        "delta", "delta_low", "delta_high",
    )  # fmt: skip
    percent = [name for name in columns if name not in ("head_name", "p", "p_max")]
    named = [{"head_name": name_of(row), **row} for row in shown]
    title = "Heads that follow the links, and heads with most attention on them"
    return table_of(title, named, columns, percent=percent)


def finding(rows: TidyRows) -> str:
    """How many heads follow frame links rather than an offset, and what they are worth."""
    forwards, linked = forward(rows), linked_heads(rows)
    names = ", ".join(
        f"{name_of(row)} {change(row['excess'], row['excess_low'], row['excess_high'])}"
        for row in linked[:MOST_NAMED]
    )
    follow = "follow" if len(linked) > 1 else "follows"
    answer = (
        f"{len(linked) or 'None'} of {len(forwards)} heads {follow} frame links beyond their offset"
        f" (placement test, 5 %, over all heads){f': {names}' if names else ''}."
    )
    sentences = [answer, _most_attention(forwards)]
    if priced := [row for row in linked if row["delta"] is not None]:
        sentences.append(model_not_learnt(priced) or _costs(priced))
    return " ".join(sentences)


def model_not_learnt(priced: TidyRows) -> str:
    """Why no disabled head is compared with the model; empty where it has learnt the task."""
    return not_learnt(priced[:1], "The model")


def _costs(priced: TidyRows) -> str:
    costs = ", ".join(
        f"{name_of(row)} {change(row['delta'], row['delta_low'], row['delta_high'])}"
        for row in priced
    )
    constant = constant_of(priced)
    floor = "" if constant is None else (
        f" ({percent(priced[0]['value'])} with all heads, {CONSTANT}: {percent(constant)})"
    )  # fmt: skip
    return f"Disabling them changes the {priced[0]['metric']}{floor} by: {costs}."


def _most_attention(rows: TidyRows) -> str:
    top = max(rows, key=lambda row: row["score"])
    return (
        f"Over {counted(top['n'], 'exemplar')}, head {name_of(top)} has most attention from"
        f" predicate to element: {top['score']:.2f}, against {top['control']:.2f} at the same"
        f" offset without a link, {_shown(top['stripe_control'])} from other queries and"
        f" {_shown(top['count_control'])} for as many random pairs."
    )


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def summary(rows: TidyRows) -> dict[str, Any]:
    """The heads that follow links, and the one with most attention."""
    forwards = forward(rows)
    return {
        "found": [name_of(row) for row in linked_heads(rows)],
        "most_attention": name_of(max(forwards, key=lambda row: row["score"])),
        "n": forwards[0]["n"],
    }
