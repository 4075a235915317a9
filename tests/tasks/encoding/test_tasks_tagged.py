"""Words as tokens: transformers' word ids, windows with most context, prompts before texts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from microtome.errors import RequestError
from microtome.tasks import (
    DataSpec,
    Row,
    Task,
    TextPairs,
    as_kind,
    encode,
    encode_tagged,
    evaluate_tags,
    open_data,
)
from microtome.tasks.task import METRICS_OF
from support.rows_in_memory import dataset_from
from support.tiny import FAMILY_TYPES, WORDS, tiny_tokenizer

NAMES = ("O", "B-X", "I-X")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


def tagged_rows(lengths, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for length in lengths:
        words = tuple(str(word) for word in rng.choice([*WORDS, "housetree", "xqz"], length))
        tags = tuple(int(tag) for tag in rng.integers(0, 3, length))
        tags = tuple(
            1 if t == 2 and (i == 0 or tags[i - 1] == 0) else t for i, t in enumerate(tags)
        )
        rows.append(Row(" ".join(words), label=tags, words=words))
    return dataset_from(Task("tags", "tokens", ("entity_f1",), "", labels=NAMES), rows), rows


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_a_word_is_its_first_piece_as_transformers_has_it(family):
    data, rows = tagged_rows([3, 1, 9, 5])
    tokenizer = tiny_tokenizer(family)
    found = encode_tagged(data, tokenizer, max_length=60)
    assert found.n_rows == len(found) == len(rows)
    first = 0
    for index, row in enumerate(rows):
        theirs = tokenizer(list(row.words), is_split_into_words=True)
        assert found.row(index).tolist() == theirs["input_ids"]
        ids = theirs.word_ids()
        places = [found.offsets[index] + ids.index(word) for word in range(len(row.words))]
        assert found.word_tokens[first : first + len(row.words)].tolist() == places
        first += len(row.words)
    assert first == len(found.word_tokens)


@pytest.mark.parametrize("stride", [0, 3, None])
def test_a_long_sentence_is_windows_that_read_every_word_once(stride):
    data, rows = tagged_rows([70, 2, 33])
    tokenizer = tiny_tokenizer("bert")
    found = encode_tagged(data, tokenizer, max_length=16, stride=stride)
    tokenizer.model_max_length = 512
    whole = encode_tagged(data, tokenizer, max_length=512)
    assert found.lengths.max() == 16
    assert found.of_row.tolist() == sorted(found.of_row)
    assert len(found) > len(rows) == len(whole)
    # The same pieces are read, and none twice.
    assert (found.ids[found.word_tokens] == whole.ids[whole.word_tokens]).all()
    assert len(set(found.word_tokens.tolist())) == len(found.word_tokens)
    window = np.searchsorted(found.offsets, found.word_tokens, side="right") - 1
    sentence = np.repeat(np.arange(3), [len(row.words) for row in rows])
    assert (found.of_row[window] == sentence).all()
    by_token = found.by_token(data.tags.values)
    assert (by_token[found.word_tokens] == data.tags.values).all()
    assert (by_token >= 0).sum() == len(found.word_tokens)


def test_gold_tags_as_logits_are_perfect_through_windows():
    data, _ = tagged_rows([70, 2, 33])
    found = encode_tagged(data, tiny_tokenizer("bert"), max_length=16)
    logits = np.full((len(found.ids), 3), -1.0)
    by_token = found.by_token(data.tags.values)
    read = by_token >= 0
    logits[read, by_token[read]] = 5.0
    assert evaluate_tags(data, found, logits, dict(enumerate(NAMES))).scores["entity_f1"].value == 1


def test_the_window_with_most_context_is_read():
    # 20 one-piece words, windows of 10 words that share 4: words 6-9 are in windows 0 and 1.
    words = tuple(WORDS[:20])
    data = dataset_from(
        Task("tags", "tokens", ("entity_f1",), "", labels=NAMES),
        [Row(" ".join(words), label=(0,) * 20, words=words)],
    )
    found = encode_tagged(data, tiny_tokenizer("bert"), max_length=12, stride=4)
    window = np.searchsorted(found.offsets, found.word_tokens, side="right") - 1
    # Word 6: 6 before and 3 after in window 0, 0 before in window 1. Word 8: 1 after against 2.
    assert window.tolist() == [0] * 8 + [1] * 6 + [2] * 6


def test_a_byte_level_tokenizer_sees_the_space_before_a_word():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary = alphabet | {"<s>": 256, "</s>": 257, "<pad>": 258, "Ġb": 259}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[("Ġ", "b")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 256), ("</s>", 257)]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")
    task = Task("tags", "tokens", ("entity_f1",), "", labels=NAMES)
    data = dataset_from(task, [Row("a b cd", label=(0, 1, 0), words=("a", "b", "cd"))])
    found = encode_tagged(data, tokenizer, max_length=16)
    assert found.row(0).tolist() == tokenizer("a b cd")["input_ids"]
    assert found.word_tokens.tolist() == [1, 2, 3]


def test_a_stride_that_does_not_fit_is_refused():
    data, _ = tagged_rows([5])
    with pytest.raises(RequestError, match="expected a stride from 0 to 9"):
        encode_tagged(data, tiny_tokenizer("bert"), max_length=12, stride=10)


def test_pairs_to_be_compared_are_single_texts_with_a_prompt():
    rows = [Row("the cat", "a dog", 1.0), Row("big", "small red house", 2.0)]
    data = dataset_from(Task("pairs", "regression", ("pearson",), ""), rows)
    tokenizer = tiny_tokenizer("bert")
    texts = [text for row in rows for text in (row.text, row.pair)]
    found = encode(as_kind(data, "similarity"), tokenizer, max_length=32)
    assert isinstance(found, TextPairs)
    assert found.of_row.tolist() == [0, 0, 1, 1]
    assert [found.row(i).tolist() for i in range(4)] == tokenizer(texts)["input_ids"]
    prompted = encode(
        as_kind(data, "similarity"), tokenizer, max_length=32, prompts=("yes ", "no ")
    )
    wanted = tokenizer([f"yes {text}" for text in texts])["input_ids"]
    assert [prompted.row(i).tolist() for i in range(4)] == wanted
    together = encode(data, tokenizer, max_length=32)
    assert len(together) == 2  # one file, three encodings in the cache, none mistaken


def test_queries_and_documents_have_a_prompt_each(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "1", "text": "the cat"}))
    documents = [{"_id": "1", "text": "a dog"}, {"_id": "2", "title": "big", "text": "house"}]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    data = open_data(DataSpec(path=tmp_path))
    assert data.task.metrics == METRICS_OF["retrieval"]
    tokenizer = tiny_tokenizer("bert")
    found = encode(data, tokenizer, max_length=32, prompts=("yes ", "no "))
    wanted = tokenizer(["yes the cat", "no a dog", "no big house"])["input_ids"]
    assert [found.row(i).tolist() for i in range(len(found))] == wanted
