"""results.parquet: the union of columns, one type each, what goes in comes out."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from microtome.runs.record import Record
from microtome.runs.table import ordered_rows, parquet_bytes

FIRST = {"experiment": None, "model": None, "task": None}


def read(rows):
    return pq.read_table(io.BytesIO(parquet_bytes(rows)))


def record(status="ok", **fields) -> Record:
    return Record(
        hash="x", status=status, function="m:f", request={}, content={}, needs=[], **fields
    )


def values(kind):
    return st.none() | kind


ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "flag": values(st.booleans()),
            "count": values(st.integers(-(2**63), 2**63 - 1)),
            "value": values(st.floats(allow_nan=False, allow_infinity=False)),
            "text": values(st.text()),
        },
    ),
    max_size=6,
)


@given(ROWS)
def test_rows_come_back_as_they_were_with_nulls_where_absent(rows):
    names = dict.fromkeys([*FIRST, *(name for row in rows for name in row)])
    assert read(rows).to_pylist() == [{name: row.get(name) for name in names} for row in rows]
    assert parquet_bytes(rows) == parquet_bytes([dict(row) for row in rows])


def test_a_column_has_one_type():
    rows = [
        {"a": 1, "b": 1, "c": 1, "d": True, "e": None, "f": [1, "é"], "g": True, "h": 2**70},
        {"a": 2, "b": 0.5, "c": "x", "d": None, "e": None, "f": None, "g": 1, "h": 1},
    ]
    table = read(rows)
    types = {name: table.schema.field(name).type for name in "abcdefgh"}
    assert types == {
        "a": pa.int64(), "b": pa.float64(), "c": pa.string(), "d": pa.bool_(), "e": pa.null(),
        "f": pa.string(), "g": pa.string(), "h": pa.string(),
    }  # fmt: skip
    assert table["b"].to_pylist() == [1.0, 0.5]
    assert table["c"].to_pylist() == ["1", "x"]
    assert table["f"].to_pylist() == ['[1, "é"]', None]


def test_half_characters_of_hostile_text_are_replaced():
    assert read([{"text": "a\ud800b"}])["text"].to_pylist() == ["a?b"]


def test_experiment_model_and_task_stand_first_and_a_row_may_say_better():
    one = record(columns={"experiment": "decoding", "model": "m", "task": None}, rows=[{"n": 1}])
    two = record(columns={"model": "m"}, rows=[{"model": "other", "depth": 3}])
    rows = ordered_rows([one, two])
    assert [list(row)[:3] for row in rows] == [["experiment", "model", "task"]] * 2
    assert rows[0] == {"experiment": "decoding", "model": "m", "task": None, "n": 1}
    assert rows[1] == {"experiment": None, "model": "other", "task": None, "depth": 3}


def test_rows_of_trials_that_are_not_ok_stay_out():
    bad = [record(status, rows=[{"n": 1}]) for status in ("failed", "diverged", "timeout")]
    assert ordered_rows([*bad, record(rows=[{"n": 2}])]) == [{**FIRST, "n": 2}]
