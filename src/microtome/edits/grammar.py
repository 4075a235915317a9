"""Reads edits from text.

    edits     = edit { "|" edit }
    edit      = NAME "(" [ argument { "," argument } ] ")"
    argument  = WORD | NAME "=" WORD

White space may separate any two of these; a range (0-2), a head (3.*) or a file (a/b.txt) is one
word, and so is anything in double quotes. Positions in errors count the characters of the whole
text from 1.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from microtome.edits.catalogue import EditForm, Reader, Value, catalogue, form_of
from microtome.edits.edit import Edit, Edits
from microtome.errors import EditError
from microtome.values import quoted

_PIECE = re.compile(
    r"(?P<word>[A-Za-z0-9_.*+/~:@%\\-]+)"
    r'|"(?P<quoted>[^"]+)"'
    r"|[(),=|]|\s+|(?P<other>.)"
)
# What transformers once had, and people still ask for.
_FORMER_NAMES = ("head_mask", "prune_heads")


@dataclass(frozen=True)
class _Token:
    """``kind`` is "word", "end" or the mark itself; ``position`` counts from 1."""

    kind: str
    text: str
    position: int


@dataclass
class _Call:
    """One edit as written: the form of its name, and the arguments read so far."""

    form: EditForm
    position: int
    listed: list[Value] = field(default_factory=list)
    options: dict[str, Value] = field(default_factory=dict)


def parse(text: str) -> Edits:
    """Read one edit or several joined by ``|``; raises :class:`EditError` with the position.

    ``parse("extend(15) | disable(3.7)")`` equals ``Extend(15) | Disable("3.7")``; ``.text`` of the
    result is the canonical text.
    """
    if not isinstance(text, str):
        raise EditError(f"expected the text of an edit, got {type(text).__name__}")
    if not text.strip():
        raise EditError("expected an edit, got nothing", f"write {catalogue()[0].examples[0]}")
    return _Parser(text).edits()


def as_edits(given: Edit | Edits | str | None) -> Edits:
    """Edits from an edit, several, their text, or None for the identity."""
    if given is None:
        return Edits()
    return Edits(parse(given) if isinstance(given, str) else given)


class _Parser:
    """Recursive descent: one method for every rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize()
        self._next = 0

    def edits(self) -> Edits:
        """Edits, up to the end of the text."""
        edits = [self._edit()]
        while self._accept("|"):
            edits.append(self._edit())
        if self._peek().kind != "end":
            raise self._error(self._peek().position, 'expected "|" or the end')
        return Edits(*edits)

    def _edit(self) -> Edit:
        token = self._take("word", "the name of an edit")
        form = form_of(token.text)
        if form is None:
            raise self._unknown_edit(token)
        call = _Call(form, token.position)
        self._take("(", '"("', form)
        if form.n_listed or not self._accept(")"):
            self._arguments(call)
        try:
            return form.make(*call.listed, **call.options)
        except EditError as error:
            raise self._because(error, call.position) from None

    def _arguments(self, call: _Call) -> None:
        self._argument(call)
        while self._accept(","):
            self._argument(call)
        expected = '")"' if self._peek().kind == "end" else '"," or ")"'
        self._take(")", expected, call.form)

    def _argument(self, call: _Call) -> None:
        token = self._take("word", "an argument", call.form)
        if self._accept("="):
            self._option(call, token)
            return
        reader = call.form.listed
        if reader is None or len(call.listed) == call.form.n_listed:
            raise self._error(token.position, f"unexpected {quoted(token.text)}", _how(call.form))
        call.listed.append(self._value(reader, token))

    def _option(self, call: _Call, name: _Token) -> None:
        reader = call.form.options.get(name.text)
        if reader is None:
            raise self._unknown_option(call.form, name)
        if name.text in call.options:
            raise self._error(name.position, f"{name.text} is given twice")
        value = self._take("word", f"a value of {name.text}", call.form)
        call.options[name.text] = self._value(reader, value)

    def _value(self, reader: Reader, token: _Token) -> Value:
        try:
            return reader(token.text)
        except EditError as error:
            raise self._because(error, token.position) from None

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        for piece in _PIECE.finditer(self._text):
            text, position = piece.group(), piece.start() + 1
            if piece["other"]:
                raise self._error(position, f"unexpected character {quoted(text)}")
            word = piece["word"] or piece["quoted"]
            if not text.isspace():
                tokens.append(_Token("word" if word else text, word or text, position))
        # A missing mark is reported right after the last one, not after trailing blanks.
        tokens.append(_Token("end", "", len(self._text.rstrip()) + 1))
        return tokens

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _accept(self, kind: str) -> bool:
        is_next = self._peek().kind == kind
        self._next += is_next
        return is_next

    def _take(self, kind: str, expected: str, form: EditForm | None = None) -> _Token:
        token = self._peek()
        if token.kind != kind:
            raise self._error(token.position, f"expected {expected}", _how(form) if form else "")
        self._next += 1
        return token

    def _error(self, position: int, reason: str, hint: str = "") -> EditError:
        return EditError(
            f"malformed edit {quoted(self._text)}: {reason} at position {position}", hint
        )

    def _because(self, error: EditError, position: int) -> EditError:
        """The reason that a value was refused, with the text and the position."""
        return EditError(
            f"malformed edit {quoted(self._text)} at position {position}: {error.message}",
            error.hint,
        )

    def _unknown_edit(self, token: _Token) -> EditError:
        names = [form.name for form in catalogue()]
        if token.text in _FORMER_NAMES:
            hint = "use disable(LAYER.HEAD)"
        else:
            hint = _nearest(token.text, names) + "edits: " + ", ".join(names)
        message = f"unknown edit {quoted(token.text)} at position {token.position}"
        return EditError(message, hint)

    def _unknown_option(self, form: EditForm, token: _Token) -> EditError:
        known = list(form.options)
        takes = f"{form.name} takes {', '.join(known) if known else 'no options'}"
        hint = _nearest(token.text, known) + takes
        return self._error(token.position, f"unknown option {quoted(token.text)}", hint)


def _how(form: EditForm) -> str:
    return f"write {form.form}"


def _nearest(given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given.lower(), known, n=1)
    return f"did you mean {near[0]}? " if near else ""
