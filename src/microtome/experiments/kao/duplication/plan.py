"""Layer duplication and removal (Kao et al. 2020, section 3; 2021, sections 3.2 and 4.2).

Some layers are duplicated, each copy right after its original (a shared layer is applied more
often), or removed; the last state is decoded as it is; then the model is fine-tuned with the
baseline's hyper-parameters. The papers report gains of about 1 point of F1 on SQuAD 2.0 and 0.6 on
SNLI for models that were picked among single runs. Here every depth, the baseline too, has as many
seeds, and the best depth is picked on some rows and seeds and scored on others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kao.duplication.strategies import BASELINE, Depth, depths_of, is_deeper
from microtome.experiments.kit import arms
from microtome.experiments.kit.arms import SEEDS, Arm, arm_trials
from microtome.experiments.kit.layers import Layers, layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject
from microtome.runs import Trial

NAME = "duplication"
SECTION = "Kao et al. 2020, section 3; 2021, sections 3.2 and 4.2"
QUESTION = "Would more layers help, or fewer do?"
COLUMNS = (
    "layers", "strategy", "edit", "seed", "stage", "metric", "value", "low", "high", "n",
    "control", "selection",
)  # fmt: skip
READOUTS = ("auto", "mlm", "tied")
HEADS = {"spans": "question-answering", "tokens": "token-classification"}  # else classification
OPTIONS = (
    Option("layers", None, "numbers of layers, as 12-16; N to N+4 unless given", "numbers"),
    Option(
        "strategy", ["first"],
        "first,last,repeat:LAYER,remove-top,remove-bottom,remove-each", "words",
    ),
    SEEDS,
    Option("baseline_seeds", None, "more seeds of the baseline, for ensembling", "numbers"),
    Option("layerdrop", 0.0, "chance that a layer is left out of a training step", "number"),
    Option("readout", "auto", "auto, mlm or tied: what decodes the last state"),
    Option("scan", False, "also every block i to j repeated once, without training", "flag"),
    Option("zero_shot", False, "decode (and scan) only, train nothing", "flag"),
    *arms.OPTIONS,
)  # fmt: skip


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """Every depth decoded, then trained with every seed; the baseline is one of them."""
    stack = layers_of(subject.model_path)
    check(subject, settings, stack)
    depths = depths_of(settings["strategy"], settings["layers"], stack)
    readout = settings["readout"]
    trials = [
        subject.trial(
            "duplication.decode",
            {"strategy": depth.strategy, "edit": depth.edit, "readout": readout},
            label=f"decode {depth.edit or 'the unedited model'}",
        )
        for depth in depths
    ]  # fmt: skip
    if settings["scan"]:
        trials += _scan_trials(subject, stack, readout)
    if settings["zero_shot"]:
        return trials
    runs = {
        (depth, seed): _arm_trials(subject, settings, depth, seed)
        for depth in depths
        for seed in _seeds(settings, depth)
    }
    trained = [trial for pair in runs.values() for trial in pair]
    picks = [
        _pick_trial(subject, strategy, {run: training for run, (training, _) in runs.items()})
        for strategy in dict.fromkeys(depth.strategy for depth in depths)
        if is_deeper(strategy)
    ]
    return [*trials, *trained, *picks]


def _scan_trials(subject: Subject, stack: Layers, readout: str) -> list[Trial]:
    """One trial for all blocks that begin at a layer; the unedited model goes with the first."""
    return [
        subject.trial(
            "duplication.scan_blocks", {"first": layer, "readout": readout},
            label=f"repeat blocks from layer {layer}",
        )
        for layer in range(stack.rules.first_copied, stack.count)
    ]  # fmt: skip


def _seeds(settings: Mapping[str, Any], depth: Depth) -> list[int]:
    seeds = list(settings["seeds"])
    if depth.strategy == BASELINE:
        seeds += settings["baseline_seeds"] or []
    return list(dict.fromkeys(seeds))


def _arm_trials(
    subject: Subject, settings: Mapping[str, Any], depth: Depth, seed: int
) -> tuple[Trial, Trial]:
    about = {
        "layers": depth.n_layers, "strategy": depth.strategy, "stage": "finetuned",
        "primary": subject.dataset.task.primary,
    }  # fmt: skip
    label = f"{depth.n_layers} layers ({depth.strategy}), seed {seed}"
    arm = Arm(about, depth.edit, seed, layerdrop=settings["layerdrop"], label=label)
    return arm_trials(subject, NAME, settings, arm)


def _pick_trial(
    subject: Subject, strategy: str, trainings: Mapping[tuple[Depth, int], Trial]
) -> Trial:
    """Which depth of one way to make the model deeper is best, and what it is worth."""
    arms = {
        (depth.n_layers, seed): trial
        for (depth, seed), trial in trainings.items()
        if depth.strategy in (BASELINE, strategy)
    }
    (n_baseline, _), *_ = arms
    request = {
        "strategy": strategy,
        "n_baseline": n_baseline,
        "arms": [[*run, trial.hash] for run, trial in arms.items()],
    }
    needs, label = tuple(arms.values()), f"pick a depth ({strategy})"
    return subject.trial("duplication.pick_depth", request, needs=needs, label=label)


def check(subject: Subject, settings: Mapping[str, Any], stack: Layers) -> None:
    """Refuse what no trial could do, before the first one starts."""
    layerdrop = settings["layerdrop"]
    if settings["readout"] not in READOUTS:
        raise RequestError(f"--readout must be auto, mlm or tied, got {settings['readout']!r}")
    if not 0 <= layerdrop < 1:
        raise RequestError(f"--layerdrop must be from 0 to below 1, got {layerdrop:g}")
    if layerdrop and stack.shared:
        raise RequestError(
            "--layerdrop doesn't go with a model that applies one layer again and again",
            "leave it out: there is no layer to drop",
        )
    if settings["scan"] and stack.shared:
        raise RequestError(
            "--scan doesn't go with a model that applies one layer again and again",
            "every block is the same one: leave it out",
        )
    if not settings["zero_shot"]:
        _check_training(subject, settings)


def _check_training(subject: Subject, settings: Mapping[str, Any]) -> None:
    kind = subject.dataset.task.kind
    if kind == "text":
        raise RequestError(
            f"{subject.task} has texts without labels, and fine-tuning needs labels",
            "add --zero-shot, or name a task",
        )
    if not settings["seeds"]:
        raise RequestError("expected at least one seed, got none", "name some: --seeds 0,1,2")
    head = HEADS.get(kind, "classification")
    trains_its_head = subject.has_task_head and not subject.is_used_as_is
    if trains_its_head and subject.head != head:
        raise RequestError(
            f"{subject.task} needs a {head} head, and {subject.model} has a {subject.head} head",
            "give the pre-trained checkpoint, or one fine-tuned for this task",
        )
