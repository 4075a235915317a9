"""Arguments and options that mean the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="Embedded name, local folder, or hub id.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")]
AllowPickle = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Also load .bin weights, which may be unsafe to open."),
]
Revision = Annotated[
    str | None, typer.Option("--revision", help="Branch, tag or commit of a hub id.")
]
