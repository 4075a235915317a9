"""Which head reads the states of a model, as it is asked for: by ``run decoding`` and ``decode``.

A head is fitted on text that isn't measured: the task's training rows, or a file named for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import TrialInput, model_input
from microtome.models.checkpoint import look_at
from microtome.models.heads import own_head
from microtome.tasks.data_spec import DataSpec

FIT, SHIPPED = "fit", "shipped"
READOUTS = ("auto", "mlm", "tied", FIT, SHIPPED)
FIT_STEPS = 500

OPTIONS = (
    Option(
        "readout",
        "auto",
        "auto (mlm, else tied), mlm, tied, fit (a head trained here) or shipped (for minilm)",
    ),
    Option("graft", None, "a MODEL whose MLM head is used instead", "model"),
    Option("fit_text", None, "readout fit: a text file, not the task's training rows", "path"),
    Option("fit_steps", FIT_STEPS, "readout fit: updates of the head", "whole"),
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
