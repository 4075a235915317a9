"""Passages: words without a tagger, and the nouns that pronouns are linked with."""

from __future__ import annotations

from microtome.tasks.annotation.links import head_noun
from microtome.tasks.annotation.passages import cut_into_words
from microtome.tasks.annotation.treebanks import parse_conllu


def test_words_without_a_tagger():
    sentence = cut_into_words("Don't stop, now.")
    assert [w.form for w in sentence.words] == ["Don", "'", "t", "stop", ",", "now", "."]
    assert [w.upos for w in sentence.words] == ["_", "PUNCT", "_", "_", "PUNCT", "_", "PUNCT"]
    assert all(sentence.text[w.start : w.stop] == w.form for w in sentence.words)


def test_the_head_noun_of_a_mention():
    (sentence,) = parse_conllu(
        "1\tthe\tthe\tDET\t_\t_\t3\tdet\t_\t_\n2\tcity\tcity\tNOUN\t_\t_\t3\tcompound\t_\t_\n"
        "3\thall\thall\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    )
    assert head_noun(sentence, 0, 3) == 2
    assert head_noun(sentence, 0, 1) is None
