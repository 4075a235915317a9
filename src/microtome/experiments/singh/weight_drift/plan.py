"""Weight drift (Singh & Giovanardi 2020, sections 4.5 and 6.3).

Per layer, the Frobenius distance ‖W_base − W_fine-tuned‖ of the output sub-layer's projection, for
models fine-tuned on more and on less data. The paper reports that it grows with depth, that the
curve shifts up and gets steeper with more data, and that CoLA's is noisy. More data also meant more
updates there, and a distance grows with updates: --match-steps gives every size as many. The
distance is also given relative to the norm, and per parameter (root mean square).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit.arms import (
    MATCH_STEPS,
    RECIPE,
    SEEDS,
    Arm,
    asked_recipe,
    n_rows_of,
    refuse_training_options,
    training_trial,
)
from microtome.experiments.kit.layers import layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.seed_curves import size_name
from microtome.experiments.kit.subject import MODEL, Subject, model_input
from microtome.models.same_shape import check_same_layers
from microtome.runs import Trial

SECTION = "Singh & Giovanardi 2020, section 4.5"
QUESTION = "How far did fine-tuning move each layer's weights?"
COLUMNS = (
    "layer", "part", "fraction", "n_train", "seed", "distance", "relative", "per_parameter",
    "norm", "n_parameters",
)  # fmt: skip
NEEDS_ROWS = False
COMPARE = "weight-drift.compare_weights"
PAPERS_PART = "output"  # the feed-forward half's projection back to the model's width
PARTS = ("query", "key", "value", "attention_output", "intermediate", "output")
BASE = "base"
SIZES = Option(
    "fractions", [1.0, 0.1], "training sizes: 1 all, below 1 a share, 2+ rows", "fractions"
)
OPTIONS = (
    Option(BASE, None, "the pre-trained model; without it, one is fine-tuned here", "model"),
    Option("parts", [PAPERS_PART], f"{', '.join(PARTS)}, or all", "words"),
    SIZES,
    SEEDS,
    MATCH_STEPS,
    *RECIPE,
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One comparison with the base; or fine-tunings, and the distance that each one went."""
    parts = parts_of(settings["parts"])
    if settings["base"] is not None:
        return [_from_base(subject, settings, parts)]
    if subject.opened is None:
        raise RequestError(
            "weight-drift needs two checkpoints, and one was given",
            "name the pre-trained one: --base MODEL; or a task to fine-tune on here: --task TASK",
        )
    asked_recipe(subject, settings)
    unsharing = layers_of(subject.model_path).first_edit
    trials = []
    for fraction, n_train in n_rows_of(subject, settings["fractions"]).items():
        for seed in settings["seeds"]:
            arm = Arm(
                edits=unsharing, seed=seed, fraction=fraction, new_head=True,
                match_steps=settings["match_steps"],
                label=f"fine-tune, seed {seed}, {size_name(fraction)}",
            )  # fmt: skip
            tuned = training_trial(subject, settings, arm)
            about = {
                "fraction": fraction, "n_train": n_train, "seed": seed,
                "match_steps": settings["match_steps"],
            }  # fmt: skip
            drift = subject.trial(
                COMPARE, {"about": about, "parts": parts}, needs=(tuned,), reads=(MODEL,),
                label=f"drift, seed {seed}, {size_name(fraction)}",
            )  # fmt: skip
            trials += [tuned, drift]
    return trials


def parts_of(names: list[str]) -> list[str]:
    """The parts that were asked for, in the order of a layer."""
    if unknown := [name for name in names if name not in (*PARTS, "all")]:
        raise RequestError(f"--parts must be {', '.join(PARTS)} or all, got {unknown[0]}")
    return [part for part in PARTS if part in names or "all" in names]


def _from_base(subject: Subject, settings: Mapping[str, Any], parts: list[str]) -> Trial:
    """The comparison of a fine-tuned subject with the model that ``--base`` names."""
    options = (SIZES, SEEDS, MATCH_STEPS, *RECIPE)
    refuse_training_options(settings, options, "with --base nothing is trained")
    base = model_input(settings["base"])
    check_same_layers(subject.model, subject.model_path, settings["base"], base.path)
    about = {"fraction": None, "n_train": None, "seed": None, "match_steps": None}
    return subject.trial(
        COMPARE, {"about": about, "parts": parts}, inputs={BASE: base}, reads=(MODEL,),
        label=f"drift of {subject.model} from {settings['base']}",
    )  # fmt: skip
