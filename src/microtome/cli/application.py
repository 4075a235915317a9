"""The application: its commands, and the options that mean the same everywhere."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from typer.core import TyperCommand

from microtome.cli import (
    comparing,
    decoding,
    evaluating,
    exploring,
    finetuning,
    listing,
    operating,
    pretraining,
    replicating,
    studying,
    trimming,
    verifying,
)
from microtome.cli.experiment_options import PASSED_ON
from microtome.errors import DISTRIBUTION, RequestError


class Command(TyperCommand):
    """A command with our manners.

    A single option that is given twice is refused, where the parser would take the last. Ctrl-C
    gets through to ``cli.run``, where typer would end without a word.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse, once every option is known to be given once or to take several values."""
        _, _, occurrences = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, n in Counter(occurrences).items():
            if n > 1 and not parameter.multiple:
                raise RequestError(
                    f"{'/'.join(parameter.opts + parameter.secondary_opts)} was given {n} times,"
                    " expected once",
                    "keep the one that you mean",
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Call the function; an interrupt becomes the error that typer passes on."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise typer.Abort from interrupt


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
app.command("examine", cls=Command)(studying.examine)
app.command("trim", cls=Command)(trimming.trim)
app.command("replicate", cls=Command)(replicating.replicate)
app.command("decode", cls=Command)(decoding.decode)
app.command("operate", cls=Command)(operating.operate)
app.command("finetune", cls=Command)(finetuning.finetune)
app.command("evaluate", cls=Command)(evaluating.evaluate)
app.command("compare", cls=Command)(comparing.compare)
app.command("run", cls=Command, context_settings=PASSED_ON, add_help_option=False)(studying.run)
app.command("explore", cls=Command)(exploring.explore)
app.command("report", cls=Command)(studying.report)
app.command("verify", cls=Command)(verifying.verify)
app.command("pretrain", cls=Command)(pretraining.pretrain)
app.command("list", cls=Command)(listing.list_items)
app.command("cache", cls=Command)(listing.cache)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(version(DISTRIBUTION))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Options before the command."""
