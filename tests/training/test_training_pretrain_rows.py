"""Text to rows to masks: nothing is lost, nothing leaks, and the shares are what they should be."""

from __future__ import annotations

import gzip
import lzma
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.errors import RequestError
from microtome.training.pretraining import text
from microtome.training.pretraining.building import token_ids, wrapped_tokenizer
from microtome.training.pretraining.rows import RowOrder, Tokens, ask_first, cut, make_batch

TOKENS = Tokens(cls=2, sep=3, mask=4, first_ordinary=5, n_vocabulary=100, full_stop=7)


def stream_of(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(5, 100, n).astype(np.uint16)


@given(st.integers(20, 300), st.integers(3, 40), st.integers(0, 1000))
def test_packed_rows_lose_no_token(n, length, offset):
    stream = np.arange(n)  # every token is its own place
    rows = cut(stream, length=length, offset=offset, tokens=TOKENS)
    inner = rows[:, 1:-1].ravel()
    assert inner[:n].tolist() == [(offset + i) % n for i in range(n)]
    assert (rows[:, 0] == TOKENS.cls).all()
    assert (rows[:, -1] == TOKENS.sep).all()


def test_an_epoch_reads_every_row_once_and_the_next_one_in_another_order():
    stream = np.arange(10, 10 + 8 * 30)
    order = RowOrder(stream, length=10, n_rows=5, seed=0)
    assert order.steps_per_epoch == 6
    epochs = [
        np.concatenate([order.rows(step, TOKENS)[:, 1:-1] for step in range(begin, begin + 6)])
        for begin in (0, 6)
    ]
    for epoch in epochs:
        assert sorted(epoch.ravel().tolist()) == stream.tolist()
    assert epochs[0].tolist() != epochs[1].tolist()


def test_masking_asks_for_the_rate_and_shows_80_10_10():
    rows = cut(stream_of(60_000), length=52, offset=0, tokens=TOKENS)
    batch = make_batch(rows, rate=0.3, pairs=0, tokens=TOKENS, random=np.random.default_rng(1))
    assert batch.positions.shape == (len(rows), 15)  # 30 % of 50
    shown = np.take_along_axis(batch.ids, batch.positions, axis=1)
    n = shown.size  # 18,000: three standard errors of 80 % are 0.9 points
    assert abs((shown == TOKENS.mask).mean() - 0.8) < 0.009
    # A random token is the true one in 1 of 95 cases, which adds 0.1 points to the kept ones.
    assert abs((shown == batch.labels).mean() - (0.1 + 0.1 / 95)) < 3 * (0.09 / n) ** 0.5
    assert (np.take_along_axis(rows, batch.positions, axis=1) == batch.labels).all()


def test_only_what_is_asked_for_changes_and_never_a_special_token():
    rows = cut(stream_of(3000), length=32, offset=0, tokens=TOKENS)
    batch = make_batch(rows, rate=0.4, pairs=0, tokens=TOKENS, random=np.random.default_rng(2))
    asked = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(asked, batch.positions, True, axis=1)
    assert (batch.ids[~asked] == rows[~asked]).all()
    assert not np.isin(batch.labels, [TOKENS.cls, TOKENS.sep]).any()
    assert (np.diff(batch.positions, axis=1) > 0).all()


def test_the_first_token_is_asked_for_tokens_of_its_row_the_rarer_the_more_often():
    rows = cut(stream_of(60_000), length=52, offset=0, tokens=TOKENS)
    batch = make_batch(rows, rate=0.3, pairs=0, tokens=TOKENS, random=np.random.default_rng(1))
    weights = np.where(np.arange(100) < 50, 1.0, 3.0)  # of the ids
    asked = ask_first(
        batch, rows, n=1, weights=weights, tokens=TOKENS, random=np.random.default_rng(3)
    )
    assert (asked.positions[:, 0] == 0).all()
    assert (asked.positions[:, 1:] == batch.positions).all()
    assert (asked.labels[:, 1:] == batch.labels).all()
    named = asked.labels[:, 0]
    assert all(label in row[1:-1] for label, row in zip(named, rows, strict=True))
    # Drawn in proportion to the weights: of 95 ids, 50 weigh three times as much as 45.
    wanted = np.mean([weights[row[1:-1]][row[1:-1] >= 50].sum() / weights[row[1:-1]].sum()
                      for row in rows])  # fmt: skip
    assert abs((named >= 50).mean() - wanted) < 3 * (wanted * (1 - wanted) / len(rows)) ** 0.5
    several = ask_first(
        batch, rows, n=4, weights=weights, tokens=TOKENS, random=np.random.default_rng(3)
    )
    assert several.positions[:, :4].tolist() == [[0] * 4] * len(rows)
    assert (several.labels[:, 4:] == batch.labels).all()
    for four, row in zip(several.labels[:, :4].tolist(), rows[:, 1:-1].tolist(), strict=True):
        assert not Counter(four) - Counter(row)  # no token more often than the row has it


def test_a_share_of_rows_gets_a_second_segment_after_a_sentence():
    rows = cut(stream_of(30_000), length=302, offset=0, tokens=TOKENS)  # 3 full stops in a row
    rows[:, 50] = TOKENS.full_stop
    batch = make_batch(rows, rate=0.15, pairs=0.5, tokens=TOKENS, random=np.random.default_rng(3))
    split = batch.segments.any(axis=1)
    assert 0.25 < split.mean() < 0.75  # 100 rows: five standard errors
    begins = batch.segments[split].argmax(axis=1)
    assert (batch.ids[split, begins - 1] == TOKENS.sep).all()
    assert (rows[split, begins - 1] == TOKENS.full_stop).all()
    assert (np.diff(batch.segments, axis=1) >= 0).all()


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
    (tmp_path / "one.txt").write_text("a single line")
    for paths, reason in (
        (["text.pdf"], r"\.txt"),
        (["broken.txt.xz"], "can't read"),
        (["absent.txt"], "can't read"),
        (["one.txt"], "nothing can be held out"),
        ([], "at least one"),
    ):
        with pytest.raises(RequestError, match=reason):
            text.read_corpus([tmp_path / path for path in paths], heldout_share=0.1)
