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

from microtome.errors import DataError, RunError
from microtome.tasks.reading.rows import Oddities
from microtome.tasks.reading.scanning import Scan, scan
from microtome.tasks.reading.sources import RowSource
from microtome.tasks.sampling import (
    Indices,
    fraction_of,
    held_out,
    limited,
    n_of_fraction,
    quantile_strata,
)
from microtome.tasks.task import Row, Task


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of one split. Arrays hold one entry per row, in file order."""

    task: Task
    split: str
    labelled: bool
    targets: NDArray[Any]
    """Label indices, numbers, or (span) whether there is an answer; -1 or nan without labels."""
    digests: NDArray[np.uint64]  # (n, 2), of text and pair
    clusters: Indices | None
    positions: Indices  # of the rows within what the source reads
    notes: tuple[str, ...]
    n_unlabelled: int
    """Rows with the task's no-label mark that were left out."""
    _source: RowSource
    _stamp: tuple[int, int] | None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in order."""
        return self.task.labels

    @property
    def content_hash(self) -> str:
        """Of texts, labels, clusters and order; where they were read from doesn't matter."""
        digest = hashlib.sha256(f"{self.task.kind} {self.labels} {self.labelled}".encode())
        digest.update(np.ascontiguousarray(self.digests).tobytes())
        digest.update(np.ascontiguousarray(self.targets, dtype=np.float64).tobytes())
        digest.update(str(self.n_unlabelled).encode())
        if self.clusters is not None:
            digest.update(np.unique(self.clusters, return_inverse=True)[1].tobytes())
        return digest.hexdigest()

    @property
    def text_hash(self) -> str:
        """Of texts and their order alone: what an encoding depends on."""
        return hashlib.sha256(np.ascontiguousarray(self.digests).tobytes()).hexdigest()

    def rows(self) -> Iterator[Row]:
        """The rows, read again from their source, one at a time."""
        if self._stamp is not None and self._stamp != stamp(self._source.path):
            raise RunError(f"{self._source.path} has changed since it was opened", "start again")
        positions = iter(self.positions.tolist())
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
        )

    def limit(self, n_rows: int | None, *, seed: int = 0) -> Dataset:
        """At most ``n_rows`` rows, picked by ``seed``: nested, and in file order."""
        if n_rows is None or n_rows >= len(self):
            return self
        # The no-label rows aren't sampled with the others: their figure is of the whole split.
        return replace(self.select(limited(len(self), n_rows, seed)), n_unlabelled=0)

    def of_length(self, max_length: int | None) -> Dataset:
        """The same rows, cut to at most ``max_length`` tokens when encoded; None: the task's."""
        if max_length is None:
            return self
        changed = replace(self.task.hyperparameters, max_length=max_length)
        return replace(self, task=replace(self.task, hyperparameters=changed))

    def fraction(self, fraction: float, *, seed: int = 0) -> Dataset:
        """A training fraction: stratified by label, nested for one ``seed``, in file order."""
        if n_of_fraction(fraction, len(self)) == len(self):
            return self
        return self.select(fraction_of(self._strata(), fraction, seed))

    def held_out(self) -> tuple[Dataset, Dataset]:
        """The 80/20 split by content: training rows and dev rows."""
        train, dev = held_out(self.digests, self._strata())
        if not len(dev):
            raise DataError(
                f"{len(self)} rows are too few to hold some out", "give dev rows: --dev-data FILE"
            )
        return (
            replace(self.select(train), split="train", n_unlabelled=0),
            replace(self.select(dev), split="dev", n_unlabelled=0),
        )

    def _strata(self) -> Indices:
        if not self.labelled:
            return np.zeros(len(self), dtype=np.int64)
        if self.task.kind == "regression":
            return quantile_strata(self.targets)
        return self.targets.astype(np.int64)


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
