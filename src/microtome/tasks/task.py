"""The values of a task: what is measured, on which rows, from which files.

A task is data. Readers, metrics and scores interpret it; nothing here knows a format's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["classification", "regression", "span", "text"]
"""``span``: an answer within the pair text (SQuAD). ``text``: rows without labels."""

Format = Literal["tsv", "csv", "jsonl", "parquet", "txt", "squad"]


class Answer(NamedTuple):
    """One accepted answer of a question: its text, and its first character in the passage."""

    text: str
    start: int


@dataclass(frozen=True)
class UnknownLabel:
    """A label as the file has it that isn't one of the task's."""

    name: str


Label = int | float | tuple[Answer, ...] | UnknownLabel | None
"""Classification: an index into ``Task.labels``. Regression: a number. Span: the accepted answers
(none: unanswerable). None: the row has no label. A row whose label is unknown is refused or left
out before anybody sees it."""


class Row(NamedTuple):
    """One example. For a span task ``text`` is the question and ``pair`` the passage."""

    text: str
    pair: str | None = None
    label: Label = None
    id: str | None = None
    cluster: str | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a table that hold a row's parts.

    ``id`` is used if the file has it. ``header`` names the columns of a file without a header line.
    """

    text: str
    pair: str | None = None
    label: str | None = None
    id: str | None = None
    header: tuple[str, ...] | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that a file must have."""
        return tuple(c for c in (self.text, self.pair, self.label) if c is not None)


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
    """The papers' hyper-parameters; ``max_length`` in tokens, ``stride`` = overlap of windows."""

    learning_rate: float = 2e-5
    batch_size: int = 32
    epochs: int = 3
    max_length: int = 128
    stride: int | None = None


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

    @property
    def primary(self) -> str | None:
        """The metric that decides; the first one. None for rows without labels."""
        return self.metrics[0] if self.metrics else None
