"""``microtome operate``: surgery on a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtome.cli.output import log, show, table
from microtome.cli.parameters import AllowPickle, Json, Model, Quiet, Revision, read_edits
from microtome.errors import RequestError

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.surgery import Check, Operation

_ANSWERS = {True: "ok", False: "FAILED", None: "not run"}


def operate(
    model: Model,
    edits: Annotated[list[str], typer.Argument(metavar="EDIT…", help="For example 'extend(15)'.")],
    out: Annotated[Path, typer.Option("--out", help="A new or empty folder.", show_default=False)],
    allow_pickle: AllowPickle = False,
    revision: Revision = None,
    head_mask: Annotated[str | None, typer.Option("--head-mask", hidden=True)] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Edit a checkpoint: surgery, a proof that it did what it says, and an ordinary folder.

    Any head will do, and a sentence-transformers folder stays one.
    Edits are applied left to right; each sees the model left by those before it.
    'microtome list edits' shows them all.

    Example: microtome operate ./bert "extend(15)" "disable(3.7)" --out ./bert-15
    """
    from microtome.models import fetched, resolve
    from microtome.models.checkpoint import look_at
    from microtome.models.folders import check_empty

    if head_mask is not None:
        raise RequestError(
            "--head-mask was given, and transformers ignores head masks since version 5",
            'switch a head off with an edit, for example "disable(3.7)"',
        )
    planned = read_edits(edits)
    check_empty(out)
    source = fetched(resolve(model, revision=revision), allow_pickle=allow_pickle)
    assert source.path is not None
    look_at(source.path, links_into=source.links_into, allow_pickle=allow_pickle)
    log(f"operating on {model}: {planned.text}")
    from microtome import surgery

    operation = surgery.operate(source, planned, out, allow_pickle=allow_pickle)
    document = {
        "base": operation.base,
        "edits": list(operation.edits),
        "out": str(operation.out),
        "layers": operation.layers,
        "certificate": operation.certificate.as_json(),
    }
    show(document, as_json=json, for_people=lambda console: _draw(console, operation))


def print_checks(console: Console, title: str, checks: Sequence[Check]) -> None:
    """A line for every check: whether it passed, and what was seen."""
    rows = [(_ANSWERS[check.passed], check.name, check.detail) for check in checks]
    console.print(table(title, ("", "check", "what was seen"), rows))


def _draw(console: Console, operation: Operation) -> None:
    print_checks(console, "Certificate", operation.certificate.checks)
    for warning in operation.certificate.warnings:
        console.print(f"warning: {warning}", markup=False)
    before, after = operation.cost_before, operation.cost_after
    console.print(
        table(
            "\nCost",
            ("", "before", "after"),
            [
                ("parameters", f"{before.parameters:,}", f"{after.parameters:,}"),
                (
                    "FLOPs per token",
                    f"{before.flops_per_token:,.0f}",
                    f"{after.flops_per_token:,.0f}",
                ),
                ("bytes", f"{before.bytes:,}", f"{after.bytes:,}"),
            ],
        )
    )
    console.print(f"\n{operation.layers} layers, saved in {operation.out}", markup=False)
