"""What an experiment is: a value that says how to plan, look at, and put into words.

An experiment file holds the method in the paper's order: docstring, ``plan`` (its trials), the
functions that trials name, ``views``, ``finding``; and ``EXPERIMENT``, which ties them together.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microtome.errors import RequestError
from microtome.experiments.options import Option
from microtome.experiments.subject import Rows as WantedRows
from microtome.experiments.subject import Subject, subject_of
from microtome.runs import Trial
from microtome.views import View

Row = Mapping[str, Any]
Rows = Sequence[Row]


def _nothing(rows: Rows) -> dict[str, str]:
    """No claim of a paper is answered by the rows alone."""
    return {}


@dataclass(frozen=True)
class Experiment:
    """One method section: its trials, its views, its finding.

    ``measured`` answers the papers' claims from rows: a claim's key → what was measured, in words.
    An experiment that doesn't ``need_rows`` may be asked for without a task. ``find_subject`` is
    for one whose model or rows aren't simply those that were named.
    """

    name: str
    section: str
    question: str
    method: str
    columns: tuple[str, ...]
    plan: Callable[[Subject, Mapping[str, Any]], list[Trial]]
    views: Callable[[Rows], tuple[View, ...]]
    finding: Callable[[Rows], str]
    summary: Callable[[Rows], dict[str, Any]]
    options: tuple[Option, ...] = ()
    measured: Callable[[Rows], Mapping[str, str]] = _nothing
    needs_rows: bool = True
    find_subject: Callable[[str | None, WantedRows, Mapping[str, Any]], Subject] | None = None

    def subject(
        self,
        model: str | None,
        rows: WantedRows,
        settings: Mapping[str, Any],
        *,
        revision: str | None = None,
    ) -> Subject:
        """What it looks at, from what a user named."""
        if self.find_subject is not None:
            return self.find_subject(model, rows, self.settings(settings))
        if model is None:
            raise RequestError("no model given", "name one: --model MODEL")
        return subject_of(model, rows, revision=revision, needs_rows=self.needs_rows)

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


# The order of the papers' sections; the value is the module.
MODULES = {
    "decoding": "decoding",
    "duplication": "duplication",
    "ensembling": "ensembling",
    "reinitialization": "reinitialization",
    "frozen-probing": "frozen_probing",
    "weight-drift": "weight_drift",
    "attention-patterns": "attention_patterns",
    "frame-relations": "frame_relations",
    "attention-drift": "attention_drift",
    "initialization": "initialization",
    "linguistic-features": "linguistic_features",
    "token-links": "token_links",
    "head-disabling": "head_disabling",
    "layer-removal": "layer_removal",
}


def find_experiment(name: str) -> Experiment:
    """The experiment called ``name``; an unknown one lists those there are."""
    if name not in MODULES:
        raise RequestError(f"no experiment is called {name!r}", f"there are {', '.join(MODULES)}")
    module = importlib.import_module(f"microtome.experiments.{MODULES[name]}")
    found: Experiment = module.EXPERIMENT
    return found


def all_experiments() -> list[Experiment]:
    """Every experiment, in the order of the papers."""
    return [find_experiment(name) for name in MODULES]


def describe(experiment: Experiment) -> dict[str, Any]:
    """An experiment as ``list experiments`` shows it."""
    return {
        "name": experiment.name,
        "section": experiment.section,
        "question": experiment.question,
        "columns": list(experiment.columns),
        "options": {option.name: option.default for option in experiment.options},
    }


def points(value: float) -> str:
    """A difference in percentage points, with its sign: +1.2, −0.5."""
    shown = f"{100 * value:+.1f}"
    return "+0.0" if shown == "-0.0" else shown.replace("-", "−")


def percent(value: float) -> str:
    """A score in percent: 87.3 %."""
    shown = f"{100 * value:.1f}"
    return "0.0 %" if shown == "-0.0" else f"{shown} %".replace("-", "−")


def counted(n: int, thing: str) -> str:
    """A number of things: 1 head, 2 heads."""
    return f"{n} {thing}{'' if n == 1 else 's'}"
