"""Layer duplication and removal (Kao et al. 2020, section 3; 2021, sections 3.2 and 4.2).

Some layers are duplicated, each copy right after its original (a shared layer is applied more
often), or removed; the last state is decoded as it stands; then the model is fine-tuned with the
baseline's hyper-parameters. The papers report gains of about 1 point of F1 on SQuAD 2.0 and 0.6 on
SNLI for models that were picked among single runs. Here every depth, the baseline too, has as many
seeds, and the best depth is picked on some rows and seeds and scored on others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.errors import RequestError
from microtome.experiments import finetuning
from microtome.experiments.block_scan import TOKEN_ACCURACY, scan_trials
from microtome.experiments.duplication_words import finding, measured, summary, views
from microtome.experiments.experiment import Experiment
from microtome.experiments.finetuning import SEEDS, Arm, arm_trial
from microtome.experiments.layer_rules import LayerRules, layer_rules
from microtome.experiments.options import Option
from microtome.experiments.strategies import BASELINE, Depth, depths_of, is_deeper
from microtome.experiments.subject import Subject, opened_model, opened_rows
from microtome.runs import Context, Result, Trial

NAME = "duplication"
HEADS = {"classification": "classification", "regression": "classification"}


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """Every depth decoded, then trained with every seed; the baseline is one of them."""
    rules = layer_rules(subject.model_path)
    check(subject, settings, rules)
    depths = depths_of(settings["strategy"], settings["layers"], rules)
    readout = settings["readout"]
    trials = [
        subject.trial(
            "duplication:measure", NAME,
            {"strategy": depth.strategy, "edit": depth.edit, "readout": readout},
            label=f"decode {depth.edit or 'the unedited model'}",
        )
        for depth in depths
    ]  # fmt: skip
    if settings["scan"]:
        trials += scan_trials(subject, NAME, rules, readout)
    if settings["zero_shot"]:
        return trials
    arms = [
        (depth, seed, _arm(subject, settings, depth, seed))
        for depth in depths
        for seed in _seeds(settings, depth)
    ]
    return [*trials, *(trial for _, _, trial in arms), *_choices(subject, arms)]


def _seeds(settings: Mapping[str, Any], depth: Depth) -> list[int]:
    seeds = list(settings["seeds"])
    if depth.strategy == BASELINE:
        seeds += settings["baseline_seeds"] or []
    return list(dict.fromkeys(seeds))


def _arm(subject: Subject, settings: Mapping[str, Any], depth: Depth, seed: int) -> Trial:
    about = {
        "layers": depth.n_layers, "strategy": depth.strategy, "stage": "finetuned",
        "primary": subject.dataset.task.primary,
    }  # fmt: skip
    label = f"{depth.n_layers} layers ({depth.strategy}), seed {seed}"
    arm = Arm(about, depth.edit, seed, layerdrop=settings["layerdrop"], label=label)
    return arm_trial(subject, NAME, settings, arm)


def _choices(subject: Subject, arms: list[tuple[Depth, int, Trial]]) -> list[Trial]:
    """One trial per way to make the model deeper: which depth is best, and what it is worth."""
    runs: dict[str, list[tuple[int, int, Trial]]] = {}
    for depth, seed, trial in arms:
        runs.setdefault(depth.strategy, []).append((depth.n_layers, seed, trial))
    base = runs[BASELINE]
    return [
        _choice(subject, strategy, [*base, *own], base[0][0])
        for strategy, own in runs.items()
        if is_deeper(strategy)
    ]


def _choice(
    subject: Subject, strategy: str, arms: list[tuple[int, int, Trial]], n_baseline: int
) -> Trial:
    """``arms`` are (layers, seed, trial), the baseline's among them."""
    said = {
        "strategy": strategy,
        "n_baseline": n_baseline,
        "arms": [[n_layers, seed, trial.hash] for n_layers, seed, trial in arms],
    }
    needs = tuple(trial for _, _, trial in arms)
    label = f"pick a depth ({strategy})"
    return subject.trial("depth_choice:measure", NAME, said, needs=needs, label=label)


def check(subject: Subject, settings: Mapping[str, Any], rules: LayerRules) -> None:
    """Refuse what no trial could do, before the first one starts."""
    drop, kind = settings["layerdrop"], subject.dataset.task.kind
    if settings["readout"] not in ("auto", "mlm", "tied"):
        raise RequestError(f"readout {settings['readout']!r} given, auto, mlm or tied wanted")
    if not 0 <= drop < 1:
        raise RequestError(f"--layerdrop {drop:g} given, a share from 0 to below 1 wanted")
    if drop and rules.shared:
        raise RequestError(
            "--layerdrop given for a model that applies one layer again and again",
            "leave it out: there is no layer to drop",
        )
    if settings["scan"] and rules.shared:
        raise RequestError(
            "--scan given, but this model applies one layer again and again",
            "every block is the same one: leave it out",
        )
    if settings["zero_shot"]:
        return
    if kind == "text":
        raise RequestError(
            f"{subject.task} has texts without labels, and fine-tuning needs labels",
            "add --zero-shot, or name a task",
        )
    if not settings["seeds"]:
        raise RequestError("no seeds given", "name some: --seeds 0,1,2")
    wanted = HEADS.get(kind, "question-answering")
    if subject.has_task_head and subject.head != wanted:
        raise RequestError(
            f"{subject.model} has a {subject.head} head, and {subject.task} needs {wanted}",
            "give the pre-trained checkpoint, or one fine-tuned for this task",
        )


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Edit, decode the last state through the unedited model's head, beside random blocks."""
    from microtome.edits import parse
    from microtome.evaluation import encode_for, text_clusters
    from microtome.experiments.decoding import decoded, random_blocks
    from microtome.families import adapt
    from microtome.observe import readout_of

    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    others = random_blocks(model)
    edited, control = (
        parse(request["edit"])(one) if request["edit"] else one for one in (model, others)
    )
    depth = adapt(edited).shape.n_layers
    found, beside = decoded(
        edited, tokenizer, encoded, readout_of(adapt(model), request["readout"]),
        control=control, depths=[depth],
    )  # fmt: skip
    share = found.interval(depth, clusters=text_clusters(dataset, encoded))
    row = {
        "layers": depth, "strategy": request["strategy"], "edit": request["edit"], "seed": None,
        "stage": "decoded", "metric": TOKEN_ACCURACY, "value": share.value, "low": share.low,
        "high": share.high, "n": found.n_tokens, "control": float(beside.accuracy()[0]),
        "readout": found.readout,
    }  # fmt: skip
    return Result(rows=[row], summary={TOKEN_ACCURACY: share.value})


EXPERIMENT = Experiment(
    name=NAME,
    section="Kao et al. 2020, section 3; 2021, sections 3.2 and 4.2",
    question="Would more layers help, or fewer do?",
    method=__doc__ or "",
    columns=(
        "layers", "strategy", "edit", "seed", "stage", "metric", "value", "low", "high", "n",
        "control", "selection",
    ),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    measured=measured,
    options=(
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
        *finetuning.OPTIONS,
    ),
)  # fmt: skip
