"""Fine-tuning as trials: one arm of a sweep, or the head that another experiment needs first.

A training is a trial of its own that hashes what decides the weights and nothing else, so equal
trainings of several experiments are run once. What an experiment says of an arm in its rows is in a
second, light trial (:func:`arm_trials`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from microtome.errors import DataError, RequestError
from microtome.experiments.kit.layers import layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import DATA, MODEL, TRAINING, Subject
from microtome.runs import Trial
from microtome.tasks.sampling import n_of_fraction
from microtome.training.recipe import Recipe, least_updates, recipe_for

MAX_LENGTH = Option("max_length", None, "tokens per text; the task's unless given", "whole")
LEAST_STEPS = Option(
    "least_steps", 0, "updates at least, in more epochs where rows are few", "whole"
)
RECIPE = (
    Option("epochs", None, "of the fine-tuning; the task's unless given", "whole"),
    Option("batch_size", None, "of the fine-tuning; the task's unless given", "whole"),
    Option("learning_rate", None, "the model card's unless given, else the task's", "number"),
    Option(
        "warmup", None, "share of the updates, learning rate rising; 0.1 unless given", "number"
    ),
    Option("weight_decay", None, "of the fine-tuning; 0.01 unless given", "number"),
    LEAST_STEPS,
    MAX_LENGTH,
)
FRACTION = Option("fraction", 1.0, "training size: 1 all, below 1 a share, 2+ rows", "number")
OPTIONS = (FRACTION, *RECIPE)
SEEDS = Option("seeds", [0, 1, 2], "every arm is trained once per seed", "numbers")
FRACTIONS = Option(
    "fractions", [1.0], "training sizes: 1 all, below 1 a share, 2+ rows", "fractions"
)
FINETUNE = Option("finetune", False, "fine-tune a model without a task head first", "flag")
PASSES_TO_LEARN = 3  # forward, and backward twice: to the states and to the weights
MATCH_STEPS = Option("match_steps", False, "as many updates with few rows as with all", "flag")


@dataclass(frozen=True)
class Arm:
    """One fine-tuning of a sweep; ``about`` is in each of its rows.

    ``edits`` come before the training. ``fraction`` is the settings' unless the arm has its own.
    ``new_head`` draws the task's head afresh even where the model has one, so that all arms begin
    alike. The logits on the measured rows are always kept; so is the checkpoint of a model without
    edits.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    edits: str = ""
    seed: int = 0
    fraction: float | None = None
    layerdrop: float = 0.0
    match_steps: bool = False
    new_head: bool = False
    label: str = ""


def head_first(subject: Subject, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The fine-tuning that a subject without a task head needs; nothing for one that has it."""
    if subject.has_task_head:
        return ()
    least = least_updates(subject.dataset.task, settings["epochs"], settings[LEAST_STEPS.name])
    settings = {**settings, LEAST_STEPS.name: least}
    label = f"fine-tune {subject.model} on {subject.task}"
    return (training_trial(subject, settings, Arm(label=label)),)


def head_to_score(subject: Subject, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """As ``head_first``; a masked LM is scored on plain text as it is, by its masked tokens."""
    return () if subject.is_scored_on_masks else head_first(subject, settings)


def fine_tuned_first(subject: Subject, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The fine-tuning that ``--finetune`` asks for; it needs a task."""
    if not settings[FINETUNE.name]:
        return ()
    if subject.opened is None:
        raise RequestError("--finetune needs a task", "name it: --task TASK")
    return head_first(subject, settings)


def training_trial(subject: Subject, settings: Mapping[str, Any], arm: Arm) -> Trial:
    """The trial that trains and scores one arm; ``settings`` hold the recipe's options.

    Its hash covers what decides the weights: a head that is drawn afresh in any case, updates that
    the epochs give anyway, and what the rows are to say make no difference.
    """
    fraction = checked_fraction(settings) if arm.fraction is None else arm.fraction
    recipe = _recipe_of_arm(subject, settings, arm, fraction)
    request = {
        "edits": arm.edits,
        "seed": arm.seed,
        "fraction": float(fraction),
        "new_head": arm.new_head and subject.has_task_head and not subject.is_used_as_is,
        "recipe": recipe.as_json(),
    }
    label = arm.label or f"{arm.edits or 'unedited'}, seed {arm.seed}, {fraction:g} of the rows"
    reads = (MODEL, DATA, TRAINING)
    n_steps = recipe.steps or recipe.n_updates(n_of_fraction(fraction, len(subject.training)))
    n_read = PASSES_TO_LEARN * n_steps * recipe.batch_size
    work = n_read * layers_of(subject.model_path).count / max(1, len(subject.dataset))
    return subject.trial("finetuning.train", request, label=label, reads=reads, work=work)


def arm_trials(
    subject: Subject, experiment: str, settings: Mapping[str, Any], arm: Arm
) -> tuple[Trial, Trial]:
    """The trial that trains an arm, and the one that gives its scores as the experiment's rows."""
    trained = training_trial(subject, settings, arm)
    rows = subject.trial(
        "finetuning.repeat_rows", {"about": dict(arm.about)}, experiment=experiment,
        needs=(trained,), label=trained.label, reads=(MODEL, DATA, TRAINING),
    )  # fmt: skip
    return trained, rows


def asked_recipe(subject: Subject, settings: Mapping[str, Any]) -> Recipe:
    """The recipe that was asked for; one that nobody can train by is refused before anything is.

    How many updates it takes at least depends on the rows, and is decided for each arm.
    """
    if settings[LEAST_STEPS.name] < 0:
        raise RequestError(f"--least-steps must be 0 or more, got {settings[LEAST_STEPS.name]}")
    asked = {
        option.name: settings[option.name]
        for option in RECIPE
        if option not in (LEAST_STEPS, MAX_LENGTH)  # the subject has its length already
    }
    return recipe_for(subject.dataset.task, subject.model_path).but(**asked)


def _recipe_of_arm(
    subject: Subject, settings: Mapping[str, Any], arm: Arm, fraction: float
) -> Recipe:
    recipe = asked_recipe(subject, settings).but(layerdrop=arm.layerdrop or None)
    n_rows = len(subject.training)
    least = settings[LEAST_STEPS.name]
    if arm.match_steps:
        least = max(least, recipe.n_updates(n_rows))
    return recipe.at_least(least, n_of_fraction(fraction, n_rows))


def refuse_training_options(
    settings: Mapping[str, Any], options: tuple[Option, ...], why: str
) -> None:
    """Refuse options of a fine-tuning where nothing is trained: they would change nothing."""
    for option in options:
        if settings[option.name] != option.default:
            raise RequestError(
                f"{option.flag} is of a fine-tuning, and {why}", "leave one of them out"
            )


def checked_fraction(settings: Mapping[str, Any]) -> float:
    """``--fraction``: a share of the training rows, or how many."""
    fraction: float = settings[FRACTION.name]
    if fraction <= 0 or (fraction > 1 and fraction != int(fraction)):
        raise RequestError(f"--fraction must be a share or a number of rows, got {fraction:g}")
    return fraction


def n_rows_of(subject: Subject, fractions: Iterable[float]) -> dict[float, int]:
    """How many training rows each fraction is; one that can't be had is refused."""
    if not subject.dataset.labelled:
        raise DataError(
            f"{subject.task} has rows without labels, and training needs labels",
            "name a label column: --label-column",
        )
    train = subject.training
    by_fraction = {fraction: n_of_fraction(fraction, len(train)) for fraction in fractions}
    for fraction, n_rows in by_fraction.items():
        if n_rows < max(2, len(train.labels)):
            raise RequestError(
                f"--fractions {fraction:g} leaves {n_rows} of {len(train):,} rows to train on",
                f"take at least {max(2, len(train.labels))} rows, one for every label",
            )
    return by_fraction
