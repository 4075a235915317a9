"""``microtome evaluate``: official scores with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microtome.cli import parameters as given
from microtome.cli.output import log, show, table

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.tasks import Evaluation


def evaluate(
    model: given.Model,
    task: given.Task = None,
    data: given.Data = None,
    split: given.Split = None,
    limit: given.Limit = None,
    seed: given.Seed = 0,
    max_length: given.MaxLength = None,
    text_column: given.TextColumn = None,
    pair_column: given.PairColumn = None,
    label_column: given.LabelColumn = None,
    labels: given.Labels = None,
    device: given.Device = "cpu",
    allow_pickle: given.AllowPickle = False,
    revision: given.Revision = None,
    json: given.Json = False,
) -> None:
    """Measure a model with a task head: the task's official metrics, each with an interval.

    Examples: microtome evaluate ./my-mrpc --task mrpc --data glue/MRPC
    microtome evaluate ./mine --data mine.csv --text-column review --label-column stars
    """
    from microtome.models import resolve

    source = resolve(model, revision=revision)
    from microtome.tasks import open_data

    dataset = open_data(
        task,
        data,
        split,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        labels=labels.split(",") if labels else None,
        revision=None if data else revision,
    ).limit(limit, seed=seed)
    log(f"evaluating {model} on {len(dataset):,} rows of {dataset.task.name}")
    from microtome.evaluation import evaluate as measure
    from microtome.models import load, load_tokenizer, provenance_of

    loaded = load(source, device=device, allow_pickle=allow_pickle)
    found = measure(loaded, load_tokenizer(source), dataset, max_length=max_length)
    origin = provenance_of(loaded)
    document = {
        "model": model,
        "edits": list(origin.edits) if origin else [],
        "seed": seed,
        **found.as_json(),
    }
    show(document, as_json=json, for_people=lambda console: _draw(console, found))


def _draw(console: Console, found: Evaluation) -> None:
    rows = [
        (
            f"{name}{' *' if name == found.primary else ''}",
            f"{100 * score.value:.2f}",
            f"{100 * score.low:.2f} to {100 * score.high:.2f}",
            f"{score.n:,}",
        )
        for name, score in found.scores.items()
    ]
    title = f"{found.task}, {found.split} (percent; * primary)"
    console.print(table(title, ("metric", "score", "95 % interval", "rows"), rows))
    for name, (threshold, value) in found.thresholds.items():
        console.print(
            f"best no-answer threshold for {name}: {threshold:.3g} gives {100 * value:.2f} "
            "(picked on these rows)",
            markup=False,
        )
    for note in found.notes:
        console.print(f"note: {note}", markup=False)
