"""The exhibits of Kao et al.: curves over depths and layers, tables of depths and ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from microtome.experiments.kao.decoding.report import curve_rows, deeper_rows
from microtome.experiments.kao.duplication.strategies import BASELINE
from microtome.experiments.kao.layer_removal.report import baseline_of, measured_rows
from microtome.experiments.kit.seed_curves import by_place, ends_of, mean_of
from microtome.papers.exhibit import Exhibit
from microtome.replication.measured import Measured, name_of
from microtome.views import (
    Cell,
    Curve,
    Level,
    Panels,
    Sentences,
    Series,
    Table,
    TidyRow,
    TidyRows,
    View,
    series_of,
)

PAPERS_LAYERS = 12  # models up to this depth share a figure, deeper ones have their own
MOST_LINES = 6


def token_accuracy(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Every depth, pre-trained and fine-tuned; right of the divider, deeper models' last states."""
    views: list[Curve] = []
    for task in measured.tasks:
        curves = [
            (model, rows)
            for model in measured.models
            if (rows := measured.of("decoding", model, task))
        ]
        shown = [[pair] for pair in curves] if 3 * len(curves) > MOST_LINES else [curves]
        views += [_by_depth(pairs, task) for pairs in shown if pairs]
    return _panels(exhibit.title, views)


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
    return Curve(
        title, "depth", "token accuracy", tuple(lines), divider=divider, divider_label=label
    )


def _panels(title: str, views: Sequence[Curve]) -> tuple[View, ...]:
    return (Panels(title, tuple(views)),) if len(views) > 1 else tuple(views)


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
    for model, _, rows in measured.pairs("decoding"):
        if (measured.stacks[model]["layers"] > PAPERS_LAYERS) is not large:
            continue
        deeper = [curve_rows(rows)[-1], *deeper_rows(rows)]
        by_count = list({row["layers"]: row for row in deeper}.values())
        ends = ("low", "high")
        lines.append(series_of(name_of(model), by_count, "layers", "accuracy", ends=ends))
        control = f"{name_of(model)}, random blocks"
        lines.append(series_of(control, by_count, "layers", "control", is_control=True))
    if not lines:
        return ()
    return (Curve(exhibit.title, "layers", "token accuracy of the last state", tuple(lines)),)


def trained(rows: TidyRows, metric: str, strategy: str = "first") -> dict[int, list[TidyRow]]:
    """Number of layers → a row per seed, of one metric; the baseline is among them."""
    own = [
        row
        for row in rows
        if row.get("stage") == "finetuned"
        and row["metric"] == metric
        and row["strategy"] in (BASELINE, strategy)
    ]
    return by_place(own, "layers")


def _curve(name: str, by_layers: dict[int, list[TidyRow]]) -> Series:
    ends = [ends_of(rows) for rows in by_layers.values()]
    return Series(
        name, tuple(map(float, by_layers)), tuple(mean_of(rows) for rows in by_layers.values()),
        tuple(low for low, _ in ends), tuple(high for _, high in ends),
    )  # fmt: skip


def primary_of(rows: TidyRows) -> str:
    """The task's first metric."""
    return str(next(row["primary"] for row in rows if row.get("stage") == "finetuned"))


def score_by_layers(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """One line per model, its baseline dotted."""
    lines, levels, metric, on = [], [], exhibit.metric, ""
    for model, task, rows in measured.pairs("duplication"):
        on = task
        metric = exhibit.metric or primary_of(rows)
        by_layers = trained(rows, metric)
        lines.append(_curve(name_of(model), by_layers))
        levels.append(Level(name_of(model), mean_of(by_layers[min(by_layers)])))
    if not lines:
        return ()
    title = f"{metric} on {on} by number of layers".replace("_", " ")
    return (Curve(title, "layers", metric, tuple(lines), levels=tuple(levels)),)


def score_by_strategy(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """One line per way to make a model deeper, for each model; the baseline dotted."""
    views = []
    for model, task, rows in measured.pairs("duplication"):
        metric = primary_of(rows)
        names = [row["strategy"] for row in rows if row.get("stage") == "finetuned"]
        strategies = [name for name in dict.fromkeys(names) if name != BASELINE]
        lines = [_curve(name, trained(rows, metric, name)) for name in strategies]
        base = trained(rows, metric, BASELINE)
        level = Level("not duplicated", mean_of(base[min(base)]))
        title = f"{name_of(model)} on {task}"
        views.append(Curve(title, "layers", metric, tuple(lines), levels=(level,)))
    return _panels(exhibit.title, views)


def scores_by_depth(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """A block of lines per model: the baseline, then deeper ones, marked where better or worse."""
    columns = list(_score_columns(measured))
    lines: list[tuple[Cell, ...]] = []
    better: list[tuple[int, int]] = []
    worse: list[tuple[int, int]] = []
    for model in measured.models:
        scores = {
            place: trained(rows, metric)
            for place, (task, metric) in enumerate(columns, 2)
            if (rows := measured.of("duplication", model, task))
        }
        counts = sorted({count for by_layers in scores.values() for count in by_layers})
        for count in counts:
            cells: list[Cell] = [name_of(model), count]
            for place in range(2, len(columns) + 2):
                by_layers = scores.get(place, {})
                score = mean_of(by_layers[count]) if count in by_layers else None
                base = mean_of(by_layers[counts[0]]) if counts[0] in by_layers else None
                if score is not None and base is not None and score != base:
                    (better if score > base else worse).append((len(lines), place))
                cells.append(score)
            lines.append(tuple(cells))
    if not lines:
        return ()
    tasks = [task for task, _ in columns]
    names = tuple(metric for _, metric in columns)
    groups = (("", 2), *((task, tasks.count(task)) for task in dict.fromkeys(tasks)))
    title = f"{exhibit.title} (means over seeds, against each model's first line)"
    return (
        Table(
            title, ("model", "layers", *names), tuple(lines), percent=names, groups=groups,
            better=tuple(better), worse=tuple(worse),
        ),
    )  # fmt: skip


def _score_columns(measured: Measured) -> Iterator[tuple[str, str]]:
    """Task and metric of every column; questions have both of theirs, other tasks their first."""
    for task in measured.tasks:
        found = [rows for model, own, rows in measured.pairs("duplication") if own == task]
        if found:
            metrics = {row["metric"] for row in found[0] if row.get("stage") == "finetuned"}
            both = ("exact_match", "f1")
            shown = both if metrics.issuperset(both) else (primary_of(found[0]),)
            yield from ((task, metric) for metric in shown)


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
        title = f"{name_of(model)} on {task}"
        views.append(Curve(title, "layers left", base["metric"], tuple(lines), levels=(level,)))
    return _panels(exhibit.title, views)
