"""MDL probing: how many bits the labels take, given the frozen states of each depth.

The online code of Voita & Titov (2020): labels are sent in blocks that double, each at the prices
of a probe that was trained on those before it. Unlike an accuracy, the length also says how many
labels the probe needs, and a probe that has learnt nothing saves nothing. Controls: random labels,
the same for every occurrence of a word or text (Hewitt & Liang 2019; selectivity is here a
difference in bits), the same embeddings under random blocks, and the labels' frequencies without
any states. Their probes are perceptrons; ours is the linear one of ``frozen-probing``, and its
penalty is chosen by the block before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microtome.edits import Reinit
from microtome.errors import DataError, RequestError
from microtome.experiments.kit.layers import layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import DATA, MODEL, TRAINING, Subject
from microtome.runs import Trial
from microtome.tasks.dataset import Dataset

SECTION = "Not of the papers: online code, control tasks"
QUESTION = "How briefly do the states of each depth describe the labels?"
COLUMNS = (
    "encoder", "target", "depth", "bits", "bits_per_label", "low", "high", "n", "unit",
    "compression", "saved", "saved_low", "saved_high", "selectivity", "selectivity_low",
    "selectivity_high", "n_classes", "feature", "seed",
)  # fmt: skip
PRETRAINED, RANDOM = "pretrained", "random"  # encoders
UNIFORM, FREQUENCIES = "uniform", "frequencies"  # codes without an encoder, in the same column
REAL, CONTROL = "real", "control"  # targets
FEATURES, FIRST_PIECE = ("cls", "mean"), "first piece"
UNITS = {"classification": "rows", "tokens": "words", "multilabel": "labels"}
READS = (MODEL, DATA, TRAINING)
FITS_PER_PASS = 2.0  # what the probes of a layer take, compared with a pass of the layer
OPTIONS = (
    Option("feature", None, "the state of a text: cls or mean; cls unless given"),
    Option("seeds", [0], "of the rows' order, the random labels, the random blocks", "numbers"),
    Option("penalty", None, "of the probes' weights; chosen block by block unless given", "number"),
)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """For every order of the rows: the code lengths of the encoder, its control's, their rows."""
    feature = check(subject, settings)
    work = (1 + FITS_PER_PASS) * layers_of(subject.model_path).count
    trials: list[Trial] = []
    for seed in settings["seeds"]:
        about = {"feature": feature, "seed": seed}
        codes = {
            encoder: subject.trial(
                "mdl-probing.code", {**about, "penalty": settings["penalty"], "edits": edits},
                label=f"code lengths on the {encoder} encoder, seed {seed}", work=work,
                reads=READS,
            )
            for encoder, edits in encoders(subject, seed).items()
        }  # fmt: skip
        named = {encoder: trial.hash for encoder, trial in codes.items()}
        request = {**about, "unit": UNITS[subject.dataset.task.kind], "trials": named}
        trials += codes.values()
        trials.append(
            subject.trial(
                "mdl-probing.compare", request, needs=tuple(codes.values()),
                label=f"compare code lengths, seed {seed}", reads=READS, work=0.1,
            )
        )  # fmt: skip
    return trials


def encoders(subject: Subject, seed: int) -> dict[str, str]:
    """The edits that make each encoder of the model: none, and all blocks drawn afresh."""
    last = layers_of(subject.model_path).count - 1
    return {PRETRAINED: "", RANDOM: Reinit(f"0-{last}", seed=seed, parts="all").text}


def check(subject: Subject, settings: Mapping[str, Any]) -> str:
    """Refuse what has no code of labels, before anything is computed; what is read, by name."""
    kind, feature = subject.dataset.task.kind, settings["feature"]
    if kind not in UNITS:
        raise RequestError(
            f"a description length is one of labels, and {subject.task} is {kind}",
            "take a task of kind classification, multilabel or tokens",
        )
    if settings["penalty"] is not None and settings["penalty"] <= 0:
        raise RequestError(f"--penalty must be above 0, got {settings['penalty']:g}")
    if kind == "tokens":
        if feature is not None:
            raise RequestError(
                f"--feature is of whole texts, and {subject.task} labels words, which are read at"
                " their first piece",
                "leave it out",
            )
        feature = FIRST_PIECE
    elif feature not in (None, *FEATURES):
        raise RequestError(f"--feature must be {' or '.join(FEATURES)}, got {feature}")
    _check_rows(subject)
    return feature or FEATURES[0]


def _check_rows(subject: Subject) -> None:
    """Refuse rows that are all sent in the first block, before there is a probe."""
    if not subject.dataset.labelled:
        raise DataError(
            f"{subject.task} has no labels to describe", "name a label column: --label-column"
        )
    rows = coded_rows(subject.training, subject.data.limit, subject.data.seed)
    n_labels = len(rows) if rows.tags is None else len(rows.tags.values)
    least = 2 * n_classes_of(rows)
    if least < 4:
        raise DataError(f"{subject.task} has one label only, which takes no bits")
    if n_labels < least:
        raise DataError(
            f"expected {least} rows or words with labels to train on, two for each label, got"
            f" {n_labels}",
            "take more: --limit",
        )


def coded_rows(train: Dataset, limit: int | None, seed: int) -> Dataset:
    """The rows whose labels are described: the training side, or ``--limit`` rows of it."""
    return train.limit(limit, seed=seed)


def n_classes_of(rows: Dataset) -> int:
    """How many ways a label can be; of several labels each applies or doesn't."""
    return 2 if rows.task.kind == "multilabel" else len(rows.labels)
