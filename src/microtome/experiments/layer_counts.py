"""How many layers a subject has, and the edit that gives each of them weights of its own."""

from __future__ import annotations

from dataclasses import dataclass

from microtome.errors import RequestError
from microtome.experiments.subject import Subject


@dataclass(frozen=True)
class Layers:
    """A subject's layers; ``first`` is the edit that gives each of them weights of its own."""

    count: int
    first: str = ""

    def edits(self, text: str = "") -> str:
        """``text`` after the edit that comes first."""
        return " | ".join(part for part in (self.first, text) if part)


def layers_of(subject: Subject) -> Layers:
    """The layers of a subject."""
    from microtome.experiments.layer_rules import outline
    from microtome.families import adapt

    family = adapt(outline(subject.model_path))
    count = family.shape.n_layers
    return Layers(count, "unshare()" if len(set(family.sharing)) < count else "")


def checked_counts(counts: list[int] | None, n_layers: int) -> list[int]:
    """The numbers of layers that were asked for, ascending; all of them unless said."""
    if counts is None:
        return list(range(n_layers + 1))
    if beyond := [count for count in counts if count > n_layers]:
        raise RequestError(
            f"--counts {max(beyond)} asked for, but the model has {n_layers} layers",
            f"write 0-{n_layers} or fewer",
        )
    return sorted(set(counts))
