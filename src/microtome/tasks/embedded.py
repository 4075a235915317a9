"""The embedded tasks, as values: their rows ship with the package.

``microtome.tasks.reading.embedded`` reads the rows; ``tools/micro`` made them.
"""

from __future__ import annotations

from microtome.tasks.tags import tag_names
from microtome.tasks.task import METRICS_OF, Hyperparameters, Kind, Split, Task

SIZES = {"train": 4000, "dev": 800, "test": 800}
"""Rows of each split of the embedded tasks with one label per row, or with answers."""

SMALLER_SIZES = {"train": 2000, "dev": 400, "test": 400}
"""Rows (of retrieval: questions) of each split of the others."""

TOPICS = ("arts", "food", "home", "outings")

# A time is one word: the last tag would be I-time.
ROLE_TAGS = tag_names(f"B-{r}" for r in ("agent", "place", "recipient", "theme", "time"))[:-1]


def _task(
    name: str,
    kind: Kind,
    metrics: tuple[str, ...],
    labels: tuple[str, ...],
    summary: str,
    sizes: dict[str, int] = SIZES,
) -> Task:
    return Task(
        name=name,
        kind=kind,
        metrics=metrics,
        summary=summary,
        splits=tuple(Split(split, size) for split, size in sizes.items()),
        labels=labels,
        cluster_by="given",
        hyperparameters=Hyperparameters(learning_rate=1e-4, batch_size=32, epochs=5, max_length=64),
        embedded=True,
    )


TASKS: tuple[Task, ...] = (
    _task(
        "micro-sentiment",
        "classification",
        ("accuracy",),
        ("negative", "positive"),
        "does the speaker approve? negation, contrast and degree decide",
    ),
    _task(
        "micro-entailment",
        "classification",
        ("accuracy",),
        ("entailment", "neutral", "contradiction"),
        "does the second sentence follow? kinds, quantifiers, denials, roles",
    ),
    _task(
        "micro-paraphrase",
        "classification",
        ("accuracy", "f1"),
        ("different", "paraphrase"),
        "do two sentences with the same words say the same?",
    ),
    _task(
        "micro-similarity",
        "regression",
        ("pearson", "spearman"),
        (),
        "how much two sentences have in common, 0 to 5",
    ),
    _task(
        "micro-acceptability",
        "classification",
        ("accuracy", "matthews"),
        ("unacceptable", "acceptable"),
        "is it English? agreement, order, arguments",
    ),
    _task(
        "micro-squad",
        "spans",
        ("f1", "exact_match"),
        (),
        "questions on a short passage; half have no answer, but a plausible one",
    ),
    _task(
        "micro-tagging",
        "tokens",
        METRICS_OF["tokens"],
        ROLE_TAGS,
        "which words say who does what, to whom, where and when?",
        SMALLER_SIZES,
    ),
    _task(
        "micro-topics",
        "multilabel",
        METRICS_OF["multilabel"],
        TOPICS,
        "what is it about? only what happened counts, not what is denied or doubted",
        SMALLER_SIZES,
    ),
    _task(
        "micro-retrieval",
        "retrieval",
        METRICS_OF["retrieval"],
        (),
        "questions, and the sentences that answer them among others with the same words",
        SMALLER_SIZES,
    ),
    _task(
        "micro-reranking",
        "reranking",
        METRICS_OF["reranking"],
        (),
        "a question and four sentences with its words: which of them answer it?",
    ),
)
