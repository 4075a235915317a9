"""One pass over a source: every row checked, a few numbers kept of each."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtome.errors import DataError
from microtome.tasks.reading.rows import Oddities, shown
from microtome.tasks.reading.sources import RowSource
from microtome.tasks.sampling import Indices
from microtome.tasks.task import Kind, Label, Row, Task, UnknownLabel


@dataclass(frozen=True)
class Scan:
    """A few numbers of every row, and what was left out."""

    targets: NDArray[Any]
    digests: NDArray[np.uint64]
    clusters: Indices | None
    positions: Indices
    oddities: Oddities
    unknown: Counter[str]  # labels of rows that were left out
    n_unlabelled: int
    n_empty: int
    n_misplaced: int


@dataclass
class _Kept:
    """Numbers per row, as they are read."""

    digests: bytearray = field(default_factory=bytearray)
    targets: array[float] = field(default_factory=lambda: array("d"))
    positions: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    clusters: tuple[array[int], ...] = ()
    ids: array[int] = field(default_factory=lambda: array("Q"))
    with_id: array[int] = field(default_factory=lambda: array("q"))  # which rows have one


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
        if source.labelled and row.label is None:
            n_unlabelled += 1
            continue
        kept.positions.append(position)
        kept.numbers.append(number)
        kept.digests += _digest(row)
        kept.targets.append(_target(task.kind, row.label))
        for keys, key_of in zip(kept.clusters, keys_of, strict=True):
            keys.append(_key(key_of(row)))
        if row.id is not None:
            kept.ids.append(_key(row.id))
            kept.with_id.append(len(kept.positions) - 1)
        n_empty += not row.text or row.pair == ""
        n_misplaced += task.kind == "span" and _misplaced(row)
    _check(source, kept)
    return Scan(
        targets=_targets(task.kind, kept.targets),
        digests=np.frombuffer(bytes(kept.digests), dtype=np.uint64).reshape(-1, 2),
        clusters=_components(kept.clusters),
        positions=np.array(kept.positions, dtype=np.int64),
        oddities=oddities,
        unknown=unknown,
        n_unlabelled=n_unlabelled,
        n_empty=n_empty,
        n_misplaced=n_misplaced,
    )


def _unknown_label(source: RowSource, number: int, name: str) -> DataError:
    place = source.path.name if source.path else f"{source.task.name} {source.split}"
    expected = f"one of {', '.join(source.task.labels)}" if source.task.labels else "a number"
    return DataError(
        f"{place}, {source.unit} {number}: expected {expected}, got label {shown(name)}",
        "correct it, or leave such rows out: --skip-unknown-labels",
    )


def _digest(row: Row) -> bytes:
    """128 bits of a row's texts (and of a question's answers)."""
    text = row.text.encode()
    digest = blake2b(text, digest_size=16)
    if row.pair is not None:
        # The length keeps ("ab", "c") apart from ("a", "bc").
        digest.update(b"\0%d\0" % len(text) + row.pair.encode())
    if isinstance(row.label, tuple):
        digest.update(repr(row.label).encode())
    return digest.digest()


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _target(kind: Kind, label: Label) -> float:
    if kind == "span":
        return float(bool(label))
    if isinstance(label, int | float):
        return float(label)
    return float("nan") if kind == "regression" else -1.0


def _targets(kind: Kind, values: array[float]) -> NDArray[Any]:
    targets = np.array(values, dtype=np.float64)
    return targets if kind == "regression" else targets.astype(np.int64)


def _misplaced(row: Row) -> bool:
    context = row.pair or ""
    answers = row.label if isinstance(row.label, tuple) else ()
    return any(not context.startswith(answer.text, answer.start) for answer in answers)


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
    if not kept.positions:
        raise DataError(f"{place} has no rows")
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
