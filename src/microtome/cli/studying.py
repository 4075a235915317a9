"""``microtome run``, ``examine`` and ``report``: experiments, from a request to a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.experiment_options import help_of, read_options
from microtome.cli.option_groups import takes_data, takes_recipe
from microtome.cli.output import log, print_notes, show, table
from microtome.cli.subjects import models_and_rows
from microtome.errors import RequestError, install_command
from microtome.tasks.data_spec import DataSpec
from microtome.views import Table

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.examination import Examination
    from microtome.experiments import Experiment, Subject
    from microtome.study import Study, StudyPart, Workers

MILLION = 1_000_000

ExperimentName = Annotated[str | None, typer.Argument(help="See 'microtome list experiments'.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="Embedded name, folder, or hub id; several with commas."),
]
ModelFor = Annotated[
    list[str] | None,
    typer.Option("--model-for", help="TASK=CHECKPOINT: that task's; may be repeated."),
]
SaveBest = Annotated[
    Path | None, typer.Option("--save-best", help="head-disabling: a folder for the best.")
]
WantsHelp = Annotated[
    bool, typer.Option("--help", help="Also shows the options of the EXPERIMENT named.")
]


@takes_data()
def run(
    context: typer.Context,
    rows: DataSpec,
    experiment: ExperimentName = None,
    model: ModelName = None,
    model_for: ModelFor = None,
    tasks: given.Tasks = None,
    out: given.Run = None,
    save_best: SaveBest = None,
    executor: given.Executor = "local",
    workers: given.NWorkers = 1,
    ray_address: given.RayAddress = None,
    device: given.Device = "cpu",
    retry_failed: given.RetryFailed = False,
    track: given.Track = None,
    revision: str | None = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
    wants_help: WantsHelp = False,
) -> None:
    """Run one experiment of the papers into a folder; the same command again resumes.

    Each experiment has options of its own: microtome run EXPERIMENT --help.

    Example: microtome run head-disabling --model ./my-mrpc --task mrpc --data glue/MRPC
    """
    if wants_help:
        typer.echo(help_of(context, experiment))
        return
    from microtome.study import Workers
    from microtome.tasks.data_spec import each_task

    chosen, settings = _asked(experiment, context.args, save_best)
    specs = [rows] if tasks is None else each_task(rows, tasks)
    asked = models_and_rows(model, model_for or (), specs)
    if len(asked) > 1 and save_best is not None:
        raise RequestError(
            "--save-best with several models or tasks",
            "a best head is one model's on one task: name one of each",
        )
    subjects = [chosen.subject(name, spec, settings, revision=revision) for name, spec in asked]
    if save_best is not None:
        from microtome.experiments.kovaleva.head_disabling.plan import check_can_save

        check_can_save(subjects[0], settings)
    where = Workers(executor, workers, (device,), ray_address, retry_failed, not quiet, track)
    document = _ran(chosen, subjects, settings, where, out=out, save_best=save_best)
    show(document, as_json=json, for_people=lambda console: _tell(console, document))


def _asked(
    name: str | None, arguments: list[str], save_best: Path | None
) -> tuple[Experiment, dict[str, Any]]:
    """The experiment that was named, and its own options."""
    from microtome.experiments import find_experiment

    if name is None:
        raise RequestError("no experiment is named", "see microtome list experiments")
    experiment = find_experiment(name)
    settings = read_options(experiment, arguments)
    if save_best is not None and experiment.name != "head-disabling":
        raise RequestError(
            f"{experiment.name} has no option '--save-best'", "head-disabling has it"
        )
    return experiment, settings


def _ran(
    experiment: Experiment,
    subjects: list[Subject],
    settings: dict[str, Any],
    workers: Workers,
    *,
    out: Path | None,
    save_best: Path | None,
) -> dict[str, Any]:
    from microtome.study import Wanted, default_folder, study, write_report

    models = list(dict.fromkeys(each.model for each in subjects))
    tasks = list(dict.fromkeys(each.task for each in subjects))
    named = "-".join(Path(model).name for model in models)
    folder = out or default_folder(f"{experiment.name}-{named}", "-".join(tasks))
    counts = {
        f"{len(each.dataset):,} rows of {each.task}": None for each in subjects if each.opened
    }
    on = f" on {', '.join(counts)}" if counts else ""
    done = study(
        subjects, [Wanted(experiment.name, settings)], folder, workers=workers,
        begin=lambda: log(f"{experiment.name} of {', '.join(models)}{on} → {folder}"),
    )  # fmt: skip
    write_report(done)
    document = _document(done)
    if save_best is not None:
        from microtome.experiments.kovaleva.head_disabling.measure import save_best_head

        rows = done.part(experiment.name).rows
        document["saved"] = str(save_best_head(rows, done.result, subjects[0], save_best))
    return document


def _document(done: Study) -> dict[str, Any]:
    """What ``run --json`` prints; ``models`` and ``tasks`` are there where there are several."""
    from microtome.study import tidy

    done.check()
    models = list(dict.fromkeys(part.model for part in done.parts if part.model))
    tasks = list(dict.fromkeys(part.task for part in done.parts if part.task))
    return {
        "experiment": done.parts[0].experiment.name,
        "model": ",".join(models) or done.subject.model,
        **({"models": models} if models else {}),
        "task": ",".join(tasks) or done.subject.task,
        **({"tasks": tasks} if tasks else {}),
        "run": str(done.folder),
        "rows": tidy(done.parts),
        "summary": _summary(done.parts),
        "finding": "\n".join(part.finding for part in done.parts),
        "notes": list(done.result.notes),
    }


def _summary(parts: Sequence[StudyPart]) -> dict[str, Any]:
    """The experiment's; of several models or tasks, by their names, models first."""
    summary: dict[str, Any] = {}
    for part in parts:
        found = part.experiment.summary(part.rows)
        if not part.about:
            return found
        keys = [key for key in (part.model, part.task) if key]
        inner = summary.setdefault(keys[0], {}) if len(keys) > 1 else summary
        inner[keys[-1]] = found
    return summary


def _tell(console: Console, document: dict[str, Any]) -> None:
    console.print(document["finding"], markup=False)
    print_notes(console, document["notes"])
    console.print(
        f"\n{len(document['rows'])} rows in {document['run']}, with report.html", markup=False
    )


@takes_data(without=("split",))
@takes_recipe
def examine(
    rows: DataSpec,
    recipe: dict[str, Any],
    model: Annotated[str | None, typer.Argument(help="Default: minilm, else nano-bert.")] = None,
    fraction: given.Fraction = 1.0,
    profile: Annotated[str, typer.Option("--profile", help="quick or full.")] = "quick",
    without: Annotated[
        list[str] | None, typer.Option("--without", help="Leave a part out; may be repeated.")
    ] = None,
    out: given.Run = None,
    executor: given.Executor = "local",
    workers: given.NWorkers = 1,
    ray_address: given.RayAddress = None,
    device: given.Device = "cpu",
    retry_failed: given.RetryFailed = False,
    revision: str | None = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """The standard examination: which layers and heads matter, what may be cut, what it saves.

    Without arguments it examines an English model on an embedded task. A model without a task head
    is fine-tuned first. All of it is in one folder with report.html; the same command resumes.

    Example: microtome examine ./my-model --data mine.csv --text-column review --label-column stars
    """
    from microtome import examination
    from microtome.study import Workers

    request = examination.request(
        model, rows, profile=profile, without=tuple(without or ()),
        recipe={"fraction": fraction, **recipe}, out=out, revision=revision,
    )  # fmt: skip
    log(f"examining {request.subject.model} on {request.subject.task} → {request.folder}")
    where = Workers(executor, workers, (device,), ray_address, retry_failed, not quiet)
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
    print_notes(console, done.page.notes)
    for step in done.page.steps:
        console.print(f"\n{step.text}\n  {step.command}", markup=False, soft_wrap=True)
    console.print(f"\nreport: {done.report}", markup=False)


def _cell(view: Table, column: str, value: object) -> object:
    if isinstance(value, float):
        return f"{100 * value:.1f}" if column in view.percent else f"{value:,.2f}"
    if isinstance(value, int) and value >= MILLION:  # a table has room for ten such columns or so
        return f"{value / MILLION:.1f} M"
    return f"{value:,}" if isinstance(value, int) else value


def report(
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where the page of several runs goes, or figures alone."),
    ] = None,
    figures_only: given.FiguresOnly = False,
    style: given.StyleName = "screen",
    width: given.FigureWidth = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Write a run's report.html, figures and tables anew from its records; needs no model.

    Several runs become one page with joint figures, in the folder --out. Figures for a paper are
    as wide as its column, with text of 7 to 9 points and without titles.

    Example: microtome report runs/bert --figures-only --style paper --out figures-for-my-paper
    """
    from microtome.examination import rebuild, rebuild_figures, rebuild_joint
    from microtome.report.pdf import can_write_pdf

    drawn, several = given.style_of(style, width), len(run_folders) > 1
    if several and out is None:
        raise RequestError("a page of several runs needs a folder", "name one: --out DIR")
    if out is not None and not several and not figures_only:
        raise RequestError(
            "--out goes with several runs or --figures-only", "the page of one is in its folder"
        )
    folder, page = out or run_folders[0], None
    if figures_only:
        folder = out or folder / "figures"
        told = "\n".join(map(str, rebuild_figures(run_folders, folder, drawn)))
    else:
        page = (
            rebuild_joint(run_folders, folder, drawn) if several else rebuild(run_folders[0], drawn)
        )
        folder, told = folder / "figures", f"report: {page}"
    if not can_write_pdf():
        log(f"note: figures are SVG files alone; for PDF files too: {install_command('pdf')}")
    runs = [str(run) for run in run_folders]
    made = {"report": None if page is None else str(page), "figures": str(folder)}
    show(
        {**({"runs": runs} if several else {"run": runs[0]}), **made},
        as_json=json,
        for_people=lambda console: console.print(told, markup=False, soft_wrap=True),
    )
