"""``microtome trim``: from a model and data to a smaller model, healed and proven."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.option_groups import takes_data, takes_recipe, takes_workers
from microtome.cli.output import log, print_notes, show, table
from microtome.errors import RequestError
from microtome.tasks.data_spec import DataSpec
from microtome.values import parse_ranges

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.study import Workers
    from microtome.trimming.trim import Trimmed

Out = Annotated[Path, typer.Option("--out", help="A new folder for the smaller model.")]
Run = Annotated[
    Path | None, typer.Option("--run", help="The run's folder. Default: OUT.trim, next to OUT.")
]
Lose = Annotated[
    float | None,
    typer.Option("--lose", help="Points that it may lose; 1 unless --speed is given."),
]
Speed = Annotated[
    str | None, typer.Option("--speed", help="How fast at least, as 2x: then the best that is.")
]
Minutes = Annotated[
    float, typer.Option("--minutes", help="Of healing, shared by all sizes, once calibrated.")
]
Steps = Annotated[
    int | None, typer.Option("--steps", help="Of healing for every size, instead of minutes.")
]
Text = Annotated[
    Path | None, typer.Option("--text", help="Texts to heal on, one per line; no labels needed.")
]
Layers = Annotated[
    str | None, typer.Option("--layers", help="The sizes to heal, as 2-4; default: at most five.")
]
Also = Annotated[
    list[str] | None, typer.Option("--also", help="More data to score on: a task, or a file.")
]
Deeper = Annotated[bool, typer.Option("--deeper", help="Try duplicated layers, too.")]
Rate = Annotated[
    float | None, typer.Option("--healing-rate", help="The learning rate of the healing.")
]
SmallerVocabulary = Annotated[
    Path | None, typer.Option("--vocabulary", help="Keep only the tokens of this file's texts.")
]


@takes_data(without=("split", "seed"))
@takes_recipe
@takes_workers
def trim(
    rows: DataSpec,
    recipe: dict[str, Any],
    where: Workers,
    model: given.Model,
    out: Out,
    text: Text = None,
    lose: Lose = None,
    speed: Speed = None,
    minutes: Minutes = 10.0,
    steps: Steps = None,
    layers: Layers = None,
    vocabulary: SmallerVocabulary = None,
    also: Also = None,
    deeper: Deeper = False,
    healing_rate: Rate = None,
    run: Run = None,
    seed: given.Seed = 0,
    revision: str | None = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Cut a model, heal what was cut, choose, prove: a smaller model that still does its job.

    Every size is healed: it learns to answer as the base does, on the training rows or on --text.
    Cuts are picked on half of the measured rows and scored on the other half. The fastest that is
    sure to lose less than --lose points is saved; with --speed 2x, the best that is so fast. The
    same command resumes; another --lose or --speed chooses anew in moments.

    Example: microtome trim ./my-model --data train.csv --dev-data dev.csv --out ./my-model-small
    """
    from microtome.trimming import trim as trimming

    settings = {
        "minutes": minutes, "steps": steps, "text": _place(text), "also": also, "deeper": deeper,
        "layers": None if layers is None else list(parse_ranges(layers)), "seed": seed,
        "healing_rate": healing_rate, **recipe,
    }  # fmt: skip
    wanted = trimming.request(
        model, rows, out, lose=lose, speed=_times(speed), vocabulary=vocabulary, folder=run,
        settings=settings, revision=revision,
    )  # fmt: skip
    log(f"trimming {wanted.subject.model} on {wanted.subject.task} → {wanted.folder}")
    done = trimming.trim(wanted, workers=where)
    show(done.as_json(), as_json=json, for_people=lambda console: _draw(console, done))


def _place(text: Path | None) -> str | None:
    if text is not None and not text.is_file():
        raise RequestError(f"--text expects a file of texts, got {text}")
    return None if text is None else str(text)


def _times(speed: str | None) -> float | None:
    """``2x``, ``2×`` or ``2``."""
    if speed is None:
        return None
    try:
        return float(speed.strip().removesuffix("x").removesuffix("×"))
    except ValueError as error:
        raise RequestError(f"--speed expects a factor, as 2x, got {speed!r}") from error


def _draw(console: Console, done: Trimmed) -> None:
    console.print(done.finding, markup=False)
    columns = ("edit", "layers", "healed", "score", "change", "from", "to", "speed", "ms", "M")
    lines = [_line(cut) for cut in (done.as_json()["baseline"], *done.as_json()["cuts"])]
    console.print()
    console.print(table("Scored on rows that nothing was picked on", columns, lines))
    print_notes(console, done.page.notes)
    console.print(f"\nreport: {done.report}", markup=False)


def _line(cut: dict[str, Any]) -> list[object]:
    points = [f"{100 * cut[name]:+.1f}" for name in ("change", "change_low", "change_high")]
    speed = "–" if cut["speed"] is None else f"{cut['speed']:.2f}×"
    return [
        cut["edit"] or "as it is", cut["layers"], "yes" if cut["healed"] else "",
        f"{100 * cut['score']:.1f}", *(points if cut["edit"] else ("", "", "")), speed,
        f"{cut['latency_ms']:.1f}", f"{cut['parameters'] / 1e6:.1f}",
    ]  # fmt: skip
