"""Options of experiments as values: a name, a kind, a default, and the text that explains it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from microtome.errors import MicrotomeError, RequestError
from microtome.values import parse_ranges

Kind = Literal["text", "whole", "number", "flag", "numbers", "fractions", "words", "model", "path"]


@dataclass(frozen=True)
class Option:
    """One option of one experiment.

    ``numbers`` is a list of whole numbers ("0-12", "0,1,2"), ``fractions`` one of training sizes
    ("1,0.1,640"), ``words`` one of names; ``model`` is a MODEL, ``path`` a file or folder. Lists
    are sets to sweep over: a run may be asked for more of them later.
    """

    name: str
    default: Any
    help: str
    kind: Kind = "text"

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    def read(self, text: str) -> Any:  # noqa: ANN401  # as many types as kinds
        """The value that ``text`` says."""
        try:
            return _READERS[self.kind](text)
        except (ValueError, MicrotomeError) as error:
            raise RequestError(f"{self.flag} expects {_WANTED[self.kind]}, got {text!r}") from error


def _fraction(text: str) -> float:
    value = _number(text)
    if value <= 0 or not (value < 1 or value.is_integer()):
        raise ValueError(text)
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError(text)
    return words


def _path(text: str) -> str:
    place = Path(text).expanduser()
    if not place.exists():
        raise RequestError(f"{text} doesn't exist")
    return str(place)


def _numbers(text: str) -> list[int]:
    return list(dict.fromkeys(parse_ranges(text)))


_READERS: Mapping[Kind, Callable[[str], Any]] = {
    "text": str,
    "whole": int,
    "number": _number,
    "numbers": _numbers,
    "fractions": lambda text: [_fraction(word) for word in _words(text)],
    "words": _words,
    "model": str,
    "path": _path,
}
_WANTED: Mapping[Kind, str] = {
    "text": "a text",
    "whole": "a whole number",
    "number": "a number",
    "numbers": "whole numbers, as 0-12 or 0,1,2",
    "fractions": "training sizes, as 1,0.1,640 (1 all, below 1 a share, from 2 rows)",
    "words": "names with commas between them",
    "model": "a model",
    "path": "a file or folder that exists",
}
