"""A map for every feature, and the heads that attend to it beyond chance."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from microtome.experiments.kit.head_tables import MOST_NAMED, head_map, heads_named, name_of
from microtome.experiments.kit.wording import counted, listed
from microtome.tasks.annotation.features import CLS, SEP
from microtome.views import Table, TidyRow, TidyRows, View, table_of

SPECIAL = (CLS, SEP)


def features_in(rows: TidyRows) -> list[str]:
    """The features, in the order of the rows."""
    return list(dict.fromkeys(row["feature"] for row in rows))


def of_feature(rows: TidyRows, feature: str) -> list[Any]:
    """The rows of one feature."""
    return [row for row in rows if row["feature"] == feature]


def main_rows(rows: TidyRows) -> list[Any]:
    """Those of the model that was asked about: the fine-tuned one, if there are two."""
    names = {row["checkpoint"] for row in rows}
    chosen = "finetuned" if "finetuned" in names else "pretrained"
    return [row for row in rows if row["checkpoint"] == chosen]


def stands_out(row: TidyRow) -> bool:
    """Whether a head gives the feature more than its share, beyond chance over all heads."""
    return row["p_maxt"] is not None and row["p_maxt"] <= 0.05 and row["excess"] > 0


def has_changed(row: TidyRow) -> bool:
    """Whether fine-tuning changed the attention, beyond chance over all heads."""
    return row["p_change"] is not None and row["p_change"] <= 0.05


def leading_head(rows: TidyRows, feature: str) -> Any:  # noqa: ANN401  # a row
    """The row of the head whose excess over the control is largest."""
    return max(
        of_feature(rows, feature), key=lambda row: -2.0 if row["excess"] is None else row["excess"]
    )


def layer_mean(
    rows: TidyRows, feature: str, layer: int | None = None, column: str = "attention"
) -> float:
    """The mean attention to a feature over the heads of a layer, or of all; or of its ends."""
    return fmean(row[column] for row in of_feature(rows, feature) if layer in (None, row["layer"]))


def views(rows: TidyRows) -> tuple[View, ...]:
    """A map for every feature, its change where there is a base, and the leading heads."""
    main = main_rows(rows)
    maps: list[View] = []
    for feature in features_in(main):
        by_head = of_feature(main, feature)
        maps.append(
            head_map(f"Attention to {feature}", by_head, "attention",
                     value_label="share of attention", marked=stands_out, percent=True,
                     says=which_attend(by_head))
        )  # fmt: skip
        if by_head[0]["change"] is not None:
            maps.append(
                head_map(f"Change through fine-tuning: {feature}", by_head, "change",
                         value_label="points", marked=has_changed, diverging=True, percent=True)
            )  # fmt: skip
    return (_leaders(main), *maps)


def which_attend(rows: TidyRows) -> str:
    """The features that some head is sure to look at, and the heads of one; empty where none is."""
    heads = {
        feature: [row for row in of_feature(rows, feature) if stands_out(row)]
        for feature in features_in(rows)
        if feature not in SPECIAL
    }
    attended = [feature for feature, found in heads.items() if found]
    if not attended:
        return ""
    if len(heads) == 1:
        [found] = heads.values()
        verb = "attends" if len(found) == 1 else "attend"
        named = heads_named(found, len(of_feature(rows, attended[0])))
        return f"{named} {verb} to {attended[0]} beyond chance"
    if len(attended) > MOST_NAMED:
        return f"Heads attend to {len(attended)} of {len(heads)} features beyond chance"
    return f"Heads attend to {listed(attended)} beyond chance"


def _leaders(rows: TidyRows) -> Table:
    leading = [leading_head(rows, feature) for feature in features_in(rows)]
    columns = (
        "feature", "head_name", "attention", "times_length", "control", "excess", "excess_low",
        "excess_high", "p_maxt", "n",
    )  # fmt: skip
    percent = ("attention", "control", "excess", "excess_low", "excess_high")
    named = [{"head_name": name_of(row), **row} for row in leading]
    title = "The head that gives each feature most beyond chance"
    return table_of(title, named, columns, percent=percent)


def finding(rows: TidyRows) -> str:
    """Which features any head looks at, beyond what random tokens of the texts receive."""
    main = main_rows(rows)
    features = features_in(main)
    shares = [_share(main, feature) for feature in features if feature not in SPECIAL]
    n_heads = counted(len({(row["layer"], row["head"]) for row in main}), "head")
    beyond = f"Attended to beyond as many random tokens (random draws, over {n_heads}, 5 %):"
    answer = f"{beyond} {'; '.join(shares)}." if shares else "No feature is in the text."
    special = " and ".join(
        f"{name} receives {layer_mean(main, name):.3f}" for name in SPECIAL if name in features
    )
    return (
        f"{answer} On average over heads, {special} of a token's attention." if special else answer
    )


def _share(rows: TidyRows, feature: str) -> str:
    n_heads = sum(stands_out(row) for row in of_feature(rows, feature))
    best = leading_head(rows, feature)
    return (
        f"{feature} in {counted(n_heads, 'head')} (most in {name_of(best)}:"
        f" {best['attention']:.3f} against {best['control']:.3f})"
    )


def summary(rows: TidyRows) -> dict[str, Any]:
    """The leading head of every feature, and how many stand out."""
    main = main_rows(rows)
    return {
        feature: {
            "head": name_of(leading_head(main, feature)),
            "n_heads": sum(stands_out(row) for row in of_feature(main, feature)),
        }
        for feature in features_in(main)
    }
