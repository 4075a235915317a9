"""The application: its commands, and the options that mean the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from microtome.cli import (
    caching,
    decoding,
    evaluating,
    finetuning,
    listing,
    operating,
    pretraining,
    studying,
)
from microtome.cli.experiment_options import PASSED_ON

app = typer.Typer(
    name="microtome",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=(
        "Cut BERT-family encoders into layers, look at each slice, and operate on it.\n\n"
        "MODEL is an embedded name (see 'microtome list models'), a local folder, or a hub id."
    ),
)
app.command("examine")(studying.examine)
app.command("decode")(decoding.decode)
app.command("operate")(operating.operate)
app.command("finetune")(finetuning.finetune)
app.command("evaluate")(evaluating.evaluate)
app.command("run", context_settings=PASSED_ON, add_help_option=False)(studying.run)
app.command("report")(studying.report)
app.command("pretrain")(pretraining.pretrain)
app.command("list")(listing.list_items)
app.command("cache")(caching.cache)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("microtome"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Options before the command."""
