"""Laws of the embedded tasks of tags, of several labels and of retrieval: labels done by hand."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from micro import generated_rows
from micro.examples import DOCUMENT
from micro.grammar import lexicon
from micro.grammar.events import Event, Thing, active, object_cleft, passive, subject_cleft
from micro.grammar.trees import annotate
from micro.tasks import questions
from micro.tasks.retrieval import judged
from micro.tasks.tagging import tagged
from microtome.tasks import DataSpec, open_data
from microtome.tasks.annotation.gold import GoldRow
from microtome.tasks.catalogue import find_task
from microtome.tasks.dataset import as_kind
from microtome.tasks.embedded import SIZES
from microtome.tasks.reading.embedded import embedded_rows
from microtome.tasks.scoring.constant import constant_answer

sys.path.append(str(Path(__file__).resolve().parents[2] / "studies"))

SPLITS = tuple(SIZES)
WORDS = lexicon.load()
ANNA, TOM, RUTH = (
    Thing(next(w for w in WORDS.small_words if w.lemma == name)) for name in ("anna", "tom", "ruth")
)
POODLE, DOG, CROW, BOOK = (Thing(WORDS.noun(noun)) for noun in ("poodle", "dog", "crow", "novel"))
HELP, GIVE, FEED = (
    next(v for v in WORDS.verbs if v.lemma == verb) for verb in ("help", "give", "feed")
)


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (active(Event(HELP, ANNA, TOM)), "agent/Anna theme/Tom"),
        (passive(Event(HELP, TOM, ANNA)), "theme/Anna agent/Tom"),
        (subject_cleft(Event(HELP, ANNA, TOM)), "agent/Anna theme/Tom"),
        (object_cleft(Event(HELP, ANNA, TOM)), "theme/Tom agent/Anna"),
        (
            active(Event(GIVE, ANNA, BOOK, TOM), dative="double"),
            "agent/Anna recipient/Tom theme/the novel",
        ),
        (passive(Event(GIVE, ANNA, BOOK, TOM)), "theme/The novel recipient/Tom agent/Anna"),
        (
            active(Event(FEED, ANNA, DOG, setting=("on", "monday"))),
            "agent/Anna theme/the dog time/Monday",
        ),
        (
            active(Event(FEED, ANNA, DOG, setting=("in", Thing(WORDS.noun("garden"))))),
            "agent/Anna theme/the dog place/the garden",
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_roles_are_those_that_a_reader_sees(root, expected):
    names = find_task("micro-tagging").labels
    (example,) = tagged(root)
    found = []
    for word, tag in zip(example.text.split(" "), example.label, strict=True):
        prefix, _, role = names[tag].partition("-")
        if prefix == "B":
            found.append(f"{role}/{word}")
        elif prefix == "I":
            found[-1] += f" {word}"
    assert " ".join(found) == expected


@pytest.mark.parametrize("split", SPLITS)
def test_every_tag_and_every_topic_occurs(split):
    for task in ("micro-tagging", "micro-topics"):
        rows = generated_rows(task, split)
        n = Counter(label for row in rows for label in row.label)
        assert set(n) == set(range(len(find_task(task).labels)))
        assert min(n.values()) >= 5


def test_the_first_word_alone_tells_no_role():
    names = find_task("micro-tagging").labels
    rows = [row for row in generated_rows("micro-tagging", "train") if row.structure == "roles"]
    first = Counter(names[row.label[0]] for row in rows)
    assert first["B-agent"] == pytest.approx(first["B-theme"], abs=1)


def test_a_row_of_topics_has_none_to_two_and_what_is_denied_does_not_count():
    rows = generated_rows("micro-topics", "dev")
    sizes = Counter(len(row.label) for row in rows)
    assert set(sizes) == {0, 1, 2}
    assert min(sizes.values()) > 0.1 * len(rows)
    topics = {
        "film": "arts", "music": "arts", "food": "food", "garden": "home", "home": "home",
        "sport": "outings", "travel": "outings",
    }  # fmt: skip
    by_form = {
        form: topics[noun.domain]
        for noun in WORDS.nouns
        for form in noun.forms
        if noun.domain in topics
    }
    names = find_task("micro-topics").labels
    for row in rows:
        words = row.text.removesuffix(".").split(" ")
        if row.structure == "single":
            denied = "not" in words or any(word.endswith("n't") for word in words)
            expected = set() if denied else {by_form[words[-1]]}
            assert {names[label] for label in row.label} == expected, row.text


def rows_of(asked, said):
    yield GoldRow("q", "", "", "", None, (), (annotate(asked, mark="?"),))
    for number, root in enumerate(said):
        yield GoldRow(f"{DOCUMENT}d{number}", "", "", "", None, None, (annotate(root),))


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        (questions.who(Event(HELP, ANNA, ANNA)), {"d1", "d6"}),
        (questions.what(Event(HELP, ANNA, TOM)), {"d0"}),
        (questions.who(Event(FEED, ANNA, POODLE)), {"d2"}),
        (questions.who(Event(FEED, ANNA, DOG)), {"d2", "d5"}),  # a poodle is a dog
        (questions.what(Event(FEED, RUTH, DOG)), {"d3"}),
    ],
    ids=["who helped Anna", "who did Anna help", "who fed the poodle", "the dog", "what did Ruth"],
)
def test_a_sentence_answers_a_question_if_it_says_so(asked, answers):
    said = (
        active(Event(HELP, ANNA, TOM)),
        passive(Event(HELP, TOM, ANNA)),
        active(Event(FEED, TOM, POODLE)),
        active(Event(FEED, RUTH, CROW)),
        active(Event(FEED, RUTH, POODLE).negated()),
        object_cleft(Event(FEED, ANNA, DOG)),
        subject_cleft(Event(HELP, RUTH, ANNA)),
    )
    question, *_ = judged(tuple(rows_of(asked, said)))
    assert {judgement.document for judgement in question.label} == answers


@pytest.mark.parametrize("split", SPLITS)
def test_questions_come_first_and_have_answers_among_the_documents(split):
    rows = generated_rows("micro-retrieval", split)
    n_queries = next(s.n_rows for s in find_task("micro-retrieval").splits if s.name == split)
    assert all(row.label and row.text.endswith("?") for row in rows[:n_queries])
    assert all(row.label is None and row.text.endswith(".") for row in rows[n_queries:])
    documents = {row.id.removeprefix(DOCUMENT) for row in rows[n_queries:]}
    assert {j.document for row in rows[:n_queries] for j in row.label} <= documents


def test_questions_are_opened_with_the_clusters_of_their_sets():
    data = open_data(DataSpec("micro-retrieval", split="dev"))
    made = embedded_rows("micro-retrieval", "dev")
    assert len(data) == len(data.clusters) == data.n_queries
    assert len(list(data.rows())) == len(made)
    same = [made[i].cluster == made[i + 1].cluster for i in range(len(data) - 1)]
    assert (data.clusters[1:] == data.clusters[:-1]).tolist() == same
    assert len(data.limit(50).clusters) == 50


def test_similarity_serves_an_embedder_too():
    data = open_data(DataSpec("micro-similarity"))
    assert as_kind(data, "similarity").task.primary == "cosine_spearman"


@pytest.mark.parametrize("split", SPLITS)
def test_a_question_is_reranked_with_sentences_as_retrieval_judges_them(split):
    """Four sentences each; the order doesn't tell which of them answers."""
    questions = {row.id: row for row in generated_rows("micro-retrieval", split)}
    names = {row.text: row.id.removeprefix(DOCUMENT) for row in questions.values()}
    by_question = {}
    for row in generated_rows("micro-reranking", split):
        by_question.setdefault(row.cluster, []).append(row)
    for asked, rows in by_question.items():
        relevant = {judgement.document for judgement in questions[asked].label}
        assert {row.text for row in rows} == {questions[asked].text}
        assert [row.label for row in rows] == [names[row.pair] in relevant for row in rows]
        assert len(rows) == 4
        assert 1 <= sum(row.label for row in rows) <= 3
    sets = [questions[asked].cluster for asked in by_question]
    assert len(sets) == len(set(sets))
    first = [rows[0].label for rows in by_question.values()]
    share = np.mean([row.label for rows in by_question.values() for row in rows])
    # Four standard deviations of as many throws.
    assert abs(np.mean(first) - share) < 4 * np.sqrt(share * (1 - share) / len(first))


@pytest.mark.parametrize(
    "name", ["micro-tagging", "micro-topics", "micro-retrieval", "micro-reranking"]
)
def test_counting_words_is_better_than_one_answer_and_leaves_room(name):
    import micro_kinds

    task = find_task(name)
    test = open_data(DataSpec(name, split="test"))
    constant = constant_answer(test, task.primary)
    score = micro_kinds.by_words(task, list(embedded_rows(name, "train")), test)
    assert constant + 0.15 < score < 0.8
