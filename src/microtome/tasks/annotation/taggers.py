"""Taggers: from plain text to an annotated sentence, for those who have a model.

A tagger is anything that is called with a text and answers with a ``Sentence``, the type that the
CoNLL-U reader gives. The spaCy adapter is one; spaCy is imported when it is asked for.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from microtome.errors import MissingExtra, RequestError
from microtome.tasks.annotation.treebanks import Sentence, Word

# spaCy's English models use older names; what the experiments ask for is renamed to UD's.
_UD_RELATIONS = {
    "ROOT": "root",
    "dobj": "obj",
    "dative": "iobj",
    "nsubjpass": "nsubj:pass",
    "csubjpass": "csubj:pass",
    "auxpass": "aux:pass",
    "neg": "advmod",
    "relcl": "acl:relcl",
    "poss": "nmod:poss",
    "attr": "xcomp",
}


@runtime_checkable
class Tagger(Protocol):
    """Annotates a text: words with characters, UPOS, lemmas, heads and UD relations."""

    def __call__(self, text: str) -> Sentence:
        """The text's words; a text of several sentences has several roots."""
        ...


class SpacyTagger:
    """A spaCy pipeline as a tagger; ``model`` is the name of an installed one."""

    def __init__(self, model: str) -> None:
        try:
            import spacy
        except ImportError as error:
            raise MissingExtra(
                "spacy is not installed", f"pip install spacy; python -m spacy download {model}"
            ) from error
        try:
            self._pipeline = spacy.load(model)
            self._library = spacy.__version__
        except OSError as error:
            raise RequestError(
                f"spaCy has no model {model!r}", f"python -m spacy download {model}"
            ) from error

    @property
    def version(self) -> str:
        """Of the model and of spaCy: another one may annotate otherwise."""
        about = self._pipeline.meta
        return f"{about['lang']}_{about['name']} {about['version']}, spaCy {self._library}"

    def __call__(self, text: str) -> Sentence:
        """The text as spaCy annotates it."""
        return from_spacy(self._pipeline(text))


def from_spacy(document: Any) -> Sentence:  # noqa: ANN401 (spaCy is optional and untyped here)
    """A spaCy document as a sentence; tokens of white space are left out."""
    tokens = [token for token in document if not token.is_space]
    place = {token.i: index for index, token in enumerate(tokens, start=1)}
    words = tuple(
        Word(
            token.text,
            token.lemma_,
            token.pos_,
            token.tag_,
            str(token.morph) or "_",
            0 if token.head.i == token.i else place.get(token.head.i, 0),
            _UD_RELATIONS.get(token.dep_, token.dep_) or "_",
            start=token.idx,
            stop=token.idx + len(token.text),
        )
        for token in tokens
    )
    return Sentence(document.text, words)


def load_tagger(name: str) -> Tagger:
    """The tagger called ``name``: the name of a spaCy model."""
    return SpacyTagger(name.removeprefix("spacy:"))
