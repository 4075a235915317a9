"""Counting words on the embedded tasks of tags, of several labels, and of retrieval."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from microtome.tasks import DataSpec, evaluate_embeddings, evaluate_logits, open_data
from microtome.tasks.dataset import Dataset
from microtome.tasks.scoring.entities import entity_f1
from microtome.tasks.task import Row, Task

PATTERN = r"[\w']+|[,?]"


def by_words(task: Task, train: list[Row], split: str) -> float:
    """The primary metric of a model that counts words."""
    dataset = open_data(DataSpec(task.name, split=split))
    answer = {"tokens": _tags, "multilabel": _labels, "retrieval": _searches}[task.kind]
    return answer(train, dataset)


def _tags(train: list[Row], dataset: Dataset) -> float:
    """Logistic regression on each word and the words right before and after it."""
    vectorizer = DictVectorizer()
    features = vectorizer.fit_transform([each for row in train for each in _around(row)])
    model = LogisticRegression(max_iter=1000)
    model.fit(features, [tag for row in train for tag in row.label])
    words = [each for row in dataset.rows() for each in _around(row)]
    assert dataset.tags is not None
    tags = model.predict(vectorizer.transform(words))
    score = entity_f1(dataset.labels, tags, dataset.tags)
    return float(score(np.ones((1, len(dataset))))[0])


def _around(row: Row) -> list[dict[str, str]]:
    words = ["", *(word.lower() for word in row.words), ""]
    return [
        {"word": words[i], "before": words[i - 1], "after": words[i + 1]}
        for i in range(1, len(words) - 1)
    ]


def _labels(train: list[Row], dataset: Dataset) -> float:
    """A logistic regression for each label, on unigrams and bigrams."""
    counter = CountVectorizer(ngram_range=(1, 2), token_pattern=PATTERN)
    features = counter.fit_transform([row.text for row in train])
    texts = counter.transform([row.text for row in dataset.rows()])
    logits = []
    for label in range(len(dataset.labels)):
        model = LogisticRegression(max_iter=1000).fit(features, [label in r.label for r in train])
        logits.append(model.decision_function(texts))
    return evaluate_logits(dataset, np.stack(logits, axis=1)).scores["micro_f1"].value


def _searches(train: list[Row], dataset: Dataset) -> float:
    """Cosine of tf-idf of unigrams and bigrams."""
    texts = [row.text for row in dataset.rows()]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=PATTERN).fit(
        [row.text for row in train] + texts[dataset.n_queries :]
    )
    vectors = vectorizer.transform(texts).toarray()
    return evaluate_embeddings(dataset, vectors).scores["ndcg_at_10"].value
