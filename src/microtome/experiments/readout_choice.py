"""Which head reads the states of a trial: the model's own, another checkpoint's, or a fitted one.

A head is fitted on text that isn't measured: the task's training rows, or a file named for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.experiments.options import Option
from microtome.experiments.subject import (
    MODEL,
    Other,
    Rows,
    Subject,
    other_file,
    other_model,
)
from microtome.runs import Context, Result, Trial

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from microtome.observe.readouts import Readout
    from microtome.tasks import Dataset

READOUTS = ("auto", "mlm", "tied", "fit", "shipped")
GRAFT, FIT_TEXT, HEAD = "graft", "fit_text", "readout"
FIT_STEPS, FIT_SEED, MOST_FIT_TEXTS = 500, 0, 20_000

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


def check_readout(settings: Mapping[str, Any]) -> None:
    """Refuse readouts that don't exist or that exclude each other, before anything runs."""
    name = settings["readout"]
    if name not in READOUTS:
        raise RequestError(f"readout {name!r} given, one of {', '.join(READOUTS)} wanted")
    if settings["graft"] is not None and name not in ("auto", "mlm"):
        raise RequestError(f"--graft given with --readout {name}", "give one of them")
    if settings["fit_text"] is not None and name != "fit":
        raise RequestError("--fit-text given without --readout fit")
    if settings["fit_steps"] < 1:
        raise RequestError(f"--fit-steps {settings['fit_steps']} given, 1 or more wanted")


def donor_of(settings: Mapping[str, Any]) -> Other | None:
    """The checkpoint whose head is grafted on; one without an MLM head is refused here."""
    from microtome.models.checkpoint import look_at
    from microtome.models.heads import own_head

    if settings["graft"] is None:
        return None
    donor = other_model(settings["graft"])
    head = own_head(look_at(donor.path))
    if head != "mlm":
        raise RequestError(
            f"--graft {settings['graft']} has {'no' if head == 'none' else head} head",
            "an MLM head was wanted: name the checkpoint that the model was fine-tuned from",
        )
    return donor


def fit_first(subject: Subject, experiment: str, settings: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The trial that fits a head, where one is asked for; a shipped one must be there."""
    if settings["readout"] == "shipped":
        from microtome.training.readout import shipped_folder

        shipped_folder(subject.model_hash)
    if settings["readout"] != "fit":
        return ()
    others = {}
    if settings["fit_text"] is not None:
        others[FIT_TEXT] = other_file(settings["fit_text"])
    elif subject.rows.path is not None and subject.rows.path.is_file():
        raise RequestError(
            "--readout fit given with a file, which is measured whole",
            "name other text to fit the head on: --fit-text FILE",
        )
    request = {"steps": settings["fit_steps"], "seed": FIT_SEED}
    label = f"fit a readout for {subject.model}"
    return (
        subject.trial("readout_choice:measure", experiment, request, others=others, label=label),
    )


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Train an MLM head on the last states of text that isn't measured; the body is frozen."""
    from microtome.models import load, load_tokenizer
    from microtome.training.readout import fit_readout

    model = load(context.where[MODEL], device=context.device)
    tokenizer = load_tokenizer(context.where[MODEL])
    assert tokenizer is not None
    fitted = fit_readout(
        model, tokenizer, fit_texts(request, context), steps=request["steps"], seed=request["seed"]
    )
    fitted.save(context.scratch / HEAD)
    return Result(summary={"held-out accuracy": fitted.facts.heldout_accuracy}, checkpoint=True)


def fit_texts(request: Mapping[str, Any], context: Context) -> list[str]:
    """The text that a head is fitted on."""
    from microtome.tasks import open_data, open_training

    if FIT_TEXT in context.where:
        dataset = open_data(None, Path(context.where[FIT_TEXT]))
    else:
        dataset = open_training(Rows.of(request, context).request)[0]
    return texts_of(dataset)


def texts_of(dataset: Dataset) -> list[str]:
    """The texts of at most so many rows, a pair as two."""

    def texts() -> Iterator[str]:
        for row in dataset.limit(MOST_FIT_TEXTS).rows():
            yield from (text for text in (row.text, row.pair) if text)

    return list(islice(texts(), 2 * MOST_FIT_TEXTS))


def readout_for(request: Mapping[str, Any], context: Context, model: PreTrainedModel) -> Readout:
    """What reads the states of ``model`` in a trial."""
    from microtome.families import adapt
    from microtome.models import load
    from microtome.observe import fitted_head, readout_of
    from microtome.training.readout import load_readout, shipped_readout

    if request["readout"] in ("fit", "shipped"):
        # Fitted to the subject, whatever was fine-tuned or edited since.
        owner = load(context.where[MODEL], device=context.device)
        if request["readout"] == "shipped":
            head = shipped_readout(owner)
        else:
            folders = [n.checkpoint / HEAD for n in context.needs.values() if n.checkpoint]
            head = load_readout(owner, next(folder for folder in folders if folder.is_dir()))
        return fitted_head(adapt(model), head.transform, head.decoder)
    donor = context.where.get(GRAFT)
    graft = None if donor is None else load(donor, head="mlm", device=context.device)
    return readout_of(adapt(model), request["readout"], graft=graft)
