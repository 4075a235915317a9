"""Ways to make a model deeper or shallower, as edits: which layers are copied or removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from microtome.edits import parse
from microtome.errors import RequestError
from microtome.experiments.layer_rules import LayerRules

BASELINE = "baseline"
MORE = 4  # how many layers are added, or removed, where no number was named
DEEPER: Mapping[str, Callable[[int, int], str]] = {
    "first": lambda n_layers, n_wanted: f"extend({n_wanted})",
    "last": lambda n_layers, n_wanted: f"duplicate(last={n_wanted - n_layers})",
}
SHALLOWER: Mapping[str, Callable[[int, int], str]] = {
    "remove-top": lambda n_layers, n_wanted: f"keep(0-{n_wanted - 1})",
    "remove-bottom": lambda n_layers, n_wanted: f"keep({n_layers - n_wanted}-{n_layers - 1})",
}
REPEAT, EACH = "repeat:", "remove-each"
KNOWN = "first, last, repeat:LAYER, remove-top, remove-bottom, remove-each"
COUNTING = ("first", "remove-top")  # all that a shared layer knows is how often it is applied


@dataclass(frozen=True)
class Depth:
    """One model to train: how many layers it has, and the edit that makes it."""

    strategy: str
    n_layers: int
    edit: str


def depths_of(
    strategies: Sequence[str], layers: Sequence[int] | None, rules: LayerRules
) -> list[Depth]:
    """The baseline, then every depth of every strategy; what the model can't take is refused."""
    known = [_checked(strategy, rules) for strategy in strategies]
    found = [Depth(BASELINE, rules.n_layers, "")]
    for strategy in dict.fromkeys(known):
        found += _of_strategy(strategy, layers, rules)
    made = {depth.n_layers for depth in found}
    if lost := [n_layers for n_layers in layers or () if n_layers not in made]:
        fewer = lost[0] < rules.n_layers
        raise RequestError(
            f"{lost[0]} layers asked for, but {', '.join(dict.fromkeys(known))} of a model with"
            f" {rules.n_layers} makes it {'no shallower' if fewer else 'no deeper'}",
            f"add --strategy {'remove-top or remove-bottom' if fewer else 'first'}",
        )
    for depth in found[1:]:
        rules.check(depth.edit)
    if len(found) == 1:
        raise RequestError(
            f"only the baseline of {rules.n_layers} layers is left", "name more: --layers"
        )
    return found


def is_deeper(strategy: str) -> bool:
    """Whether a strategy adds layers."""
    return strategy in DEEPER or strategy.startswith(REPEAT)


def _of_strategy(strategy: str, layers: Sequence[int] | None, rules: LayerRules) -> list[Depth]:
    n = rules.n_layers
    if strategy == EACH:
        first = rules.rules.first_copied  # a layer that must stay can't be left out
        return [Depth(strategy, n - 1, f"remove({layer})") for layer in range(first, n)]
    if is_deeper(strategy):
        most = n + MORE if rules.shared else min(n + MORE, rules.deepest)
        wanted = range(n + 1, most + 1) if layers is None else [k for k in layers if k > n]
        edits = {k: str(parse(_deeper(strategy, n, k))) for k in sorted(set(wanted))}
        return [Depth(strategy, k, edit) for k, edit in edits.items()]
    fewest = max(1, n - MORE)
    wanted = range(fewest, n) if layers is None else [k for k in layers if k < n]
    edits = {k: str(parse(_kept(strategy, n, k))) for k in sorted(set(wanted), reverse=True)}
    return [Depth(strategy, k, edit) for k, edit in edits.items()]


def _deeper(strategy: str, n_layers: int, n_wanted: int) -> str:
    if strategy in DEEPER:
        return DEEPER[strategy](n_layers, n_wanted)
    return f"duplicate({strategy.removeprefix(REPEAT)}, times={n_wanted - n_layers})"


def _kept(strategy: str, n_layers: int, n_wanted: int) -> str:
    if n_wanted < 1:
        raise RequestError(f"{n_wanted} layers asked for, at least one stays")
    return SHALLOWER[strategy](n_layers, n_wanted)


def _checked(strategy: str, rules: LayerRules) -> str:
    repeats = strategy.startswith(REPEAT) and strategy.removeprefix(REPEAT).isdigit()
    if not repeats and strategy not in (*DEEPER, *SHALLOWER, EACH):
        raise RequestError(f"strategy {strategy!r} given", f"there are {KNOWN}")
    if rules.shared and strategy not in COUNTING:
        raise RequestError(
            f"strategy {strategy} given, but this model applies one layer {rules.n_layers} times",
            "only their number can change: first (more of them) or remove-top (fewer)",
        )
    return f"{REPEAT}{int(strategy.removeprefix(REPEAT))}" if repeats else strategy
