"""The table of edits: the grammar, ``microtome list edits`` and the docs all read this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from microtome.edits.arguments import (
    LARGEST_SEED,
    as_edit_error,
    head_patterns,
    one_of,
    positive_std,
    whole_number,
)
from microtome.edits.depth import Duplicate, Extend, Keep, Order, Remove, Repeat
from microtome.edits.edit import Edit
from microtome.edits.vocabulary import Vocabulary, file_name
from microtome.edits.weights import PARTS, WAYS, Disable, Randomize, Reinit, Unshare
from microtome.values import LARGEST_NUMBER, parse_range

Value = int | float | str
# Python refuses to read thousands of digits; no number of ours has more than these.
_LONGEST_INTEGER = 20

# Reads one argument's text as the value that the constructor takes, or raises EditError.
Reader = Callable[[str], Value]


@dataclass(frozen=True)
class EditForm:
    """One kind of edit: how it is written, what it does, and how its arguments are read."""

    name: str
    form: str
    summary: str
    examples: tuple[str, ...]
    make: Callable[..., Edit]
    listed: Reader | None = None
    n_listed: int | None = None  # exactly so many; None: any number
    options: Mapping[str, Reader] = field(default_factory=dict)


def catalogue() -> list[EditForm]:
    """Every edit there is, in the order of the docs."""
    return list(_FORMS)


def form_of(name: str) -> EditForm | None:
    """The form of the edit of this name, if there is one."""
    return next((form for form in _FORMS if form.name == name), None)


def _read_layers(text: str) -> str:
    with as_edit_error():
        parse_range(text)
    return text


def _read_heads(text: str) -> str:
    head_patterns([text])
    return text


def _read_integer(what: str, *, least: int = 1, most: int = LARGEST_NUMBER) -> Reader:
    def read(text: str) -> int:
        digits = text.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_INTEGER
        return whole_number(int(text) if plain else text, what, least=least, most=most)

    return read


def _read_std(text: str) -> float:
    # float() alone would also take "nan", "1_0" and digits of other scripts.
    plain = set(text) <= set("0123456789.eE+-")
    try:
        return positive_std(float(text) if plain else text)
    except ValueError:
        return positive_std(text)


def _read_word(what: str, known: tuple[str, ...]) -> Reader:
    return lambda text: one_of(text, what, known)


_COUNT = {what: _read_integer(what) for what in ("first", "last", "times", "top", "bottom")}
_SEED = _read_integer("seed", least=0, most=LARGEST_SEED)

_FORMS = (
    EditForm(
        "extend",
        "extend(COUNT)",
        "to COUNT layers: the first ones duplicated once, each copy right after its original",
        ("extend(15)",),
        Extend,
        listed=_read_integer("layers"),
        n_listed=1,
    ),
    EditForm(
        "duplicate",
        "duplicate(LAYERS, times=1) or duplicate(first=COUNT) or duplicate(last=COUNT)",
        "copies of single layers, right after their originals: 0,0,1,1,2,2,3…",
        ("duplicate(0-2)", "duplicate(first=3)", "duplicate(last=3)", "duplicate(4, times=3)"),
        Duplicate,
        listed=_read_layers,
        options={what: _COUNT[what] for what in ("first", "last", "times")},
    ),
    EditForm(
        "repeat",
        "repeat(FIRST-LAST)",
        "a block of layers once more after itself: …3,4,5,3,4,5,6…",
        ("repeat(3-5)",),
        Repeat,
        listed=_read_layers,
    ),
    EditForm(
        "remove",
        "remove(LAYERS)",
        "without these layers",
        ("remove(10-11)",),
        Remove,
        listed=_read_layers,
    ),
    EditForm(
        "keep",
        "keep(LAYERS)",
        "these layers only, in the model's order",
        ("keep(0-5)",),
        Keep,
        listed=_read_layers,
    ),
    EditForm(
        "order",
        "order(LAYERS)",
        "the layers in exactly this order, as often as they are listed",
        ("order(0, 1, 1, 2, 3)",),
        Order,
        listed=_read_layers,
    ),
    EditForm(
        "reinit",
        "reinit(LAYERS, seed=0, std=0.02, parts=weights) "
        "or reinit(top=COUNT) or reinit(bottom=COUNT)",
        "fresh weights for some layers, from a normal cut at ±2 std; parts=all: biases, norms too",
        ("reinit(top=4, seed=0)", "reinit(3, 7, seed=0, std=0.05, parts=all)"),
        Reinit,
        listed=_read_layers,
        options={
            "top": _COUNT["top"],
            "bottom": _COUNT["bottom"],
            "seed": _SEED,
            "std": _read_std,
            "parts": _read_word("parts", PARTS),
        },
    ),
    EditForm(
        "randomize",
        "randomize(seed=0)",
        "every weight afresh, from the model's own initialiser",
        ("randomize(seed=0)",),
        Randomize,
        options={"seed": _SEED},
    ),
    EditForm(
        "disable",
        "disable(HEADS, how=uniform)",
        "heads attend to all real tokens alike; how=zero: they give nothing",
        ("disable(3.7)", "disable(3.*, 5.0)", "disable(*.7)", "disable(3.7, how=zero)"),
        Disable,
        listed=_read_heads,
        options={"how": _read_word("how", WAYS)},
    ),
    EditForm(
        "unshare",
        "unshare()",
        "ALBERT: one copy of the shared layer per depth",
        ("unshare()",),
        Unshare,
    ),
    EditForm(
        "vocabulary",
        "vocabulary(FILE) or vocabulary(sha256=DIGITS)",
        "only the tokens that FILE's texts use, and those that any text can be written with",
        ("vocabulary(texts.txt)", "vocabulary(data/train.csv)"),
        Vocabulary,
        listed=file_name,
        n_listed=1,
        options={"sha256": str},
    ),
)
