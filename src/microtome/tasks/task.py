"""The values of a task: what is measured, on which rows, from which files.

A task is data. Readers, metrics and scores interpret it; nothing here knows a format's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal[
    "classification",
    "regression",
    "multilabel",
    "tokens",
    "spans",
    "similarity",
    "retrieval",
    "reranking",
    "text",
]
"""``tokens``: entities of words (CoNLL). ``spans``: an answer within the pair text (SQuAD).
``similarity``: pairs scored by an embedder. ``text``: rows without labels."""

Format = Literal["tsv", "csv", "jsonl", "parquet", "txt", "squad", "conll"]


class Answer(NamedTuple):
    """One accepted answer of a question: its text, and its first character in the passage."""

    text: str
    start: int


class Judgement(NamedTuple):
    """A document that somebody judged for a query; grade 0 and below: irrelevant."""

    document: str
    grade: int


@dataclass(frozen=True)
class UnknownLabel:
    """A label as the file has it that isn't one of the task's."""

    name: str


Label = (
    int
    | float
    | frozenset[int]
    | tuple[int, ...]
    | tuple[Answer, ...]
    | tuple[Judgement, ...]
    | UnknownLabel
    | None
)
"""Classification: an index into ``Task.labels``. Regression, similarity: a number. Multilabel: the
indices that apply. Tokens: an index for each word. Spans: the accepted answers (none:
unanswerable). Reranking: a grade. Retrieval: a query's judgements, None for a document. None: the
row has no label. A row whose label is unknown is refused or left out before anybody sees it."""


def answers_in(label: Label) -> tuple[Answer, ...]:
    """The accepted answers of a question; none where there is no such label."""
    labels = label if isinstance(label, tuple) else ()
    return tuple(answer for answer in labels if isinstance(answer, Answer))


class Row(NamedTuple):
    """One example. For spans ``text`` is the question and ``pair`` the passage.

    ``words`` are those of a row of tokens; its ``text`` has them with spaces between.
    """

    text: str
    pair: str | None = None
    label: Label = None
    id: str | None = None
    cluster: str | None = None
    words: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a table that hold a row's parts.

    ``id`` is used if the file has it. ``header`` names the columns of a file without a header line.
    ``labels`` are several columns of 0 and 1; ``separator`` divides the labels within ``label``.
    """

    text: str
    pair: str | None = None
    label: str | None = None
    id: str | None = None
    header: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    separator: str | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that a file must have."""
        return tuple(c for c in (self.text, self.pair, self.label) if c is not None) + self.labels

    @property
    def labelled(self) -> bool:
        """Whether some column holds labels."""
        return self.label is not None or bool(self.labels)


@dataclass(frozen=True)
class NativeFile:
    """A file as its publishers named it.

    ``skip_broken``: rows with a wrong number of fields are left out and counted, because the
    published count is without them.
    """

    name: str
    format: Format
    columns: Columns
    skip_broken: bool = False


@dataclass(frozen=True)
class Split:
    """A part of a task.

    ``n_rows`` is the published count of labelled rows (of all rows where the labels are withheld);
    ``n_unlabelled`` counts the further rows, which carry the task's no-label mark.
    """

    name: str
    n_rows: int
    files: tuple[NativeFile, ...] = ()
    labelled: bool = True
    n_unlabelled: int = 0
    hub_split: str | None = None


@dataclass(frozen=True)
class Hub:
    """A data set on the hub, and the columns that it must have."""

    id: str
    config: str | None
    columns: Columns


@dataclass(frozen=True)
class Hyperparameters:
    """The papers' hyper-parameters; ``max_length`` in tokens, ``stride`` = overlap of windows.

    ``least_steps``: updates at least, in more epochs, where nobody asks for a number of either.
    """

    learning_rate: float = 2e-5
    batch_size: int = 32
    epochs: int = 3
    max_length: int = 128
    stride: int | None = None
    least_steps: int = 0


# A file of 300 rows has 24 updates in the papers' epochs: too few to leave the constant answer.
OWN_DATA = Hyperparameters(least_steps=100)


ClusterBy = Literal["text", "pair", "text or pair", "given"]
"""Rows that aren't independent: those with an equal text, an equal pair, linked by either, or
with the cluster that the reader gives (a SQuAD article)."""


@dataclass(frozen=True)
class Task:
    """What a model is measured on; the rows of an ``embedded`` task ship with the package."""

    name: str
    kind: Kind
    metrics: tuple[str, ...]
    summary: str
    splits: tuple[Split, ...] = ()
    labels: tuple[str, ...] = ()
    no_label: str | None = None
    cluster_by: ClusterBy | None = None
    hub: Hub | None = None
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    papers: tuple[str, ...] = ()
    embedded: bool = False
    folder: Path | None = None
    """Of a task that a package adds: where its native files are, if the package has them."""

    @property
    def has_rows(self) -> bool:
        """Whether its rows come with a package, ours or another: no data need be named."""
        return self.embedded or self.folder is not None

    @property
    def primary(self) -> str | None:
        """The metric that decides; the first one. None for rows without labels."""
        return self.metrics[0] if self.metrics else None


UNIT_OF: dict[Kind, str] = {
    "tokens": "sentences",
    "similarity": "pairs",
    "retrieval": "queries",
    "reranking": "queries",
}
"""What is counted where it isn't rows: what is independent of each other."""

SINGLE_ANSWER_KINDS: tuple[Kind, ...] = ("classification", "regression")
"""Where the answer is one label, or one number, for each text: what a probe can give."""

METRICS_OF: dict[Kind, tuple[str, ...]] = {
    "regression": ("pearson", "spearman"),
    "multilabel": ("micro_f1", "macro_f1", "accuracy"),
    "tokens": ("entity_f1",),
    "similarity": ("cosine_spearman", "cosine_pearson"),
    "retrieval": ("ndcg_at_10", "mrr_at_10", "map", "recall_at_100"),
    "reranking": ("map", "mrr_at_10", "ndcg_at_10"),
    # The one score of plain text is a masked LM's.
    "text": ("masked_accuracy",),
}
"""What own data of each kind is scored by, the primary metric first."""


def task_of_data(
    name: str,
    kind: Kind,
    labels: tuple[str, ...] = (),
    *,
    metrics: tuple[str, ...] = (),
    cluster_by: ClusterBy | None = None,
) -> Task:
    """The task that own data is, called as its file or folder."""
    return Task(
        name=name,
        kind=kind,
        labels=labels,
        metrics=metrics or METRICS_OF[kind],
        summary=f"own data, {name}",
        cluster_by=cluster_by,
        hyperparameters=OWN_DATA,
    )
