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
Tasks = Annotated[
    str | None,
    typer.Option("--tasks", help="Several tasks: sst2,cola; --data then has a folder for each."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", help="A task's folder of native files, or your csv/tsv/jsonl/parquet/txt."
    ),
]
Split = Annotated[str | None, typer.Option("--split", help="train, dev or test.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Measure at most this many rows.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is random.")]
MaxLength = Annotated[
    int | None, typer.Option("--max-length", help="Tokens per text; default: the task's.")
]
TextColumn = Annotated[str | None, typer.Option("--text-column", help="Your data: the text.")]
PairColumn = Annotated[str | None, typer.Option("--pair-column", help="Your data: a second text.")]
LabelColumn = Annotated[str | None, typer.Option("--label-column", help="Your data: the label.")]
Labels = Annotated[
    str | None, typer.Option("--labels", help="Your data: label names in order, with commas.")
]
SkipUnknownLabels = Annotated[
    bool,
    typer.Option("--skip-unknown-labels", help="Leave rows out whose label the task hasn't."),
]

Run = Annotated[
    Path | None,
    typer.Option("--out", help="The run's folder; the same command resumes. Default: by name."),
]
DevData = Annotated[
    Path | None, typer.Option("--dev-data", help="Your data: a second file to measure on.")
]
Fraction = Annotated[
    float, typer.Option("--fraction", help="Training rows: 1 all, below 1 a share, else a count.")
]
Epochs = Annotated[int | None, typer.Option("--epochs", min=1, help="Default: the task's.")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", min=1, help="Default: 32.")]
LearningRate = Annotated[
    float | None, typer.Option("--learning-rate", help="Default: the card's, else the papers'.")
]
Warmup = Annotated[
    float | None,
    typer.Option("--warmup", help="Share of the updates, learning rate rising. Default: 0.1."),
]
WeightDecay = Annotated[float | None, typer.Option("--weight-decay", help="Default: 0.01.")]
LeastSteps = Annotated[
    int,
    typer.Option("--least-steps", min=0, help="Updates at least: more epochs where rows are few."),
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
