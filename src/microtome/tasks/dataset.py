"""A data set that was read through once: counts, labels and hashes in memory, texts on disk.

``open_data`` checks every row before anything is measured. What stays in memory is a few numbers
per row; ``rows()`` reads the texts again, one at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import DataError, RequestError, RunError
from microtome.tasks.reading.rows import Oddities
from microtome.tasks.reading.scanning import Corpus, Scan, Tags, scan
from microtome.tasks.reading.sources import RowSource
from microtome.tasks.sampling import (
    Indices,
    fraction_of,
    held_out,
    limited,
    n_of_fraction,
    quantile_strata,
    whole_clusters,
)
from microtome.tasks.task import METRICS_OF, Kind, Row, Task


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of one split. Arrays hold one entry per row, in file order."""

    task: Task
    split: str
    labelled: bool
    targets: NDArray[Any]
    """Label indices, numbers, grades; (n, labels) true or false for multilabel. Spans: is there an
    answer; tokens: how many entities, retrieval: how many relevant documents. -1 or nan without
    labels."""
    digests: NDArray[np.uint64]  # (n, 2), of text and pair
    clusters: Indices | None
    positions: Indices  # of the rows within what the source reads
    notes: tuple[str, ...]
    n_unlabelled: int
    """Rows with the task's no-label mark that were left out."""
    _source: RowSource
    _stamp: tuple[int, int] | None
    tags: Tags | None = None  # tokens
    corpus: Corpus | None = None
    """Retrieval: the rows are the queries, and these are the documents that they search."""
    max_length: int | None = None  # tokens per text that were asked for
    prompt: str | None = None  # an embedder's, by name, that was asked for

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in order."""
        return self.task.labels

    @property
    def content_hash(self) -> str:
        """Of texts, labels, clusters and order; where they were read from doesn't matter."""
        kind = "span" if self.task.kind == "spans" else self.task.kind  # as runs have stored it
        digest = hashlib.sha256(f"{kind} {self.labels} {self.labelled}".encode())
        digest.update(np.ascontiguousarray(self.digests).tobytes())
        digest.update(np.ascontiguousarray(self.targets, dtype=np.float64).tobytes())
        digest.update(str(self.n_unlabelled).encode())
        if self.clusters is not None:
            digest.update(np.unique(self.clusters, return_inverse=True)[1].tobytes())
        more = [vars(part) for part in (self.tags, self.corpus) if part is not None]
        for name, values in (item for part in more for item in part.items()):
            if name != "positions":
                digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    @property
    def text_hash(self) -> str:
        """Of texts and their order alone: what an encoding depends on."""
        digest = hashlib.sha256(np.ascontiguousarray(self.digests).tobytes())
        if self.corpus is not None:
            digest.update(np.ascontiguousarray(self.corpus.digests).tobytes())
        return digest.hexdigest()

    @property
    def n_queries(self) -> int:
        """Rows that are queries; of retrieval data :meth:`rows` gives the documents after them."""
        return len(self)

    @property
    def n_scored(self) -> int:
        """How many entries an outcome has: one per row; of pairs to rerank, one per query.

        A query without a relevant passage has no score.
        """
        if self.task.kind != "reranking" or self.clusters is None:
            return len(self)
        return len(np.unique(self.clusters[self.targets > 0]))

    @property
    def scored_clusters(self) -> Indices | None:
        """The cluster of each entry of an outcome; None where they are independent."""
        return None if self.task.kind == "reranking" else self.clusters

    def rows(self) -> Iterator[Row]:
        """The rows, read again from their source, one at a time; then the documents, if any."""
        if self._stamp is not None and self._stamp != stamp(self._source.path):
            raise RunError(f"{self._source.path} has changed since it was opened", "start again")
        more = [] if self.corpus is None else self.corpus.positions.tolist()
        positions = iter(self.positions.tolist() + more)
        chosen = next(positions, None)
        for position, (_, row) in enumerate(self._source.read(Oddities())):
            if position == chosen:
                yield row
                chosen = next(positions, None)
            if chosen is None:
                return

    def select(self, indices: Indices) -> Dataset:
        """These rows alone; ``indices`` ascend."""
        return replace(
            self,
            targets=self.targets[indices],
            digests=self.digests[indices],
            clusters=None if self.clusters is None else self.clusters[indices],
            positions=self.positions[indices],
            tags=None if self.tags is None else self.tags.take(indices),
            corpus=None if self.corpus is None else self.corpus.take(indices),
        )

    def limit(self, n_rows: int | None, *, seed: int = 0) -> Dataset:
        """At most ``n_rows`` rows, picked by ``seed``: nested, and in file order.

        Of pairs to rerank, whole queries: as many as fit, and at least one.
        """
        if n_rows is None or n_rows >= len(self):
            return self
        # The no-label rows aren't sampled with the others: their figure is of the whole split.
        chosen = limited(len(self), n_rows, seed)
        if self.task.kind == "reranking" and self.clusters is not None:
            chosen = whole_clusters(self.clusters, n_rows, seed)
        return replace(self.select(chosen), n_unlabelled=0)

    def of_length(self, max_length: int | None) -> Dataset:
        """The same rows, cut to at most ``max_length`` tokens when encoded; None: the task's."""
        if max_length is None:
            return self
        changed = replace(self.task.hyperparameters, max_length=max_length)
        task = replace(self.task, hyperparameters=changed)
        return replace(self, task=task, max_length=max_length)

    def fraction(self, fraction: float, *, seed: int = 0) -> Dataset:
        """A training fraction: stratified by label, nested for one ``seed``, in file order."""
        if n_of_fraction(fraction, len(self)) == len(self):
            return self
        return self.select(fraction_of(self._strata(), fraction, seed))

    def held_out(self) -> tuple[Dataset, Dataset]:
        """The 80/20 split by content: training rows and dev rows."""
        digests = self.digests
        if self.task.kind == "reranking" and self.clusters is not None:
            digests = self.clusters[:, None].astype(np.uint64)  # a query's passages stay together
        train, dev = held_out(digests, self._strata())
        if not len(dev):
            raise DataError(
                f"{len(self)} rows are too few to hold some out", "give dev rows: --dev-data FILE"
            )
        return (
            replace(self.select(train), split="train", n_unlabelled=0),
            replace(self.select(dev), split="dev", n_unlabelled=0),
        )

    def _strata(self) -> Indices:
        kind = self.task.kind
        if not self.labelled or kind in ("retrieval", "reranking"):
            return np.zeros(len(self), dtype=np.int64)
        if kind in ("regression", "similarity"):
            return quantile_strata(self.targets)
        if kind == "multilabel":
            return np.asarray(self.targets.sum(axis=1), dtype=np.int64)
        return (self.targets > 0 if kind == "tokens" else self.targets).astype(np.int64)


def as_kind(dataset: Dataset, kind: Kind) -> Dataset:
    """The same rows for a model of another job; rows that can't serve it are refused.

    Pairs with a number are regression for a classifier's head, and similarity for an embedder:
    STS-B's file serves both.

    as_kind(open_data(DataSpec("stsb", "glue/STS-B")), "similarity")
    """
    task = dataset.task
    if task.kind == kind:
        return dataset
    if {task.kind, kind} != {"regression", "similarity"}:
        raise RequestError(f"expected rows of {kind}, got {task.name}, which is {task.kind}")
    if next(dataset.rows()).pair is None:
        raise RequestError(
            f"expected pairs of texts with a number, {task.name} has single texts",
            "name the second text: --pair-column",
        )
    return replace(dataset, task=replace(task, kind=kind, metrics=METRICS_OF[kind]))


def kind_for(kind: Kind, head: str | None) -> Kind:
    """The kind as which a model with ``head`` reads rows that serve two ways.

    Pairs with a number are similarity for an "embedder", regression for a "classification" head.
    """
    if kind == "regression" and head == "embedder":
        return "similarity"
    return "regression" if kind == "similarity" and head == "classification" else kind


def dataset_of(source: RowSource) -> Dataset:
    """Read ``source`` through once and keep what is small."""
    before = stamp(source.path)
    scanned = scan(source)
    return Dataset(
        task=source.task,
        split=source.split,
        labelled=source.labelled,
        targets=scanned.targets,
        digests=scanned.digests,
        clusters=scanned.clusters,
        positions=scanned.positions,
        notes=source.notes + _notes(source, scanned),
        n_unlabelled=scanned.n_unlabelled,
        _source=source,
        _stamp=before,
        tags=scanned.tags,
        corpus=scanned.corpus,
    )


def stamp(path: Path | None) -> tuple[int, int] | None:
    """Size and time of a file: whether it is still the one that was read."""
    if path is None:
        return None
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _notes(source: RowSource, scanned: Scan) -> tuple[str, ...]:
    notes = []
    place = source.path.name if source.path else f"{source.task.name} {source.split}"
    if broken := scanned.oddities.broken:
        lines = ", ".join(map(str, broken[:5])) + (", …" if len(broken) > 5 else "")
        what = "empty lines" if source.task.kind == "text" else "rows with a wrong number of fields"
        notes.append(f"{place}: {len(broken):,} {what} left out (line {lines})")
    if respelled := scanned.oddities.respelled:
        pairs = [
            f"{label!r} as {known!r} ({n:,})" for (label, known), n in respelled.most_common(5)
        ]
        notes.append(f"{place}: labels that differ in case only are one: {', '.join(pairs)}")
    if unknown := scanned.unknown:
        named = ", ".join(f"{label!r} ({n:,})" for label, n in unknown.most_common(5))
        more = ", …" if len(unknown) > 5 else ""
        total = unknown.total()
        notes.append(f"{place}: {total:,} rows with unknown labels left out: {named}{more}")
    oddities = scanned.oddities
    if oddities.n_implied:
        notes.append(
            f"{place}: {oddities.n_implied:,} entities begin with an I, as in IOB1: read as B"
        )
    if n_irrelevant := oddities.n_irrelevant:
        notes.append(f"{place}: {n_irrelevant:,} queries without a relevant document left out")
    if oddities.n_unjudged:
        notes.append(f"{place}: {oddities.n_unjudged:,} queries aren't judged in {source.split}")
    if oddities.n_missed:
        notes.append(
            f"{place}: {oddities.n_missed:,} relevant documents aren't among the candidates;"
            " scores are of the candidates alone"
        )
    if scanned.n_unlabelled:
        notes.append(f"{place}: {scanned.n_unlabelled:,} rows without a label left out")
    if scanned.n_empty:
        notes.append(f"{place}: {scanned.n_empty:,} rows have an empty text")
    if scanned.n_misplaced:
        notes.append(f"{place}: {scanned.n_misplaced:,} answers aren't where the file says")
    published = source.published
    if published and len(scanned.positions) != published.n_rows:
        notes.append(
            f"{place}: {len(scanned.positions):,} rows, {published.n_rows:,} were published"
        )
    return tuple(notes)
