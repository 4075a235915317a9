"""Encodings equal the tokenizer's own output; the cache gives them back or makes them again."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from microtome.errors import RequestError, StorageError
from microtome.tasks import (
    Hyperparameters,
    Row,
    Task,
    cache_folder,
    cache_size,
    clear_cache,
    encode,
)
from microtome.tasks.encoding.cache import stored
from support.rows_in_memory import dataset_from
from support.tiny import WORDS, tiny_tokenizer


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MICROTOME_CACHE_LIMIT", raising=False)


def sentence(rng, n_words):
    return " ".join(rng.choice(WORDS, n_words))


def toy(rows, **changes):
    task = Task(
        name="toy",
        kind="classification",
        labels=("no", "yes"),
        metrics=("accuracy",),
        summary="a toy",
        hyperparameters=Hyperparameters(max_length=24),
    )
    return dataset_from(replace(task, **changes), rows)


def singles(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return [Row(sentence(rng, rng.integers(0, 40)), None, 0) for _ in range(n)]


def pairs(n=40, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, size=(n, 2))
    return [Row(sentence(rng, a), sentence(rng, b), 1) for a, b in lengths]


@pytest.mark.parametrize("rows", [singles(), pairs()], ids=["single", "pair"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_tokens_are_those_of_the_tokenizer_itself(rows, family):
    tokenizer = tiny_tokenizer(family)
    data = toy(rows)
    found = encode(data, tokenizer, segments=True)
    assert len(found) == len(rows)
    n_truncated = 0
    for index, row in enumerate(rows):
        # As a batch of one: alone, an empty pair would be taken for none.
        texts = ([row.text],) if row.pair is None else ([row.text], [row.pair])
        want = tokenizer(
            *texts,
            truncation="longest_first",
            max_length=24,
            return_special_tokens_mask=True,
            return_token_type_ids=True,
        )
        want = {name: values[0] for name, values in want.items()}
        part = slice(found.offsets[index], found.offsets[index + 1])
        assert found.row(index).tolist() == want["input_ids"]
        assert found.special[part].tolist() == list(map(bool, want["special_tokens_mask"]))
        assert found.segments[part].tolist() == want["token_type_ids"]
        assert found.lengths[index] == len(want["input_ids"])
        n_truncated += len(tokenizer(*texts)["input_ids"][0]) > 24
    assert found.n_truncated == n_truncated > 0


def test_segments_are_kept_only_where_the_tokenizers_model_has_them():
    tokenizer = tiny_tokenizer()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    assert encode(toy(pairs()), tokenizer).segments is not None
    assert encode(toy(pairs()), tokenizer, segments=False).segments is None
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    assert encode(toy(pairs()), tokenizer).segments is None


def test_rows_that_were_picked_are_the_rows_that_are_encoded():
    data = toy(singles(60))
    part = data.limit(9, seed=2)
    whole, some = encode(data, tiny_tokenizer()), encode(part, tiny_tokenizer())
    wanted = [whole.row(position).tolist() for position in part.positions]
    assert [some.row(index).tolist() for index in range(9)] == wanted


def test_lengths_outside_what_the_model_takes_are_refused():
    with pytest.raises(RequestError, match="expected a max length of 8 to 60 tokens, got 61"):
        encode(toy(singles()), tiny_tokenizer(), max_length=61)
    with pytest.raises(RequestError, match="object has no fast tokenizer"):
        encode(toy(singles()), object())


def arrays_of(encoded):
    return [encoded.ids, encoded.offsets, encoded.special, encoded.segments]


def assert_same(one, two):
    for a, b in zip(arrays_of(one), arrays_of(two), strict=True):
        assert (a is None and b is None) or np.array_equal(a, b)
    assert one.n_truncated == two.n_truncated


def no_tokenizing(monkeypatch):
    import microtome.tasks.encoding.texts as module

    def refuse(*_):
        raise AssertionError("tokenised again")

    monkeypatch.setattr(module, "_write_chunk", refuse)


def test_a_hit_gives_equal_arrays_without_tokenising(monkeypatch):
    data, tokenizer = toy(pairs()), tiny_tokenizer()
    made = encode(data, tokenizer)
    uncached = encode(data, tokenizer, cache=False)
    no_tokenizing(monkeypatch)
    assert_same(made, encode(toy(pairs()), tokenizer))
    assert_same(made, uncached)


def test_other_texts_tokenizers_and_options_never_hit(monkeypatch):
    encode(toy(pairs()), tiny_tokenizer(), segments=True)
    no_tokenizing(monkeypatch)
    other = [toy(pairs(seed=1)), toy(pairs()).limit(10)]
    for data, tokenizer, options in [
        *((data, tiny_tokenizer(), {"segments": True}) for data in other),
        (toy(pairs()), tiny_tokenizer("roberta"), {"segments": True}),
        (toy(pairs()), tiny_tokenizer(), {"segments": True, "max_length": 16}),
        (toy(pairs()), tiny_tokenizer(), {"segments": False}),
    ]:
        with pytest.raises(AssertionError, match="tokenised again"):
            encode(data, tokenizer, **options)


@pytest.mark.parametrize("damage", ["flip", "cut", "missing", "entry"])
def test_a_damaged_entry_is_noticed_and_made_again(damage):
    data, tokenizer = toy(pairs()), tiny_tokenizer()
    made = encode(data, tokenizer, cache=False)
    encode(data, tokenizer)
    (entry,) = cache_folder().iterdir()
    file = entry / ("entry.json" if damage == "entry" else "ids.bin")
    content = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    assert_same(made, encode(data, tokenizer))
    assert_same(made, encode(data, tokenizer))


def test_the_least_recently_used_entries_make_room(monkeypatch):
    tokenizer = tiny_tokenizer()
    data = [toy(singles(seed=seed)) for seed in range(3)]
    encode(data[0], tokenizer)
    one = cache_size()
    encode(data[1], tokenizer)
    for age, entry in enumerate(cache_folder().iterdir()):
        os.utime(entry / "entry.json", (1000 + age, 1000 + age))
    encode(data[0], tokenizer)  # used: now younger than the second
    monkeypatch.setenv("MICROTOME_CACHE_LIMIT", str(int(2.9 * one)))
    encode(data[2], tokenizer)
    assert cache_size() <= 2.9 * one
    no_tokenizing(monkeypatch)
    encode(data[0], tokenizer)
    encode(data[2], tokenizer)
    with pytest.raises(AssertionError, match="tokenised again"):
        encode(data[1], tokenizer)


def test_an_entry_larger_than_the_limit_is_handed_out_but_not_kept(monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE_LIMIT", "1K")
    data = toy(pairs(200))
    found = encode(data, tiny_tokenizer())
    assert cache_size() == 0
    assert_same(found, encode(data, tiny_tokenizer(), cache=False))


def test_clearing_frees_what_the_cache_holds():
    encode(toy(singles()), tiny_tokenizer())
    held = cache_size()
    assert held > 0
    assert clear_cache() == held
    assert cache_size() == 0
    assert clear_cache() == 0


def test_a_failure_while_writing_leaves_nothing_behind(monkeypatch):
    no_tokenizing(monkeypatch)
    with pytest.raises(AssertionError, match="tokenised again"):
        encode(toy(singles()), tiny_tokenizer())
    assert list(cache_folder().iterdir()) == []


def test_a_cache_that_cannot_be_written_says_where_it_is(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="can't be written"):
        encode(toy(singles()), tiny_tokenizer())


@pytest.mark.parametrize("text", ["much", "-1", "2X"])
def test_a_limit_that_is_no_size_is_refused(monkeypatch, text):
    monkeypatch.setenv("MICROTOME_CACHE_LIMIT", text)
    with pytest.raises(RequestError, match="expected a size"):
        encode(toy(singles()), tiny_tokenizer())


def test_a_writer_that_comes_second_gives_the_same_and_leaves_one_entry():
    def fast(writer):
        writer.append("values", np.arange(5))

    def slow(writer):
        stored("key", {"values": np.int32}, fast)  # as another process would, meanwhile
        writer.append("values", np.arange(5))

    found = stored("key", {"values": np.int32}, slow)
    assert found.arrays["values"].tolist() == [0, 1, 2, 3, 4]
    assert [path.name for path in cache_folder().iterdir()] == ["key"]
