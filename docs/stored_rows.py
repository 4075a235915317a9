"""Tidy rows of runs as they are committed in docs/results: no text of data sets, no places."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from microtome.models.source import short_names
from microtome.runs import RunResult
from microtome.runs.table import parquet_bytes

STORED = Path(__file__).parent / "results"
LARGEST = 1_000_000  # bytes of a file: rows are committed, arrays and checkpoints aren't
KEY = b"microtome"
ABSOLUTE = re.compile(r"""(?:^|[\s="':,])(/|~/|[A-Z]:\\)\w[\w.-]*[/\\]""")
# Columns of words that are ours, not a data set's. A claim that needs another is told by `store`.
WORDS = (
    "experiment", "model", "task", "metric", "primary", "unit", "edit", "strategy", "stage",
    "selection", "rule", "readout", "checkpoint", "feature", "link", "direction", "measure",
    "pattern", "part", "start", "recipe", "classifier", "side", "encoder", "target", "kind",
    "compared_with", "refused", "score", "cut",
)  # fmt: skip
Rows = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class StoredResults:
    """The rows of one run, as they are committed."""

    name: str
    rows: Rows
    facts: Mapping[str, Any]
    hash: str

    @property
    def request(self) -> Mapping[str, Any]:
        """What the run was asked for."""
        return self.facts["request"]

    @property
    def command(self) -> str:
        """What was typed to get these rows."""
        return str(self.facts["command"])


def kept(
    result: RunResult, rows: Sequence[Mapping[str, Any]], command: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What is committed of a run's ``named_rows``, and what is known of them."""
    lines = [_kept(row) for row in rows]
    columns = {
        experiment: list(dict.fromkeys(column for line in group for column in line))
        for experiment, group in grouped(lines, "experiment")
    }
    facts = {
        "command": command,
        "request": _renamed(result.request, _names(result)),
        "columns": columns,
        **{key: result.facts.get(key) for key in ("versions", "commit", "content")},
    }
    texts = [json.dumps(facts), *(v for row in lines for v in row.values() if isinstance(v, str))]
    if found := [place[0] for text in texts if (place := ABSOLUTE.search(text))]:
        raise SystemExit(f"a path of this machine would be stored: {found[0].strip()}…")
    return lines, facts


def write(path: Path, rows: list[dict[str, Any]], facts: Mapping[str, Any]) -> None:
    """Write rows, with what is known of them, as one file."""
    table = pq.read_table(pa.BufferReader(parquet_bytes(rows)))
    table = table.replace_schema_metadata({KEY: json.dumps(facts, sort_keys=True)})
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path, compression="zstd", compression_level=19)


def named_rows(result: RunResult) -> list[dict[str, Any]]:
    """A run's rows; a model is called by its folder's name."""
    names = _names(result)
    rows = [{**r.columns, **row} for r in result.records.values() for row in r.rows]
    return [{**row, "model": names[str(row["model"])]} for row in rows]


def _names(result: RunResult) -> dict[str, str]:
    models = [
        *result.request.get("models", ()),
        *(r.columns["model"] for r in result.records.values()),
    ]
    return short_names(list(dict.fromkeys(map(str, models))))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401  # any JSON
    """JSON with models called by their folders' names."""
    if isinstance(value, Mapping):
        return {key: _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        column: value
        for column, value in row.items()
        if column in WORDS or value is None or isinstance(value, int | float)
    }


def read(path: Path) -> StoredResults:
    """A file of stored rows; every row has the columns that its experiment has."""
    table = pq.read_table(path)
    facts = json.loads(table.schema.metadata[KEY])
    rows = tuple(
        {column: row[column] for column in facts["columns"][row["experiment"]]}
        for row in table.to_pylist()
    )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return StoredResults(path.stem, rows, facts, digest[:12])


def stored() -> list[StoredResults]:
    """All stored rows, by name."""
    return [read(path) for path in sorted(STORED.glob("*.parquet"))]


def grouped(
    rows: Sequence[Mapping[str, Any]], *columns: str
) -> Iterator[tuple[Any, list[Mapping[str, Any]]]]:
    """The rows by the values of some columns, in the order of the first of each."""
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        key = tuple(row[column] for column in columns)
        groups.setdefault(key if len(columns) > 1 else key[0], []).append(row)
    yield from groups.items()
