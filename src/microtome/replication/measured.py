"""What a replication has measured: rows by experiment, model and task, from its records alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from microtome.edits import Unshare
from microtome.experiments.kit.learning import has_learnt, no_better, surely_learnt, unsure
from microtome.experiments.kit.seed_curves import mean_of, sizes
from microtome.experiments.kit.wording import percent
from microtome.models.source import short_name
from microtome.papers.exhibit import Exhibit, Stack
from microtome.runs import RunResult
from microtome.views import TidyRow

Key = tuple[str, str, str]  # experiment, model, task
FIRST_SEED = 0  # of the model that is looked at where rows don't say


@dataclass(frozen=True)
class Measured:
    """The rows of a run, and what is known of its models and tasks.

    ``stacks`` and ``sizes`` are facts of the request: layers, width and so on of every model, rows
    of every task. ``whole`` are the tasks whose rows were all measured, on the paper's own split.
    """

    rows: Mapping[Key, tuple[TidyRow, ...]]
    problems: Mapping[Key, tuple[str, ...]]
    stacks: Mapping[str, Mapping[str, Any]]
    sizes: Mapping[str, Mapping[str, Any]]
    whole: frozenset[str] = frozenset()

    @property
    def models(self) -> list[str]:
        """The models, in the order that they were named in."""
        return list(self.stacks)

    @property
    def tasks(self) -> list[str]:
        """The tasks, in the paper's order."""
        return list(self.sizes)

    def of(self, experiment: str, model: str, task: str = "") -> tuple[TidyRow, ...]:
        """The rows of one experiment on a model and a task; none where it wasn't run."""
        return self.rows.get((experiment, model, task), ())

    def pairs(self, experiment: str) -> Iterator[tuple[str, str, tuple[TidyRow, ...]]]:
        """Model, task and rows of an experiment, task by task for each model; what failed isn't."""
        for model in self.models:
            for task in (*self.tasks, ""):
                rows = self.of(experiment, model, task)
                if rows and (experiment, model, task) not in self.problems:
                    yield model, task, rows

    def not_learnt(self, experiment: str, model: str, task: str) -> str:
        """What a pair's fine-tuned models score, where that is no better than one constant answer.

        For experiments that look at these models without scoring them. Of several training sizes
        the largest decides: it is the one that claims are about. The recipe must be sure to teach
        the task, and the runs that are looked at must be better than a constant answer.
        """
        unedited = ("", Unshare().text)
        tuned = [r for r in self.of("finetuning", model, task) if r["edit"] in unedited]
        if not tuned:
            return ""
        metric = self.sizes.get(task, {}).get("metric") or tuned[0]["metric"]
        rows = self.of(experiment, model, task)
        largest = next(iter(_known_sizes(rows) or _known_sizes(tuned)), None)
        runs = [
            row for row in tuned if row["metric"] == metric and largest in (None, row["fraction"])
        ]
        if not runs:
            return ""
        seeds = {row.get("seed") for row in rows} & {run["seed"] for run in runs}
        looked_at = [run for run in runs if run["seed"] in (seeds or {FIRST_SEED})] or runs
        if not has_learnt(looked_at):
            runs = looked_at
        elif surely_learnt(runs):
            return ""
        why = no_better(runs) or unsure(runs)
        return f"the fine-tuned model's {metric} is {percent(mean_of(runs))}{why}"

    def shown(self, exhibit: Exhibit, tasks: Mapping[str, str]) -> Measured:
        """What an exhibit shows: its tasks, by the names that they have here, and its models."""
        own = [tasks[task] for task in exhibit.shown_tasks if task in tasks]
        return replace(
            self,
            stacks={name: facts for name, facts in self.stacks.items() if fits(facts, exhibit)},
            sizes={task: self.sizes[task] for task in dict.fromkeys(own)},
        )


def _known_sizes(rows: Iterable[TidyRow]) -> list[float]:
    return sizes(row for row in rows if row.get("n_train") is not None)


def fits(facts: Mapping[str, Any], exhibit: Exhibit) -> bool:
    """Whether an exhibit shows models like this one."""
    return fits_stack(facts, exhibit.stack)


def fits_stack(facts: Mapping[str, Any], stack: Stack) -> bool:
    """Whether a model's layers share their weights, or don't, as asked for."""
    return stack == "any" or bool(facts["shared"]) == (stack == "shared")


def name_of(model: str) -> str:
    """A model as figures call it."""
    return short_name(model)


def measured_by(result: RunResult) -> Measured:
    """The rows of a replication's records, and the facts of its request."""
    rows: dict[Key, tuple[TidyRow, ...]] = {}
    problems: dict[Key, tuple[str, ...]] = {}
    for record in result.records.values():
        columns = record.columns
        key = (columns["experiment"], columns["model"], columns["task"])
        if record.ok:
            own = tuple({**columns, **row} for row in record.rows)
            rows[key] = rows.get(key, ()) + own
        else:
            cause = result.cause_of(record)
            problems[key] = (*problems.get(key, ()), f"{cause.title}: {cause.error}")
    request = result.request
    stacks = {facts["model"]: facts for facts in request["stacks"]}
    sizes = {facts["task"]: facts for facts in request["sizes"]}
    return Measured(rows, problems, stacks, sizes, frozenset(request["whole"]))
