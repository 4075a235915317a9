"""``microtome compare``: several checkpoints on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.option_groups import takes_data, takes_workers
from microtome.cli.output import log, print_notes, show, table
from microtome.tasks.data_spec import DataSpec

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.study import Workers

Models = Annotated[
    list[str], typer.Argument(metavar="MODEL", help="Embedded names, local folders, or hub ids.")
]


@takes_data(without=("dev_data", "revision"))
@takes_workers
def compare(
    models: Models,
    rows: DataSpec,
    where: Workers,
    max_length: given.MaxLength = None,
    out: given.Run = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Several checkpoints on the same rows: scores, every pair compared, parameters, milliseconds.

    They may be of different families, with their tokenizers and their orders of labels. Differences
    are paired, with intervals and p-values corrected by Holm. The same command resumes; with
    one more model, the answers of the others are kept.

    Example: microtome compare ./my-model ./my-model-small --data mine.csv --out ./compared
    """
    from microtome.comparing import compare as comparing

    wanted = comparing.request(models, replace(rows, max_length=max_length), out=out)
    log(f"comparing {len(models)} models on {wanted.subjects[0].task} → {wanted.folder}")
    document = comparing.compare(wanted, workers=where).as_json()
    show(document, as_json=json, for_people=lambda console: _draw(console, document))


def _draw(console: Console, document: dict[str, Any]) -> None:
    console.print(document["finding"], markup=False)
    from microtome.models.source import short_names

    models = document["models"]
    names = short_names([row["model"] for row in models])
    columns = ("model", "score", "95 % interval", "constant", "layers", "M", "ms", "speed")
    title = f"{document['primary']} on {models[0]['n']:,} {document['unit']} (percent)"
    console.print()
    console.print(table(title, columns, [_model_line(row, names) for row in models]))
    console.print()
    paired = ("a", "b", "b − a", "95 % interval", "p", "p (Holm)")
    pairs = [_pair_line(row, names) for row in document["differences"]]
    console.print(table("Every pair (points)", paired, pairs))
    print_notes(console, document["notes"])
    console.print(f"\nreport: {document['report']}", markup=False)


def _model_line(row: dict[str, Any], names: Mapping[str, str]) -> list[object]:
    ends = f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"
    return [
        names[row["model"]], f"{100 * row['score']:.1f}", ends, f"{100 * row['constant']:.1f}",
        row["layers"], f"{row['parameters'] / 1e6:.1f}", f"{row['latency_ms']:.1f}",
        f"{row['speed']:.2f}×",
    ]  # fmt: skip


def _pair_line(row: dict[str, Any], names: Mapping[str, str]) -> list[object]:
    ends = f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}"
    return [
        names[row["a"]], names[row["b"]], f"{100 * row['change']:+.1f}", ends, _shown_p(row["p"]),
        _shown_p(row["p_holm"]),
    ]  # fmt: skip


def _shown_p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
