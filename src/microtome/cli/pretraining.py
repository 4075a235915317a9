"""``microtome pretrain``: a small encoder from plain text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.output import log, show, table
from microtome.errors import RequestError

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.training.mlm.request import LogLine, PretrainResult


def pretrain(
    text: Annotated[
        list[Path], typer.Option("--text", help=".txt, .txt.xz or .txt.gz; may be repeated.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The finished model's folder.")],
    start: Annotated[
        str | None, typer.Option("--from", help="A masked LM to train on; it decides the shape.")
    ] = None,
    family: Annotated[
        str | None, typer.Option("--family", help="bert or albert; bert unless given.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="LAYERSxWIDTH; 12x128 unless given.")
    ] = None,
    hours: Annotated[float, typer.Option("--hours", help="Becomes a number of steps, once.")] = 2.0,
    vocabulary: Annotated[
        int | None, typer.Option("--vocabulary", help="Word pieces; 8192 unless given.")
    ] = None,
    cased: Annotated[bool, typer.Option("--cased", help="Keep capital letters.")] = False,
    license_name: Annotated[str, typer.Option("--license", help="Named in the card.")] = "",
    seed: given.Seed = 0,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Pre-train a small masked-LM encoder on your own text: a new language, a domain.

    With --from, a model that exists is trained on the text. After a kill, the same command resumes
    from the last checkpoint, to the same weights.

    Example: microtome pretrain --text corpus.txt.xz --shape 12x128 --hours 2 --out ./mine

    Example: microtome pretrain --from nano-bert --text my-domain.txt --hours 0.5 --out ./mine
    """
    from microtome.training.mlm.request import PretrainRequest

    named = {"family": family, "shape": shape, "vocabulary": vocabulary, "cased": cased or None}
    architecture = {name: value for name, value in named.items() if value is not None}
    request = PretrainRequest(
        text=tuple(text), out=out, start=start, hours=hours, license=license_name, seed=seed,
        **_architecture(architecture, start=start),
    )  # fmt: skip

    from microtome.training.mlm.pretrain import pretrain as train

    done = train(request, progress=_tell)
    show(done.as_json(), as_json=json, for_people=lambda console: _draw(console, done))


def _architecture(named: dict[str, Any], *, start: str | None) -> dict[str, Any]:
    """The options as the request's fields; with a start there may be none."""
    from microtome.training.mlm.request import parse_shape

    if start is not None and named:
        options = [f"--{name}" for name in named]
        raise RequestError(
            f"{options[0]} can't be combined with --from, which decides family, shape and words",
            f"leave out {', '.join(options)}",
        )
    sizes = dict(named)
    if "shape" in sizes:
        sizes["layers"], sizes["width"] = parse_shape(sizes.pop("shape"))
    if sizes.pop("cased", False):
        sizes["lowercase"] = False
    return sizes


def _tell(line: LogLine) -> None:
    log(
        f"step {line.step:,} of {line.n_steps:,}, {line.tokens / 1e6:.1f} M tokens, loss"
        f" {line.loss:.3f}, held-out masked top-1 {100 * line.heldout['accuracy']:.1f} %"
    )


def _draw(console: Console, done: PretrainResult) -> None:
    rows = [
        (depth, f"{100 * accuracy:.1f}", f"{100 * control:.1f}")
        for depth, (accuracy, control) in enumerate(zip(done.curve, done.control, strict=True))
    ]
    console.print(
        table("Decoding of held-out text (percent)", ("depth", "accuracy", "control"), rows)
    )
    console.print(f"{done.tokens:,} tokens in {done.steps:,} steps, saved in {done.out}")
