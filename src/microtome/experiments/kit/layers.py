"""A subject's layers: how many, how they may be edited, which of them were asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from microtome.edits import parse
from microtome.edits.depth import DepthEdit, DepthRules, new_order
from microtome.errors import EditError, RequestError
from microtome.experiments.kit.subject import Subject
from microtome.models.checkpoint import look_at_fetched
from microtome.models.configuration import size

CHARACTERS_PER_TOKEN = 4
LAYERS_PER_TRIAL = 3  # a killed sweep loses at most what begins at these
MOST_SHARED = 50  # the papers' last depth for models that share their layers


@dataclass(frozen=True)
class Layers:
    """How many layers a model has, and how they may be copied or removed.

    ``first_edit`` gives each layer weights of its own; it is empty where nothing is shared.
    """

    count: int
    rules: DepthRules
    n_heads: int = 1
    first_edit: str = ""

    @property
    def shared(self) -> bool:
        """One set of weights is applied at every depth: only the count can change."""
        return self.rules.shared

    @property
    def deepest(self) -> int:
        """The papers' last depth: twice the layers, or 50 applications of a shared one."""
        if self.shared:
            return max(MOST_SHARED, self.count)
        return 2 * self.count - self.rules.first_copied

    def check(self, edit: str) -> int:
        """The number of layers after ``edit``; one that the model can't take is refused."""
        n_layers = self.count
        for step in parse(edit):
            if not isinstance(step, DepthEdit):
                raise EditError(f"expected a depth edit, got {step.text}")
            n_layers = len(new_order(step, n_layers, self.rules))
        return n_layers

    def after_unsharing(self, edits: str = "") -> str:
        """``edits`` after the edit that gives each layer weights of its own."""
        return " | ".join(part for part in (self.first_edit, edits) if part)


def edit_to(size: int, n_layers: int) -> str:
    """Some edit of ``n_layers`` to ``size``, where only the number matters: for its time."""
    return f"keep(0-{size - 1})" if size < n_layers else f"extend({size})"


def layer_chunks(n_layers: int) -> list[tuple[int, int]]:
    """The layers of a sweep in chunks, a trial each: the first of them, and the one after."""
    starts = range(0, n_layers, LAYERS_PER_TRIAL)
    return [(first, min(first + LAYERS_PER_TRIAL, n_layers)) for first in starts]


def layers_of(folder: Path) -> Layers:
    """The layers of the checkpoint in ``folder``, from its config alone."""
    found = look_at_fetched(folder)
    stack, n_heads = found.stack, size(found.config, found.facts.config, "heads")
    first_edit = "unshare()" if stack.is_shared else ""
    return Layers(stack.n_layers, stack.rules, n_heads or 1, first_edit)


def checked_counts(counts: list[int] | None, n_layers: int) -> list[int]:
    """The numbers of layers that were asked for, ascending; all of them unless said."""
    if counts is None:
        return list(range(n_layers + 1))
    if beyond := [count for count in counts if count > n_layers]:
        raise RequestError(
            f"--counts must be at most {n_layers}, the model's layers, got {max(beyond)}",
            f"write 0-{n_layers} or fewer",
        )
    return sorted(set(counts))


def work_of_a_row(subject: Subject) -> float:
    """The operations that all layers take for one of a subject's rows, about."""
    weights = look_at_fetched(subject.model_path).weights_applied
    lengths = [len(row.text) + len(row.pair or "") for row in subject.dataset.rows()]
    tokens = sum(lengths) / len(lengths) / CHARACTERS_PER_TOKEN + 2
    return max(1.0, 2 * weights * tokens)
