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

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microtome.edits import Reinit
from microtome.errors import RequestError
from microtome.experiments.kit.arms import (
    FRACTIONS,
    MATCH_STEPS,
    RECIPE,
    SEEDS,
    Arm,
    arm_trials,
    asked_recipe,
    n_rows_of,
)
from microtome.experiments.kit.layers import Layers, checked_counts, layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.seed_curves import size_name
from microtome.experiments.kit.subject import Subject
from microtome.runs import Trial
from microtome.statistics.concavity import FEWEST_POINTS

NAME = "reinitialization"
SECTION = "Singh & Giovanardi 2020, section 4.3"
QUESTION = "What is each layer's pre-training worth, and how does that depend on the data?"
COLUMNS = (
    "reinitialized", "side", "layer", "fraction", "n_train", "seed", "metric", "value", "low",
    "high", "n", "edit",
)  # fmt: skip
CONCAVITY = "concavity"  # the metric of rows that describe a whole curve
SIDES = ("top", "bottom", "each")
PARTS = ("weights", "all")
NO_LAYER = -1  # with --side each, the arm that re-initialises nothing
OPTIONS = (
    Option("counts", None, "how many layers, as 0-12; all from 0 on unless given", "numbers"),
    Option("side", "top", "top or bottom: from that end; each: one layer at a time"),
    Option("parts", "weights", "weights, or all: biases and norms too"),
    FRACTIONS,
    SEEDS,
    MATCH_STEPS,
    *RECIPE,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One fine-tuning per count, size and seed; then the concavity of every curve."""
    asked_recipe(subject, settings)
    layers = layers_of(subject.model_path)
    places = places_of(settings, layers.count)
    trials: list[Trial] = []
    for fraction, n_train in n_rows_of(subject, settings["fractions"]).items():
        about = {
            "side": settings["side"],
            "layers": layers.count,
            "parts": settings["parts"],
            "n_train": n_train,
            "primary": subject.dataset.task.primary,
        }
        for seed in settings["seeds"]:
            whole = Arm(
                about, seed=seed, fraction=fraction, match_steps=settings["match_steps"],
                new_head=True,  # a subject's own head would favour the arms that fit it
                label=f"seed {seed}, {size_name(fraction)}",
            )  # fmt: skip
            arms = {
                place: arm_trials(subject, NAME, settings, reinitialized(whole, place, layers))
                for place in places
            }
            trials += [trial for pair in arms.values() for trial in pair]
            if settings["side"] != "each" and len(places) >= FEWEST_POINTS:
                trained = {count: training for count, (training, _) in arms.items()}
                request = {
                    "about": {**about, "seed": seed, "fraction": fraction},
                    "counts": {trial.hash: count for count, trial in trained.items()},
                }
                trials.append(
                    subject.trial(
                        "reinitialization.measure_concavity", request,
                        needs=tuple(trained.values()), label=f"concavity, {whole.label}",
                    )
                )  # fmt: skip
    return trials


def places_of(settings: Mapping[str, Any], n_layers: int) -> list[int]:
    """The counts from one side; with ``each`` the layers, after the arm without any."""
    for name, known in (("side", SIDES), ("parts", PARTS)):
        if settings[name] not in known:
            raise RequestError(f"--{name} must be {' or '.join(known)}, got {settings[name]}")
    if settings["side"] != "each":
        return checked_counts(settings["counts"], n_layers)
    if settings["counts"] is not None:
        raise RequestError(
            "--side each re-initialises one layer at a time, and takes no --counts",
            "leave --counts out, or take --side top or bottom",
        )
    return [NO_LAYER, *range(n_layers)]


def reinitialized(whole: Arm, place: int, layers: Layers) -> Arm:
    """The arm with ``place`` layers of one side (or that one layer) drawn afresh."""
    side = whole.about["side"]
    count = int(place != NO_LAYER) if side == "each" else place
    edit = edit_of(side, place, whole.seed, whole.about["parts"]) if count else ""
    drawn = (f"layer {place}" if side == "each" else f"{side} {count}") if count else "nothing"
    return replace(
        whole,
        about={
            **whole.about,
            "reinitialized": count,
            "layer": place if side == "each" and count else None,
        },
        edits=layers.after_unsharing(edit),
        label=f"re-initialise {drawn}, {whole.label}",
    )


def edit_of(side: str, place: int, seed: int, parts: str) -> str:
    """The edit of one arm, in its canonical text."""
    if side == "each":
        return Reinit(place, seed=seed, parts=parts).text
    if side == "top":
        return Reinit(top=place, seed=seed, parts=parts).text
    return Reinit(bottom=place, seed=seed, parts=parts).text
