"""Partial re-initialisation (Singh & Giovanardi 2020, sections 4.3 and 6.1).

The weights of the top k layers' six linear projections are drawn afresh from a truncated normal
(σ = 0.02, cut at ±2σ), and the whole model is fine-tuned; k goes from 0 to all layers, with more
and with less training data. The paper reports that the last layers hardly matter, that middle
layers cost about 5 points on small SST-2 while QNLI stays flat until the first layers go, that CoLA
falls about linearly, and that a pre-trained model on 1 % of the data beats one trained from scratch
on 10 to 100 times as much; one run each. Here every arm has several seeds (the edit's seed follows
the arm's), and the curve's concavity is a number: the area between the curve and its chord.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.curve_shapes import FEWEST_COUNTS, bend, shape_trial, shapes
from microtome.experiments.experiment import Experiment, Row, Rows, percent
from microtome.experiments.finetuning import (
    FRACTIONS,
    MATCH_STEPS,
    RECIPE,
    SEEDS,
    Arm,
    arm_trial,
)
from microtome.experiments.layer_counts import Layers, checked_counts, layers_of
from microtome.experiments.options import Option
from microtome.experiments.seed_curves import (
    TOP_AXIS,
    by_place,
    curve_of,
    difference,
    mean_of,
    said,
)
from microtome.experiments.subject import Subject
from microtome.experiments.training_sizes import (
    check_recipe,
    more_steps,
    n_rows_of,
    size_name,
    size_with_rows,
    sizes,
)
from microtome.runs import Trial
from microtome.views import Curve, Series, View, table_of

NAME = "reinitialization"
SIDES = ("top", "bottom", "each")
PARTS = ("weights", "all")


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One fine-tuning per count, size and seed; then the shape of every curve."""
    recipe, least = check_recipe(subject, settings), settings["least_steps"]
    layers = layers_of(subject)
    places = places_of(settings, layers.count)
    n_rows = n_rows_of(subject, settings["fractions"])
    trials: list[Trial] = []
    for fraction, n_train in n_rows.items():
        steps = more_steps(recipe, n_train, least)
        for seed in settings["seeds"]:
            arms = [
                arm_of(subject, settings, layers, place, seed, fraction, n_train, steps)
                for place in places
            ]
            trials += arms
            if settings["side"] != "each" and len(places) >= FEWEST_COUNTS:
                about = {"side": settings["side"], "seed": seed, "fraction": fraction}
                trials.append(shape_trial(subject, NAME, arms, about | {"n_train": n_train}))
    return trials


def places_of(settings: Mapping[str, Any], n_layers: int) -> list[int]:
    """The counts from one side; with ``each`` the layers, after −1 for none at all."""
    for name, known in (("side", SIDES), ("parts", PARTS)):
        if settings[name] not in known:
            raise RequestError(f"--{name} {settings[name]} given, {' or '.join(known)} wanted")
    if settings["side"] != "each":
        return checked_counts(settings["counts"], n_layers)
    if settings["counts"] is not None:
        raise RequestError(
            "--counts given with --side each, which re-initialises one layer at a time",
            "leave --counts out, or take --side top or bottom",
        )
    return [-1, *range(n_layers)]


def arm_of(
    subject: Subject,
    settings: Mapping[str, Any],
    layers: Layers,
    place: int,
    seed: int,
    fraction: float,
    n_train: int,
    steps: int | None,
) -> Trial:
    """The fine-tuning with ``place`` layers of one side (or that one layer) drawn afresh."""
    side = settings["side"]
    count = (0 if place < 0 else 1) if side == "each" else place
    about = {
        "side": side,
        "reinitialized": count,
        "layer": place if side == "each" and place >= 0 else None,
        "layers": layers.count,
        "parts": settings["parts"],
        "n_train": n_train,
        "primary": subject.dataset.task.primary,
    }
    what = f"layer {place}" if side == "each" else f"{side} {count}"
    arm = Arm(
        about=about,
        edits=layers.edits(edit_of(side, place, seed, settings["parts"]) if count else ""),
        seed=seed,
        fraction=fraction,
        match_steps=settings["match_steps"],
        steps=steps,
        new_head=True,  # a subject that has a head already would favour the arms that fit it
        label=f"re-initialise {what if count else 'nothing'}, seed {seed}, {size_name(fraction)}",
    )
    return arm_trial(subject, NAME, settings, arm)


def edit_of(side: str, place: int, seed: int, parts: str) -> str:
    """The edit of one arm, in its canonical text."""
    from microtome.edits import Reinit

    if side == "each":
        return Reinit(place, seed=seed, parts=parts).text
    if side == "top":
        return Reinit(top=place, seed=seed, parts=parts).text
    return Reinit(bottom=place, seed=seed, parts=parts).text


def scores(rows: Iterable[Row], fraction: float) -> list[Row]:
    """The primary scores of one training size."""
    return [r for r in rows if r["metric"] == r["primary"] and r["fraction"] == fraction]


def views(rows: Rows) -> tuple[View, ...]:
    """The curve of every size, and the shapes of the curves."""
    side, metric = rows[0]["side"], rows[0]["primary"]
    if side == "each":
        return (_single_layers(rows, metric),)
    lines = (
        curve_of(scores(rows, fraction), "reinitialized", f"re-initialised, {size_name(fraction)}")
        for fraction in sizes(rows)
    )
    axis = TOP_AXIS if side == "top" else "bottom layers without their pre-training"
    curve = Curve(
        f"Layers re-initialised from the {side}, then all fine-tuned", axis, metric,
        tuple(line for line in lines if line is not None),
    )  # fmt: skip
    bent = [row for fraction in sizes(rows) for row in shapes(rows, fraction)]
    if not bent:
        return (curve,)
    ends = ("value", "low", "high", "signed", "signed_low", "signed_high")
    columns = ("fraction", "seed", *ends, "n_counts")
    title = "Area between curve and chord (points; signed: above the chord is positive)"
    return curve, table_of(title, [dict(row) for row in bent], columns, percent=ends)


def _single_layers(rows: Rows, metric: str) -> Curve:
    """Score against the one layer that was drawn afresh, with the untouched model beside."""
    lines: list[Series] = []
    for fraction in sizes(rows):
        own = scores(rows, fraction)
        line = curve_of(own, "layer", f"one layer re-initialised, {size_name(fraction)}")
        whole = [row for row in own if row["reinitialized"] == 0]
        if line is not None and whole:
            flat = (mean_of(whole),) * len(line.x)
            lines += [line, Series(f"none, {size_name(fraction)}", line.x, flat, is_control=True)]
    return Curve("One layer re-initialised, then all fine-tuned", "layer", metric, tuple(lines))


def finding(rows: Rows) -> str:
    """What pre-training is worth, layer by layer, in words computed from rows."""
    told: set[str] = set()
    return " ".join(_of_size(rows, fraction, told) for fraction in sizes(rows))


def _of_size(rows: Rows, fraction: float, told: set[str]) -> str:
    own = scores(rows, fraction)
    if own[0]["side"] == "each":
        return _of_single_layers(own, fraction, told)
    found = by_place(own, "reinitialized")
    first, last = min(found), max(found)
    words = (
        f"With {size_with_rows(fraction, own[0]['n_train'])} the {own[0]['primary']} is"
        f" {percent(mean_of(found[first]))} with {first or 'no'} layers re-initialised"
    )
    if first == last:
        return f"{words}."
    words += (
        f" and {percent(mean_of(found[last]))} with {last} of {own[0]['layers']}:"
        f" {said(difference(found[last], found[first]), told)}."
    )
    few = near_end(found, own[0]["layers"])
    if few is not None and first == 0 and few != last:
        change = said(difference(found[few], found[0]), told)
        words += f" The {few} {own[0]['side']} layers alone change it by {change}."
    return words + bend(shapes(rows, fraction))


def near_end(found: Mapping[int, Any], n_layers: int) -> int | None:
    """The count that stands for "the last layers": two, or the fewest there are up to a third."""
    few = [count for count in found if 0 < count <= max(2, n_layers // 3)]
    return 2 if 2 in few else min(few, default=None)


def _of_single_layers(own: list[Row], fraction: float, told: set[str]) -> str:
    base = [row for row in own if row["reinitialized"] == 0]
    found = by_place(own, "layer")
    worst = min(found, key=lambda layer: mean_of(found[layer]))
    return (
        f"With {size_with_rows(fraction, own[0]['n_train'])} the {own[0]['primary']} is"
        f" {percent(mean_of(base))}; of single layers, re-initialising layer {worst} leaves least:"
        f" {said(difference(found[worst], base), told)}."
    )


def summary(rows: Rows) -> dict[str, Any]:
    """The ends of each curve and its signed area, by training size."""
    found: dict[str, Any] = {}
    for fraction in sizes(rows):
        curve = by_place(scores(rows, fraction), "reinitialized")
        bent = [row["signed"] for row in shapes(rows, fraction)]
        found[f"{fraction:g}"] = {
            "first": mean_of(curve[min(curve)]),
            "last": mean_of(curve[max(curve)]),
            "signed_area": sum(bent) / len(bent) if bent else None,
        }
    return found


def measured(rows: Rows) -> Mapping[str, str]:
    """The paper's claims, answered from rows."""
    from microtome.experiments.singh_claims import reinitialization

    return reinitialization(rows)


EXPERIMENT = Experiment(
    name=NAME,
    section="Singh & Giovanardi 2020, section 4.3",
    question="What is each layer's pre-training worth, and how does that depend on the data?",
    method=__doc__ or "",
    columns=(
        "reinitialized", "side", "layer", "fraction", "n_train", "seed", "metric", "value", "low",
        "high", "n", "edit",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    measured=measured,
    options=(
        Option("counts", None, "how many layers, as 0-12; all from 0 on unless given", "numbers"),
        Option("side", "top", "top or bottom: from that end; each: one layer at a time"),
        Option("parts", "weights", "weights, or all: biases and norms too"),
        FRACTIONS,
        SEEDS,
        MATCH_STEPS,
        Option("least_steps", 0, "updates at least, in more epochs where rows are few", "whole"),
        *RECIPE,
    ),
)  # fmt: skip
