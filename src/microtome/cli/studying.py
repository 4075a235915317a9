"""``microtome run``, ``examine`` and ``report``: experiments, from a request to a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.experiment_options import help_of, read_options
from microtome.cli.output import log, show, table
from microtome.errors import RequestError
from microtome.views import Table

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.examination import Examination
    from microtome.experiments import Experiment, Rows, Subject
    from microtome.study import Study, Workers


ExperimentName = Annotated[str | None, typer.Argument(help="See 'microtome list experiments'.")]
ModelName = Annotated[str | None, typer.Option("--model", help="Embedded name, folder, or hub id.")]
SaveBest = Annotated[
    Path | None, typer.Option("--save-best", help="head-disabling: a folder for the best.")
]
WantsHelp = Annotated[
    bool, typer.Option("--help", help="Also shows the options of the EXPERIMENT named.")
]


def run(
    context: typer.Context,
    experiment: ExperimentName = None,
    model: ModelName = None,
    task: given.Task = None,
    tasks: given.Tasks = None,
    data: given.Data = None,
    dev_data: given.DevData = None,
    split: given.Split = None,
    limit: given.Limit = None,
    seed: given.Seed = 0,
    text_column: given.TextColumn = None,
    pair_column: given.PairColumn = None,
    label_column: given.LabelColumn = None,
    labels: given.Labels = None,
    out: given.Run = None,
    save_best: SaveBest = None,
    executor: given.Executor = "local",
    workers: given.NWorkers = 1,
    ray_address: given.RayAddress = None,
    device: given.Device = "cpu",
    retry_failed: given.RetryFailed = False,
    track: given.Track = None,
    revision: given.Revision = None,
    json: given.Json = False,
    wants_help: WantsHelp = False,
) -> None:
    """Run one experiment of the papers into a folder; the same command again goes on.

    Each experiment has options of its own: microtome run EXPERIMENT --help.

    Example: microtome run head-disabling --model ./my-mrpc --task mrpc --data glue/MRPC
    """
    from microtome.study import Workers

    if wants_help:
        typer.echo(help_of(context, experiment))
        return
    found, settings = _asked(experiment, context.args, save_best)
    columns = (text_column, pair_column, label_column)
    rows = _rows(task, (data, dev_data), columns, labels, split=split, limit=limit, seed=seed,
                 revision=revision)  # fmt: skip
    if tasks is not None and save_best is not None:
        raise RequestError("--save-best with --tasks", "a best head is one task's: name one")
    each = _each(rows, tasks)
    subjects = [found.subject(model, one, settings, revision=revision) for one in each]
    where = Workers(executor, workers, (device,), ray_address, retry_failed, track=track)
    document = _ran(found, subjects, settings, where, out=out, save_best=save_best)
    show(document, as_json=json, for_people=lambda console: _tell(console, document))


def _asked(
    name: str | None, arguments: list[str], save_best: Path | None
) -> tuple[Experiment, dict[str, Any]]:
    """The experiment that was named, and its own options."""
    from microtome.experiments import find_experiment

    if name is None:
        raise RequestError("no experiment given", "see microtome list experiments")
    found = find_experiment(name)
    settings = read_options(found, arguments)
    if save_best is not None and found.name != "head-disabling":
        raise RequestError(f"{found.name} has no option '--save-best'", "head-disabling has it")
    return found, settings


def _rows(
    task: str | None,
    files: tuple[Path | None, Path | None],
    columns: tuple[str | None, str | None, str | None],
    labels: str | None,
    *,
    limit: int | None,
    seed: int,
    revision: str | None,
    split: str | None = None,
) -> Rows:
    """The rows that were asked for: a task's, or those of one file or two."""
    from microtome.experiments import Rows

    data, dev_data = files
    if dev_data is not None and (data is None or data.is_dir()):
        raise RequestError("--dev-data goes with a --data FILE", "a task has its own dev split")
    names = tuple(labels.split(",")) if labels else None
    of_hub = None if data else revision  # a file has none; the model may
    return Rows(task, data, split, limit, seed, *columns, names, of_hub, dev_path=dev_data)


def _each(rows: Rows, tasks: str | None) -> list[Rows]:
    """The rows of every task of ``--tasks``; without it, those that were named."""
    from microtome.several_tasks import rows_of_each, task_names

    if tasks is None:
        return [rows]
    columns = (rows.text_column, rows.pair_column, rows.label_column)
    own = (rows.task, rows.dev_path, rows.labels, *columns)
    if any(one is not None for one in own):
        raise RequestError(
            "--tasks with --task, or with options of own data", "several tasks are named ones"
        )
    return rows_of_each(rows, task_names(tasks))


def _ran(
    experiment: Experiment,
    subjects: list[Subject],
    settings: dict[str, Any],
    workers: Workers,
    *,
    out: Path | None,
    save_best: Path | None,
) -> dict[str, Any]:
    from microtome.examination import default_folder, rebuild, save_best_head
    from microtome.study import Wanted, only, study

    subject, tasks = subjects[0], "-".join(one.task for one in subjects)
    folder = out or default_folder(f"{experiment.name}-{subject.model}", tasks)
    counts = [f"{len(one.dataset):,} rows of {one.task}" for one in subjects if one.found]
    on = f" on {', '.join(counts)}" if counts else ""
    done = study(
        subjects, [Wanted(experiment.name, settings)], folder, workers=workers,
        begin=lambda: log(f"{experiment.name} of {subject.model}{on} → {folder}"),
    )  # fmt: skip
    rebuild(folder)
    document = _document(done)
    if save_best is not None:
        document["saved"] = str(save_best_head(only(done), done.result, subject, save_best))
    return document


def _document(done: Study) -> dict[str, Any]:
    """What ``run --json`` prints."""
    from microtome.study import check_done

    check_done(done)
    summaries = [part.experiment.summary(part.rows) for part in done.parts]
    tasks = [part.task for part in done.parts]
    return {
        "experiment": done.parts[0].experiment.name,
        "model": done.subject.model,
        "task": ",".join(tasks) if len(tasks) > 1 else done.subject.task,
        "run": str(done.folder),
        "rows": [row for part in done.parts for row in part.rows],
        "summary": dict(zip(tasks, summaries, strict=True)) if len(tasks) > 1 else summaries[0],
        "finding": "\n".join(part.finding for part in done.parts),
    }


def _tell(console: Console, document: dict[str, Any]) -> None:
    console.print(document["finding"], markup=False)
    console.print(
        f"\n{len(document['rows'])} rows in {document['run']}, report.html beside them",
        markup=False,
    )


def examine(
    model: Annotated[str | None, typer.Argument(help="Default: minilm, else nano-bert.")] = None,
    task: given.Task = None,
    data: given.Data = None,
    dev_data: given.DevData = None,
    limit: given.Limit = None,
    seed: given.Seed = 0,
    epochs: given.Epochs = None,
    batch_size: given.BatchSize = None,
    learning_rate: given.LearningRate = None,
    profile: Annotated[str, typer.Option("--profile", help="quick or full.")] = "quick",
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Leave a part out; may be repeated.")
    ] = None,
    text_column: given.TextColumn = None,
    pair_column: given.PairColumn = None,
    label_column: given.LabelColumn = None,
    labels: given.Labels = None,
    out: given.Run = None,
    executor: given.Executor = "local",
    workers: given.NWorkers = 1,
    ray_address: given.RayAddress = None,
    device: given.Device = "cpu",
    retry_failed: given.RetryFailed = False,
    revision: given.Revision = None,
    json: given.Json = False,
) -> None:
    """The standard examination: which layers and heads matter, what may be cut, what it saves.

    Without arguments it examines an English model on an embedded task. A model without a task head
    is fine-tuned first. Everything lies in one folder with report.html; the same command goes on.

    Example: microtome examine ./my-model --data mine.csv --text-column review --label-column stars
    """
    from microtome import examination
    from microtome.study import Workers

    columns = (text_column, pair_column, label_column)
    rows = _rows(task, (data, dev_data), columns, labels, limit=limit, seed=seed, revision=revision)
    recipe = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    request = examination.request(
        model, rows, profile=profile, without=tuple(without or ()), recipe=recipe, out=out,
        revision=revision,
    )  # fmt: skip
    log(f"examining {request.subject.model} on {request.subject.task} → {request.folder}")
    where = Workers(executor, workers, (device,), ray_address, retry_failed)
    done = examination.examine(request, workers=where)
    show(done.as_json(), as_json=json, for_people=lambda console: _draw(console, done))


def _draw(console: Console, done: Examination) -> None:
    for answer in done.page.answers:
        console.print(answer, markup=False)
    for view in done.page.front:
        if isinstance(view, Table):
            rows = [
                [_cell(view, c, v) for c, v in zip(view.columns, r, strict=True)] for r in view.rows
            ]
            console.print()
            console.print(table(view.title, view.columns, rows))
    console.print(f"\nreport: {done.report}", markup=False)


def _cell(view: Table, column: str, value: object) -> object:
    if isinstance(value, float):
        return f"{100 * value:.1f}" if column in view.percent else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value


def report(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    json: given.Json = False,
) -> None:
    """Write a run's report.html, figures and tables anew from its records; needs no model."""
    from microtome.examination import rebuild

    page = rebuild(run_folder)
    show(
        {"run": str(run_folder), "report": str(page)},
        as_json=json,
        for_people=lambda console: console.print(f"report: {page}", markup=False),
    )
