"""Entity F1: seqeval's strict IOB2 on the same tags, and sentences that add up to it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score
from seqeval.scheme import IOB2

from microtome.errors import RequestError, RunError
from microtome.statistics import value_of
from microtome.tasks import Row, Task, constant_answer, evaluate_tags, gives_one_answer
from microtome.tasks.encoding.tagged import TaggedTexts
from microtome.tasks.reading.scanning import Tags
from microtome.tasks.scoring.entities import entity_f1
from microtome.tasks.scoring.labels import tag_map
from support.rows_in_memory import dataset_from

NAMES = ("O", "B-X", "I-X", "B-Y", "I-Y")
TASK = Task("tags", "tokens", ("entity_f1",), "", labels=NAMES)


def of_seqeval(gold, predicted) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sentences without entities
        return float(f1_score(gold, predicted, mode="strict", scheme=IOB2, zero_division=0))


def named(sentences):
    return [[NAMES[tag] for tag in sentence] for sentence in sentences]


def flat(sentences) -> Tags:
    offsets = np.cumsum([0, *map(len, sentences)])
    return Tags(np.array([tag for s in sentences for tag in s], dtype=np.int64), offsets)


PAIRS = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(PAIRS)
def test_entity_f1_is_seqevals_of_strict_iob2(pairs):
    gold = [[g for g, _ in sentence] for sentence in pairs]
    predicted = [[p for _, p in sentence] for sentence in pairs]
    metric = entity_f1(NAMES, flat(predicted).values, flat(gold))
    assert value_of(metric) == pytest.approx(of_seqeval(named(gold), named(predicted)), abs=1e-12)
    # A weight counts a sentence that often.
    weights = np.arange(len(pairs)) % 3
    if weights.any():
        often = [i for i, weight in enumerate(weights) for _ in range(weight)]
        wanted = of_seqeval([named(gold)[i] for i in often], [named(predicted)[i] for i in often])
        assert metric(weights[None].astype(float))[0] == pytest.approx(wanted, abs=1e-12)


def tagged(word_tokens, n_tokens, n_rows):
    return TaggedTexts(
        ids=np.zeros(n_tokens, np.int32),
        offsets=np.array([0, n_tokens]),
        special=np.zeros(n_tokens, bool),
        segments=None,
        n_truncated=0,
        n_rows=n_rows,
        of_row=np.zeros(1, np.int32),
        word_tokens=np.array(word_tokens),
    )


def rows(*sentences):
    return dataset_from(
        TASK,
        [Row(" ".join(map(str, s)), label=tuple(s), words=tuple(map(str, s))) for s in sentences],
    )


def test_a_word_is_read_at_its_token_and_a_word_without_one_is_outside():
    data = rows([1, 2, 0], [3])
    encoded = tagged([2, 4, -1, 1], 6, 2)
    logits = np.zeros((6, 5))
    logits[[2, 4, 1], [1, 2, 3]] = 5.0
    logits[0, 4] = 9.0  # a token that no word is read at
    found = evaluate_tags(data, encoded, logits, dict(enumerate(NAMES)))
    assert found.predictions.tolist() == [1, 2, 0, 3]
    assert found.scores["entity_f1"].value == 1
    assert found.scores["entity_f1"].n == 2
    assert found.scores["entity_f1"].low < 1
    assert any("1 words have no token" in note for note in found.notes)
    assert not gives_one_answer(found)
    nothing = evaluate_tags(data, encoded, np.eye(5)[[0] * 6], dict(enumerate(NAMES)))
    assert nothing.scores["entity_f1"].value == constant_answer(data, "entity_f1") == 0
    assert gives_one_answer(nothing)


def test_a_models_tags_go_by_name_and_other_entities_are_wrong():
    data = rows([1, 2, 0], [3])
    names = ["B-Z", "b-y", "I-x", "B-X", "O"]
    logits = np.eye(5)[[3, 2, 4, 0]]
    found = evaluate_tags(data, tagged([0, 1, 2, 3], 4, 2), logits, dict(enumerate(names)))
    # X is right, Z is called where Y is.
    assert found.scores["entity_f1"].value == pytest.approx(0.5)
    other = ["S-X", "E-X", "B-X", "S-Y", "O"]
    found = evaluate_tags(
        data, tagged([0, 1, 2, 3], 4, 2), np.eye(5)[[2, 1, 4, 3]], dict(enumerate(other))
    )
    assert found.scores["entity_f1"].value == 1
    assert any("converted to IOB2" in note for note in found.notes)


def test_tags_by_index_and_tags_of_another_task():
    generic = {i: f"LABEL_{i}" for i in range(5)}
    assert tag_map(TASK, generic, 5)[0] == NAMES
    with pytest.raises(RequestError, match=r"the model's tags \(O, B-PER\) aren't those of tags"):
        tag_map(TASK, {0: "O", 1: "B-PER"}, 2)
    with pytest.raises(RequestError, match="aren't those of"):
        tag_map(TASK, {i: f"LABEL_{i}" for i in range(4)}, 4)


def test_outputs_that_are_no_numbers_are_refused():
    data, encoded = rows([1]), tagged([0], 1, 1)
    with pytest.raises(RunError, match="isn't a number in 1 of 1 tokens"):
        evaluate_tags(data, encoded, np.full((1, 5), np.nan))
    with pytest.raises(RequestError, match="expected output of 1 tokens, got 2"):
        evaluate_tags(data, encoded, np.zeros((2, 5)))
