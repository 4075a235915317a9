"""What an experiment is: a value that says how to plan, look at, and put into words.

The folder of an experiment holds ``plan``, ``measure``, ``report`` and ``claims``;
:func:`find_experiment` ties them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.catalogue import FOLDERS, experiment_names, folder_of, plugins
from microtome.experiments.kit.options import Option
from microtome.experiments.kit.subject import Subject, subject_of
from microtome.papers.answer import Answer
from microtome.plugins import working
from microtome.runs import Trial
from microtome.tasks.data_spec import DataSpec
from microtome.views import Headline, TidyRows, View


@dataclass(frozen=True)
class Experiment:
    """One method section of a paper: its trials, its views, its finding.

    ``front`` makes the views that a page shows first, ``headline`` what it says first: without one
    that is made from the finding. ``claims`` answers the paper's claims from rows: a claim's key →
    what was measured, with a verdict.
    An experiment that doesn't ``need_rows`` may be asked for without a task. ``find_subject`` is
    for one whose model or rows aren't simply those that were named.
    """

    name: str
    section: str
    question: str
    method: str
    columns: tuple[str, ...]
    options: tuple[Option, ...]
    needs_rows: bool
    trials: Callable[[Subject, Mapping[str, Any]], list[Trial]]
    views: Callable[[TidyRows], tuple[View, ...]]
    front: Callable[[TidyRows], tuple[View, ...]]
    finding: Callable[[TidyRows], str]
    summary: Callable[[TidyRows], dict[str, Any]]
    claims: Callable[[TidyRows], Mapping[str, Answer]]
    find_subject: Callable[[str | None, DataSpec, Mapping[str, Any]], Subject] | None = None
    headline: Callable[[TidyRows], Headline] | None = None

    def subject(
        self,
        model: str | None,
        data: DataSpec,
        settings: Mapping[str, Any],
        *,
        revision: str | None = None,
    ) -> Subject:
        """What it looks at, from what a user named."""
        if self.find_subject is not None:
            return self.find_subject(model, data, self.settings(settings))
        return subject_of(model, data, revision=revision, needs_rows=self.needs_rows)

    def plan(self, subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
        """Its trials; what is trained and what is measured has the ``max_length`` asked for."""
        return self.trials(subject.of_length(settings.get("max_length")), settings)

    def option(self, name: str) -> Option:
        """One option by name; an unknown one lists those there are."""
        self.settings({name: None})
        return next(option for option in self.options if option.name == name)

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Defaults with what was given; an unknown option is refused."""
        known = {option.name: option.default for option in self.options}
        if unknown := sorted(given.keys() - known.keys()):
            raise RequestError(
                f"{self.name} has no option {unknown[0]!r}",
                f"its options are {', '.join(known) or 'none'}",
            )
        return known | {name: value for name, value in given.items() if value is not None}

    def described(self) -> dict[str, Any]:
        """As ``list experiments`` shows it."""
        return {
            "name": self.name,
            "section": self.section,
            "question": self.question,
            "columns": list(self.columns),
            "options": {option.name: option.default for option in self.options},
        }


@cache
def find_experiment(name: str) -> Experiment:
    """The experiment called ``name``; an unknown one lists those there are."""
    if name in FOLDERS:
        return _tied_together(name)
    if name not in plugins():
        raise RequestError(
            f"no experiment is called {name!r}", f"there are {', '.join(experiment_names())}"
        )
    with plugins()[name].blamed():
        return _tied_together(name)


def _tied_together(name: str) -> Experiment:
    folder = folder_of(name)
    plan, report = (import_module(f"{folder}.{phase}") for phase in ("plan", "report"))
    return Experiment(
        name, plan.SECTION, plan.QUESTION, plan.__doc__ or "", plan.COLUMNS, plan.OPTIONS,
        needs_rows=getattr(plan, "NEEDS_ROWS", True), trials=plan.plan, views=report.views,
        front=getattr(report, "front", lambda rows: ()), finding=report.finding,
        summary=report.summary, claims=_phase(folder, "claims") or (lambda rows: {}),
        find_subject=getattr(plan, "find_subject", None), headline=_phase(folder, "headline"),
    )  # fmt: skip


def _phase(folder: str, name: str) -> Any:  # noqa: ANN401  # a function of that phase's type
    """The function of a phase that an experiment may do without, called like its module."""
    if find_spec(f"{folder}.{name}") is None:
        return None
    return getattr(import_module(f"{folder}.{name}"), name)


def all_experiments() -> list[Experiment]:
    """Every experiment that works, in the order of the papers."""
    return working(experiment_names(), find_experiment)[0]
