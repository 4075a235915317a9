"""Ways to make a model deeper or shallower, as edits: which layers are copied or removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from microtome.edits import parse
from microtome.errors import RequestError
from microtome.experiments.kit.layers import Layers

BASELINE = "baseline"
MORE = 4  # how many layers are added, or removed, where no number was named
DEEPER: Mapping[str, Callable[[int, int], str]] = {
    "first": lambda n_layers, n_asked: f"extend({n_asked})",
    "last": lambda n_layers, n_asked: f"duplicate(last={n_asked - n_layers})",
}
SHALLOWER: Mapping[str, Callable[[int, int], str]] = {
    "remove-top": lambda n_layers, n_asked: f"keep(0-{n_asked - 1})",
    "remove-bottom": lambda n_layers, n_asked: f"keep({n_layers - n_asked}-{n_layers - 1})",
}
REPEAT, EACH = "repeat:", "remove-each"
KNOWN = "first, last, repeat:LAYER, remove-top, remove-bottom, remove-each"
COUNTING = ("first", "remove-top")  # all that can change in a shared layer is how often it applies


@dataclass(frozen=True)
class Depth:
    """One model to train: how many layers it has, and the edit that makes it."""

    strategy: str
    n_layers: int
    edit: str


def depths_of(
    strategies: Sequence[str], counts: Sequence[int] | None, stack: Layers
) -> list[Depth]:
    """The baseline, then every depth of every strategy; what the model can't take is refused.

    ``counts`` are numbers of layers; each strategy makes those that it can, by default up to four
    layers more or fewer than the model has.
    """
    checked = list(dict.fromkeys(_checked(strategy, stack) for strategy in strategies))
    depths = [Depth(BASELINE, stack.count, "")]
    for strategy in checked:
        depths += _depths_by(strategy, counts, stack)
    made = {depth.n_layers for depth in depths}
    if unmade := [count for count in counts or () if count not in made]:
        fewer = unmade[0] < stack.count
        raise RequestError(
            f"--layers {unmade[0]} can't be made by {', '.join(checked)} from a model with"
            f" {stack.count} layers",
            f"add --strategy {'remove-top or remove-bottom' if fewer else 'first'}",
        )
    for depth in depths[1:]:
        stack.check(depth.edit)
    if len(depths) == 1:
        raise RequestError(
            f"only the baseline of {stack.count} layers is left", "name more: --layers"
        )
    return depths


def is_deeper(strategy: str) -> bool:
    """Whether a strategy adds layers."""
    return strategy in DEEPER or strategy.startswith(REPEAT)


def _depths_by(strategy: str, counts: Sequence[int] | None, stack: Layers) -> list[Depth]:
    n = stack.count
    if strategy == EACH:
        first = stack.rules.first_copied  # a layer that must stay can't be left out
        return [Depth(strategy, n - 1, f"remove({layer})") for layer in range(first, n)]
    if is_deeper(strategy):
        most = n + MORE if stack.shared else min(n + MORE, stack.deepest)
        asked = range(n + 1, most + 1) if counts is None else [k for k in counts if k > n]
        edits = {k: str(parse(_deeper(strategy, n, k))) for k in sorted(set(asked))}
        return [Depth(strategy, k, edit) for k, edit in edits.items()]
    fewest = max(1, n - MORE)
    asked = range(fewest, n) if counts is None else [k for k in counts if k < n]
    edits = {k: str(parse(_kept(strategy, n, k))) for k in sorted(set(asked), reverse=True)}
    return [Depth(strategy, k, edit) for k, edit in edits.items()]


def _deeper(strategy: str, n_layers: int, n_asked: int) -> str:
    if strategy in DEEPER:
        return DEEPER[strategy](n_layers, n_asked)
    return f"duplicate({strategy.removeprefix(REPEAT)}, times={n_asked - n_layers})"


def _kept(strategy: str, n_layers: int, n_asked: int) -> str:
    if n_asked < 1:
        raise RequestError(f"--layers must be 1 or more, got {n_asked}")
    return SHALLOWER[strategy](n_layers, n_asked)


def _checked(strategy: str, stack: Layers) -> str:
    repeats = strategy.startswith(REPEAT) and strategy.removeprefix(REPEAT).isdigit()
    if not repeats and strategy not in (*DEEPER, *SHALLOWER, EACH):
        raise RequestError(f"--strategy must be one of {KNOWN}, got {strategy!r}")
    if stack.shared and strategy not in COUNTING:
        raise RequestError(
            f"--strategy {strategy} doesn't go with a model that applies one layer"
            f" {stack.count} times",
            "only their number can change: first (more of them) or remove-top (fewer)",
        )
    return f"{REPEAT}{int(strategy.removeprefix(REPEAT))}" if repeats else strategy
