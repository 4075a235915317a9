"""results.parquet: all rows of a run, one type per column, the same bytes for the same records."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from microtome.runs.record import ROW_COLUMNS, Record

if TYPE_CHECKING:
    import pyarrow as pa


def ordered_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of the records that are ok, each with experiment, model, task first."""
    first = dict.fromkeys(ROW_COLUMNS)
    return [
        {**first, **record.columns, **row} for record in records if record.ok for row in record.rows
    ]


def _kind(values: Sequence[Any]) -> str:
    """The narrowest kind that holds every value; "text" where kinds don't mix."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return "null"
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int" if all(-(2**63) <= v < 2**63 for v in values if v is not None) else "text"
    if kinds <= {int, float}:
        return "float"
    return "text"


def _text(value: object) -> str | None:
    """Text as it is (half characters replaced); a list, or a number among texts, as JSON."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def parquet_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The rows as a Parquet file; columns in order of first appearance, nulls where absent."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table_of_rows(rows), buffer, compression="zstd")
    return buffer.getvalue()


def table_of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows as an Arrow table; columns in order of first appearance, nulls where absent."""
    import pyarrow as pa
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    types = {
        "null": pa.null(),
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "text": pa.string(),
    }
    names = dict.fromkeys(ROW_COLUMNS) | {name: None for row in rows for name in row}
    kinds = {name: _kind([row.get(name) for row in rows]) for name in names}
    schema = pa.schema([(_text(name), types[kind]) for name, kind in kinds.items()])
    if not rows:
        return schema.empty_table()
    # Through JSON, because pa.array imports pandas, which takes longer than all the rest.
    lines = "\n".join(json.dumps(_typed(row, kinds)) for row in rows).encode()
    return read_json(
        io.BytesIO(lines),
        read_options=ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def _typed(row: Mapping[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    typed = {name: _text(v) if kinds[name] == "text" else v for name, v in row.items()}
    return {str(_text(name)): value for name, value in typed.items()}
