"""Laws of the embedded tasks' rows: seeded, balanced, English trees, nothing leaks."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from microtome.errors import RequestError
from microtome.tasks import micro
from microtome.tasks.micro import lexicon
from microtome.tasks.micro.sizes import SIZES

NAMES = [task.name for task in micro.TASKS]
SPLITS = tuple(SIZES)


def texts(task, split):
    return [(row.text, row.pair) for row in micro.rows(task, split)]


def words_of(task, split):
    found = set()
    for text, pair in texts(task, split):
        found |= set(re.findall(r"[a-z]+", f"{text} {pair or ''}".lower()))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_splits_have_the_sizes_that_the_task_states(name):
    task = next(task for task in micro.TASKS if task.name == name)
    assert {split.name: split.n_rows for split in task.splits} == SIZES
    for split in SPLITS:
        assert len(micro.rows(name, split)) == SIZES[split]


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
    in_train = {row.structure for row in micro.micro_rows(name, "train")}
    for split in ("dev", "test"):
        rows = micro.micro_rows(name, split)
        unseen = [row for row in rows if row.structure not in in_train]
        assert 0.05 < len(unseen) / len(rows) < 0.35


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_and_clusters_do_not_cross_splits(name):
    rows = [row for split in SPLITS for row in micro.rows(name, split)]
    assert len({row.id for row in rows}) == len(rows)
    clusters = [{row.cluster for row in micro.rows(name, split)} for split in SPLITS]
    assert sum(map(len, clusters)) == len(set().union(*clusters))


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_balanced(name):
    task = next(task for task in micro.TASKS if task.name == name)
    if not task.labels:
        pytest.skip("no classes")
    for split in SPLITS:
        counts = Counter(row.label for row in micro.rows(name, split))
        assert set(counts) == set(range(len(task.labels)))
        fair = SIZES[split] / len(task.labels)
        assert all(abs(count - fair) < 0.08 * SIZES[split] for count in counts.values())


def test_the_seed_decides_everything():
    from microtome.tasks.micro import sentiment, splits

    first = splits.split_rows("micro-sentiment", sentiment.STRUCTURES, "dev", seed=3)
    splits._all_splits.cache_clear()
    again = splits.split_rows("micro-sentiment", sentiment.STRUCTURES, "dev", seed=3)
    other = splits.split_rows("micro-sentiment", sentiment.STRUCTURES, "dev", seed=4)
    assert [row.example.text for row in first] == [row.example.text for row in again]
    assert [row.example.text for row in first] != [row.example.text for row in other]


def test_an_unknown_split_or_task_is_refused():
    with pytest.raises(RequestError, match="train, dev, test"):
        micro.rows("micro-sentiment", "validation")
    with pytest.raises(RequestError, match="micro-nothing"):
        micro.rows("micro-nothing", "dev")
