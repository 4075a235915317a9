"""Arguments and options that mean the same in every command."""

from __future__ import annotations

from pathlib import Path
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
Device = Annotated[str, typer.Option("--device", help="Where to compute, as torch names it.")]

Task = Annotated[
    str | None, typer.Option("--task", help="A task's name: see 'microtome list tasks'.")
]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="A task's folder of native files, or a csv/tsv/jsonl/parquet/txt."),
]
Split = Annotated[str | None, typer.Option("--split", help="train, dev or test.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Measure at most this many rows.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is random.")]
MaxLength = Annotated[
    int | None, typer.Option("--max-length", help="Tokens per text; default: the task's.")
]
TextColumn = Annotated[str | None, typer.Option("--text-column", help="Own data: the text.")]
PairColumn = Annotated[str | None, typer.Option("--pair-column", help="Own data: a second text.")]
LabelColumn = Annotated[str | None, typer.Option("--label-column", help="Own data: the label.")]
Labels = Annotated[
    str | None, typer.Option("--labels", help="Own data: label names in order, with commas.")
]
