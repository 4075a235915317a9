"""Parts that installed packages add: experiments, families and tasks, found by entry point.

    [project.entry-points."microtome.experiments"]
    text-length = "my_package.text_length"

A name that Microtome has itself, or that two packages give, is refused. Nothing of a package is
imported before it is asked for, and one that can't be imported is an error that names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeVar

from microtome.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal["experiment", "family", "task"]
GROUPS: dict[Kind, str] = {
    "experiment": "microtome.experiments",
    "family": "microtome.families",
    "task": "microtome.tasks",
}

Part = TypeVar("Part")


@dataclass(frozen=True)
class Plugin:
    """One experiment, family or task that a package adds."""

    kind: Kind
    entry: EntryPoint
    package: str  # as pip calls it

    @property
    def name(self) -> str:
        """What it is called: the name of its entry point."""
        return self.entry.name

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Whatever goes wrong within is this package's, in one line."""
        try:
            yield
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise self.error(f"can't be loaded ({why})") from error

    def load(self, expected: type[Part]) -> Part:
        """The value that the entry point names, which must be called as the entry point is."""
        with self.blamed():
            value = self.entry.load()
        if not isinstance(value, expected):
            raise self.error(f"is a {type(value).__name__}, expected a {expected.__name__}")
        if (name := getattr(value, "name", self.name)) != self.name:
            raise self.error(f"calls itself {name!r}, expected the name of its entry point")
        return value

    def error(self, what: str) -> PluginError:
        """What is wrong with it, naming the package."""
        return PluginError(
            f"the {self.kind} {self.name!r} of the package {self.package} {what}",
            f"mend the package, or pip uninstall {self.package}",
        )


def added(kind: Kind, ours: Iterable[str]) -> dict[str, Plugin]:
    """What packages add to ``ours``, by name; without the names that are taken."""
    return {name: found[0] for name, found in _by_name(kind).items() if not _taken(found, ours)}


def clashes(kind: Kind, ours: Iterable[str]) -> list[PluginError]:
    """The errors of names that Microtome has itself, or that several packages give."""
    refused = []
    for name, found in _by_name(kind).items():
        if name in ours:
            refused += [plugin.error("has the name of one of Microtome's") for plugin in found]
        elif len(found) > 1:
            others = ", ".join(plugin.package for plugin in found[1:])
            refused.append(found[0].error(f"is one of {others}, too; neither is taken"))
    return refused


def working(
    names: Iterable[str], find: Callable[[str], Part]
) -> tuple[list[Part], list[PluginError]]:
    """What ``find`` gives for each name, and the errors of packages that don't work."""
    parts, problems = [], []
    for name in names:
        try:
            parts.append(find(name))
        except PluginError as error:
            problems.append(error)
    return parts, problems


def _taken(found: tuple[Plugin, ...], ours: Iterable[str]) -> bool:
    return len(found) > 1 or found[0].name in ours


def _by_name(kind: Kind) -> dict[str, tuple[Plugin, ...]]:
    return _installed(kind, tuple(sys.path))  # a worker on Ray gets its path late


@cache
def _installed(kind: Kind, path: tuple[str, ...]) -> dict[str, tuple[Plugin, ...]]:
    from importlib.metadata import entry_points

    by_name: dict[str, dict[tuple[str, str], Plugin]] = {}
    for entry in entry_points(group=GROUPS[kind]):
        package = entry.dist.name if entry.dist else "?"
        # A package that is on the path twice is one package.
        by_name.setdefault(entry.name, {})[package, entry.value] = Plugin(kind, entry, package)
    return {name: tuple(by_name[name].values()) for name in sorted(by_name)}
