"""Windows: every passage token in its place, answers mapped there and back, n-best over windows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from microtome.errors import RequestError
from microtome.tasks import (
    Answer,
    Hyperparameters,
    Row,
    Task,
    best_spans,
    encode_windows,
)
from support.rows_in_memory import dataset_from
from support.tiny import WORDS, tiny_tokenizer


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


def toy(rows):
    task = Task(
        name="toy",
        kind="spans",
        metrics=("f1", "exact_match"),
        summary="a toy",
        hyperparameters=Hyperparameters(max_length=40, stride=10),
        cluster_by="given",
    )
    return dataset_from(task, rows)


def random_rows(n=25, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        words = rng.choice(WORDS, rng.integers(3, 90)).tolist()
        passage = "  ".join(words).capitalize() + "."
        question = " ".join(rng.choice(WORDS, rng.integers(2, 8)))
        first = int(rng.integers(0, len(words)))
        last = min(first + int(rng.integers(0, 3)), len(words) - 1)
        start = sum(len(word) + 2 for word in words[:first])
        text = passage[start : start + len("  ".join(words[first : last + 1]))]
        label = (Answer(text, start),) if number % 3 else ()
        rows.append(Row(question, passage, label, str(number), "article"))
    return rows


def test_windows_cover_the_passage_with_the_overlap_asked_for():
    rows = random_rows()
    tokenizer = tiny_tokenizer()
    windows = encode_windows(toy(rows), tokenizer)
    assert windows.lengths.max() <= 40
    assert (np.diff(windows.of_row) >= 0).all()
    for number, row in enumerate(rows):
        whole = tokenizer(row.pair, add_special_tokens=False, return_offsets_mapping=True)
        places = [tuple(place) for place in whole["offset_mapping"]]
        parts = []
        for window in np.flatnonzero(windows.of_row == number):
            part = slice(windows.offsets[window], windows.offsets[window + 1])
            in_passage = windows.char_starts[part] >= 0
            starts, ends = windows.char_starts[part], windows.char_ends[part]
            parts.append(list(zip(starts[in_passage], ends[in_passage], strict=True)))
            text = tokenizer.decode(windows.ids[part][in_passage])
            assert text.replace(" ", "") in row.pair.lower().replace(" ", "")
        assert sorted({place for part in parts for place in part}) == places
        for one, two in pairwise(parts):
            assert one[-10:] == two[:10]


def test_an_answer_is_found_again_in_the_text_from_its_tokens():
    rows = random_rows()
    windows = encode_windows(toy(rows), tiny_tokenizer())
    found = {number: [] for number in range(len(rows))}
    for window, number in enumerate(windows.of_row):
        start, end = windows.starts[window], windows.ends[window]
        assert (start == 0) == (end == 0)
        if start:
            first = windows.offsets[window]
            span = slice(windows.char_starts[first + start], windows.char_ends[first + end])
            found[number].append(rows[number].pair[span])
    for number, row in enumerate(rows):
        # Answers are shorter than the overlap, so some window holds all of each.
        assert set(found[number]) == ({row.label[0].text} if row.label else set())


def test_a_window_that_holds_a_part_of_the_answer_does_not_have_it():
    words = [WORDS[i % len(WORDS)] for i in range(80)]
    passage = " ".join(words)
    rows = []
    for first in range(76):
        start = len(" ".join(words[:first])) + bool(first)
        text = " ".join(words[first : first + 4])
        rows.append(Row("cat ?", passage, (Answer(text, start),), str(first), "article"))
    windows = encode_windows(toy(rows), tiny_tokenizer(), stride=2)
    n_here = n_elsewhere = 0
    for window, number in enumerate(windows.of_row):
        part = slice(windows.offsets[window], windows.offsets[window + 1])
        starts, ends = windows.char_starts[part], windows.char_ends[part]
        (answer,) = rows[number].label
        whole = starts[starts >= 0].min() <= answer.start
        whole &= answer.start + len(answer.text) <= ends.max()
        start, end = windows.starts[window], windows.ends[window]
        if whole:
            assert passage[starts[start] : ends[end]] == answer.text
        else:
            assert (start, end) == (0, 0)
        n_here += bool(whole)
        n_elsewhere += not whole
    assert min(n_here, n_elsewhere) > 50


def test_an_answer_that_stands_elsewhere_than_the_file_says_is_found():
    row = Row("cat ?", "the dog sees the cat", (Answer("cat", 2),), "x", "article")
    data = toy([row])
    windows = encode_windows(data, tiny_tokenizer())
    assert windows.char_starts[windows.starts[0]] == 17
    assert any("1 answers aren't where" in note for note in data.notes)


def test_a_long_question_is_cut_and_counted_and_leaves_the_passage_its_room():
    rows = [Row("cat " * 100, "the dog sees", (), "x", "a"), Row("cat ?", "the dog", (), "y", "a")]
    windows = encode_windows(toy(rows), tiny_tokenizer())
    assert windows.n_truncated == 1
    assert (windows.char_starts[: windows.offsets[1]] >= 0).sum() == 3


def test_a_stride_that_leaves_no_step_is_refused():
    with pytest.raises(RequestError, match="for windows of 40, got 40"):
        encode_windows(toy(random_rows()), tiny_tokenizer(), stride=40)


def test_windows_are_kept_in_the_cache():
    data = toy(random_rows())
    one, two = (encode_windows(data, tiny_tokenizer()) for _ in range(2))
    for name in ("ids", "offsets", "of_row", "char_starts", "char_ends", "starts", "ends"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert one.n_rows == two.n_rows == len(data)


def brute_force(windows, row, start, end, max_answer):
    """Every pair of tokens of every window, as the definition has it."""
    scores, no_answer = {}, np.inf
    for window in np.flatnonzero(windows.of_row == row):
        first, behind = windows.offsets[window], windows.offsets[window + 1]
        no_answer = min(no_answer, start[first] + end[first])
        tokens = [t for t in range(first, behind) if windows.char_starts[t] >= 0]
        for i in tokens:
            for j in tokens:
                if i <= j < i + max_answer:
                    place = (int(windows.char_starts[i]), int(windows.char_ends[j]))
                    scores[place] = max(scores.get(place, -np.inf), start[i] + end[j])
    return sorted(scores.items(), key=lambda item: -item[1]), no_answer


def test_the_best_spans_are_those_of_a_search_over_all_pairs():
    rows = random_rows(12)
    windows = encode_windows(toy(rows), tiny_tokenizer())
    rng = np.random.default_rng(1)
    start, end = rng.normal(size=(2, len(windows.ids)))
    for choice in best_spans(windows, start, end, n_best=5, max_answer=4):
        wanted, no_answer = brute_force(windows, choice.row, start, end, 4)
        assert [(span.start, span.end) for span in choice.spans] == [p for p, _ in wanted[:5]]
        assert [span.score for span in choice.spans] == pytest.approx([s for _, s in wanted[:5]])
        assert choice.no_answer == pytest.approx(no_answer)
        assert choice.margin == pytest.approx(no_answer - wanted[0][1])


def test_logits_that_do_not_fit_the_tokens_are_refused():
    windows = encode_windows(toy(random_rows(2)), tiny_tokenizer())
    with pytest.raises(RequestError, match="expected one logit for each of"):
        next(best_spans(windows, np.zeros(3), np.zeros(3)))


def test_an_empty_passage_has_no_spans():
    windows = encode_windows(toy([Row("cat ?", "", (), "x", "a")]), tiny_tokenizer())
    zeros = np.zeros(len(windows.ids))
    (choice,) = best_spans(windows, zeros, zeros)
    assert choice.spans == ()
    assert choice.margin == np.inf
