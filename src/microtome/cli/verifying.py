"""``microtome verify``: whether a saved folder is still what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtome.cli.operating import print_checks
from microtome.cli.output import show
from microtome.cli.parameters import Json, Quiet
from microtome.errors import CertificateFailed

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.surgery import Verification


def verify(
    folder: Annotated[Path, typer.Argument(help="What operate, finetune or trim saved.")],
    base: Annotated[
        str | None, typer.Option("--base", help="The MODEL it was made from, if it has moved.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check a saved folder: its files by sha256, its certificate, and the surgery once more.

    The record is microtome.json in the folder. Where the base is at hand the edits are made again,
    and a folder that wasn't trained must have the same weights, bit for bit.

    Example: microtome verify ./my-model-small --base ./my-model
    """
    from microtome import surgery

    found = surgery.verify(folder, base=base)
    if not found.passed:
        failed = [f"{one.name} ({one.detail})" for one in found.checks if one.passed is False]
        raise CertificateFailed(
            f"{folder} is not what its record says: {'; '.join(failed)}",
            "don't use it; make it again from its base",
        )
    show(found.as_json(), as_json=json, for_people=lambda console: _draw(console, found))


def _draw(console: Console, found: Verification) -> None:
    print_checks(console, "Verification", found.checks)
    made = f"{found.base}: {' | '.join(found.edits) or 'no edits'}"
    console.print(f"\n{found.folder} is what its record says, made from {made}", markup=False)
