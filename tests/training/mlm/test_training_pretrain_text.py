"""Text to documents, a vocabulary, a stream: nothing leaks, every script stays what it is."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest
from transformers import AutoTokenizer

from microtome.errors import RequestError
from microtome.training.mlm import text
from microtome.training.mlm.building import token_ids, wrapped_tokenizer
from microtome.training.mlm.rows import cut

HINDI = "है। मुझे हिन्दी में लिखना अच्छा लगता है"
RUSSIAN = "Ёлка и йод на крайнем севере"
GERMAN = "Über Öl und Maß läßt sich streiten"


def test_heldout_documents_are_the_last_ones_and_in_no_training_row(tmp_path):
    documents = [f"article {i} speaks of thing{i}\nand of more thing{i}" for i in range(50)]
    first, last = tmp_path / "a.txt.gz", tmp_path / "b.txt.xz"
    first.write_bytes(gzip.compress(b"one early document"))
    last.write_bytes(lzma.compress("\n\n".join(documents).encode()))
    corpus = text.read_corpus([first, last], heldout_share=0.1)
    n_heldout = len(corpus.heldout)
    assert 4 <= n_heldout <= 6
    assert list(corpus.heldout) == documents[-n_heldout:]
    assert list(corpus.training) == ["one early document", *documents[:-n_heldout]]
    tokenizer = text.train_vocabulary(corpus.training, size=300, lowercase=True)
    rows = cut(
        text.token_stream(tokenizer, corpus.training),
        length=16, offset=0, tokens=token_ids(tokenizer),
    )  # fmt: skip
    words = " ".join(tokenizer.decode(row.tolist()) for row in rows)
    assert "thing1" in words
    assert not any(f"thing{i}" in words for i in range(50 - n_heldout, 50))


def test_the_stream_is_every_document_with_one_separator_between():
    training = ("the cat sees a dog .", "a dog sees .")
    tokenizer = text.train_vocabulary(training, size=100, lowercase=True)
    stream = text.token_stream(tokenizer, training)
    ids = [tokenizer.encode(document, add_special_tokens=False).ids for document in training]
    assert stream.tolist() == [*ids[0], tokenizer.token_to_id("[SEP]"), *ids[1]]


def test_the_saved_tokenizer_cuts_like_the_stream_and_marks_pairs(tmp_path):
    tokenizer = text.train_vocabulary(("the cat sees a dog .",), size=100, lowercase=True)
    wrapped = wrapped_tokenizer(tokenizer, positions=64, lowercase=True)
    encoded = wrapped("The CAT", "a dog")
    inner = [tokenizer.encode(part, add_special_tokens=False).ids for part in ("the cat", "a dog")]
    assert encoded["input_ids"] == [2, *inner[0], 3, *inner[1], 3]
    assert encoded["token_type_ids"] == [0] * (len(inner[0]) + 2) + [1] * (len(inner[1]) + 1)
    assert wrapped.mask_token_id == 4


def test_unreadable_text_is_refused_with_a_reason(tmp_path):
    (tmp_path / "text.pdf").write_text("x")
    (tmp_path / "broken.txt.xz").write_bytes(b"not xz")
    (tmp_path / "broken.txt.gz").write_bytes(gzip.compress(b"a line\n" * 999)[:-20] + b"x" * 20)
    (tmp_path / "one.txt").write_text("a single line")
    (tmp_path / "long_end.txt").write_text("a short preface\n\n" + "all in one line " * 999)
    for paths, reason in (
        (["text.pdf"], r"\.txt"),
        (["broken.txt.xz"], "can't read"),
        (["broken.txt.gz"], "can't read"),
        (["absent.txt"], "can't read"),
        (["long_end.txt"], "must be held out"),
        (["one.txt"], "must be held out"),
        ([], "at least one"),
    ):
        with pytest.raises(RequestError, match=reason):
            text.read_corpus([tmp_path / path for path in paths], heldout_share=0.1)


@pytest.mark.parametrize("preface", ["", "a preface\n\n"])
def test_a_document_longer_than_what_is_held_out_is_split_at_its_lines(tmp_path, preface):
    lines = [f"line {i} of a book without blank lines" for i in range(100)]
    book = tmp_path / "book.txt"
    book.write_text(preface + "\n".join(lines))
    corpus = text.read_corpus([book], heldout_share=0.1)
    (end,) = corpus.heldout
    assert 9 <= len(end.split("\n")) <= 12
    assert "\n".join([corpus.training[-1], end]) == "\n".join(lines)
    assert len(corpus.training) == (2 if preface else 1)


@pytest.mark.parametrize("sentence", [HINDI, RUSSIAN, GERMAN])
def test_marks_and_letters_of_any_script_stay(tmp_path, sentence):
    tokenizer = text.train_vocabulary([sentence] * 20, size=400, lowercase=True)
    words = sentence.lower().replace("।", " ।").split()
    assert tokenizer.encode(sentence, add_special_tokens=False).tokens == words
    wrapped_tokenizer(tokenizer, positions=64, lowercase=True).save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).tokenize(sentence) == words


def test_capital_letters_are_kept_where_asked_for(tmp_path):
    tokenizer = text.train_vocabulary([GERMAN] * 20, size=400, lowercase=False)
    wrapped_tokenizer(tokenizer, positions=64, lowercase=False).save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).tokenize(GERMAN) == GERMAN.split()


def test_a_script_of_thousands_of_characters_is_known():
    random = np.random.default_rng(0)
    shares = 1 / np.arange(1, 2001)
    drawn = random.choice(2000, (1000, 40), p=shares / shares.sum())
    lines = ["".join(chr(0x4E00 + character) for character in line) for line in drawn]
    tokenizer = text.train_vocabulary(lines, size=8000, lowercase=True)
    assert text.unknown_share(tokenizer, text.token_stream(tokenizer, lines)) < 0.001


def test_the_rarest_characters_are_left_out_up_to_their_share():
    lines = ["the cat sees a dog"] * 20_000 + [chr(0x4E00 + i) for i in range(3000)]
    known = text.alphabet_size(lines, most=4000)
    left_out = 3000 + len(set("the cat sees a dog")) - known
    assert left_out == int(sum(map(len, lines)) * 0.0005)
    assert text.alphabet_size(lines, most=1000) == 1000
    assert text.alphabet_size(lines[:1], most=1000) == 400


def test_text_that_a_vocabulary_doesnt_know_is_refused():
    tokenizer = text.train_vocabulary([GERMAN] * 20, size=400, lowercase=True)
    with pytest.raises(RequestError, match=r"and 100% of them are unknown"):
        text.refuse_unknown(tokenizer, text.token_stream(tokenizer, [HINDI]))
