"""Options of experiments as values: a name, a kind, a default, and the text that explains it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from microtome.errors import MicrotomeError, RequestError
from microtome.values import parse_ranges

Kind = Literal[
    "text", "whole", "number", "flag", "numbers", "fractions", "words", "model", "file", "path"
]


@dataclass(frozen=True)
class Option:
    """One option of one experiment.

    ``numbers`` is a list of whole numbers ("0-12", "0,1,2"), ``fractions`` one of training sizes
    ("1,0.1,640"), ``words`` one of names; ``model`` is a MODEL, ``file`` a file, ``path`` a file or
    folder. Lists are sets to sweep over: a run may be asked for more of them later.
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
        reader, expected = _KINDS[self.kind]
        try:
            return reader(text)
        except (ValueError, MicrotomeError) as error:
            raise RequestError(f"{self.flag} expects {expected}, got {text!r}") from error


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


def _file(text: str) -> str:
    if not Path(text).expanduser().is_file():
        raise RequestError(f"{text} is no file")
    return _path(text)


def _numbers(text: str) -> list[int]:
    return list(dict.fromkeys(parse_ranges(text)))


# How each kind is read, and what it is called in an error.
_KINDS: Mapping[Kind, tuple[Callable[[str], Any], str]] = {
    "text": (str, "a text"),
    "whole": (int, "a whole number"),
    "number": (_number, "a number"),
    "numbers": (_numbers, "whole numbers, as 0-12 or 0,1,2"),
    "fractions": (
        lambda text: [_fraction(word) for word in _words(text)],
        "training sizes, as 1,0.1,640 (1 all, below 1 a share, from 2 rows)",
    ),
    "words": (_words, "names with commas between them"),
    "model": (str, "a model"),
    "file": (_file, "a file that exists"),
    "path": (_path, "a file or folder that exists"),
}
