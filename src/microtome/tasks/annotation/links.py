"""Links between words: verb and subject, noun and pronoun, words that both texts of a pair have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from microtome.errors import RequestError
from microtome.tasks.annotation.passages import AnnotatedTexts, FoundWord, Passage
from microtome.tasks.annotation.treebanks import Sentence, mentions

SIDES = {
    "verb-subject": ("verb", "subject"),
    "noun-pronoun": ("noun", "pronoun"),
    "overlap": ("first text", "second text"),
}
VERBS = ("VERB", "AUX")
NOUNS = ("NOUN", "PROPN")
WordPair = tuple[FoundWord, FoundWord]


def missing(passages: Sequence[Passage]) -> dict[str, str]:
    """Why a kind of link can't be looked for in these passages."""
    reasons = {}
    words = [word for one in passages for placed in one.sentences for word in placed.sentence.words]
    if all(word.head is None for word in words):
        reasons["verb-subject"] = "the text has no syntax"
    if not any("Entity=" in word.misc for word in words):
        reasons["noun-pronoun"] = "the text has no coreference (Entity= in MISC)"
    if all(passage.pair is None for passage in passages):
        reasons["overlap"] = "the texts aren't pairs"
    return reasons


def chosen_links(passages: Sequence[Passage], asked: Sequence[str]) -> tuple[str, ...]:
    """The kinds of links to look for: those asked for, or all that the passages allow."""
    reasons = missing(passages)
    for name in asked:
        if name not in SIDES:
            raise RequestError(f"no link is called {name!r}", f"the links are {', '.join(SIDES)}")
        if name in reasons:
            raise RequestError(
                f"there are no {name} links to look at: {reasons[name]}",
                "give a CoNLL-U file that has it: --treebank FILE, or take an embedded task",
            )
    return tuple(asked) or tuple(name for name in SIDES if name not in reasons)


def word_pairs(texts: AnnotatedTexts, text: int, link: str) -> list[WordPair]:
    """The linked words of one text, in the order of the link's name."""
    words = texts.words[text]
    if link == "overlap":
        return list(_shared_words(words))
    by_place = {(found.sentence, found.index): found for found in words}
    pairs = []
    for number, placed in enumerate(texts.passages[text].sentences):
        linked = _subjects if link == "verb-subject" else _pronouns
        for one, other in linked(placed.sentence):
            if (number, one) in by_place and (number, other) in by_place:
                pairs.append((by_place[number, one], by_place[number, other]))
    return pairs


def _subjects(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """(verb, subject); a predicate that isn't a verb ("she is tall") has none."""
    for index, word in enumerate(sentence.words):
        is_subject = word.relation == "nsubj" or word.relation.startswith("nsubj:")
        if is_subject and word.head and sentence.words[word.head - 1].upos in VERBS:
            yield word.head - 1, index


def _pronouns(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """(noun, pronoun) of mentions that speak of one thing."""
    found = mentions(sentence)
    nouns = [(one.entity, head_noun(sentence, one.start, one.stop)) for one in found]
    for one in found:
        if one.stop - one.start == 1 and sentence.words[one.start].upos == "PRON":
            for entity, noun in nouns:
                if entity == one.entity and noun is not None:
                    yield noun, one.start


def head_noun(sentence: Sentence, start: int, stop: int) -> int | None:
    """The noun of a mention whose head is outside of it, else its first noun."""
    inside = [i for i in range(start, stop) if sentence.words[i].upos in NOUNS]
    heads = [i for i in inside if not start < (sentence.words[i].head or 0) <= stop]
    return next(iter([*heads, *inside]), None)


def _shared_words(words: Sequence[FoundWord]) -> Iterator[WordPair]:
    """Every occurrence of a word in the first text with every one in the second."""
    second = [found for found in words if found.side == 1]
    for one in words:
        if one.side == 0 and any(c.isalnum() for c in one.word.form):
            for other in second:
                if other.word.form.lower() == one.word.form.lower():
                    yield one, other
