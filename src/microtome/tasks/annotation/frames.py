"""Frame exemplars: a predicate and its elements in a sentence.

From FrameNet 1.5 or 1.7 (through NLTK's reader), from the published list of 473 sentences, and from
the embedded text; one type for all. ``select`` keeps what Kovaleva et al. kept: their filters
judge a whole exemplar, by all of its elements, and the core elements are taken last.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microtome.errors import DataError, MissingExtra
from microtome.tasks.annotation.gold import Annotated, Element
from microtome.tasks.annotation.treebanks import Sentence, Word
from microtome.tasks.reading.lines import read_lines

MAX_WORDS = 12
MAX_ELEMENT_WORDS = 3
LONGEST_LINE = 2_000  # characters of the published list: an exemplar has 12 words
MIN_DISTANCE = 3  # of word indexes: at least two words are between


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A sentence, the words of its predicate (several spans are several targets), its elements."""

    sentence: Sentence
    frame: str
    targets: tuple[tuple[int, int], ...]
    elements: tuple[Element, ...]
    id: str = ""

    @property
    def core_elements(self) -> tuple[Element, ...]:
        """The elements that a link is drawn to."""
        return tuple(element for element in self.elements if element.core)


@dataclass(frozen=True, slots=True)
class Selection:
    """Exemplars that passed the filters, and how many each filter dropped."""

    kept: tuple[Exemplar, ...]
    dropped: dict[str, int]


def select(exemplars: Iterable[Exemplar]) -> Selection:
    """Keep the exemplars that the paper's filters keep, and count what each filter drops.

    select(read_framenet("framenet_v15")).kept
    """
    kept: list[Exemplar] = []
    dropped: Counter[str] = Counter()
    for exemplar in exemplars:
        reason = violated(exemplar)
        if reason is None:
            kept.append(exemplar)
        else:
            dropped[reason] += 1
    return Selection(tuple(kept), dict(dropped))


def violated(exemplar: Exemplar) -> str | None:
    """The first filter that drops an exemplar; None if it passes all."""
    if len(exemplar.sentence.words) > MAX_WORDS:
        return f"more than {MAX_WORDS} words"
    if len(exemplar.targets) != 1:
        return "target not one span"
    if not exemplar.elements:
        return "no element"
    if any(e.stop - e.start > MAX_ELEMENT_WORDS for e in exemplar.elements):
        return f"an element of more than {MAX_ELEMENT_WORDS} words"
    if any(distance(exemplar.targets[0], e) < MIN_DISTANCE for e in exemplar.elements):
        return "an element near the target"
    if not exemplar.core_elements:
        return "no core element"
    return None


def distance(target: tuple[int, int], element: Element) -> int:
    """Of the nearest words: 1 for neighbours, 0 or less where they overlap."""
    start, stop = target
    return max(element.start - (stop - 1), start - (element.stop - 1))


def read_framenet(folder: Path | str) -> Iterator[Exemplar]:
    """All exemplars of a FrameNet 1.5 or 1.7 folder, unfiltered, in the order of its units."""
    reader = _reader(Path(folder))
    # FrameNet's annotators and NLTK's words disagree in places; characters decide.
    from nltk.tokenize import NLTKWordTokenizer

    tokenizer = NLTKWordTokenizer()
    n_read = 0
    try:
        for unit in reader.lus():
            for sentence in reader.lu(unit.ID).exemplars:
                yield _exemplar(sentence, unit, tokenizer)
                n_read += 1
    except Exception as error:
        # NLTK checks nothing: a broken file is whatever its reader stumbles over.
        raise DataError(
            f"{folder} can't be read as FrameNet: {type(error).__name__}: {error}",
            "get its XML files again",
        ) from error
    if not n_read:
        # NLTK takes an index without entries, or one that is empty, for a corpus of nothing.
        raise DataError(
            f"{folder} can't be read as FrameNet: no exemplars", "get its XML files again"
        )


def _reader(folder: Path) -> Any:  # noqa: ANN401 (NLTK has no types)
    try:
        from nltk.corpus.reader.framenet import FramenetCorpusReader
    except ImportError as error:
        raise MissingExtra.named("nltk", "linguistics") from error
    names = ["frRelation.xml", "frameIndex.xml", "fulltextIndex.xml", "luIndex.xml", "semTypes.xml"]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{folder} is no FrameNet folder: expected {', '.join(missing)}",
            "--frames takes the folder framenet_v15 or framenet_v17 with its XML files",
        )
    import nltk

    # NLTK opens files below its data paths only; naming the folder is the permission.
    root = str(folder.resolve())
    if root not in nltk.data.path:
        nltk.data.path.append(root)
    try:
        return FramenetCorpusReader(root, names)
    except PermissionError as error:
        raise DataError(
            f"NLTK refuses to open {folder}", "make it not group-writable: chmod -R g-w,o-w"
        ) from error


def _exemplar(annotated: Any, unit: Any, tokenizer: Any) -> Exemplar:  # noqa: ANN401
    text: str = annotated.text
    spans = list(tokenizer.span_tokenize(text))
    words = tuple(Word(text[start:stop], start=start, stop=stop) for start, stop in spans)
    kinds = {name: element.coreType for name, element in unit.frame.FE.items()}
    elements = []
    for start, stop, name in annotated.FE[0] if "FE" in annotated else ():
        first, last = _words_at(spans, start, stop)
        if first < last:
            elements.append(Element(name, first, last, kinds.get(name, "").startswith("Core")))
    targets = [_words_at(spans, *span) for span in annotated.get("Target", ())]
    return Exemplar(
        Sentence(text, words, str(annotated.ID)),
        unit.frame.name,
        tuple(targets),
        tuple(elements),
        f"{unit.name}-{annotated.ID}",
    )


def _words_at(spans: list[tuple[int, int]], start: int, stop: int) -> tuple[int, int]:
    inside = [i for i, (s, e) in enumerate(spans) if s < stop and e > start]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


_PUBLISHED = re.compile(r"(?P<text>.*\S) +(?P<target>\S+) (?P<elements>\[.*\])\s*")


def read_published(path: Path | str) -> list[Exemplar]:
    """The published list: a line "words of the sentence  target ['element', …]" per exemplar.

    A word that occurs several times is taken where the filters allow it.
    """
    exemplars = []
    for number, line, _ in read_lines(Path(path)):
        if not line.strip():
            continue
        match = _PUBLISHED.fullmatch(line) if len(line) <= LONGEST_LINE else None
        if match is None:
            raise DataError(f"{path} line {number}: expected sentence, target and [elements]")
        exemplars.append(_published(match, f"{path} line {number}"))
    return exemplars


def _published(match: re.Match[str], place: str) -> Exemplar:
    forms = match["text"].split()
    sentence = _spaced(forms)
    try:
        fillers = [str(text).split() for text in ast.literal_eval(match["elements"])]
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise DataError(f"{place}: expected a list of elements, got {match['elements']}") from error
    candidates = [
        Exemplar(sentence, "", ((target, target + 1),), elements, place)
        for target in _occurrences(forms, [match["target"]])
        if (elements := _placed(forms, fillers, target)) is not None
    ]
    if not candidates:
        raise DataError(f"{place}: expected target and elements in the sentence")
    return next((c for c in candidates if violated(c) is None), candidates[0])


def _placed(forms: list[str], fillers: list[list[str]], target: int) -> tuple[Element, ...] | None:
    """Every element at the occurrence farthest from the target."""
    elements = []
    for words in fillers:
        places = [Element("", at, at + len(words)) for at in _occurrences(forms, words)]
        if not places:
            return None
        elements.append(max(places, key=lambda e: distance((target, target + 1), e)))
    return tuple(elements)


def _occurrences(forms: list[str], words: list[str]) -> list[int]:
    last = len(forms) - len(words) + 1
    return [at for at in range(last) if forms[at : at + len(words)] == words]


def _spaced(forms: list[str]) -> Sentence:
    words, start = [], 0
    for form in forms:
        words.append(Word(form, start=start, stop=start + len(form)))
        start += len(form) + 1
    return Sentence(" ".join(forms), tuple(words))


def embedded_exemplars(sentences: Iterable[Annotated]) -> Iterator[Exemplar]:
    """The frames of gold sentences; all of their elements are core."""
    for gold in sentences:
        for frame in gold.frames:
            span = (frame.target, frame.target + 1)
            yield Exemplar(gold.sentence, frame.name, (span,), frame.elements, gold.text)
