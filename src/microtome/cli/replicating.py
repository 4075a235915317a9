"""``microtome replicate``: a whole paper, from its name to a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.option_groups import takes_recipe, takes_workers
from microtome.cli.output import log, print_notes, show, table

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.replication import Done, Estimate, Plan
    from microtome.study import Workers

PaperName = Annotated[
    str, typer.Argument(metavar="PAPER", help="kao2020, kao2021, singh2020 or kovaleva2019.")
]
Models = Annotated[str | None, typer.Option("--models", help="a,b,c. Default: the embedded ones.")]
Scale = Annotated[str, typer.Option("--scale", help="demo, small or paper.")]
Data = Annotated[
    Path | None, typer.Option("--data", help="A folder with a folder for each of its tasks.")
]
Only = Annotated[
    list[str] | None, typer.Option("--only", help='An exhibit, as "Table 3"; may be repeated.')
]
Fraction = Annotated[
    float | None, typer.Option("--fraction", help="Training rows. Default: the scale's.")
]
Sizes = Annotated[
    str | None,
    typer.Option("--fractions", help="Sizes that singh2020 compares. Default: the scale's."),
]
Seeds = Annotated[
    str | None, typer.Option("--seeds", help="Of trainings, as 0,1,2. Default: the scale's.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Rows measured at most. Default: the scale's.")
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Say what it takes; run nothing.")]
NWorkers = Annotated[
    int | None,
    typer.Option("--workers", min=0, help="Worker processes. Default: for demo one per core."),
]


@takes_recipe
@takes_workers
def replicate(
    paper: PaperName,
    recipe: dict[str, Any],
    where: Workers,
    models: Models = None,
    scale: Scale = "demo",
    data: Data = None,
    only: Only = None,
    fraction: Fraction = None,
    fractions: Sizes = None,
    seeds: Seeds = None,
    limit: Limit = None,
    plan: PlanOnly = False,
    out: given.Run = None,
    workers: NWorkers = None,
    quiet: given.Quiet = False,
    json: given.Json = False,
) -> None:
    """Measure everything that a paper shows, and write its figures and tables in its order.

    Without options it takes the embedded models and tasks, and runs offline. Every claim of the
    paper gets a verdict: holds, doesn't hold, can't tell. The same command resumes.

    Example: microtome replicate kao2021 --models bert-base-uncased --data DIR --scale small
    """
    from microtome.replication import estimate, plan_of, replicate, replication_of
    from microtome.study import default_folder
    from microtome.threads import n_cores

    names = [name.strip() for name in (models or "").split(",") if name.strip()]
    settings = _settings(recipe, fraction, fractions, seeds)
    asked = replication_of(
        paper, models=names, scale=scale, data=data, only=only or (), settings=settings, limit=limit
    )
    if plan:
        planned = plan_of(asked)
        estimated = estimate(planned)
        document = _planned(planned, estimated)
        show(document, as_json=json, for_people=lambda c: _tell_plan(c, document, estimated))
        return
    folder = out or default_folder(paper, scale)
    if workers is None:  # small models: a process for every core
        workers = n_cores() if scale == "demo" else None
    where = replace(where, n_workers=workers)
    done = replicate(asked, folder, workers=where, begin=lambda p, hours: log(_line(p, hours)))
    show(done.as_json(), as_json=json, for_people=lambda console: _tell(console, done))


def _settings(
    recipe: dict[str, Any], fraction: float | None, fractions: str | None, seeds: str | None
) -> dict[str, Any]:
    """What takes the place of the scale's settings; None where the scale's is meant."""
    from microtome.experiments.kit.arms import FRACTIONS, SEEDS

    return {
        **recipe,
        "least_steps": recipe["least_steps"] or None,
        "fraction": fraction,
        "fractions": None if fractions is None else FRACTIONS.read(fractions),
        "seeds": None if seeds is None else SEEDS.read(seeds),
    }


def _planned(plan: Plan, estimated: Estimate) -> dict[str, Any]:
    asked = plan.replication
    return {
        "paper": asked.paper.key,
        "scale": asked.scale,
        "models": list(asked.models),
        "tasks": list(dict.fromkeys(asked.tasks.values())),
        "exhibits": [exhibit.name for exhibit in asked.exhibits],
        "estimate": estimated.as_json(),
        "notes": plan.notes(),
    }


def _line(plan: Plan, estimated: Estimate) -> str:
    return f"{plan.replication.paper.key}: {estimated}"


def _tell_plan(console: Console, document: dict[str, Any], estimated: Estimate) -> None:
    where = f"{document['paper']} at the scale {document['scale']}"
    console.print(f"{where}: {estimated} (estimated)", markup=False)
    for key in ("models", "tasks", "exhibits"):
        console.print(f"{key}: {', '.join(document[key])}", markup=False)
    print_notes(console, document["notes"])


def _tell(console: Console, done: Done) -> None:
    console.print(done.answer, markup=False)
    rows = [
        [each.exhibit.name, each.status, line.claim.what, line.about, line.answer.verdict]
        for each in done.exhibits
        for line in each.judgements
        if line.answer.verdict
    ]
    console.print(table("", ("exhibit", "status", "claim", "on", "verdict"), rows))
    for each in done.exhibits:
        if each.why_not:
            console.print(f"{each.exhibit.name} is left out: {each.why_not}", markup=False)
    print_notes(console, done.result.notes)
    console.print(f"\nreport: {done.report}", markup=False)
