"""The CoNLL-U reader and writer: what is kept, what is refused, and the real treebank whole."""

from __future__ import annotations

import time

import pytest

from microtome.errors import DataError
from microtome.tasks.annotation.treebanks import (
    Mention,
    mentions,
    parse_conllu,
    read_conllu,
    write_conllu,
)

BLANK = "\t".join(["_"] * 6)
SAMPLE = """\
# sent_id = s1
# text = Don't feed them!
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tfeed\tfeed\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tgiven\tgive\tVERB\t_\t_\t_\t_\t3:dep\t_
4\tthem\tthey\tPRON\tPRP\t_\t3\tobj\t_\tSpaceAfter=No
5\t!\t!\tPUNCT\t.\t_\t3\tpunct\t_\t_

"""


def line(index, form="word", head="0", misc="_"):
    return f"{index}\t{form}\t_\t_\t_\t_\t{head}\tdep\t_\t{misc}\n"


def test_words_of_a_contraction_share_its_characters():
    (sentence,) = parse_conllu(SAMPLE)
    assert sentence.text == "Don't feed them!"
    assert sentence.id == "s1"
    assert [sentence.text[w.start : w.stop] for w in sentence.words] == [
        "Do",
        "n't",
        "feed",
        "them",
        "!",
    ]
    assert [word.head for word in sentence.words] == [3, 3, 0, 3, 3]
    assert sentence.empty_nodes[0].after == 3


def test_a_contraction_that_its_words_do_not_spell_gives_each_of_them_the_whole():
    text = (
        "1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_\n" + line(1, "à", "2") + line(2, "le") + line(3, "x", "2")
    )
    (sentence,) = parse_conllu(text)
    assert sentence.text == "au x"
    assert [(w.start, w.stop) for w in sentence.words] == [(0, 2), (0, 2), (3, 4)]


def test_writing_gives_back_what_was_read():
    assert write_conllu(parse_conllu(SAMPLE)) == SAMPLE


def token(numbers: str) -> str:
    """A written token of several words."""
    return f"{numbers}\ta" + "\t_" * 8 + "\n"


@pytest.mark.parametrize(
    ("text", "number", "reason"),
    [
        (line(1) + "2\tword\n", 2, "expected 10 columns, got 2"),
        (line(1) + line(3), 2, "expected id 2, got '3'"),
        (line(1, head="5"), 1, "another of 1 words as head of word 1, got 5"),
        (line(1, head="1"), 1, "head of word 1, got 1"),
        (line(1, head="x"), 1, "whole number as head, got 'x'"),
        (line(1, form=""), 1, "expected a form"),
        ("# text = nothing\n\n", 1, "got no words"),
        (line(1) + "\n" + line(1) + "2-1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n" + line(2), 4, "got 2-1"),
        ("1-3\ta\t_\t_\t_\t_\t_\t_\t_\t_\n" + line(1), 2, "within 1 words, got 1-3"),
        (token("1-2").replace("\ta\t", "\t\t") + line(1) + line(2), 1, "expected a form, got none"),
        (token("1-2") + token("1-2") + line(1) + line(2), 2, "range from word 1 on, got 1-2"),
        (token("1-3") + line(1) + token("2-3") + line(2) + line(3), 3, "from word 2 on, got 2-3"),
        (line(1, head="9" * 5_000), 1, "whole number as head, got '999"),
        (line(1).replace("1", "1" * 5_000, 1), 1, "expected id 1, got '111"),
        (token("1-" + "2" * 5_000) + line(1), 1, "expected id 1, got '1-222"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(text, number, reason):
    with pytest.raises(DataError, match=f"line {number}: .*{reason}"):
        list(parse_conllu(text))


def test_a_form_may_hold_a_character_that_python_takes_for_a_line_end():
    (sentence,) = parse_conllu(line(1, "a\u2028b"))
    assert sentence.words[0].form == "a\u2028b"


def test_the_stated_text_is_kept_with_its_own_spaces_if_it_holds_the_words():
    stated = "# text = one\u00a0 two\n"
    (sentence,) = parse_conllu(stated + line(1, "one") + line(2, "two", "1"))
    assert sentence.text == "one\u00a0 two"
    assert [(w.start, w.stop) for w in sentence.words] == [(0, 3), (5, 8)]
    (sentence,) = parse_conllu("# text = other\n" + line(1, "one") + line(2, "two", "1"))
    assert sentence.text == "one two"


def test_windows_line_ends_and_a_missing_last_blank_line_are_read():
    assert len(list(parse_conllu(line(1).replace("\n", "\r\n") + "\r\n" + line(1).strip()))) == 2


def test_entities_are_read_nested_and_in_both_notations():
    text = (
        line(1, misc="Entity=(e1-person-new(e2)")
        + line(2, head="1")
        + line(3, head="1", misc="Entity=e1)")
        + line(4, head="1", misc="Entity=(e2-person)")
    )
    (sentence,) = parse_conllu(text)
    assert mentions(sentence) == (Mention("e1", 0, 3), Mention("e2", 0, 1), Mention("e2", 3, 4))


def test_an_entity_with_a_name_of_any_length_takes_no_quadratic_time():
    (sentence,) = parse_conllu(line(1).replace("_\n", "Entity=" + "e" * 100_000 + "\n"))
    started = time.process_time()
    assert mentions(sentence) == ()
    assert time.process_time() - started < 1


def test_an_entity_that_ends_without_a_start_is_refused():
    (sentence,) = parse_conllu(line(1, misc="Entity=e1)"))
    with pytest.raises(DataError, match="e1 ends without a start"):
        mentions(sentence)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "x.conllu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"x\.conllu can't be read"):
        read_conllu(tmp_path / "x.conllu")


@pytest.mark.real
@pytest.mark.parametrize(("name", "n_sentences"), [("dev", 2001), ("test", 2077)])
def test_the_english_web_treebank_is_read_whole(shared_data, name, n_sentences):
    path = shared_data(f"data/ud_ewt/en_ewt-ud-{name}.conllu")
    sentences = read_conllu(path)
    assert len(sentences) == n_sentences
    raw = path.read_text(encoding="utf-8")
    assert write_conllu(sentences).strip() == raw.strip()
    for sentence in sentences:
        given = next(c for c in sentence.comments if c.startswith("# text = "))
        assert sentence.text == given.removeprefix("# text = ").rstrip()
        for word in sentence.words:
            assert 0 <= word.start < word.stop <= len(sentence.text)


def test_a_word_that_begins_with_white_space_is_refused():
    rows = ["1\tw\t_\tX\t_\t_\t0\tdep\t_\t_", "2\t\x0bw\t_\tX\t_\t_\t1\tdep\t_\t_"]
    with pytest.raises(DataError, match="begins with white space"):
        list(parse_conllu("\n".join(rows) + "\n\n"))
