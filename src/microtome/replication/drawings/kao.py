"""The exhibits of Kao et al.: curves over depths and layers left, decoded texts, ensembles."""

from __future__ import annotations

from collections.abc import Sequence

from microtome.experiments.kao.decoding.report import (
    curve_rows,
    deeper_rows,
    how_deep_it_reads,
    what_inner_depths_hold,
)
from microtome.experiments.kao.layer_removal.report import (
    baseline_of,
    how_many_can_go,
    measured_rows,
)
from microtome.papers.exhibit import Exhibit
from microtome.replication.drawings.titles import joint, panels
from microtome.replication.measured import Measured, name_of
from microtome.views import (
    Cell,
    Curve,
    Level,
    Sentences,
    Series,
    Table,
    TidyRows,
    View,
    series_of,
)

PAPERS_LAYERS = 12  # models up to this depth share a figure, deeper ones have their own
MOST_LINES = 6


def token_accuracy(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Every depth, pre-trained and fine-tuned; right of the divider, deeper models' last states."""
    views: list[Curve] = []
    said: dict[str, str] = {}
    for task in measured.tasks:
        curves = [
            (model, rows)
            for model in measured.models
            if (rows := measured.of("decoding", model, task))
        ]
        shown = [[pair] for pair in curves] if 3 * len(curves) > MOST_LINES else [curves]
        views += [_by_depth(pairs, task) for pairs in shown if pairs]
        said |= {
            f"{name_of(model)} on {task}": what_inner_depths_hold(curve_rows(rows))
            for model, rows in curves
        }
    return panels(exhibit.title, views, said)


def _by_depth(pairs: Sequence[tuple[str, TidyRows]], task: str) -> Curve:
    lines: list[Series] = []
    for model, rows in pairs:
        name = name_of(model)
        before, after = curve_rows(rows, "pretrained"), curve_rows(rows, "finetuned")
        deeper = [{**row, "depth": row["layers"]} for row in deeper_rows(rows)]
        last = [row for row in deeper if not before or row["depth"] > before[-1]["depth"]]
        for which, curve in ((name, [*before, *last]), (f"{name}, fine-tuned", after)):
            if curve:
                ends = ("low", "high")
                lines.append(series_of(which, curve, "depth", "accuracy", ends=ends))
        if before:
            control = f"{name}, random blocks"
            lines.append(series_of(control, [*before, *last], "depth", "control", is_control=True))
    n_layers = {curve_rows(rows)[-1]["layers"] for _, rows in pairs}
    label = "deeper models →"
    divider = n_layers.pop() + 0.5 if len(n_layers) == 1 else None
    title = f"Token accuracy on {task}"
    said = {name_of(model): what_inner_depths_hold(curve_rows(rows)) for model, rows in pairs}
    return Curve(
        title, "depth", "token accuracy", tuple(lines), divider=divider, divider_label=label,
        says=joint(said),
    )  # fmt: skip


def decoded_text(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """What every depth makes of one text; the tokens after [CLS] that came back, too."""
    views = []
    for model, task, rows in measured.pairs("decoding"):
        curve = curve_rows(rows)
        tokens = tuple(curve[0]["input"].split(" "))
        decoded = [(row["depth"], tuple(row["decoded"].split(" "))) for row in curve]
        lines = tuple(
            (f"depth {depth} ({_share_right(tokens, words):.0f} %)", words)
            for depth, words in decoded
        )
        title = f"The first text of {task}, decoded by {name_of(model)}"
        views.append(Sentences(title, tokens, lines))
    return tuple(views)


def _share_right(tokens: Sequence[str], decoded: Sequence[str]) -> float:
    """How many of the tokens after the first, which is [CLS], are right, in percent."""
    right = [a == b for a, b in zip(tokens[1:], decoded[1:], strict=False)]
    return 100 * sum(right) / max(1, len(right))


def first_token(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """The token after [CLS] against all tokens, at the last depth."""
    lines: list[tuple[Cell, ...]] = []
    for model, task, rows in measured.pairs("decoding"):
        last = curve_rows(rows)[-1]
        share = last["first_token_accuracy"]
        lines.append(
            (name_of(model), task, share, last["accuracy"], last["low"], last["high"], last["n"])
        )
    columns = ("model", "task", "first_token", "all_tokens", "low", "high", "n")
    percent = ("first_token", "all_tokens", "low", "high")
    return (Table(exhibit.title, columns, tuple(lines), percent=percent),)


def deeper_models(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """The last state of deeper models: those of up to 12 layers."""
    return _deeper(measured, exhibit, large=False)


def deeper_large_models(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """The last state of deeper models: those of more than 12 layers."""
    return _deeper(measured, exhibit, large=True)


def _deeper(measured: Measured, exhibit: Exhibit, *, large: bool) -> tuple[View, ...]:
    lines = []
    said: dict[str, str] = {}
    for model, _, rows in measured.pairs("decoding"):
        if (measured.stacks[model]["layers"] > PAPERS_LAYERS) is not large:
            continue
        deeper = [curve_rows(rows)[-1], *deeper_rows(rows)]
        by_count = list({row["layers"]: row for row in deeper}.values())
        said[name_of(model)] = how_deep_it_reads(by_count)
        ends = ("low", "high")
        lines.append(series_of(name_of(model), by_count, "layers", "accuracy", ends=ends))
        control = f"{name_of(model)}, random blocks"
        lines.append(series_of(control, by_count, "layers", "control", is_control=True))
    if not lines:
        return ()
    label = "token accuracy of the last state"
    return (Curve(exhibit.title, "layers", label, tuple(lines), says=joint(said)),)


def ensembles(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Baseline, top-3 and all better: picked on the rows that are scored, and on others."""
    pairs = list(measured.pairs("ensembling"))
    metrics = sorted({row["metric"] for _, _, rows in pairs for row in rows})  # EM, then F1
    lines: list[tuple[Cell, ...]] = []
    for model, _, rows in pairs:
        chosen = [row for row in rows if row["selection"] in ("none", "same rows")]
        for rule in dict.fromkeys(row["rule"] for row in chosen):
            own = {row["metric"]: row for row in chosen if row["rule"] == rule}
            others = {
                row["metric"]: row
                for row in rows
                if (row["rule"], row["selection"]) == (rule, "other rows")
            }
            members = next(iter(own.values()))["members"]
            lines.append(
                (
                    name_of(model), rule, members,
                    *(own[metric]["value"] if metric in own else None for metric in metrics),
                    *(others[metric]["gain"] if metric in others else None for metric in metrics),
                )
            )  # fmt: skip
    if not lines:
        return ()
    scores = tuple(metrics)
    gains = tuple(f"{metric} gain" for metric in metrics)
    groups = (
        ("", 3),
        ("picked on the rows that are scored", len(scores)),
        ("gain, picked on other rows", len(gains)),
    )
    columns = ("model", "rule", "members", *scores, *gains)
    table = Table(exhibit.title, columns, tuple(lines), percent=(*scores, *gains), groups=groups)
    return (table,)


def removal(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Score against the layers left, from the top and from the bottom; the whole model dotted."""
    views = []
    for model, task, rows in measured.pairs("layer-removal"):
        lines = []
        for side in ("top", "bottom"):
            cuts = [row for row in measured_rows(rows) if row["strategy"] == side]
            cuts.sort(key=lambda row: row["layers"])
            ends = ("value_low", "value_high")
            if len(cuts) > 1:
                name = f"removed from the {side}"
                lines.append(series_of(name, cuts, "layers", "value", ends=ends))
        base = baseline_of(rows)
        level = Level("whole model", base["value"])
        title, metric = f"{name_of(model)} on {task}", base["metric"]
        views.append(
            Curve(
                title, "layers left", metric, tuple(lines), levels=(level,),
                says=how_many_can_go(rows),
            )
        )  # fmt: skip
    return panels(exhibit.title, views)
