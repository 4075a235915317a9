"""Taggers answer with the reader's type; the spaCy adapter is tried on a stand-in document."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from microtome.errors import MissingExtra
from microtome.tasks.annotation.taggers import SpacyTagger, Tagger, from_spacy, load_tagger
from microtome.tasks.annotation.treebanks import Sentence, Word, parse_conllu, write_conllu


class Splitter:
    """A tagger that knows nothing but spaces."""

    def __call__(self, text):
        words, start = [], 0
        for form in text.split():
            start = text.index(form, start)
            words.append(Word(form, upos="X", head=0, relation="root", start=start))
        return Sentence(text, tuple(words))


def token(i, text, idx, pos, dep, head, lemma=None):
    return SimpleNamespace(
        i=i, text=text, idx=idx, pos_=pos, tag_="", dep_=dep, lemma_=lemma or text, morph="",
        is_space=not text.strip(), head=SimpleNamespace(i=head),
    )  # fmt: skip


class Document(list):
    text = "She  was  seen"


def document():
    return Document(
        [
            token(0, "She", 0, "PRON", "nsubjpass", 4),
            token(1, " ", 4, "SPACE", "", 0),
            token(2, "was", 5, "AUX", "auxpass", 4, "be"),
            token(3, " ", 9, "SPACE", "", 2),
            token(4, "seen", 10, "VERB", "ROOT", 4, "see"),
        ]
    )


def test_any_callable_of_that_shape_is_a_tagger():
    assert isinstance(Splitter(), Tagger)
    assert [word.form for word in Splitter()("a b").words] == ["a", "b"]


def test_a_spacy_document_becomes_a_sentence_with_ud_relations_and_without_spaces():
    sentence = from_spacy(document())
    assert [w.form for w in sentence.words] == ["She", "was", "seen"]
    assert [w.relation for w in sentence.words] == ["nsubj:pass", "aux:pass", "root"]
    assert [w.head for w in sentence.words] == [3, 3, 0]
    assert [sentence.text[w.start : w.stop] for w in sentence.words] == ["She", "was", "seen"]
    (read,) = parse_conllu(write_conllu([sentence]))
    assert [w.relation for w in read.words] == [w.relation for w in sentence.words]


def test_without_spacy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra) as caught:
        load_tagger("en_core_web_sm")
    assert "pip install spacy" in caught.value.hint


def test_a_model_that_is_not_there_is_named(monkeypatch):
    def load(name):
        raise OSError("no such model")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    with pytest.raises(Exception, match="no model 'xx'"):
        SpacyTagger("xx")


def test_the_adapter_hands_the_text_to_the_pipeline(monkeypatch):
    asked = []

    def pipeline(text):
        asked.append(text)
        return document()

    monkeypatch.setitem(
        sys.modules, "spacy", SimpleNamespace(load=lambda name: pipeline, __version__="3.8")
    )
    assert SpacyTagger("any")("She was seen").words[2].lemma == "see"
    assert asked == ["She was seen"]
