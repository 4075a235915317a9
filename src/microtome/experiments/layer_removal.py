"""Layer removal without training: what may be cut as it stands (cf. Kao et al. 2021, abstract).

Single layers, and more and more layers from the top and from the bottom, are removed from the
fine-tuned model; the task's metric is taken before and after on the same rows. Every variant has
its price beside it: parameters, FLOPs per token, and tokens per second measured next to the base.
ALBERT's layers share their weights: each gets a copy of its own first, in the baseline too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Experiment, Row, Rows, counted, percent, points
from microtome.experiments.finetuning import OPTIONS, head_first
from microtome.experiments.subject import Subject, opened_rows, opened_unshared
from microtome.runs import Context, Result, Trial
from microtome.views import Cell, Curve, Series, Table, View

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from microtome.experiments.comparing import Outcome

NAME = "layer-removal"
STRATEGIES = ("each", "top", "bottom")


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One trial per way of removing; the baseline is in each, because differences are paired.

    Speeds differ from run to run, so they are taken once, in a trial of their own: everything else
    is a function of the request.
    """
    head = head_first(subject, settings)
    timed = subject.trial("layer_removal:time", NAME, {}, needs=head, label="time every cut")
    ways = [
        subject.trial(
            "layer_removal:measure", NAME, {"strategy": way}, needs=(*head, timed),
            label=f"remove {way}",
        )
        for way in STRATEGIES
    ]  # fmt: skip
    return [*head, timed, *ways]


def edits_of(strategy: str, n_layers: int) -> dict[str, str]:
    """The edits of one way of removing, by what is left to say: which layers are gone."""
    if strategy == "each":
        return {str(i): f"remove({i})" for i in range(n_layers)}
    if strategy == "top":
        return {f"top {k}": f"keep(0-{n_layers - 1 - k})" for k in range(1, n_layers)}
    return {f"bottom {k}": f"keep({k}-{n_layers - 1})" for k in range(1, n_layers)}


@dataclass(frozen=True)
class Cut:
    """One edit and the model that it gives, or why the family refuses it."""

    name: str
    edit: str
    model: PreTrainedModel | None
    refusal: str = ""


def cuts_of(model: PreTrainedModel, strategy: str) -> Iterator[Cut]:
    """Every cut of one way of removing, certified; a refused one says why."""
    from microtome.edits import parse
    from microtome.errors import EditError
    from microtome.families import adapt
    from microtome.surgery import apply, certify_weights

    for name, text in edits_of(strategy, adapt(model).shape.n_layers).items():
        edit = parse(text)
        try:
            edited = apply(edit, model)
        except EditError as error:  # ModernBERT's layer 0 has to stay; so has an only layer
            why = "; ".join(part for part in (error.message, error.hint) if part)
            yield Cut(name, edit.text, None, why)
            continue
        certify_weights(edit, model, edited).require()
        yield Cut(name, edit.text, edited)


def time(request: Mapping[str, Any], context: Context) -> Result:
    """The speed of every cut beside the base's: a measurement, stored once."""
    import numpy as np

    from microtome.evaluation import encode_for
    from microtome.observe.speed import relative_speed

    model, tokenizer, _ = opened_unshared(context)
    encoded = encode_for(model, tokenizer, opened_rows(request, context))
    speeds = {
        cut.edit: relative_speed(cut.model, model, encoded)
        for way in STRATEGIES
        for cut in cuts_of(model, way)
        if cut.model is not None
    }
    edits = np.array(list(speeds), dtype=str)
    return Result(arrays={"edits": edits, "speeds": np.array(list(speeds.values()), dtype=float)})


def stored_speeds(context: Context) -> dict[str, float]:
    """Edit → speed, from the trial that took them."""
    import numpy as np

    found = [np.load(n.arrays, allow_pickle=False) for n in context.needs.values() if n.arrays]
    timed = next(part for part in found if "speeds" in part)
    return dict(zip(timed["edits"].tolist(), timed["speeds"].tolist(), strict=True))


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Remove, predict, compare with the untouched model, and price."""
    from microtome.evaluation import check_fit, encode_for, outcome, scored
    from microtome.experiments.comparing import baseline_row, compared, picked
    from microtome.observe import predict

    model, tokenizer, first = opened_unshared(context)
    dataset = opened_rows(request, context)
    check_fit(model, dataset)
    encoded = encode_for(model, tokenizer, dataset)
    speeds = stored_speeds(context)
    metric = dataset.task.primary
    assert metric is not None

    def answers(edited: PreTrainedModel) -> Outcome:
        found = scored(model, dataset, encoded, predict(edited, encoded))
        return outcome(dataset, found, metric)

    baseline, variants, prices, refused = answers(model), {}, {}, []
    for cut in cuts_of(model, request["strategy"]):
        text = f"{first} | {cut.edit}" if first else cut.edit
        if cut.model is None:
            refused.append(refused_row(cut.name, text, metric, cut.refusal))
            continue
        variants[cut.name] = answers(cut.model)
        prices[cut.name] = {"edit": text, **priced(cut.model), "speed": speeds[cut.edit]}
    base = baseline_row(baseline, dataset, metric=metric)
    if variants:
        base |= picked(list(variants), list(variants.values()), baseline, clusters=dataset.clusters)
    rows = compared(variants, baseline, metric=metric, clusters=dataset.clusters)
    every = [
        base | {"edit": first, **priced(model), "speed": 1.0},
        *(row | prices[row["target"]] for row in rows),
        *refused,
    ]
    marked = [{"strategy": request["strategy"], **row} for row in every]
    return Result(rows=marked, summary={metric: base["value"]})


def refused_row(name: str, edit: str, metric: str, why: str) -> dict[str, Any]:
    """A cut that the family doesn't allow: no number, and the reason."""
    empty = (
        "value", "value_low", "value_high", "delta", "low", "high", "n", "p", "p_holm", "p_bh",
        "p_maxt", "layers", "parameters", "flops_per_token", "speed",
    )  # fmt: skip
    named = {"target": name, "edit": edit, "metric": metric, "refused": why}
    return named | dict.fromkeys(empty)


def priced(edited: PreTrainedModel) -> dict[str, Any]:
    """What a model costs."""
    from microtome.families import adapt
    from microtome.models import cost

    price = cost(edited)
    return {
        "layers": adapt(edited).shape.n_layers,
        "parameters": price.parameters,
        "flops_per_token": price.flops_per_token,
    }


def numbered(rows: Rows) -> list[Row]:
    """The rows that have a number: the baselines, and the cuts that weren't refused."""
    return [row for row in rows if not row.get("refused")]


def views(rows: Rows) -> tuple[View, ...]:
    """Score against the layers left, the price of every cut, and the cuts that can't be made."""
    made = [row for row in numbered(rows) if row["target"] != "baseline"]
    series = []
    for way in ("top", "bottom"):
        cut = sorted((r for r in numbered(rows) if r["strategy"] == way), key=lambda r: r["layers"])
        if way == "bottom" and len(cut) < 2:
            continue  # all of them refused: the baseline alone is no curve
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
    cells: tuple[tuple[Cell, ...], ...] = tuple(tuple(r[c] for c in columns) for r in made)
    shown = ("value", "delta", "low", "high")
    prices = Table("What each cut costs and saves", columns, cells, percent=shown)
    refused = tuple((row["edit"], row["refused"]) for row in rows if row.get("refused"))
    if not refused:
        return curve, prices
    return curve, prices, Table("Cuts that can't be made", ("edit", "refused"), refused)


def finding(rows: Rows) -> str:
    """What may be cut at no cost that can be seen, and what it saves."""
    base = next(row for row in rows if row["target"] == "baseline")
    words = f"The {base['metric']} with all {base['layers']} layers is {percent(base['value'])}."
    if base["edit"]:
        words += " Its layers share weights; each got a copy of its own first, the baseline too."
    cuts = [row for row in numbered(rows) if row["target"] != "baseline"]
    singles = [row for row in cuts if row["strategy"] == "each"]
    if singles:
        worst = min(singles, key=lambda row: row["delta"])
        words += (
            f" Removing layer {worst['target']} hurts most: {points(worst['delta'])} points"
            f" ({points(worst['low'])} to {points(worst['high'])})."
        )
    return f"{words} {deepest(cuts)}{left_uncut(rows)}"


def deepest(cuts: Rows) -> str:
    """The deepest cut that is sure to cost less than a point."""
    free = [row for row in cuts if row["low"] > -0.01]
    if not free:
        return "No cut is sure to cost less than 1 point without training."
    best = min(free, key=lambda row: row["layers"])
    return (
        f"{len(free)} of {counted(len(cuts), 'cut')} cost less than 1 point with 95 % confidence;"
        f" the deepest is {best['edit']}: {counted(best['layers'], 'layer')} left,"
        f" {points(best['delta'])} points, {best['speed']:.2f} times the speed,"
        f" {best['parameters']:,} parameters."
    )


def left_uncut(rows: Rows) -> str:
    """The cuts that the model's family refuses, and why."""
    refused = [row for row in rows if row.get("refused")]
    if not refused:
        return ""
    return (
        f" {counted(len(refused), 'cut')} can't be made in this model"
        f" (the first: {refused[0]['refused']})."
    )


def summary(rows: Rows) -> dict[str, Any]:
    """The deepest cut that is sure to cost less than a point."""
    cuts = [row for row in numbered(rows) if row["target"] != "baseline"]
    free = [row for row in cuts if row["low"] > -0.01]
    best = min(free, key=lambda row: row["layers"], default=None)
    return {
        "deepest_free_cut": best and best["edit"],
        "n_free_cuts": len(free),
        "n_refused": len(rows) - len(numbered(rows)),
    }


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
