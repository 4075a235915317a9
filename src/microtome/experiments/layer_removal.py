"""Layer removal without training: what may be cut as it stands (cf. Kao et al. 2021, abstract).

Single layers, and more and more layers from the top and from the bottom, are removed from the
fine-tuned model; the task's metric is taken before and after on the same rows. Every variant has
its price beside it: parameters, FLOPs per token, and tokens per second measured next to the base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Experiment, Rows, percent, points
from microtome.experiments.finetuning import OPTIONS, head_first
from microtome.experiments.subject import Subject, opened_model, opened_rows
from microtome.runs import Context, Result, Trial
from microtome.views import Cell, Curve, Series, Table, View

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from microtome.experiments.comparing import Outcome
    from microtome.observe import Encoded

NAME = "layer-removal"
STRATEGIES = ("each", "top", "bottom")


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One trial per way of removing; the baseline is in each, because differences are paired."""
    head = head_first(subject, settings)
    ways = [
        subject.trial(
            "layer_removal:measure", NAME, {"strategy": way}, needs=head, label=f"remove {way}"
        )
        for way in STRATEGIES
    ]
    return [*head, *ways]


def edits_of(strategy: str, n_layers: int) -> dict[str, str]:
    """The edits of one way of removing, by what is left to say: which layers are gone."""
    if strategy == "each":
        return {str(i): f"remove({i})" for i in range(n_layers)}
    if strategy == "top":
        return {f"top {k}": f"keep(0-{n_layers - 1 - k})" for k in range(1, n_layers)}
    return {f"bottom {k}": f"keep({k}-{n_layers - 1})" for k in range(1, n_layers)}


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Remove, predict, compare with the untouched model, and price."""
    from microtome.evaluation import check_fit, encode_for, outcome, scored
    from microtome.experiments.comparing import baseline_row, compared, picked
    from microtome.observe import predict

    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    check_fit(model, dataset)
    encoded = encode_for(model, tokenizer, dataset)
    metric = dataset.task.primary
    assert metric is not None

    def answers(edited: PreTrainedModel) -> Outcome:
        found = scored(model, dataset, encoded, predict(edited, encoded))
        return outcome(dataset, found, metric)

    baseline, variants, prices = answers(model), {}, {}
    for name, text, edited in removed(model, request["strategy"]):
        variants[name] = answers(edited)
        prices[name] = {"edit": text, **priced(edited, model, encoded)}
    base = baseline_row(baseline, dataset, metric=metric)
    base |= picked(list(variants), list(variants.values()), baseline, clusters=dataset.clusters)
    rows = compared(variants, baseline, metric=metric, clusters=dataset.clusters)
    every = [
        base | {"edit": "", **priced(model, model, encoded)},
        *(row | prices[row["target"]] for row in rows),
    ]
    marked = [{"strategy": request["strategy"], **row} for row in every]
    return Result(rows=marked, summary={metric: base["value"]})


def removed(model: PreTrainedModel, strategy: str) -> Iterator[tuple[str, str, PreTrainedModel]]:
    """(name, edit, edited model), certified; what a family can't cut is left out."""
    from microtome.edits import parse
    from microtome.errors import EditError
    from microtome.families import adapt
    from microtome.surgery import apply, certify_weights

    for name, text in edits_of(strategy, adapt(model).shape.n_layers).items():
        try:
            edited = apply(parse(text), model)
        except EditError:
            continue  # ModernBERT's layer 0 has to stay
        certify_weights(parse(text), model, edited).require()
        yield name, text, edited


def priced(edited: PreTrainedModel, base: PreTrainedModel, texts: Encoded) -> dict[str, Any]:
    """What a model costs, and its speed beside the base's."""
    from microtome.families import adapt
    from microtome.models import cost
    from microtome.observe.speed import relative_speed

    price = cost(edited)
    return {
        "layers": adapt(edited).shape.n_layers,
        "parameters": price.parameters,
        "flops_per_token": price.flops_per_token,
        "speed": 1.0 if edited is base else relative_speed(edited, base, texts),
    }


def views(rows: Rows) -> tuple[View, ...]:
    """Score against the layers left, and a table with the price of every cut."""
    series = []
    for way in ("top", "bottom"):
        cut = sorted((r for r in rows if r["strategy"] == way), key=lambda r: r["layers"])
        series.append(
            Series(
                f"removed from the {way}",
                tuple(float(r["layers"]) for r in cut),
                tuple(r["value"] for r in cut),
                tuple(r["value_low"] for r in cut),
                tuple(r["value_high"] for r in cut),
            )
        )
    curve = Curve(
        "Layers removed, without training", "layers left", rows[0]["metric"], tuple(series)
    )
    columns = ("edit", "layers", "value", "delta", "low", "high", "p_holm", "parameters", "speed")
    ordered = [r for r in rows if r["target"] != "baseline"]
    cells: tuple[tuple[Cell, ...], ...] = tuple(tuple(r[c] for c in columns) for r in ordered)
    shown = ("value", "delta", "low", "high")
    return curve, Table("What each cut costs and saves", columns, cells, percent=shown)


def finding(rows: Rows) -> str:
    """What may be cut at no cost that can be seen, and what it saves."""
    cuts = [row for row in rows if row["target"] != "baseline"]
    base = next(row for row in rows if row["target"] == "baseline")
    free = [row for row in cuts if row["low"] > -0.01]
    singles = [row for row in cuts if row["strategy"] == "each"]
    worst = min(singles, key=lambda row: row["delta"])
    words = (
        f"The {base['metric']} with all {base['layers']} layers is {percent(base['value'])}."
        f" Removing layer {worst['target']} hurts most: {points(worst['delta'])} points"
        f" ({points(worst['low'])} to {points(worst['high'])})."
    )
    if not free:
        return f"{words} No cut is sure to cost less than 1 point without training."
    best = min(free, key=lambda row: row["layers"])
    return (
        f"{words} {len(free)} of {len(cuts)} cuts cost less than 1 point with 95 % confidence; the"
        f" deepest is {best['edit']}: {best['layers']} layers left, {points(best['delta'])} points,"
        f" {best['speed']:.2f} times the speed, {best['parameters']:,} parameters."
    )


def summary(rows: Rows) -> dict[str, Any]:
    """The deepest cut that is sure to cost less than a point."""
    free = [row for row in rows if row["target"] != "baseline" and row["low"] > -0.01]
    best = min(free, key=lambda row: row["layers"], default=None)
    return {"deepest_free_cut": best and best["edit"], "n_free_cuts": len(free)}


EXPERIMENT = Experiment(
    name=NAME,
    section="Kao et al. 2021, abstract (removal), without training",
    question="Which layers may be cut, and what does it save?",
    method=__doc__ or "",
    columns=(
        "strategy", "edit", "layers", "metric", "value", "delta", "low", "high", "p", "p_holm",
        "p_bh", "p_maxt", "parameters", "flops_per_token", "speed",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=OPTIONS,
)  # fmt: skip
