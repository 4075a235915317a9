"""``microtome cache``: the encodings kept on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from microtome.cli.output import show
from microtome.cli.parameters import Json, Quiet


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything in it.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show where encoded data sets are kept and how large they are, or remove them."""
    from microtome.tasks import cache_folder, cache_size, clear_cache

    n_freed = clear_cache() if clear else 0
    document = {"folder": str(cache_folder()), "bytes": cache_size(), "freed": n_freed}
    line = f"{document['folder']}: {document['bytes']:,} bytes"
    if clear:
        line += f", {n_freed:,} bytes freed"
    show(document, as_json=json, for_people=lambda console: console.print(line, markup=False))
