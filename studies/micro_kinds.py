"""Tags, several labels, searches and rankings in the embedded tasks' table, in its columns."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import nn
from transformers import AutoModel, AutoTokenizer

import micro_tasks_table as table
from microtome.tasks import evaluate_embeddings, evaluate_logits
from microtome.tasks.dataset import Dataset
from microtome.tasks.scoring.entities import entity_f1
from microtome.tasks.task import Row, Task

KINDS = ("tokens", "multilabel", "retrieval", "reranking")
PATTERN = r"[\w']+|[,?]"
TEMPERATURE = 0.05


def by_words(task: Task, train: list[Row], test: Dataset) -> float:
    """The primary metric of a model that counts words."""
    by_kind = {
        "tokens": _tags, "multilabel": _labels, "retrieval": _searches, "reranking": _reranks,
    }  # fmt: skip
    return by_kind[task.kind](train, test)


def _tags(train: list[Row], test: Dataset) -> float:
    """Logistic regression on each word and the words right before and after it."""
    vectorizer = DictVectorizer()
    features = vectorizer.fit_transform([each for row in train for each in _around(row)])
    model = LogisticRegression(max_iter=1000)
    model.fit(features, [tag for row in train for tag in row.label])
    words = [each for row in test.rows() for each in _around(row)]
    return _entity_f1(test, model.predict(vectorizer.transform(words)))


def _around(row: Row) -> list[dict[str, str]]:
    words = ["", *(word.lower() for word in row.words), ""]
    return [
        {"word": words[i], "before": words[i - 1], "after": words[i + 1]}
        for i in range(1, len(words) - 1)
    ]


def _entity_f1(test: Dataset, tags: np.ndarray) -> float:
    return float(entity_f1(test.labels, tags, test.tags)(np.ones((1, len(test))))[0])


def _labels(train: list[Row], test: Dataset) -> float:
    """A logistic regression for each label, on unigrams and bigrams."""
    counter = CountVectorizer(ngram_range=(1, 2), token_pattern=PATTERN)
    features = counter.fit_transform([row.text for row in train])
    return _separately(train, test, features, counter.transform([r.text for r in test.rows()]))


def _separately(train: list[Row], test: Dataset, features, of_test) -> float:
    logits = []
    for label in range(len(test.labels)):
        model = LogisticRegression(max_iter=1000).fit(features, [label in r.label for r in train])
        logits.append(model.decision_function(of_test))
    return evaluate_logits(test, np.stack(logits, axis=1)).scores["micro_f1"].value


def _searches(train: list[Row], test: Dataset) -> float:
    """Cosine of tf-idf of unigrams and bigrams."""
    texts = [row.text for row in test.rows()]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=PATTERN)
    vectorizer.fit([row.text for row in train] + texts[test.n_queries :])
    return _ndcg(test, vectorizer.transform(texts).toarray())


def _reranks(train: list[Row], test: Dataset) -> float:
    """Cosine of tf-idf of unigrams and bigrams."""
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=PATTERN)
    vectorizer.fit([text for row in train for text in (row.text, row.pair)])
    sides = ([getattr(row, side) for row in test.rows()] for side in ("text", "pair"))
    return _map(test, *(vectorizer.transform(texts).toarray() for texts in sides))


def _map(test: Dataset, asked: np.ndarray, said: np.ndarray) -> float:
    """The score of the cosines of two sets of vectors, row by row."""
    lengths = np.linalg.norm(asked, axis=1) * np.linalg.norm(said, axis=1)
    cosines = (asked * said).sum(axis=1) / np.maximum(lengths, 1e-12)
    return evaluate_logits(test, cosines[:, None]).scores["map"].value


def _ndcg(test: Dataset, embeddings: np.ndarray) -> float:
    return evaluate_embeddings(test, embeddings).scores["ndcg_at_10"].value


def frozen(folder, task: Task, train: list[Row], test: Dataset) -> dict[str, float]:
    """Probes of the last states; of questions and sentences, their cosines as they are."""
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    encoder = AutoModel.from_pretrained(str(folder)).float().eval()
    rows = list(test.rows())
    if task.kind == "tokens":
        model = LogisticRegression(C=0.1, max_iter=500)
        states = word_states(encoder, tokenizer, train)
        model.fit(states, [tag for row in train for tag in row.label])
        return {"cls": _entity_f1(test, model.predict(word_states(encoder, tokenizer, rows)))}
    if task.kind == "reranking":
        sides = (
            [row._replace(pair=None) for row in rows],
            [row._replace(text=row.pair, pair=None) for row in rows],
        )
        asked, said = (table.cached_states(encoder, tokenizer, side) for side in sides)
        return {name: _map(test, asked[name], said[name]) for name in asked}
    of_test = table.cached_states(encoder, tokenizer, rows)
    if task.kind == "retrieval":
        return {name: _ndcg(test, states) for name, states in of_test.items()}
    of_train = table.cached_states(encoder, tokenizer, train)
    return {name: _separately(train, test, of_train[name], of_test[name]) for name in of_test}


def tuned(
    folder, task: Task, train: list[Row], test: Dataset, *, epochs: int, rate: float
) -> float:
    """All weights trained: a linear layer on each word's first piece, or on the mean state.

    Questions and sentences: the cosine of mean states, a question against the other sentences of
    its batch and those of its minimal set. Pairs to rerank: one text, one output.
    """
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    encoder = AutoModel.from_pretrained(str(folder)).float()
    learn = {
        "tokens": _tune_tags, "multilabel": _tune_labels, "retrieval": _tune_search,
        "reranking": _tune_pairs,
    }  # fmt: skip
    return learn[task.kind](encoder, tokenizer, task, train, test, {"epochs": epochs, "rate": rate})


def _tune_tags(encoder, tokenizer, task: Task, train, test: Dataset, recipe) -> float:
    head = nn.Linear(encoder.config.hidden_size, len(task.labels))
    encoded, firsts = _pieces(tokenizer, train)

    def loss_of(chosen: np.ndarray, batch) -> torch.Tensor:
        states = encoder(**batch).last_hidden_state  # (B, L, D)
        words = [states[i, firsts[row]] for i, row in enumerate(chosen)]
        tags = torch.tensor([tag for row in chosen for tag in train[row].label])
        return nn.functional.cross_entropy(head(torch.cat(words)), tags)

    table.fit(encoder, head, tokenizer, encoded, loss_of, **recipe)
    states = torch.from_numpy(word_states(encoder.eval(), tokenizer, list(test.rows())))
    return _entity_f1(test, head(states).argmax(1).numpy())


def _pieces(tokenizer, rows: list[Row]):
    """Rows of words as pieces, and the place of each word's first one."""
    encoded = tokenizer([list(row.words) for row in rows], is_split_into_words=True)
    firsts = []
    for i in range(len(rows)):
        words = encoded.word_ids(i)
        firsts.append([words.index(word) for word in range(len(rows[i].words))])
    return encoded, firsts


@torch.no_grad()
def word_states(encoder, tokenizer, rows: list[Row]) -> np.ndarray:
    """The last state of every word's first piece, row after row."""
    encoded, firsts = _pieces(tokenizer, rows)
    found = []
    for chosen, batch in table.batches(encoded, tokenizer, np.arange(len(rows)), 64):
        states = encoder(**batch).last_hidden_state  # (B, L, D)
        found += [states[i, firsts[row]].numpy() for i, row in enumerate(chosen)]
    return np.concatenate(found)


def _tune_labels(encoder, tokenizer, task: Task, train, test: Dataset, recipe) -> float:
    head = nn.Linear(encoder.config.hidden_size, len(task.labels))
    targets = torch.tensor(
        [[float(label in row.label) for label in range(len(task.labels))] for row in train]
    )

    def loss_of(chosen: np.ndarray, batch) -> torch.Tensor:
        logits = head(table.mean_state(encoder, batch))
        return nn.functional.binary_cross_entropy_with_logits(logits, targets[chosen])

    table.fit(encoder, head, tokenizer, table.encode(tokenizer, train), loss_of, **recipe)
    means = table.cached_states(encoder.eval(), tokenizer, list(test.rows()))["mean"]
    logits = head(torch.from_numpy(means)).detach().numpy()
    return evaluate_logits(test, logits).scores["micro_f1"].value


def _tune_pairs(encoder, tokenizer, task: Task, train, test: Dataset, recipe) -> float:
    head = nn.Linear(encoder.config.hidden_size, 1)
    grades = torch.tensor([float(row.label) for row in train])

    def loss_of(chosen: np.ndarray, batch) -> torch.Tensor:
        logits = head(table.mean_state(encoder, batch)).squeeze(-1)
        return nn.functional.binary_cross_entropy_with_logits(logits, grades[chosen])

    table.fit(encoder, head, tokenizer, table.encode(tokenizer, train), loss_of, **recipe)
    means = table.cached_states(encoder.eval(), tokenizer, list(test.rows()))["mean"]
    logits = head(torch.from_numpy(means)).detach().numpy()
    return evaluate_logits(test, logits).scores["map"].value


def _tune_search(encoder, tokenizer, task: Task, train, test: Dataset, recipe) -> float:
    queries = [row for row in train if row.label is not None]
    documents = {row.id.removeprefix("document "): row for row in train if row.label is None}
    relevant = [{judgement.document for judgement in row.label} for row in queries]
    by_set: dict[str, list[str]] = {}
    for name, row in documents.items():
        by_set.setdefault(row.cluster, []).append(name)

    def loss_of(chosen: np.ndarray, batch) -> torch.Tensor:
        right = [queries[i].label[0].document for i in chosen]
        near = {name for i in chosen for name in by_set[queries[i].cluster]}
        names = right + sorted(near.difference(right))
        texts = [documents[name].text for name in names]
        passages = tokenizer(texts, padding=True, return_tensors="pt")
        asked, said = (
            nn.functional.normalize(table.mean_state(encoder, each)) for each in (batch, passages)
        )
        others = [
            [name in relevant[i] and place != row for place, name in enumerate(names)]
            for row, i in enumerate(chosen)
        ]
        scores = (asked @ said.T / TEMPERATURE).masked_fill(torch.tensor(others), -torch.inf)
        return nn.functional.cross_entropy(scores, torch.arange(len(chosen)))

    encoded = table.encode(tokenizer, queries)
    table.fit(encoder, nn.Identity(), tokenizer, encoded, loss_of, **recipe)
    return _ndcg(test, table.cached_states(encoder.eval(), tokenizer, list(test.rows()))["mean"])
