"""The tuned lens (Belrose et al. 2023): every depth read through an affine map fitted to it.

Decoding hands the state of a depth to the output layer as it is. Here h becomes h + A h + b first,
with one A and b per depth that start at 0 and are fitted so that the output layer says what it says
at the last depth: the least KL from the last depth's distribution, on texts without labels that
aren't measured. The paper finds that language models' depths agree with the last one earlier, and
more steadily, than their direct reading shows. An affine map can learn much by itself, so the
control is always fitted, too: the same kind of map on the states of random blocks, between the same
embeddings and output layer, towards the same answers of the model's last depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kao.decoding.plan import (
    FIT,
    FIT_TEXT,
    GRAFT,
    SHIPPED,
    ReadoutRequest,
    fit_trials,
)
from microtome.experiments.kao.decoding.plan import OPTIONS as DECODING_OPTIONS
from microtome.experiments.kit.layers import layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import (
    MODEL,
    TRAINING,
    Subject,
    TrialInput,
    file_input,
    subject_of,
)
from microtome.models.embedded_readouts import shipped_folder
from microtome.runs import Trial
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.encoding.texts import EMBEDDED_KINDS

SECTION = "Not of the papers: the tuned lens"
QUESTION = "What does each depth already know of the last one's answer?"
COLUMNS = (
    "reading", "layers", "depth", "kl", "low", "high", "n", "n_texts", "accuracy", "accuracy_low",
    "accuracy_high", "agreement", "agreement_low", "agreement_high", "below_control",
    "below_control_low", "below_control_high",
)  # fmt: skip
TRAINED, RANDOM = "trained", "random"  # the blocks whose states a lens is fitted to
SEED = 0
LEAST_TEXTS = 2  # one to fit on, one to stop by
PASSES = 3  # what fitting costs of reading as many texts, about
_OF_DECODING = ("readout", GRAFT, "fit_steps", "special")
OPTIONS = (
    *(option for option in DECODING_OPTIONS if option.name in _OF_DECODING),
    Option(
        FIT_TEXT, None, "a text file to fit on, not the task's training rows or 80 % of a file",
        "path",
    ),
    Option("fit_rows", 1000, "texts to fit the maps on, at most", "whole"),
    Option("lens_steps", 300, "updates of the maps, of 64 tokens each, at most", "whole"),
    Option("masked", False, "hide 15 % of the tokens by [MASK], and read these alone", "flag"),
)  # fmt: skip


def find_subject(model: str | None, data: DataSpec, settings: Mapping[str, Any]) -> Subject:
    """A file alone is divided: one side to fit on, the other to measure."""
    if data.is_file and data.dev_path is None and settings[FIT_TEXT] is None:
        data = replace(data, held_out=True)
    return subject_of(model, data, revision=data.revision, trains=False)


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """The maps, those of the control, and all depths of the measured texts read through them."""
    _check(subject, settings)
    readout = _readout(subject, settings)
    donor = readout.donor()
    inputs = {} if donor is None else {GRAFT: donor}
    if readout.name == SHIPPED:  # refused where no head ships for this model
        inputs[SHIPPED] = file_input(shipped_folder(subject.model_hash))
    head = fit_trials(subject, readout)
    request = {
        "readout": readout.name, "special": settings["special"], "masked": settings["masked"],
    }  # fmt: skip
    maps = tuple(
        _map_trial(subject, settings, request | {"blocks": blocks}, head, inputs)
        for blocks in (TRAINED, RANDOM)
    )
    n_applied = 2 * layers_of(subject.model_path).count  # the model's layers and the control's
    read = subject.trial(
        "lens.read", request, needs=(*head, *maps), inputs=inputs,
        label=f"read {subject.model} through the lens", work=n_applied,
    )  # fmt: skip
    return [*head, *maps, read]


def _check(subject: Subject, settings: Mapping[str, Any]) -> None:
    """Refuse what can't be done, before anything is loaded."""
    for name, least in (("fit_rows", LEAST_TEXTS), ("lens_steps", 1)):
        if settings[name] < least:
            flag = name.replace("_", "-")
            raise RequestError(f"--{flag} must be {least} or more, got {settings[name]}")
    if not settings["masked"]:
        return
    if settings["special"]:
        raise RequestError("--masked doesn't go with --special", "special tokens aren't masked")
    kind = subject.dataset.task.kind
    if kind in ("spans", *EMBEDDED_KINDS):
        raise RequestError(
            f"--masked expects one text or pair per row, and {subject.task} is {kind}",
            "leave it out, or give the texts as a file",
        )


def _readout(subject: Subject, settings: Mapping[str, Any]) -> ReadoutRequest:
    """The readout as decoding has it; the text to fit on is the lens's, and a fitted head's."""
    asked = ReadoutRequest.of(settings)
    readout = asked if asked.name == FIT else replace(asked, fit_text=None)
    readout.check(subject.data)
    return readout


def _map_trial(
    subject: Subject,
    settings: Mapping[str, Any],
    request: Mapping[str, Any],
    head: tuple[Trial, ...],
    inputs: Mapping[str, TrialInput],
) -> Trial:
    """The trial that fits a map per depth: it opens no measured row."""
    given = settings[FIT_TEXT]
    # How many rows are measured makes no difference to the maps.
    unlimited = replace(subject, data=replace(subject.data, limit=None))
    n_read = PASSES * settings["fit_rows"]
    name = "the control's maps" if request["blocks"] == RANDOM else "a map per depth"
    return unlimited.trial(
        "lens.fit",
        {**request, "rows_at_most": settings["fit_rows"], "steps": settings["lens_steps"],
         "seed": SEED},
        needs=head,
        inputs={**inputs, **({} if given is None else {FIT_TEXT: file_input(given)})},
        reads=(MODEL, TRAINING) if given is None else (MODEL,),
        label=f"fit {name}",
        work=layers_of(subject.model_path).count * n_read / max(1, len(subject.dataset)),
    )  # fmt: skip
