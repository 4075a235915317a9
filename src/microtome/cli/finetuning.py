"""``microtome finetune``: train a model, edited or not, on a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.option_groups import takes_data, takes_recipe
from microtome.cli.output import log, print_constant, score_rows, show, table
from microtome.cli.progress import progress
from microtome.tasks.data_spec import DataSpec

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.models import Source
    from microtome.tasks import Dataset
    from microtome.training.finetune.finetuned import Finetuned


@takes_data(without=("split",))
@takes_recipe
def finetune(
    model: given.Model,
    out: Annotated[
        Path, typer.Option("--out", help="Where it goes; the same command resumes there.")
    ],
    rows: DataSpec,
    recipe: dict[str, Any],
    edit: Annotated[
        list[str] | None, typer.Option("--edit", help="Applied before training; may be repeated.")
    ] = None,
    fraction: given.Fraction = 1.0,
    seed: int = 0,
    layerdrop: Annotated[
        float | None, typer.Option("--layerdrop", help="Chance that a layer is left out of a step.")
    ] = None,
    new_head: Annotated[
        bool, typer.Option("--new-head", help="Replace a head that was made for another task.")
    ] = False,
    device: given.Device = "cpu",
    revision: str | None = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Fine-tune a model on a task's training rows, with edits applied first if any are given.

    Labels, numbers, tags of words, answers in a passage, relevance of passages train a head; a
    BEIR folder trains an embedder, and so do pairs with a number where the model is one (or with
    --kind similarity).

    Without a recipe of your own, the papers' is used, or the learning rate that the model's card
    names. Killed half-way, the same command resumes after the last epoch, to the same weights.

    Examples: microtome finetune minilm --task micro-sentiment --edit "remove(5)" --out ./cut
    microtome finetune minilm --data train.conll --dev-data dev.conll --out ./tagger
    """
    from microtome.models import fetched, resolve

    edits = given.read_edits(edit)
    source = fetched(resolve(model, revision=revision))
    train, dev = _opened(rows, fraction)
    if rows.kind is None and not new_head:
        train, dev = (_as_embedder_reads(source, each) for each in (train, dev))
    if train.task.kind == "similarity" and rows.kind is None:
        log(f"note: {train.task.name} trains {model} as an embedder (--kind regression: a head)")
    from microtome.tasks.sampling import n_of_fraction
    from microtome.training.finetune import finetune as tune
    from microtome.training.recipe import least_updates, recipe_for

    least_steps = least_updates(train.task, recipe["epochs"], recipe.pop("least_steps"))
    asked = (
        recipe_for(train.task, source.path)
        .but(**recipe, layerdrop=layerdrop)
        .at_least(least_steps, n_of_fraction(fraction, len(train)))
    )
    with progress(f"training {model}") as advance:
        done = tune(
            source, train, dev, edits=edits, recipe=asked, seed=seed, fraction=fraction, out=out,
            new_head=new_head, pooling=rows.pooling, device=device,
            progress=lambda step: advance(step.step, step.n_steps, f"loss {step.loss:.3f}"),
        )  # fmt: skip
    for note in done.notes:
        log(f"note: {note}")
    document = done.as_json() | {"model": model}
    show(document, as_json=json, for_people=lambda console: _draw(console, done))


def _opened(rows: DataSpec, fraction: float) -> tuple[Dataset, Dataset]:
    """Training rows (all of them) and the rows to score, and a word about them."""
    from microtome.tasks import open_training
    from microtome.tasks.sampling import n_of_fraction

    train, dev = open_training(rows)
    dev = dev.limit(rows.limit, seed=rows.seed)
    n_rows, n_all = n_of_fraction(fraction, len(train)), len(train)
    of_all = "" if n_rows == n_all else f" (of {n_all:,})"
    log(f"{n_rows:,} rows of {train.task.name} to train on{of_all}, {len(dev):,} to score")
    for note in dict.fromkeys((*train.notes, *dev.notes)):
        log(f"note: {note}")
    return train, dev


def _as_embedder_reads(source: Source, rows: Dataset) -> Dataset:
    """The rows as a sentence-transformers folder is used: pairs with a number are similarity."""
    from microtome.models.checkpoint import look_at
    from microtome.models.heads import job_of
    from microtome.tasks.dataset import as_kind, kind_for

    assert source.path is not None
    embeds = job_of(look_at(source.path, links_into=source.links_into)) == "embedding"
    if not embeds or next(rows.rows()).pair is None:
        return rows
    kind = kind_for(rows.task.kind, "embedder")
    return as_kind(rows, kind) if kind != rows.task.kind else rows


def _draw(console: Console, done: Finetuned) -> None:
    rows = score_rows(done.scores, done.primary)
    n_epochs = len(done.history)
    after = f"epoch {done.kept_epoch + 1} of {n_epochs}" if n_epochs > 1 else "1 epoch"
    title = f"{done.task}, dev, after {after} (percent; * primary)"
    console.print(table(title, ("metric", "score", "95 % interval"), rows))
    print_constant(console, done.evaluation.constant_scores)
    console.print(f"saved in {done.out}", markup=False)
