"""``microtome decode``: read every depth through the output layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.option_groups import takes_data
from microtome.cli.output import log, show, table
from microtome.errors import RequestError
from microtome.tasks.data_spec import DataSpec

if TYPE_CHECKING:
    from rich.console import Console

ReadoutName = Annotated[str, typer.Option("--readout", help="auto, mlm, tied, fit or shipped.")]
Graft = Annotated[
    str | None, typer.Option("--graft", help="A model whose MLM head is used instead.")
]
FitText = Annotated[
    Path | None,
    typer.Option("--fit-text", help="--readout fit: a text file; else the task's train rows."),
]


@takes_data(
    without=(
        "dev_data", "label_column", "label_separator", "labels", "candidates",
        "skip_unknown_labels", "pooling", "prompt", "revision",
    )
)  # fmt: skip
def decode(
    model: given.Model,
    *,
    text: Annotated[str | None, typer.Option("--text", help="One text to decode.")] = None,
    rows: DataSpec,
    readout: ReadoutName = "auto",
    graft: Graft = None,
    fit_text: FitText = None,
    special: Annotated[
        bool, typer.Option("--special", help="Count special tokens and [UNK] too.")
    ] = False,
    max_length: given.MaxLength = None,
    device: given.Device = "cpu",
    allow_pickle: given.AllowPickle = False,
    revision: given.Revision = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Decode the state at every depth with the output layer; random blocks are the control.

    Examples: microtome decode nano-bert --text "The cat sat on the mat."
    microtome decode ./my-bert --task sst2-sentence --data sst2 --limit 500
    """
    from microtome.experiments.kao.decoding.plan import ReadoutRequest
    from microtome.models.source import resolve

    if (text is None) == rows.is_empty:
        raise RequestError(
            f"expected one text or a data set, got {'neither' if text is None else 'both'}",
            'give --text "…", or --task and --data',
        )
    request = ReadoutRequest(readout, graft, fit_text)
    request.check(rows)
    source = resolve(model, revision=revision)

    from microtome.experiments.kao.decoding.document import decoded_document

    document = decoded_document(
        source, rows, text=text, readout=request, special=special, max_length=max_length,
        device=device, allow_pickle=allow_pickle, tell=log,
    )  # fmt: skip
    document["model"] = model
    show(document, as_json=json, for_people=lambda console: _draw(console, document))


def _draw(console: Console, document: dict[str, Any]) -> None:
    from microtome.models.source import short_name

    texts = "text" in document["depths"][0]
    columns = ("depth", "accuracy", "95 % interval", "after [CLS]", "control")
    rows = [
        (
            row["depth"],
            _percent(row["accuracy"]),
            f"{_percent(row['low'])} to {_percent(row['high'])}",
            _percent(row["first_token_accuracy"]),
            _percent(row["control"]),
            *([row["text"]] if texts else []),
        )
        for row in document["depths"]
    ]
    title = (
        f"{short_name(document['model'])}: {document['tokens']:,} tokens of"
        f" {document['examples']:,} texts, readout {document['readout']}"
        " (percent; control: random blocks)"
    )
    console.print(table(title, (*columns, "text") if texts else columns, rows))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
