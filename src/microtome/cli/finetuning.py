"""``microtome finetune``: train a model, edited or not, on a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtome.cli import parameters as given
from microtome.cli.output import log, show, table
from microtome.cli.progress import progress

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.tasks import Dataset
    from microtome.training.finetuned import Finetuned


def finetune(
    model: given.Model,
    out: Annotated[
        Path, typer.Option("--out", help="Where it goes; the same command goes on there.")
    ],
    task: given.Task = None,
    data: given.Data = None,
    dev_data: given.DevData = None,
    edit: Annotated[
        list[str] | None, typer.Option("--edit", help="Applied before training; may be repeated.")
    ] = None,
    fraction: given.Fraction = 1.0,
    seed: given.Seed = 0,
    epochs: given.Epochs = None,
    batch_size: given.BatchSize = None,
    learning_rate: given.LearningRate = None,
    layerdrop: Annotated[
        float | None, typer.Option("--layerdrop", help="Chance that a layer is left out of a step.")
    ] = None,
    new_head: Annotated[
        bool, typer.Option("--new-head", help="Replace a head that was made for another task.")
    ] = False,
    text_column: given.TextColumn = None,
    pair_column: given.PairColumn = None,
    label_column: given.LabelColumn = None,
    labels: given.Labels = None,
    device: given.Device = "cpu",
    revision: given.Revision = None,
    json: given.Json = False,
) -> None:
    """Fine-tune a model on a task's training rows, with edits applied first if any are given.

    Without a recipe of your own, the papers' is used, or the learning rate that the model's card
    names. Killed half-way, the same command goes on from the last epoch, to the same weights.

    Example: microtome finetune minilm --task micro-sentiment --edit "remove(5)" --out ./cut
    """
    from microtome.edits import Edits, parse
    from microtome.models import fetched, resolve

    edits = Edits(*(parse(text) for text in edit or ()))
    source = fetched(resolve(model, revision=revision))
    names = labels.split(",") if labels else None
    columns = (text_column, pair_column, label_column, names)
    train, dev = _rows(task, data, dev_data, columns)
    from microtome.training.finetuning import finetune as tune
    from microtome.training.recipe import recipe_for

    recipe = recipe_for(train.task, source.path).but(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, layerdrop=layerdrop
    )
    with progress(f"training {model}") as advance:
        done = tune(
            source, train, dev, edits=edits, recipe=recipe, seed=seed, fraction=fraction, out=out,
            new_head=new_head, device=device,
            progress=lambda step: advance(step.step, step.n_steps, f"loss {step.loss:.3f}"),
        )  # fmt: skip
    document = done.as_json() | {"model": model}
    show(document, as_json=json, for_people=lambda console: _draw(console, done))


def _rows(
    task: str | None,
    data: Path | None,
    dev_data: Path | None,
    columns: tuple[str | None, str | None, str | None, list[str] | None],
) -> tuple[Dataset, Dataset]:
    """Training rows and dev rows, and a word about them."""
    from microtome.tasks import Request, open_training

    train, dev = open_training(Request(task, data, *columns), dev_data=dev_data)
    log(f"{len(train):,} rows of {train.task.name} to train on, {len(dev):,} to score")
    for note in dict.fromkeys((*train.notes, *dev.notes)):
        log(f"note: {note}")
    return train, dev


def _draw(console: Console, done: Finetuned) -> None:
    rows = [
        (
            f"{name}{' *' if name == done.primary else ''}",
            f"{100 * score.value:.2f}",
            f"{100 * score.low:.2f} to {100 * score.high:.2f}",
        )
        for name, score in done.scores.items()
    ]
    title = f"{done.task}, dev, after epoch {done.kept_epoch} (percent; * primary)"
    console.print(table(title, ("metric", "score", "95 % interval"), rows))
    console.print(f"saved in {done.out}", markup=False)
