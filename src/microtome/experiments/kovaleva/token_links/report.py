"""Maps of attention on links beyond their offset, leading heads, and where [CLS] looks."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from microtome.experiments.kit.head_tables import head_map, name_of
from microtome.tasks.annotation.features import CLS
from microtome.tasks.annotation.links import SIDES
from microtome.views import Table, TidyRow, TidyRows, View, table_of

MEANINGFUL = 0.01  # an excess below a point of attention is no link, however sure


def links_in(rows: TidyRows) -> list[tuple[str, str]]:
    """(link, direction) in the order of the rows, [CLS] aside."""
    return list(dict.fromkeys((r["link"], r["direction"]) for r in rows if r["link"] != CLS))


def absent_links(rows: TidyRows) -> list[str]:
    """The links that were asked for (all, if none was named) and that no text has."""
    present = {row["link"] for row in rows}
    looked_for = rows[0].get("looked_for") or ", ".join(SIDES)
    return [name for name in looked_for.split(", ") if name not in present]


def of_link(rows: TidyRows, link: str, direction: str) -> list[Any]:
    """The rows of one link in one direction."""
    return [row for row in rows if (row["link"], row["direction"]) == (link, direction)]


def follows_link(row: TidyRow) -> bool:
    """Whether a head follows the link beyond position, and beyond chance over all heads."""
    sure = row["p_maxt"] is not None and row["p_maxt"] <= 0.05
    return sure and row["excess"] >= MEANINGFUL


def leading(rows: TidyRows) -> Any:  # noqa: ANN401  # a row
    """The head with the largest excess over the offset control."""
    return max(rows, key=lambda row: -2.0 if row["excess"] is None else row["excess"])


def cls_means(rows: TidyRows, column: str = "attention") -> dict[str, float]:
    """What [CLS] gives each kind of token in the last layer, over its heads; most first."""
    means = {kind: fmean(row[column] for row in kept) for kind, kept in _by_kind(rows).items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def _by_kind(rows: TidyRows) -> dict[str, list[TidyRow]]:
    """The rows of [CLS] by the kind of token that it attends to."""
    by_kind: dict[str, list[TidyRow]] = {}
    for row in rows:
        if row["link"] == CLS:
            by_kind.setdefault(row["feature"], []).append(row)
    return by_kind


def views(rows: TidyRows) -> tuple[View, ...]:
    """The excess of every link, the leading heads, and what [CLS] attends to."""
    maps = [
        head_map(
            f"{link}, {direction}: attention beyond the same offset",
            of_link(rows, link, direction), "excess",
            value_label="points", marked=follows_link, diverging=True, percent=True,
        )
        for link, direction in links_in(rows)
    ]  # fmt: skip
    return (*_leaders(rows), *maps, _cls_table(rows))


def _leaders(rows: TidyRows) -> tuple[Table, ...]:
    best = [leading(of_link(rows, *which)) for which in links_in(rows)]
    if not best:
        return ()
    columns = (
        "link", "direction", "head_name", "attention", "control", "stripe_control", "excess",
        "excess_low", "excess_high", "p_maxt", "diagonal", "n",
    )  # fmt: skip
    percent = tuple(name for name in columns[3:] if name not in ("p_maxt", "n"))
    named = [{"head_name": name_of(row), **row} for row in best]
    title = "The head that follows each link most, beyond its offset"
    return (table_of(title, named, columns, percent=percent),)


def _cls_table(rows: TidyRows) -> Table:
    by_kind = _by_kind(rows)
    lines = [
        {
            "to": kind, "attention": mean,
            "control": _mean([row["control"] for row in by_kind[kind]]),
            "n": by_kind[kind][0]["n"],
        }
        for kind, mean in cls_means(rows).items()
    ]  # fmt: skip
    columns = ("to", "attention", "control", "n")
    title = "What [CLS] attends to in the last layer, mean over heads"
    return table_of(title, lines, columns, percent=("attention", "control"))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def finding(rows: TidyRows) -> str:
    """Which heads follow a link rather than an offset, and where [CLS] looks."""
    links = links_in(rows)
    sentences = [_link_sentence(link, direction, of_link(rows, link, direction))
                 for link, direction in links]  # fmt: skip
    if absent := absent_links(rows):
        sentences.append(f"Not in this text: {', '.join(absent)}.")
    kinds = [f"{kind} {mean:.3f}" for kind, mean in cls_means(rows).items() if kind != CLS]
    sentences.append(f"In the last layer [CLS] gives most to {', then '.join(kinds[:3])}.")
    return " ".join(sentences)


def _link_sentence(link: str, direction: str, rows: TidyRows) -> str:
    best, n_following = leading(rows), sum(map(follows_link, rows))
    return (
        f"{link} ({direction}): {n_following or 'none'} of {len(rows)} heads beyond the same offset"
        f" without a link, most {name_of(best)} ({best['attention']:.2f} against"
        f" {best['control']:.2f})."
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """The leading head of every link, and the kinds of tokens that [CLS] attends to."""
    heads = {
        f"{link} ({direction})": {
            "head": name_of(leading(by_head)), "n_heads": sum(map(follows_link, by_head)),
        }
        for link, direction in links_in(rows)
        if (by_head := of_link(rows, link, direction))
    }  # fmt: skip
    return {**heads, "cls_attends_to": cls_means(rows)}
