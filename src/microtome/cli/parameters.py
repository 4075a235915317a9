"""Arguments and options that mean the same in every command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtome.cli.output import QUIET
from microtome.errors import RequestError

if TYPE_CHECKING:
    from microtome.edits import Edits
    from microtome.report import Style

NARROWEST, WIDEST = 2, 12  # figures for a paper, in inches

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="Embedded name, local folder, or hub id.")
]


def _keep_quiet(value: bool) -> bool:
    QUIET.set(value)
    return value


Quiet = Annotated[
    bool, typer.Option("--quiet", callback=_keep_quiet, help="No progress on stderr.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")]
AllowPickle = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Also load .bin weights, which may be unsafe to open."),
]
Revision = Annotated[
    str | None, typer.Option("--revision", help="Branch, tag or commit of a hub id.")
]
Device = Annotated[str, typer.Option("--device", help="Where to compute, as torch names it.")]

Tasks = Annotated[
    str | None,
    typer.Option("--tasks", help="Several tasks: sst2,cola; --data then has a folder for each."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is random.")]
MaxLength = Annotated[
    int | None, typer.Option("--max-length", help="Tokens per text; default: the task's.")
]

Run = Annotated[
    Path | None,
    typer.Option("--out", help="The run's folder; the same command resumes. Default: by name."),
]
Fraction = Annotated[
    float, typer.Option("--fraction", help="Training rows: 1 all, below 1 a share, else a count.")
]
Executor = Annotated[str, typer.Option("--executor", help="local or ray.")]
NWorkers = Annotated[
    int, typer.Option("--workers", min=0, help="Worker processes; 0: run in this process.")
]
RayAddress = Annotated[
    str | None, typer.Option("--ray-address", help="A Ray cluster: 'auto', or its address.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Run failed trials again.")]
Track = Annotated[
    str | None, typer.Option("--track", help="Also log to tensorboard, wandb or mlflow.")
]


def read_edits(texts: Sequence[str] | None) -> Edits:
    """The edits of a command line. A file that one of them names must be there."""
    from microtome.edits import Edits, parse

    edits = Edits(*(parse(text) for text in texts or ()))
    _ = edits.identity  # reads the files, before anything is loaded
    return edits


FiguresOnly = Annotated[bool, typer.Option("--figures-only", help="Only figures: SVG, PDF, CSV.")]
StyleName = Annotated[str, typer.Option("--style", help="Of the figures' files: screen or paper.")]
FigureWidth = Annotated[
    float | None, typer.Option("--width", help="Inches, with --style paper. Default: 3.3.")
]


def style_of(name: str, width: float | None) -> Style:
    """How the files of figures are drawn, from what was asked for."""
    from microtome.report import SCREEN, paper

    if name not in ("screen", "paper"):
        raise RequestError(f"--style expects screen or paper, got {name!r}")
    if name == "screen":
        if width is not None:
            raise RequestError("--width goes with --style paper", "figures for a screen scale")
        return SCREEN
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise RequestError(
            f"--width must be between {NARROWEST} and {WIDEST} inches, got {width:g}"
        )
    return paper() if width is None else paper(width)
