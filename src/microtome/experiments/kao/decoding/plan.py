"""Output-layer decoding (Kao et al. 2020, section 2; 2021, sections 3.1 and 4.1).

An unmasked text goes in, and the state at every depth is decoded with the model's own pre-trained
MLM head; the share of tokens that come back is the token accuracy at that depth. A fine-tuned
encoder is read through the pre-trained head, grafted on; a model with duplicated layers is read at
its last depth. The papers report more than 80 % at most inner depths of most models, that
fine-tuning touches the last layers only, and that ALBERT holds for some layers more. They argue
that the residual path alone can't explain it, so the control is always drawn: the same embeddings
and head around random blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit import arms
from microtome.experiments.kit.arms import Arm, training_trial
from microtome.experiments.kit.layers import Layers, layers_of
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import (
    MODEL,
    TRAINING,
    Subject,
    TrialInput,
    file_input,
    model_input,
    subject_of,
)
from microtome.models.checkpoint import look_at
from microtome.models.embedded_readouts import shipped_folder
from microtome.models.heads import own_head
from microtome.runs import Trial
from microtome.tasks.data_spec import DataSpec
from microtome.values import parse_ranges

SECTION = "Kao et al. 2020, section 2; 2021, section 3.1"
QUESTION = "Which depths already speak the language of the output layer?"
COLUMNS = ("layers", "depth", "accuracy", "first_token_accuracy", "low", "high", "control")
GRAFT, FIT_TEXT = "graft", "fit_text"  # inputs of trials
ALL = "all"
FIT, SHIPPED = "fit", "shipped"
READOUTS = ("auto", "mlm", "tied", FIT, SHIPPED)
FIT_STEPS, FIT_SEED = 500, 0
OPTIONS = (
    Option(
        "readout",
        "auto",
        "auto (mlm, else tied), mlm, tied, fit (a head trained here) or shipped (for minilm)",
    ),
    Option("graft", None, "a MODEL whose MLM head is used instead", "model"),
    Option("fit_text", None, "readout fit: a text file, not the task's training rows", "file"),
    Option("fit_steps", FIT_STEPS, "readout fit: updates of the head", "whole"),
    Option("special", False, "count special tokens and [UNK] too", "flag"),
    Option("layers", "", "also the last state of deeper models: 12-24, or all"),
    Option("finetuned", False, "also the model fine-tuned on the task, same head", "flag"),
    *arms.OPTIONS,
)


@dataclass(frozen=True)
class ReadoutRequest:
    """A readout by name, and what it is made from.

    ``mlm`` is the model's own MLM head, ``tied`` its word embeddings, ``auto`` the first of these
    that it has, ``fit`` a head trained for ``fit_steps`` updates on ``fit_text`` (else on the
    task's training rows), ``shipped`` one that comes with the package. ``graft`` names a model
    whose MLM head is used instead.
    """

    name: str = "auto"
    graft: str | None = None
    fit_text: Path | None = None
    fit_steps: int = FIT_STEPS

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ReadoutRequest:
        """The readout that an experiment's settings ask for."""
        fit_text = settings["fit_text"]
        return cls(
            settings["readout"],
            settings["graft"],
            None if fit_text is None else Path(fit_text),
            settings["fit_steps"],
        )

    def check(self, measured: DataSpec) -> None:
        """Refuse what doesn't exist or doesn't go together, before anything is loaded.

        ``measured`` are the rows that are decoded; an empty spec where it is a single text.
        """
        if self.name not in READOUTS:
            raise RequestError(f"--readout must be one of {', '.join(READOUTS)}, got {self.name!r}")
        if self.graft is not None and self.name not in ("auto", "mlm"):
            raise RequestError(f"--graft doesn't go with --readout {self.name}", "give one of them")
        if self.fit_text is not None and self.name != FIT:
            raise RequestError("--fit-text has no use without --readout fit")
        if self.fit_steps < 1:
            raise RequestError(f"--fit-steps must be 1 or more, got {self.fit_steps}")
        has_training_rows = measured.task is not None and not measured.is_file
        if self.name == FIT and self.fit_text is None and not has_training_rows:
            raise RequestError(
                "--readout fit needs text that isn't measured",
                "name some: --fit-text FILE, or a --task with training rows",
            )

    def donor(self) -> TrialInput | None:
        """The checkpoint whose head is grafted on; one without an MLM head is refused."""
        if self.graft is None:
            return None
        donor = model_input(self.graft)
        head = own_head(look_at(donor.path))
        if head != "mlm":
            raise RequestError(
                f"--graft expects a model with an MLM head, got {self.graft} with"
                f" {'no' if head == 'none' else f'a {head}'} head",
                "name the checkpoint that the model was fine-tuned from",
            )
        return donor


def find_subject(model: str | None, data: DataSpec, settings: Mapping[str, Any]) -> Subject:
    """A file is measured whole, unless the model is to learn from one side of it."""
    return subject_of(model, data, revision=data.revision, trains=settings["finetuned"])


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """The curve over depths; those of a related checkpoint and of deeper models if asked for."""
    readout = ReadoutRequest.of(settings)
    readout.check(subject.data)
    donor = readout.donor()
    inputs = {} if donor is None else {GRAFT: donor}
    if readout.name == SHIPPED:  # refused where no head ships for this model
        inputs[SHIPPED] = file_input(shipped_folder(subject.model_hash))
    fit = fit_trials(subject, readout)
    request = {"readout": readout.name, "special": settings["special"]}
    subject_request = request | {
        "checkpoint": "finetuned" if subject.has_task_head else "pretrained"
    }
    label = f"decode {subject.model}"
    trials = [
        *fit,
        subject.trial("decoding.decode", subject_request, needs=fit, inputs=inputs, label=label),
    ]
    if donor is not None:
        trials.append(_donor_trial(subject, donor, settings))
    if settings["finetuned"]:
        trials += _finetuned_trials(subject, settings, fit, request, inputs)
    if settings["layers"]:
        stack = layers_of(subject.model_path)
        for counts in _together(asked_counts(settings["layers"], stack), stack):
            text = f"{counts[0]}-{counts[-1]}" if len(counts) > 1 else str(counts[0])
            trials.append(
                subject.trial(
                    "decoding.decode_deeper", subject_request | {"layers": counts},
                    needs=fit, inputs=inputs, label=f"decode {subject.model} with {text} layers",
                )
            )  # fmt: skip
    return trials


def fit_trials(subject: Subject, readout: ReadoutRequest) -> tuple[Trial, ...]:
    """The trial that fits a head, where one is asked for."""
    if readout.name != FIT:
        return ()
    given = readout.fit_text is not None
    trial = subject.trial(
        "decoding.fit_head",
        {"steps": readout.fit_steps, "seed": FIT_SEED},
        inputs={FIT_TEXT: file_input(readout.fit_text)} if readout.fit_text is not None else {},
        reads=(MODEL,) if given else (MODEL, TRAINING),
        label=f"fit a readout for {subject.model}",
    )
    return (trial,)


def _donor_trial(subject: Subject, donor: TrialInput, settings: Mapping[str, Any]) -> Trial:
    """The checkpoint that the head comes from, on the same text, through its own head."""
    before = replace(subject, model_path=donor.path, model_hash=donor.hash)
    request = {"readout": "mlm", "special": settings["special"], "checkpoint": "pretrained"}
    return before.trial("decoding.decode", request, label=f"decode {settings['graft']}")


def _finetuned_trials(
    subject: Subject,
    settings: Mapping[str, Any],
    fit: tuple[Trial, ...],
    request: dict[str, Any],
    inputs: Mapping[str, TrialInput],
) -> list[Trial]:
    """The subject fine-tuned on the task, read through the head that it had before."""
    if subject.has_task_head:
        raise RequestError(
            f"--finetuned expects a pre-trained model, and {subject.model} is fine-tuned already",
            "name the checkpoint it was fine-tuned from: --graft MODEL",
        )
    label = f"fine-tune {subject.model} on {subject.task}"
    tuned = training_trial(subject, settings, Arm(label=label))
    inputs = {name: read for name, read in inputs.items() if name != GRAFT}
    if subject.head == "mlm" and request["readout"] in ("auto", "mlm"):
        inputs[GRAFT] = TrialInput(subject.model_path, subject.model_hash)
    decode = subject.trial(
        "decoding.decode", request | {"checkpoint": "finetuned"}, needs=(*fit, tuned),
        inputs=inputs, label=f"decode {subject.model} fine-tuned",
    )  # fmt: skip
    return [tuned, decode]


def asked_counts(text: str, stack: Layers) -> list[int]:
    """The numbers of layers that are asked for; ``all`` is as far as the papers went."""
    every = range(stack.count, stack.deepest + 1)
    counts = every if text == ALL else sorted(set(parse_ranges(text)))
    for n_layers in counts:
        stack.check(f"extend({n_layers})")
    return list(counts)


def _together(counts: list[int], stack: Layers) -> list[list[int]]:
    """A shared layer's states at depth K are the last ones of K layers: one pass gives all."""
    return [counts] if stack.shared else [[n_layers] for n_layers in counts]
