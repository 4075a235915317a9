"""Which tokens of a text count, in which class, and what a document says of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from microtome.errors import RequestError
from microtome.observe import (
    TOKEN_CLASSES,
    Texts,
    Vocabulary,
    decode,
    decode_document,
    decoded_ids,
    token_classes,
    vocabulary_of,
)
from support.tiny import tiny_model, tiny_tokenizer


def tiny_texts(tokenizer, *sentences):
    given = tokenizer(list(sentences), return_special_tokens_mask=True)
    return Texts.of(given["input_ids"], special=given["special_tokens_mask"])


def test_token_classes_are_first_inner_punctuation_continuation_special():
    tokenizer = tiny_tokenizer()
    texts = tiny_texts(tokenizer, "birds see, the cat !", "", "€ dog.")
    tokens = tokenizer.convert_ids_to_tokens(texts.ids.tolist())
    named = [TOKEN_CLASSES[c] for c in token_classes(texts, vocabulary_of(tokenizer))]
    # fmt: off
    assert list(zip(tokens, named, strict=True)) == [
        ("[CLS]", "special"), ("bird", "first"), ("##s", "continuation"), ("[UNK]", "special"),
        (",", "punctuation"), ("the", "inner"), ("cat", "inner"), ("[UNK]", "special"),
        ("[SEP]", "special"),
        ("[CLS]", "special"), ("[SEP]", "special"),
        ("[CLS]", "special"), ("[UNK]", "special"), ("dog", "inner"), (".", "punctuation"),
        ("[SEP]", "special"),
    ]


def test_pieces_that_start_a_word_are_marked_in_other_tokenizers():
    vocabulary = Vocabulary.of(["<s>", "▁the", "▁", "ing", ".", "▁cat"], special_ids=[0])
    assert vocabulary.continuation.tolist() == [True, False, False, True, True, False]
    assert vocabulary.punctuation.tolist() == [False, False, False, False, True, False]
    plain = Vocabulary.of(["[CLS]", "C", "=", "("], special_ids=[0])
    assert not plain.continuation.any()


def test_special_and_unknown_tokens_are_left_out_and_counted():
    tokenizer = tiny_tokenizer()
    model = tiny_model("bert", "mlm")
    texts = tiny_texts(tokenizer, "the € cat", "", "dog")
    ours = decode(model, texts, vocabulary_of(tokenizer))
    assert ours.n_tokens == 3  # the, cat, dog
    assert ours.n_left_out == 7  # three [CLS], three [SEP], one [UNK]
    assert ours.total[:, TOKEN_CLASSES.index("first")].tolist() == [1, 0, 1]
    everything = decode(model, texts, vocabulary_of(tokenizer), special=True)
    assert (everything.n_tokens, everything.n_left_out) == (10, 0)
    for name in TOKEN_CLASSES[1:]:
        place = TOKEN_CLASSES.index(name)
        np.testing.assert_array_equal(everything.right[..., place], ours.right[..., place])


def test_unknown_scripts_only_leave_nothing_and_say_so():
    tokenizer = tiny_tokenizer()
    ours = decode(tiny_model("bert", "mlm"), tiny_texts(tokenizer, "Ω Ж"), vocabulary_of(tokenizer))
    assert ours.n_tokens == 0
    with pytest.raises(RequestError, match="no token left"):
        ours.interval(0)


def test_the_document_has_the_shape_that_scripts_rely_on():
    tokenizer = tiny_tokenizer()
    vocabulary = vocabulary_of(tokenizer)
    model = tiny_model("bert", "mlm")
    texts = tiny_texts(tokenizer, "the cats")
    ids = texts.ids.tolist()
    made = decode_document(
        "tiny",
        decode(model, texts, vocabulary),
        vocabulary=vocabulary,
        text=(ids, decoded_ids(model, ids)),
    )
    made = json.loads(json.dumps(made, allow_nan=False))
    assert set(made) == {
        "schema_version", "model", "readout", "examples", "tokens", "depths", "input",
    }  # fmt: skip
    assert (made["schema_version"], made["examples"], made["tokens"]) == (1, 1, 3)
    assert made["input"] == ["[CLS]", "the", "cat", "##s", "[SEP]"]
    assert len(made["depths"]) == 4
    for row in made["depths"]:
        assert set(row) == {
            "depth", "accuracy", "first_token_accuracy", "low", "high", "control",
            "decoded", "text",
        }  # fmt: skip
        assert row["control"] is None
        assert len(row["decoded"]) == 5
        assert row["text"].replace(" ", "") == "".join(row["decoded"]).replace("##", "")
