"""``microtome evaluate``: official scores with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from microtome.cli import parameters as given
from microtome.cli.option_groups import takes_data
from microtome.cli.output import (
    log,
    print_constant,
    print_notes,
    score_rows,
    show,
    table,
)
from microtome.tasks.data_spec import DataSpec

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.tasks import Evaluation


@takes_data(without=("dev_data",))
def evaluate(
    model: given.Model,
    rows: DataSpec,
    edit: Annotated[
        list[str] | None, typer.Option("--edit", help="Applied before; may be repeated.")
    ] = None,
    seed: int = 0,
    max_length: given.MaxLength = None,
    device: given.Device = "cpu",
    allow_pickle: given.AllowPickle = False,
    revision: str | None = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Measure a model, as it is or edited: the task's official metrics, each with an interval.

    A model with a task head, an embedder on pairs or searches, a reranker, a tagger.

    Examples: microtome evaluate ./my-mrpc --task mrpc --data glue/MRPC
    microtome evaluate ./mine --data mine.csv --text-column review --label-column stars
    microtome evaluate ./my-embedder --data ./scifact --split test --edit "remove(2)"
    """
    from microtome.models import resolve
    from microtome.tasks import open_data

    edits = given.read_edits(edit)
    source = resolve(model, revision=revision)
    dataset = open_data(rows)
    log(f"evaluating {model} on {len(dataset):,} rows of {dataset.task.name}")
    from microtome.models import load, provenance_of, tokenizer_of
    from microtome.observe.evaluation import evaluate as measure
    from microtome.surgery import apply, certify_weights

    loaded = load(source, device=device, allow_pickle=allow_pickle, pooling=rows.pooling)
    if len(edits):
        base, loaded = loaded, apply(edits, loaded)
        certify_weights(edits, base, loaded).require()
    scores = measure(loaded, tokenizer_of(loaded), dataset, max_length=max_length)
    origin = provenance_of(loaded)
    document = {
        "model": model,
        "edits": list(origin.edits) if origin else [],
        "seed": seed,
        **scores.as_json(),
    }
    show(document, as_json=json, for_people=lambda console: _draw(console, scores))


def _draw(console: Console, scores: Evaluation) -> None:
    counts = (f"{score.n:,}" for score in scores.scores.values())
    shown = score_rows(scores.scores, scores.primary)
    rows = [(*row, count) for row, count in zip(shown, counts, strict=True)]
    title = f"{scores.task}, {scores.split} (percent; * primary)"
    console.print(table(title, ("metric", "score", "95 % interval", scores.unit), rows))
    print_constant(console, scores.constant_scores)
    for name, (threshold, value) in scores.thresholds.items():
        console.print(
            f"best no-answer threshold for {name}: {threshold:.3g} gives {100 * value:.2f} "
            "(picked on these rows)",
            markup=False,
        )
    print_notes(console, scores.notes)
