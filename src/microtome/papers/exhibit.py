"""What a figure or table of a paper is made of, as data; ``microtome replicate`` interprets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SCALES = ("demo", "small", "paper")
Stack = Literal["any", "shared", "unshared"]
Settings = Mapping[str, Any]

# Settings that depend on how many layers a model has. They are turned into ``layers`` (the model's
# and so many more) and ``counts`` (these shares of its layers).
MORE_LAYERS, SHARES_OF_LAYERS = "more_layers", "shares_of_layers"


@dataclass(frozen=True)
class Work:
    """An experiment with its settings: those of every scale, and those that each scale has.

    ``tasks`` are the paper's own; none for an experiment that needs no rows. Some work is only for
    models whose layers have weights of their own (``stack``). ``stored`` names the setting that is
    the folder of this very run: such work reads what other work has stored.
    """

    experiment: str
    tasks: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)
    demo: Settings = field(default_factory=dict)
    small: Settings = field(default_factory=dict)
    paper: Settings = field(default_factory=dict)
    stack: Stack = "any"
    stored: str = ""

    def at(self, scale: str) -> dict[str, Any]:
        """The settings at one scale."""
        return {**self.settings, **{"demo": self.demo, "small": self.small}.get(scale, self.paper)}


@dataclass(frozen=True)
class Exhibit:
    """One figure or table of a paper.

    ``drawing`` names how it is drawn, ``work`` what is measured for it, ``claims`` (experiment and
    key) what the paper says of it. ``tasks`` are those it shows, where its work has more. ``stack``
    says which models it shows: those with shared layers or those without. ``metric`` is shown
    instead of a task's first. Where it can't be made, ``why_not`` is the reason in a line.
    """

    name: str
    title: str
    drawing: str = ""
    work: tuple[Work, ...] = ()
    tasks: tuple[str, ...] = ()
    claims: tuple[tuple[str, str], ...] = ()
    stack: Stack = "any"
    metric: str = ""
    note: str = ""
    why_not: str = ""

    @property
    def shown_tasks(self) -> tuple[str, ...]:
        """The paper's tasks that it shows."""
        return self.tasks or tuple(dict.fromkeys(t for work in self.work for t in work.tasks))

    @property
    def experiments(self) -> tuple[str, ...]:
        """What is measured for it."""
        return tuple(dict.fromkeys(work.experiment for work in self.work))


@dataclass(frozen=True)
class Paper:
    """A paper: its models, the splits it scored, and its exhibits in their order.

    ``stand_ins`` are the embedded tasks in the place of its own, for runs without data.
    """

    key: str
    source: str
    title: str
    models: tuple[str, ...]
    stand_ins: Mapping[str, str]
    exhibits: tuple[Exhibit, ...]
    splits: Mapping[str, str] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """As ``list papers`` shows it."""
        return {
            "name": self.key,
            "title": self.title,
            "source": self.source,
            "models": list(self.models),
            "tasks": list(self.stand_ins),
            "exhibits": [exhibit.name for exhibit in self.exhibits],
        }
