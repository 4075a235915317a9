"""One pass over a source: every row checked, a few numbers kept of each."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import DataError
from microtome.tasks.reading.rows import Oddities, shown
from microtome.tasks.reading.sources import RowSource
from microtome.tasks.sampling import Indices
from microtome.tasks.task import Judgement, Kind, Label, Row, Task, UnknownLabel, answers_in


@dataclass(frozen=True, eq=False)
class Tags:
    """A label for every word: those of row i are ``values[offsets[i]:offsets[i + 1]]``."""

    values: Indices
    offsets: Indices

    def take(self, rows: Indices) -> Tags:
        """The tags of these rows."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Tags(self.values[places], offsets)


@dataclass(frozen=True, eq=False)
class Corpus:
    """What queries search: documents, and which of them are relevant to which query."""

    positions: Indices  # (documents,), within what the source reads
    digests: NDArray[np.uint64]  # (documents, 2)
    queries: Indices  # (m,), the judged query, ascending
    documents: Indices  # (m,), the judged document
    grades: Indices  # (m,), relevant above 0

    def take(self, rows: Indices) -> Corpus:
        """The judgements of these queries; every document stays."""
        kept = np.isin(self.queries, rows)
        queries = np.searchsorted(rows, self.queries[kept])
        return replace(
            self, queries=queries, documents=self.documents[kept], grades=self.grades[kept]
        )


@dataclass(frozen=True)
class Scan:
    """A few numbers of every row, and what was left out."""

    targets: NDArray[Any]
    digests: NDArray[np.uint64]
    clusters: Indices | None
    positions: Indices
    tags: Tags | None
    corpus: Corpus | None
    oddities: Oddities
    unknown: Counter[str]  # labels of rows that were left out
    n_unlabelled: int
    n_empty: int
    n_misplaced: int


def _whole_numbers() -> array[int]:
    return array("q")


@dataclass
class _Kept:
    """Numbers per row, as they are read."""

    digests: bytearray = field(default_factory=bytearray)
    targets: array[float] = field(default_factory=lambda: array("d"))
    positions: array[int] = field(default_factory=_whole_numbers)
    numbers: array[int] = field(default_factory=_whole_numbers)
    clusters: tuple[array[int], ...] = ()
    ids: array[int] = field(default_factory=lambda: array("Q"))
    with_id: array[int] = field(default_factory=_whole_numbers)  # which rows have one
    tags: array[int] = field(default_factory=lambda: array("h"))
    lengths: array[int] = field(default_factory=_whole_numbers)
    judged: array[int] = field(default_factory=lambda: array("Q"))  # key of a judged document
    grades: array[int] = field(default_factory=_whole_numbers)
    judging: array[int] = field(default_factory=_whole_numbers)  # the query of each judgement
    n_queries: int = 0


def scan(source: RowSource) -> Scan:
    """Read ``source`` through; an empty one, or one with an id twice, is refused."""
    task = source.task
    keys_of = _cluster_keys(task)
    kept = _Kept(clusters=tuple(array("Q") for _ in keys_of))
    oddities, unknown = Oddities(), Counter[str]()
    n_unlabelled = n_empty = n_misplaced = 0
    for position, (number, row) in enumerate(source.read(oddities)):
        if isinstance(row.label, UnknownLabel):
            if not source.skip_unknown:
                raise _unknown_label(source, number, row.label.name)
            unknown[row.label.name] += 1
            continue
        if source.labelled and row.label is None and task.kind != "retrieval":
            n_unlabelled += 1
            continue
        kept.positions.append(position)
        kept.numbers.append(number)
        kept.digests += _digest(task.kind, row)
        _keep_label(task, row, kept)
        for keys, key_of in zip(kept.clusters, keys_of, strict=True):
            keys.append(_key(key_of(row)))
        if row.id is not None:
            kept.ids.append(_key(row.id))
            kept.with_id.append(len(kept.positions) - 1)
        n_empty += not row.text or row.pair == ""
        n_misplaced += task.kind == "spans" and _misplaced(row)
    _check(source, kept)
    n_rows = kept.n_queries or len(kept.positions)
    digests = np.frombuffer(bytes(kept.digests), dtype=np.uint64).reshape(-1, 2)
    positions = np.array(kept.positions, dtype=np.int64)
    return Scan(
        targets=_targets(task, kept.targets),
        digests=digests[:n_rows],
        clusters=_components(tuple(keys[:n_rows] for keys in kept.clusters)),
        positions=positions[:n_rows],
        tags=_tags(kept) if task.kind == "tokens" else None,
        corpus=_corpus(kept, positions, digests) if task.kind == "retrieval" else None,
        oddities=oddities,
        unknown=unknown,
        n_unlabelled=n_unlabelled,
        n_empty=n_empty,
        n_misplaced=n_misplaced,
    )


def _keep_label(task: Task, row: Row, kept: _Kept) -> None:
    label = row.label
    if task.kind == "retrieval":
        if not isinstance(label, tuple):
            return  # a document
        kept.n_queries += 1
        for judgement in label:
            assert isinstance(judgement, Judgement)
            kept.judged.append(_key(f"document {judgement.document}"))
            kept.grades.append(judgement.grade)
            kept.judging.append(kept.n_queries - 1)
        kept.targets.append(sum(j.grade > 0 for j in label if isinstance(j, Judgement)))
    elif task.kind == "multilabel":
        labels = label if isinstance(label, frozenset) else frozenset[int]()
        kept.targets.extend(float(index in labels) for index in range(len(task.labels)))
    elif task.kind == "tokens":
        tags = [tag for tag in label if isinstance(tag, int)] if isinstance(label, tuple) else []
        kept.tags.extend(tags)
        kept.lengths.append(len(tags))
        kept.targets.append(sum(task.labels[tag].startswith("B-") for tag in tags))
    else:
        kept.targets.append(_target(task.kind, label))


def _tags(kept: _Kept) -> Tags:
    offsets = np.concatenate([[0], np.cumsum(np.array(kept.lengths, dtype=np.int64))])
    return Tags(np.array(kept.tags, dtype=np.int64), offsets)


def _corpus(kept: _Kept, positions: Indices, digests: NDArray[np.uint64]) -> Corpus:
    """Judgements name documents by id; every row of retrieval data has one."""
    ids = np.array(kept.ids, dtype=np.uint64)[kept.n_queries :]
    order = np.argsort(ids, kind="stable")
    # The reader refuses judgements of documents that aren't there.
    documents = order[np.searchsorted(ids[order], np.array(kept.judged, dtype=np.uint64))]
    return Corpus(
        positions=positions[kept.n_queries :],
        digests=digests[kept.n_queries :],
        queries=np.array(kept.judging, dtype=np.int64),
        documents=documents,
        grades=np.array(kept.grades, dtype=np.int64),
    )


def _unknown_label(source: RowSource, number: int, name: str) -> DataError:
    place = source.path.name if source.path else f"{source.task.name} {source.split}"
    expected = f"one of {', '.join(source.task.labels)}" if source.task.labels else "a number"
    return DataError(
        f"{place}, {source.unit} {number}: expected {expected}, got label {shown(name)}",
        "correct it, or leave such rows out: --skip-unknown-labels",
    )


def _digest(kind: Kind, row: Row) -> bytes:
    """128 bits of a row's texts (and of a question's answers)."""
    text = row.text.encode()
    digest = blake2b(text, digest_size=16)
    if row.pair is not None:
        # The length keeps ("ab", "c") apart from ("a", "bc").
        digest.update(b"\0%d\0" % len(text) + row.pair.encode())
    if row.words is not None:  # ("a b", "c") isn't ("a", "b c")
        digest.update("\0".join(row.words).encode())
    if kind == "spans" and isinstance(row.label, tuple):
        digest.update(repr(row.label).encode())
    return digest.digest()


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _target(kind: Kind, label: Label) -> float:
    if kind == "spans":
        return float(bool(label))
    if isinstance(label, int | float):
        return float(label)
    return float("nan") if kind in _NUMBERS else -1.0


_NUMBERS = ("regression", "similarity")


def _targets(task: Task, values: array[float]) -> NDArray[Any]:
    targets = np.array(values, dtype=np.float64)
    if task.kind == "multilabel":
        return targets.reshape(-1, len(task.labels)).astype(np.bool_)
    return targets if task.kind in _NUMBERS else targets.astype(np.int64)


def _misplaced(row: Row) -> bool:
    context = row.pair or ""
    return any(not context.startswith(*answer) for answer in answers_in(row.label))


def _cluster_keys(task: Task) -> tuple[Callable[[Row], str], ...]:
    """What rows of one cluster have in common."""

    def text(row: Row) -> str:
        return row.text

    def pair(row: Row) -> str:
        return row.pair or ""

    def given(row: Row) -> str:
        # Questions on one passage belong together even where nobody names the article.
        return row.cluster or row.pair or row.text

    return {
        None: (),
        "text": (text,),
        "pair": (pair,),
        "text or pair": (text, pair),
        "given": (given,),
    }[task.cluster_by]


def _components(keys: tuple[array[int], ...]) -> Indices | None:
    """The cluster of each row: equal keys, or linked through equal keys of either kind."""
    if not keys:
        return None
    codes = [
        np.unique(np.array(column, dtype=np.uint64), return_inverse=True)[1] for column in keys
    ]
    if len(codes) == 1:
        return np.asarray(codes[0], dtype=np.int64)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, second = codes
    n_first, n_second = int(first.max()) + 1, int(second.max()) + 1
    n_nodes = n_first + n_second
    links = coo_array((np.ones(len(first)), (first, second + n_first)), shape=(n_nodes, n_nodes))
    _, component = connected_components(links, directed=False)
    return np.asarray(component[first], dtype=np.int64)


def _check(source: RowSource, kept: _Kept) -> None:
    place = source.path.name if source.path else f"{source.task.name} {source.split}"
    if not kept.positions or (source.task.kind == "retrieval" and not kept.n_queries):
        what = "queries with a relevant document" if kept.positions else "rows"
        raise DataError(f"{place} has no {what}")
    ids = np.array(kept.ids, dtype=np.uint64)
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(twice):
        first, second = (kept.with_id[order[at]] for at in (twice[0], twice[0] + 1))
        row = _row_at(source, kept.positions[second])
        raise DataError(
            f"{place}: expected different ids, got {row.id!r} at {source.unit}"
            f" {kept.numbers[first]} and {kept.numbers[second]}"
        )


def _row_at(source: RowSource, position: int) -> Row:
    return next(row for at, (_, row) in enumerate(source.read(Oddities())) if at == position)
