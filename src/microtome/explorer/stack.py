"""An edit as the stack of layers that a page shows, and a stack as an edit; no torch here.

What a page draws is an order of layers and some disabled heads. Edits that are neither (``reinit``,
``how=zero``) come first and are kept as they are written: the stack counts the layers after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from microtome.edits import (
    DepthEdit,
    Disable,
    Duplicate,
    Edit,
    Edits,
    Extend,
    Keep,
    Order,
    Remove,
    Unshare,
    Vocabulary,
    parse,
)
from microtome.edits.depth import DepthRules, new_order
from microtome.errors import EditError

LONGEST = 4000  # characters of an edit


@dataclass(frozen=True)
class Stack:
    """The layers of an edited model.

    ``order`` has the layer at each position, as they are numbered after the ``other`` edits, which
    leave ``base_layers`` of them; ``disabled`` are (position, head).
    """

    edit: str
    order: tuple[int, ...]
    disabled: tuple[tuple[int, int], ...] = ()
    other: tuple[str, ...] = ()
    base_layers: int = 0

    def as_json(self) -> dict[str, Any]:
        """What the page gets."""
        return {**asdict(self), "layers": len(self.order), "problem": None}


@dataclass(frozen=True)
class StackRules:
    """What decides how edits read on one model: its sizes, and what its layers allow."""

    n_layers: int
    n_heads: int
    rules: DepthRules

    @property
    def most_layers(self) -> int:
        """Twice as many as the base has: a copy of each, which is what the papers try at most."""
        return 2 * self.n_layers

    def read(self, text: str) -> tuple[Edits, Stack]:
        """The edits of a text, and the stack that they make; the empty text is the base."""
        if len(text) > LONGEST:
            raise EditError(
                f"an edit must have at most {LONGEST} characters, got {len(text)}",
                "an order of layers says the same in one edit",
            )
        edits = parse(text) if text.strip() else Edits()
        after_others = 1 + max((i for i, e in enumerate(edits) if not _is_drawn(e)), default=-1)
        n_layers, rules = self.n_layers, self.rules
        for edit in edits.edits[:after_others]:
            if isinstance(edit, Vocabulary):
                raise EditError(
                    f"{edit.text} reads a file, which a page may not",
                    "microtome operate makes a vocabulary smaller",
                )
            n_layers = len(self._order(edit, n_layers, rules))
            rules = DepthRules() if isinstance(edit, Unshare) else rules
        order, disabled = list(range(n_layers)), [set[int]() for _ in range(n_layers)]
        for edit in edits.edits[after_others:]:
            if isinstance(edit, Disable):
                for head in edit.heads_in(len(order), self.n_heads):
                    disabled[head.layer].add(head.head)
                continue
            places = self._order(edit, len(order), rules)
            if rules.shared:  # the same weights at every depth: only the number of layers counts
                order, disabled = list(range(len(places))), [disabled[0]] * len(places)
            else:
                order = [order[place] for place in places]
                disabled = [set(disabled[place]) for place in places]
        heads = tuple((place, head) for place, off in enumerate(disabled) for head in sorted(off))
        others = tuple(edit.text for edit in edits.edits[:after_others])
        return edits, Stack(edits.text, tuple(order), heads, others, n_layers)

    def write(
        self, order: Sequence[int], disabled: Iterable[tuple[int, int]], other: Sequence[str] = ()
    ) -> tuple[Edits, Stack]:
        """The edits, as short as they can be, that make a stack."""
        before = " | ".join(other)
        first, base = self.read(before)
        if tuple(order) and not all(0 <= layer < len(base.order) for layer in order):
            is_shared = self.rules.shared and not any(isinstance(e, Unshare) for e in first)
            if not is_shared:
                raise EditError(
                    f"an order names layers 0 to {len(base.order) - 1}, got {list(order)}"
                )
        if not order:
            raise EditError("an order must have at least one layer, got none")
        edits = [*first]
        rules = DepthRules() if any(isinstance(e, Unshare) for e in first) else self.rules
        edits += _depth_edit(tuple(order), len(base.order), rules)
        heads = sorted(set(disabled))
        if heads:
            edits.append(Disable(*_patterns(heads, len(order), self.n_heads)))
        return self.read(Edits(*edits).text)

    def _order(self, edit: Edit, n_layers: int, rules: DepthRules) -> tuple[int, ...]:
        if not isinstance(edit, DepthEdit):
            return tuple(range(n_layers))
        order = new_order(edit, n_layers, rules)
        if len(order) > self.most_layers:
            raise EditError(
                f"{edit} would give {len(order)} layers",
                f"the page shows at most {self.most_layers}, twice as many as the base has",
            )
        return order


def _is_drawn(edit: Edit) -> bool:
    """Whether the stack shows it: an order of layers, or heads that are off."""
    return isinstance(edit, DepthEdit) or (isinstance(edit, Disable) and edit.how == "uniform")


def _depth_edit(order: tuple[int, ...], n_layers: int, rules: DepthRules) -> list[Edit]:
    """The plainest edit that gives an order; none where nothing changes."""
    whole = tuple(range(n_layers))
    if rules.shared and len(order) != n_layers:
        more = len(order) > n_layers
        return [Extend(len(order)) if more else Remove(f"{len(order)}-{n_layers - 1}")]
    if order == whole or rules.shared:
        return []
    counts = Counter(order)
    if list(order) != sorted(order):
        return [Order(*order)]
    if max(counts.values()) == 1:
        removed = [layer for layer in whole if layer not in counts]
        return [Remove(*removed) if len(removed) <= len(order) else Keep(*order)]
    copies = {n for n in counts.values() if n > 1}
    if len(counts) == n_layers and len(copies) == 1:
        copied = [layer for layer in whole if counts[layer] > 1]
        return [Duplicate(*copied, times=copies.pop() - 1)]
    return [Order(*order)]


def _patterns(heads: list[tuple[int, int]], n_layers: int, n_heads: int) -> list[str]:
    """Heads as an edit lists them: whole layers and whole columns by a star."""
    chosen = set(heads)
    rows = {i for i in range(n_layers) if all((i, j) in chosen for j in range(n_heads))}
    columns = {j for j in range(n_heads) if all((i, j) in chosen for i in range(n_layers))}
    single = [f"{i}.{j}" for i, j in heads if i not in rows and j not in columns]
    if len(rows) == n_layers:
        return ["*.*"]
    if n_layers == 1:  # a star for the only layer would say less
        return [f"{i}.*" for i in rows] or [f"{i}.{j}" for i, j in heads]
    return [*single, *(f"{i}.*" for i in sorted(rows)), *(f"*.{j}" for j in sorted(columns))]
