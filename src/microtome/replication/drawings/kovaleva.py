"""The exhibits of Kovaleva et al.: maps of heads task by task, bars of shares and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from microtome.experiments.kit.head_tables import head_map
from microtome.experiments.kit.head_tables import name_of as head_name
from microtome.experiments.kovaleva.attention_drift.report import of_first_seed
from microtome.experiments.kovaleva.attention_patterns.report import (
    SHORT,
    example_maps,
    of_all_maps,
)
from microtome.experiments.kovaleva.frame_relations.report import (
    follows_links,
    forward,
    linked_heads,
)
from microtome.experiments.kovaleva.head_disabling.report import (
    baseline_of,
    beyond_chance,
    single_heads,
    whole_layers,
)
from microtome.experiments.kovaleva.initialization.report import (
    REFERENCES,
    STARTS,
    metrics_of,
    values_of,
)
from microtome.experiments.kovaleva.linguistic_features.report import (
    features_in,
    main_rows,
    of_feature,
    stands_out,
)
from microtome.experiments.kovaleva.token_links.report import (
    cls_means,
    follows_link,
    links_in,
    of_link,
)
from microtome.papers.exhibit import Exhibit
from microtome.replication.measured import Measured, name_of
from microtome.tasks.annotation.features import CLS
from microtome.views import (
    Bars,
    BarSeries,
    Cell,
    Curve,
    HeatMap,
    Level,
    Panels,
    Series,
    Table,
    TidyRows,
    View,
)

Maps = Callable[[TidyRows], HeatMap]


def _by_task(
    measured: Measured, experiment: str, what: str, draw: Callable[[str, TidyRows], View]
) -> tuple[View, ...]:
    """Small multiples, one for each task; a picture for each model."""
    views: list[View] = []
    for model in measured.models:
        panels = [
            draw(task or name_of(model), rows)
            for own, task, rows in measured.pairs(experiment)
            if own == model
        ]
        title = f"{what}: {name_of(model)}"
        if panels:
            views.append(Panels(title, tuple(panels)))  # type: ignore[arg-type]
    return tuple(views)


def typical_heads(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """For each pattern, the head that has it most often, how often, and a map of it."""
    lines: list[tuple[Cell, ...]] = []
    maps: list[View] = []
    for model, task, rows in measured.pairs("attention-patterns"):
        maps += [
            replace(view, title=f"{view.title}: {name_of(model)} on {task}")
            for view in example_maps(rows)
        ]
        for pattern in SHORT:
            heads = [r for r in rows if r["head"] is not None and r["pattern"] == pattern]
            if any(row["share"] for row in heads):
                most = max(heads, key=lambda row: row["share"])
                ends = (most["low"], most["high"])
                lines.append((name_of(model), task, pattern, head_name(most), most["share"], *ends))
    columns = ("model", "task", "pattern", "head_name", "share", "low", "high")
    table = Table(exhibit.title, columns, tuple(lines), percent=("share", "low", "high"))
    return (*maps, table)


def shares_of_patterns(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Stacked bars: a bar for each task, a picture for each model."""
    views: list[View] = []
    for model in measured.models:
        shares = {
            task: of_all_maps(rows)
            for own, task, rows in measured.pairs("attention-patterns")
            if own == model
        }
        if shares:
            series = tuple(
                BarSeries(name, tuple(own[name]["share"] for own in shares.values()))
                for name in SHORT
                if all(name in own for own in shares.values())
            )
            title = f"{exhibit.title}: {name_of(model)}"
            views.append(Bars(title, "task", "share of maps", tuple(shares), series, stacked=True))
    return tuple(views)


def frame_heads(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """The paper's map for every model, and the heads that follow links beyond their offset."""
    views: list[View] = []
    for model, _, rows in measured.pairs("frame-relations"):
        title = f"Attention from predicate to elements: {name_of(model)}"
        views.append(
            head_map(title, forward(rows), "score", value_label="mean of the largest weight",
                     marked=follows_links, percent=True)
        )  # fmt: skip
    return tuple(views)


def cosine_by_head(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """A map for each task; colours mean the same in all of them."""

    def draw(title: str, rows: TidyRows) -> HeatMap:
        heads = [row for row in of_first_seed(rows) if row["head"] is not None]
        return head_map(title, heads, "cosine", value_label="cosine")

    return _by_task(measured, "attention-drift", "Cosine of pre-trained and fine-tuned maps", draw)


def starts(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """A line per task, a column per start; then as bars; for each model."""
    views: list[View] = []
    for model in measured.models:
        found = {t: rows for own, t, rows in measured.pairs("initialization") if own == model}
        if not found:
            continue
        shown = (*STARTS, *REFERENCES)
        lines = tuple(
            (task, metrics_of(rows)[0], *(_mean(values_of(rows, start)) for start in shown))
            for task, rows in found.items()
        )
        title = f"{exhibit.title}: {name_of(model)}"
        views.append(Table(title, ("task", "metric", *shown), lines, percent=shown))
        series = tuple(
            BarSeries(start, tuple(_mean(values_of(rows, start)) for rows in found.values()))
            for start in STARTS
        )
        views.append(Bars(title, "task", "score", tuple(found), series))
    return tuple(views)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def features_by_head(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """For every model and task, a map of each feature; colours mean the same in all of them."""
    views: list[View] = []
    for model, task, rows in measured.pairs("linguistic-features"):
        main = main_rows(rows)
        maps = tuple(
            head_map(feature, of_feature(main, feature), "attention",
                     value_label="share of attention", marked=stands_out, percent=True)
            for feature in features_in(main)
        )  # fmt: skip
        views.append(Panels(f"Attention to features: {name_of(model)} on {task}", maps))
    return tuple(views)


def attention_of_cls(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Bars: what [CLS] gives each kind of token, task by task, a picture for each model."""
    views: list[View] = []
    for model in measured.models:
        means = {
            task: cls_means(rows)
            for own, task, rows in measured.pairs("token-links")
            if own == model
        }
        kinds = [kind for kind in _kinds(means) if kind != CLS]
        series = tuple(
            BarSeries(kind, tuple(own.get(kind) for own in means.values())) for kind in kinds
        )
        if series:
            title = f"{exhibit.title}: {name_of(model)}"
            views.append(Bars(title, "task", "attention of [CLS]", tuple(means), series))
    return tuple(views)


def _kinds(means: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The six kinds that receive most over all tasks: as many as can be told apart."""
    totals: dict[str, float] = {}
    for own in means.values():
        for kind, mean in own.items():
            totals[kind] = totals.get(kind, 0.0) + mean
    return sorted((kind for kind in totals if kind != CLS), key=lambda kind: -totals[kind])[:6]


def disabled_heads(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """A map of changes for each task, then the best, the worst and the average head."""

    def draw(title: str, rows: TidyRows) -> HeatMap:
        return head_map(title, single_heads(rows), "delta", value_label="points",
                        marked=beyond_chance, diverging=True, percent=True)  # fmt: skip

    lines: list[tuple[Cell, ...]] = []
    for model, task, rows in measured.pairs("head-disabling"):
        heads, base = single_heads(rows), baseline_of(rows)
        best, worst = (pick(heads, key=lambda row: row["delta"]) for pick in (max, min))
        lines.append(
            (
                name_of(model), task, base["value"], head_name(best), best["delta"],
                head_name(worst), worst["delta"], fmean(row["delta"] for row in heads),
                base.get("honest_gain"),
            )
        )  # fmt: skip
    columns = (
        "model", "task", "score", "best_head", "best", "worst_head", "worst", "average", "honest",
    )  # fmt: skip
    percent = ("score", "best", "worst", "average", "honest")
    table = Table(
        "Best, worst and average head (honest: the best, picked on other rows)",
        columns,
        tuple(lines),
        percent=percent,
    )
    maps = _by_task(measured, "head-disabling", "Change when one head is disabled", draw)
    return (*maps, table)


def disabled_layers(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """The score with each layer disabled, the whole model dotted; a panel for each task."""

    def draw(title: str, rows: TidyRows) -> Curve:
        layers = sorted(whole_layers(rows), key=lambda row: row["layer"])
        x = tuple(float(row["layer"]) for row in layers)
        line = Series("layer disabled", x, tuple(row["value"] for row in layers))
        base = baseline_of(rows)
        level = Level("nothing disabled", base["value"])
        return Curve(title, "layer", base["metric"], (line,), levels=(level,))

    views: list[View] = []
    for metric in dict.fromkeys(
        baseline_of(rows)["metric"] for _, _, rows in measured.pairs("head-disabling")
    ):
        alike = Measured(
            {k: rows for k, rows in measured.rows.items()
             if k[0] == "head-disabling" and baseline_of(rows)["metric"] == metric},
            {}, measured.stacks, measured.sizes,
        )  # fmt: skip
        views += _by_task(alike, "head-disabling", f"{metric} with one layer disabled", draw)
    return tuple(views)


def overlap_and_frame_heads(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """Maps of attention on words of both sentences; what disabling frame heads costs."""

    def draw(title: str, rows: TidyRows) -> HeatMap:
        which = next(link for link in links_in(rows) if link[0] == "overlap")
        return head_map(title, of_link(rows, *which), "excess", value_label="points",
                        marked=follows_link, diverging=True, percent=True)  # fmt: skip

    shared = Measured(
        {key: rows for key, rows in measured.rows.items()
         if key[0] == "token-links" and any(link == "overlap" for link, _ in links_in(rows))},
        {}, measured.stacks, measured.sizes,
    )  # fmt: skip
    title = "Words in both sentences: attention beyond the same offset"
    maps = _by_task(shared, "token-links", title, draw)
    lines: list[tuple[Cell, ...]] = []
    for model, task, rows in measured.pairs("head-disabling"):
        following = linked_heads(measured.of("frame-relations", model))
        deltas = {head_name(row): row for row in single_heads(rows)}
        for head in (head_name(row) for row in following):
            row = deltas[head]
            lines.append(
                (name_of(model), head, task, row["delta"], row["low"], row["high"], row["p_holm"])
            )
    columns = ("model", "head_name", "task", "change", "low", "high", "p_holm")
    percent = ("change", "low", "high")
    title = "Heads that follow frame relations, disabled one at a time"
    return (*maps, Table(title, columns, tuple(lines), percent=percent))
