"""Laws of the gold annotation: valid trees, honest offsets, frames and pronouns that make sense."""

from __future__ import annotations

import pytest

from micro import generated_rows
from micro.grammar import lexicon
from microtome.tasks.annotation.treebanks import mentions, parse_conllu, write_conllu
from microtome.tasks.embedded import TASKS

NAMES = [task.name for task in TASKS]
RELATIONS = {
    "acl:relcl",
    "advcl",
    "advmod",
    "amod",
    "aux",
    "aux:pass",
    "case",
    "cc",
    "cc:preconj",
    "ccomp",
    "conj",
    "cop",
    "csubj",
    "det",
    "expl",
    "fixed",
    "iobj",
    "mark",
    "nmod",
    "nmod:poss",
    "nsubj",
    "nsubj:pass",
    "nummod",
    "obj",
    "obl",
    "obl:agent",
    "obl:unmarked",
    "parataxis",
    "punct",
    "root",
    "xcomp",
    "orphan",
    "compound",
    "appos",
}
UPOS = {
    "ADJ",
    "ADP",
    "ADV",
    "AUX",
    "CCONJ",
    "DET",
    "NOUN",
    "NUM",
    "PART",
    "PRON",
    "PROPN",
    "PUNCT",
    "SCONJ",
    "VERB",
}


@pytest.fixture(scope="module", params=NAMES)
def sentences(request):
    rows = generated_rows(request.param, "dev")
    return list({each.text: each for row in rows for each in row.sentences}.values())


def test_every_sentence_is_a_tree_with_known_labels(sentences):
    for annotated in sentences:
        heads = [word.head for word in annotated.sentence.words]
        assert heads.count(0) == 1
        for start in range(1, len(heads) + 1):
            seen = set()
            while start:
                assert start not in seen, annotated.text
                seen.add(start)
                start = heads[start - 1]
        for word in annotated.sentence.words:
            assert word.relation in RELATIONS, (word, annotated.text)
            assert word.upos in UPOS
            assert (word.relation == "root") == (word.head == 0)


def test_characters_of_words_spell_the_text(sentences):
    for annotated in sentences:
        text = annotated.text
        rest = list(text)
        for word in annotated.sentence.words:
            assert text[word.start : word.stop] == word.form
            rest[word.start : word.stop] = [" "] * len(word.form)
        assert not "".join(rest).strip()
        assert text[0].isupper()
        assert text[-1] in ".?!"
        assert "  " not in text


def test_conllu_comes_back_as_it_was_written(sentences):
    written = write_conllu(annotated.sentence for annotated in sentences)
    for annotated, read in zip(sentences, parse_conllu(written), strict=True):
        assert read.words == annotated.sentence.words
        assert read.text == annotated.text


def test_frames_name_a_verb_and_spans_without_it(sentences):
    known = {verb.frame for verb in lexicon.load().verbs}
    n_elements = 0
    for annotated in sentences:
        words = annotated.sentence.words
        for frame in annotated.frames:
            assert frame.name in known
            assert words[frame.target].upos == "VERB"
            for element in frame.elements:
                assert 0 <= element.start < element.stop <= len(words)
                assert not element.start <= frame.target < element.stop
                n_elements += 1
    assert n_elements > 0


def test_pronouns_point_at_nouns_of_the_same_entity(sentences):
    for annotated in sentences:
        spans = mentions(annotated.sentence)
        for pronoun, noun in annotated.pronouns:
            assert annotated.sentence.words[pronoun].upos == "PRON"
            assert annotated.sentence.words[noun].upos in ("NOUN", "PROPN")
            of_pronoun = {m.entity for m in spans if m.start == pronoun and m.stop == pronoun + 1}
            of_noun = {m.entity for m in spans if m.start <= noun < m.stop}
            assert of_pronoun & of_noun
