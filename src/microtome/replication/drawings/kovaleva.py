"""The exhibits of Kovaleva et al.: maps of heads task by task, bars of shares and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from microtome.experiments.kit.head_tables import head_map, heads_named
from microtome.experiments.kit.head_tables import name_of as head_name
from microtome.experiments.kit.learning import has_learnt
from microtome.experiments.kovaleva.attention_drift.report import of_first_seed, which_change_most
from microtome.experiments.kovaleva.frame_relations.report import (
    annotated_example,
    example_maps,
    follows_links,
    forward,
    linked_heads,
    which_follow,
)
from microtome.experiments.kovaleva.head_disabling.report import (
    baseline_of,
    beyond_chance,
    single_heads,
    which_layers_matter,
    which_matter,
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
    which_attend,
)
from microtome.experiments.kovaleva.token_links.report import (
    cls_means,
    follows_link,
    links_in,
    of_link,
)
from microtome.papers.exhibit import Exhibit
from microtome.replication.drawings.titles import joint
from microtome.replication.measured import Measured, name_of
from microtome.tasks.annotation.features import CLS
from microtome.views import (
    Bars,
    BarSeries,
    Cell,
    Curve,
    Figure,
    HeatMap,
    Level,
    Panels,
    Series,
    Table,
    TidyRows,
    View,
)


def _by_task(
    measured: Measured, experiment: str, what: str, draw: Callable[[str, TidyRows], Figure]
) -> tuple[View, ...]:
    """Small multiples, one for each task; a picture for each model."""
    views: list[View] = []
    for model in measured.models:
        panels = []
        for own, task, rows in measured.pairs(experiment):
            if own == model:
                panel = draw(task or name_of(model), rows)
                learnt = not measured.not_learnt(experiment, model, task)
                panels.append(panel if learnt else replace(panel, says=""))
        title, said = f"{what}: {name_of(model)}", joint({one.title: one.says for one in panels})
        if panels:
            views.append(Panels(title, tuple(panels), says=said))
    return tuple(views)


def frame_heads(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """The paper's map for every model, and the heads that follow links beyond their offset."""
    views: list[View] = []
    for model, _, rows in measured.pairs("frame-relations"):
        title = f"Attention from predicate to elements: {name_of(model)}"
        views.append(
            head_map(title, forward(rows), "score", value_label="mean of the largest weight",
                     marked=follows_links, percent=True, says=which_follow(rows))
        )  # fmt: skip
        views += [
            replace(view, title=f"{view.title}: {name_of(model)}") for view in example_maps(rows)
        ]
    return tuple(views)


def annotated_frames(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """A sentence with its frame, the one whose maps are drawn; alike for all models."""
    return next((annotated_example(rows) for _, _, rows in measured.pairs("frame-relations")), ())


def cosine_by_head(measured: Measured, exhibit: Exhibit) -> tuple[View, ...]:
    """A map for each task; colours mean the same in all of them."""

    def draw(title: str, rows: TidyRows) -> HeatMap:
        heads = [row for row in of_first_seed(rows) if row["head"] is not None]
        said = which_change_most(rows)
        return head_map(title, heads, "cosine", value_label="cosine", says=said)

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
        title = f"Attention to features: {name_of(model)} on {task}"
        learnt = not measured.not_learnt("linguistic-features", model, task)
        views.append(Panels(title, maps, says=which_attend(main) if learnt else ""))
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
        heads = single_heads(rows)
        said = which_matter(heads) if has_learnt([baseline_of(rows)]) else ""
        return head_map(title, heads, "delta", value_label="points", marked=beyond_chance,
                        diverging=True, percent=True, says=said)  # fmt: skip

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
        said = which_layers_matter(layers) if has_learnt([base]) else ""
        return Curve(title, "layer", base["metric"], (line,), levels=(level,), says=said)

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
        heads = of_link(rows, *which)
        following = [row for row in heads if follows_link(row)]
        verb = "follows" if len(following) == 1 else "follow"
        said = f"{heads_named(following, len(heads))} {verb} words of both sentences"
        return head_map(title, heads, "excess", value_label="points", marked=follows_link,
                        diverging=True, percent=True, says=said if following else "")  # fmt: skip

    shown = {
        key: rows
        for key, rows in measured.rows.items()
        if key[0] != "token-links" or any(link == "overlap" for link, _ in links_in(rows))
    }
    shared = replace(measured, rows=shown, problems={})
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
