"""A paper, replicated: its trials run into one folder, its report written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microtome.errors import RequestError
from microtome.replication.estimate import Estimate, estimate
from microtome.replication.page import Replicated, exhibits_of, replication_page
from microtome.replication.planning import Plan, Replication, plan_of
from microtome.report import write
from microtome.runs import RunResult
from microtome.study import Workers


@dataclass(frozen=True)
class Done:
    """A finished pass over a replication."""

    replication: Replication
    folder: Path
    report: Path
    result: RunResult
    exhibits: tuple[Replicated, ...]
    answer: str

    def as_json(self) -> dict[str, Any]:
        """What ``replicate --json`` prints."""
        return {
            "paper": self.replication.paper.key,
            "scale": self.replication.scale,
            "run": str(self.folder),
            "report": str(self.report),
            "exhibits": [each.as_json() for each in self.exhibits],
        }


def replicate(
    asked: Replication,
    out: str | Path,
    *,
    workers: Workers | None = None,
    begin: Callable[[Plan, Estimate], object] = lambda plan, hours: None,
) -> Done:
    """Run all that the exhibits need into ``out``, and write the report in the paper's order.

    What is there already isn't run again. ``begin`` is told the plan before anything runs.

        replicate(replication_of("kao2021", only=["Table 3"]), "runs/kao").report
    """
    workers, folder = workers or Workers(), Path(out)
    plan = plan_of(asked)
    if not plan.trials and any(exhibit.work for exhibit in asked.exhibits):
        why = next(iter(plan.refused.values()), "no model and task fits")
        raise RequestError(f"nothing of {asked.paper.key} can be measured: {why}")
    begin(plan, estimate(plan))
    request = asked.as_json()
    result = workers.run(plan.trials, folder, request, notes=plan.notes())
    if plan.stored:
        trials = [*plan.trials, *plan.stored_trials(folder)]
        result = workers.run(trials, folder, request, notes=plan.notes())
    page = replication_page(result)
    assert page.headline is not None
    return Done(
        asked, folder, write(page, folder), result, tuple(exhibits_of(result)),
        page.headline.sentence,
    )  # fmt: skip
