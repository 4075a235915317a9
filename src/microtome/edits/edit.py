"""What every edit is: a frozen value with one canonical text, and a sequence of such values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from microtome.errors import EditError

Model = TypeVar("Model")
Option = int | float | str


class Edit:
    """A change to a model, as a value: it prints, hashes, joins with ``|``, and is called.

    ``Remove("10-11")(model)`` gives a new model. Edits are equal if and only if their texts are.
    """

    name: ClassVar[str]

    def listed(self) -> tuple[int | str, ...]:
        """The arguments without a name, in canonical form."""
        return ()

    def options(self) -> dict[str, Option]:
        """The arguments with a name that are printed: defaults are left out, a seed never is."""
        return {}

    @property
    def text(self) -> str:
        """The canonical text; :func:`microtome.edits.parse` reads it back."""
        arguments = [str(argument) for argument in self.listed()]
        arguments += [f"{name}={value}" for name, value in self.options().items()]
        return f"{self.name}({', '.join(arguments)})"

    @property
    def identity(self) -> str:
        """The canonical text with nothing of this machine in it: a file is its content."""
        return self.text

    @property
    def hash(self) -> str:
        """SHA-256 of the identity, in hexadecimal."""
        return _sha256(self.identity)

    def _set(self, **fields: object) -> None:
        """Fill the fields of this frozen value; for constructors that check what they are given."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __or__(self, other: Edit | Edits) -> Edits:
        if not isinstance(other, (Edit, Edits)):
            return NotImplemented
        return Edits(self, other)

    def __call__(self, model: Model) -> Model:
        """A new model with this edit applied; ``model`` stays as it was."""
        return Edits(self)(model)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        arguments = [repr(argument) for argument in self.listed()]
        arguments += [f"{name}={value!r}" for name, value in self.options().items()]
        return f"{type(self).__name__}({', '.join(arguments)})"


@dataclass(frozen=True, init=False, repr=False)
class Edits:
    """Edits in the order of their application: each sees the model left by those before it.

    ``Remove(11) | Disable("3.7")`` makes one. ``Edits()`` without any edit is the identity.
    Sequences inside a sequence are flattened.
    """

    edits: tuple[Edit, ...]

    def __init__(self, *edits: Edit | Edits) -> None:
        flat: list[Edit] = []
        for item in edits:
            if not isinstance(item, (Edit, Edits)):
                raise EditError(
                    f"expected an edit, got {item!r}", "parse(text) reads one from text"
                )
            flat.extend(item.edits if isinstance(item, Edits) else (item,))
        object.__setattr__(self, "edits", tuple(flat))

    @property
    def text(self) -> str:
        """The canonical texts, joined by `` | ``."""
        return " | ".join(edit.text for edit in self.edits)

    @property
    def identity(self) -> str:
        """What the edits do, whatever the names of their files: what a request's hash covers."""
        return " | ".join(edit.identity for edit in self.edits)

    @property
    def hash(self) -> str:
        """SHA-256 of the identity, in hexadecimal."""
        return _sha256(self.identity)

    def __iter__(self) -> Iterator[Edit]:
        return iter(self.edits)

    def __len__(self) -> int:
        return len(self.edits)

    def __getitem__(self, index: int) -> Edit:
        return self.edits[index]

    def __or__(self, other: Edit | Edits) -> Edits:
        if not isinstance(other, (Edit, Edits)):
            return NotImplemented
        return Edits(self, other)

    def __call__(self, model: Model) -> Model:
        """A new model with all edits applied, left to right; ``model`` stays as it was."""
        # The one call upwards, for `(Extend(15) | Disable("3.7"))(model)`. It is made here, not at
        # the top, because surgery needs torch, and reading or printing an edit must not.
        from microtome.surgery import apply

        edited: Model = apply(self, model)
        return edited

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Edits({', '.join(map(repr, self.edits))})"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
