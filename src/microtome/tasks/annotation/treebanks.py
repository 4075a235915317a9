"""CoNLL-U: annotated sentences in and out.

One type for every annotated sentence, wherever it comes from: a treebank, a tagger, or the
generator of the embedded tasks. Words know their characters in the text, so that ``alignment``
finds their word pieces. The format: https://universaldependencies.org/format.html
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from microtome.errors import DataError

N_COLUMNS = 10
# Nine digits are enough, and Python refuses to read numbers of thousands.
_WORD_ID = re.compile(r"[1-9][0-9]{0,8}")
_RANGE_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_NO_FORM = "expected a form, got none"
_EMPTY_ID = re.compile(r"[0-9]{1,9}\.[1-9][0-9]{0,8}")
_HEAD = re.compile(r"[0-9]{1,9}")
# One piece after another: a pattern with both brackets would try every start of a long name.
_BRACKETS = re.compile(r"[()]|[^()]+")


@dataclass(frozen=True, slots=True)
class Word:
    """A syntactic word; ``head`` counts from 1, 0 is the root, None is not annotated.

    ``start`` and ``stop`` are its characters in the sentence's text.
    """

    form: str
    lemma: str = "_"
    upos: str = "_"
    xpos: str = "_"
    feats: str = "_"
    head: int | None = None
    relation: str = "_"
    deps: str = "_"
    misc: str = "_"
    start: int = -1
    stop: int = -1


@dataclass(frozen=True, slots=True)
class Range:
    """A written token of several words ("don't"): words first..last, from 1."""

    first: int
    last: int
    form: str
    misc: str = "_"


@dataclass(frozen=True, slots=True)
class EmptyNode:
    """A node that isn't written, kept as its ten columns; it follows word ``after``."""

    after: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text with its words; multi-word tokens, empty nodes and comments are kept."""

    text: str
    words: tuple[Word, ...]
    id: str = ""
    comments: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    empty_nodes: tuple[EmptyNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Mention:
    """Words start..stop-1 (from 0) that mention ``entity``."""

    entity: str
    start: int
    stop: int


def read_conllu(path: Path | str) -> list[Sentence]:
    """All sentences of a CoNLL-U file."""
    path = Path(path)
    if path.is_dir():
        raise DataError(f"expected a CoNLL-U file, got the folder {path}", _files_in(path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} can't be read as CoNLL-U: {error}") from error
    return list(parse_conllu(text, name=str(path)))


def _files_in(folder: Path) -> str:
    files = sorted(file.name for file in folder.glob("*.conllu"))
    return f"name one of its files: {', '.join(files[:5])}" if files else "it has no .conllu files"


def parse_conllu(text: str, *, name: str = "CoNLL-U") -> Iterator[Sentence]:
    """Sentences of CoNLL-U text; a broken line is refused with its number."""
    block: list[tuple[int, str]] = []
    # Not splitlines(): it also cuts at characters such as U+2028 inside a form.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = line.removesuffix("\r")
        if line.strip():
            block.append((number, line))
        elif block:
            yield _sentence(block, name)
            block = []
    if block:
        yield _sentence(block, name)


def write_conllu(sentences: Iterable[Sentence]) -> str:
    """The sentences as CoNLL-U text."""
    return "".join(_written(sentence) for sentence in sentences)


def mentions(sentence: Sentence) -> tuple[Mention, ...]:
    """Entity mentions from ``Entity=`` in MISC: ``(e1``, ``e1)``, ``(e1)``, ``(e1-person-…``."""
    closed_mentions: list[Mention] = []
    started: defaultdict[str, list[int]] = defaultdict(list)
    for index, word in enumerate(sentence.words):
        pieces = ["", *_BRACKETS.findall(misc_value(word, "Entity") or ""), ""]
        for before, name, after in zip(pieces, pieces[1:], pieces[2:], strict=False):
            entity = name.split("-")[0]
            if name in ("(", ")"):
                continue
            if before == "(":
                started[entity].append(index)
            if after == ")":
                if not started[entity]:
                    raise DataError(
                        f"sentence {sentence.id!r}: entity {entity} ends without a start"
                    )
                closed_mentions.append(Mention(entity, started[entity].pop(), index + 1))
    return tuple(sorted(closed_mentions, key=lambda mention: (mention.start, -mention.stop)))


def misc_value(word: Word, key: str) -> str | None:
    """The value of ``key`` in the MISC column, or None."""
    for item in word.misc.split("|"):
        name, _, value = item.partition("=")
        if name == key:
            return value
    return None


def _sentence(block: list[tuple[int, str]], name: str) -> Sentence:
    comments = tuple(line for _, line in block if line.startswith("#"))
    words: list[Word] = []
    ranges: list[Range] = []
    empty_nodes: list[EmptyNode] = []
    for number, line in block:
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != N_COLUMNS:
            _refuse(name, number, f"expected {N_COLUMNS} columns, got {len(columns)}")
        identifier = columns[0]
        if _EMPTY_ID.fullmatch(identifier):
            empty_nodes.append(EmptyNode(len(words), tuple(columns)))
        elif match := _RANGE_ID.fullmatch(identifier):
            first, last = int(match[1]), int(match[2])
            done = ranges[-1].last if ranges else 0
            if first != len(words) + 1 or last <= first or first <= done:
                _refuse(
                    name,
                    number,
                    f"expected a range from word {len(words) + 1} on, got {identifier}",
                )
            if not columns[1]:
                _refuse(name, number, _NO_FORM)
            ranges.append(Range(first, last, columns[1], columns[9]))
        elif _WORD_ID.fullmatch(identifier) and int(identifier) == len(words) + 1:
            words.append(_word(columns, name, number))
        else:
            _refuse(name, number, f"expected id {len(words) + 1}, got {identifier!r}")
    _check_tree(words, ranges, block, name)
    return _placed(words, ranges, empty_nodes, comments)


def _word(columns: list[str], name: str, number: int) -> Word:
    _, form, lemma, upos, xpos, feats, head, relation, deps, misc = columns
    if not form:
        _refuse(name, number, _NO_FORM)
    if head != "_" and not _HEAD.fullmatch(head):
        _refuse(name, number, f"expected a whole number as head, got {head!r}")
    parent = None if head == "_" else int(head)
    return Word(form, lemma, upos, xpos, feats, parent, relation, deps, misc)


def _check_tree(
    words: list[Word], ranges: list[Range], block: list[tuple[int, str]], name: str
) -> None:
    numbers = [n for n, line in block if _WORD_ID.fullmatch(line.split("\t")[0])]
    if not words:
        _refuse(name, block[-1][0], "expected a sentence, got no words")
    for place, (word, number) in enumerate(zip(words, numbers, strict=True), start=1):
        if word.head is not None and (word.head > len(words) or word.head == place):
            _refuse(
                name,
                number,
                f"expected another of {len(words)} words as head of word {place}, got {word.head}",
            )
    for token in ranges:
        if token.last > len(words):
            _refuse(
                name,
                block[-1][0],
                f"expected a range within {len(words)} words, got {token.first}-{token.last}",
            )


def _refuse(name: str, number: int, reason: str) -> None:
    raise DataError(
        f"{name} line {number}: {reason}", "correct the line, or leave the sentence out"
    )


def _placed(
    words: list[Word],
    ranges: list[Range],
    empty_nodes: list[EmptyNode],
    comments: tuple[str, ...],
) -> Sentence:
    """Give every word its characters in the stated text, or in one built from the tokens."""
    by_first = {token.first: token for token in ranges}
    tokens: list[tuple[list[Word], str, bool]] = []  # words, form, space after
    done = 0
    while done < len(words):
        token = by_first.get(done + 1)
        inside = words[done : token.last] if token else [words[done]]
        form, misc = (token.form, token.misc) if token else (inside[0].form, inside[0].misc)
        tokens.append((inside, form, "SpaceAfter=No" not in misc.split("|")))
        done += len(inside)
    built = "".join(form + " " * space for _, form, space in tokens).removesuffix(" ")
    stated = {key: value for key, value in map(_comment, comments) if key}
    text = stated.get("text", built)
    starts = _starts(text, [form for _, form, _ in tokens])
    if starts is None:
        text, starts = built, _starts(built, [form for _, form, _ in tokens])
    if starts is None:
        forms = " ".join(form for _, form, _ in tokens)
        raise DataError(f"a word of {forms[:100]!r} begins with white space", "correct the file")
    placed = [
        word
        for (inside, form, _), start in zip(tokens, starts, strict=True)
        for word in _inside(inside, form, start)
    ]
    return Sentence(
        text,
        tuple(placed),
        stated.get("sent_id", ""),
        comments,
        tuple(ranges),
        tuple(empty_nodes),
    )


def _starts(text: str, forms: list[str]) -> list[int] | None:
    """Where the forms start in a text that holds nothing else but white space."""
    starts, place = [], 0
    for form in forms:
        while place < len(text) and text[place].isspace():
            place += 1
        if not text.startswith(form, place):
            return None
        starts.append(place)
        place += len(form)
    return starts if not text[place:].strip() else None


def _inside(words: list[Word], form: str, start: int) -> list[Word]:
    """Words of one written token: its parts where they spell it, else all of it for each."""
    if "".join(word.form for word in words) != form:
        return [replace(word, start=start, stop=start + len(form)) for word in words]
    placed = []
    for word in words:
        placed.append(replace(word, start=start, stop=start + len(word.form)))
        start += len(word.form)
    return placed


def _comment(line: str) -> tuple[str, str]:
    key, equals, value = line.removeprefix("#").partition("=")
    return (key.strip(), value.strip()) if equals else ("", "")


def _written(sentence: Sentence) -> str:
    lines = list(sentence.comments)
    if not any(_comment(line)[0] == "sent_id" for line in lines) and sentence.id:
        lines.append(f"# sent_id = {sentence.id}")
    if not any(_comment(line)[0] == "text" for line in lines):
        lines.append(f"# text = {sentence.text}")
    by_first = {token.first: token for token in sentence.ranges}
    for after in range(len(sentence.words) + 1):
        if after:
            lines.append(_line(after, sentence.words[after - 1]))
        lines += ["\t".join(node.columns) for node in sentence.empty_nodes if node.after == after]
        if token := by_first.get(after + 1):
            blank = "\t".join(["_"] * (N_COLUMNS - 3))
            lines.append(f"{token.first}-{token.last}\t{token.form}\t{blank}\t{token.misc}")
    return "\n".join(lines) + "\n\n"


def _line(index: int, word: Word) -> str:
    head = "_" if word.head is None else str(word.head)
    return "\t".join(
        [
            str(index),
            word.form,
            word.lemma,
            word.upos,
            word.xpos,
            word.feats,
            head,
            word.relation,
            word.deps,
            word.misc,
        ]
    )
