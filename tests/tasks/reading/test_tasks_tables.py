"""Readers: a row is read right, or refused with its line; none is lost, merged or torn."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from microtome.errors import DataError
from microtome.tasks.reading.tables import column_names, format_of, read_records

# Everything that has torn rows somewhere: quotes, other line separators, a BOM, nothing at all.
NASTY = ["", '"', '""', "'", ",", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
NASTY += ["\ufeff", "NA", "null", "nan", "None", "-", " ", "\\", "é", "𝒳", "a"]
pieces = st.lists(st.sampled_from(NASTY), max_size=6).map("".join)
fields = st.one_of(pieces, st.text(st.characters(codec="utf-8", exclude_characters="\0\n\t")))


def records(path: Path, format, columns, **options) -> list[tuple[int, tuple]]:
    return [tuple(record) for record in read_records(path, format, columns, **options)]


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


fuzz = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzz
@given(
    rows=st.lists(st.tuples(fields, fields.filter(lambda f: not f.endswith("\r"))), max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    closed=st.booleans(),
    bom=st.booleans(),
)
@example(rows=[('"', "x"), ('"', "y")], end="\n", closed=True, bom=False)
@example(rows=[("a\u2028b\x85c\x0b", "NA"), ("", "")], end="\n", closed=True, bom=True)
def test_a_tsv_gives_back_exactly_the_fields_that_were_written(tmp_path, rows, end, closed, bom):
    lines = ["text\tlabel", *("\t".join(row) for row in rows)]
    content = end.join(lines) + (end if closed or not rows else "")
    path = write(tmp_path / "a.tsv", b"\xef\xbb\xbf" * bom + content.encode())
    found = records(path, "tsv", ("text", "label"))
    assert [values for _, values in found] == rows
    assert [number for number, _ in found] == list(range(2, len(rows) + 2))


@fuzz
@given(content=st.lists(st.sampled_from([*b'ab\t\n\r"\0\xe9']) | st.integers(0, 255)).map(bytes))
@example(content=b"a\tb\r\nc\td")
@example(content=b"\r\r\n")
def test_any_bytes_as_tsv_give_one_row_per_line_or_a_line_number(tmp_path, content):
    path = write(tmp_path / "a.tsv", b"text\tlabel\n" + content)
    try:
        found = records(path, "tsv", ("text", "label"))
    except DataError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "line " in refusal
        return
    *ended, last = content.split(b"\n")
    lines = [*(line.removesuffix(b"\r") for line in ended), last]
    while lines and not lines[-1]:
        lines.pop()
    assert [list(values) for _, values in found] == [line.decode().split("\t") for line in lines]


@fuzz
@given(
    rows=st.lists(
        st.tuples(*[st.text(st.sampled_from('ab,"\n\r\t\u2028é'), max_size=8)] * 2), max_size=8
    ),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_a_csv_gives_back_what_the_standard_writer_wrote(tmp_path, rows, end):
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("text", "label"), *rows])
    path = write(tmp_path / "a.csv", out.getvalue())
    assert [values for _, values in records(path, "csv", ("text", "label"))] == rows


@fuzz
@given(content=st.text(st.sampled_from('ab,"\n'), max_size=30))
@example(content='""')
@example(content='"a,1\nb,"\n')
@example(content='a,"b\n",""\n')
def test_any_csv_is_read_as_the_strict_standard_reader_does_or_refused(tmp_path, content):
    path = write(tmp_path / "a.csv", "text,label\n" + content)
    try:
        found = [list(values) for _, values in records(path, "csv", ("text", "label"))]
    except DataError:
        return  # refusals have their own tests
    wanted = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    while wanted and not wanted[-1]:
        wanted.pop()
    assert found == wanted


@fuzz
@given(rows=st.lists(st.tuples(fields, fields), min_size=1, max_size=6), ascii=st.booleans())
def test_json_lines_give_back_what_was_written(tmp_path, rows, ascii):
    lines = [json.dumps({"text": t, "label": y}, ensure_ascii=ascii) for t, y in rows]
    path = write(tmp_path / "a.jsonl", "\n".join(lines))
    assert [values for _, values in records(path, "jsonl", ("text", "label"))] == rows


def test_parquet_gives_back_what_was_written_with_row_numbers(tmp_path):
    import pyarrow
    import pyarrow.parquet

    texts = ["NA", "null", "", "a\nb", "\u2028"]
    table = pyarrow.table({"label": [0, 1, 0, 1, 0], "text": texts, "more": [1.5] * 5})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    found = records(tmp_path / "a.parquet", "parquet", ("text", "label"))
    assert found == [(i + 1, (text, i % 2)) for i, text in enumerate(texts)]


def test_a_line_of_a_million_characters_is_one_row(tmp_path):
    long = "wort " * 200_000
    path = write(tmp_path / "a.tsv", f"text\tlabel\n{long}\t1\nx\t0\n")
    assert records(path, "tsv", ("text", "label")) == [(2, (long, "1")), (3, ("x", "0"))]
    quoted = write(tmp_path / "a.csv", f'text,label\n"{long},",1\n')
    assert records(quoted, "csv", ("text",)) == [(2, (long + ",",))]


def test_quotes_mean_nothing_in_a_tsv(tmp_path):
    path = write(tmp_path / "a.tsv", 'text\tlabel\n"open\t1\nclose"\t0\n"both"\t1\n')
    assert [v for _, v in records(path, "tsv", ("text",))] == [('"open',), ('close"',), ('"both"',)]


def test_a_quoted_line_end_keeps_the_number_of_its_first_line(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\n"two\r\nlines",1\nnext,0\n')
    assert records(path, "csv", ("text",)) == [(2, ("two\r\nlines",)), (4, ("next",))]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", b"text\tlabel\nx\t1\ny\n", "line 3: expected 2 fields, got 1"),
        ("a.tsv", b"text\tlabel\nx\ty\t1\n", "line 2: expected 2 fields, got 3"),
        ("a.tsv", b"text\tlabel\nx\t1\n\ny\t1\n", "line 3: an empty line between rows"),
        ("a.tsv", b"text\tlabel\nx\0y\t1\n", "line 2: a NUL byte"),
        ("a.tsv", b"text\tlabel\nok\t1\ncaf\xe9\t1\n", "line 3: byte 0xe9 at 4 isn't UTF-8"),
        ("a.tsv", "text\tlabel\nx\t1\n".encode("utf-16"), "line 1: expected UTF-8, got UTF-16"),
        ("a.tsv", b"text\ttext\nx\t1\n", "line 1: column 'text' twice"),
        ("a.csv", b'text,label\nx,1\n"y,2\nz,3\n', "line 3: a quote opens here and never closes"),
        (
            "a.csv",
            b'text,label\n"x"y,1\n',
            "line 2: expected a comma or the line's end after a closing quote, got 'y'",
        ),
        (
            "a.csv",
            b'text,label\n"x,1\n"y,2\n',
            "a closing quote, got 'y'; the quote opened in line 2",
        ),
        ("a.csv", b"text,label\nx,y,1\n", "line 2: expected 2 fields, got 3"),
        ("a.jsonl", b'{"text": "x"\n', "line 1: broken JSON"),
        (
            "a.jsonl",
            b'{"text": "x", "label": 1}\n["x", 1]\n',
            "line 2: expected a JSON object, got list",
        ),
        ("a.jsonl", b'{"text": "x", "label": 1}\n{"text": "y"}\n', "line 2: no 'label'"),
        ("a.jsonl", b'{"text": "x", "label": 1}\n\n{"text": "y", "label": 1}', "line 2: an empty"),
        ("a.jsonl", b'{"text": "x", "label": 1' + b"1" * 5000 + b"}", "line 1: broken JSON"),
    ],
)
def test_what_cannot_be_read_right_is_refused_with_its_line(tmp_path, name, content, said):
    path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=said.replace("(", r"\(")):
        records(path, format_of(path), ("text", "label"))


def test_a_missing_column_lists_those_there_are(tmp_path):
    path = write(tmp_path / "a.csv", "sentence,y\nx,1\n")
    with pytest.raises(DataError, match="no column 'text'; its columns are 'sentence', 'y'"):
        records(path, "csv", ("text",))


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"PK\x03\x04"])
def test_a_compressed_file_is_refused_whatever_its_name(tmp_path, magic):
    with pytest.raises(DataError, match="compressed"):
        format_of(write(tmp_path / "a.csv", magic + b"rest"))


def test_an_empty_file_and_an_unknown_format_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a.csv is empty"):
        format_of(write(tmp_path / "a.csv", b""))
    with pytest.raises(DataError, match=r"use .csv .tsv .jsonl"):
        format_of(write(tmp_path / "a.xlsx", b"x"))
    with pytest.raises(DataError, match="isn't a parquet file"):
        column_names(write(tmp_path / "a.parquet", b"text,label"), "parquet")


def test_empty_lines_at_the_end_of_a_table_are_no_rows(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\nx\t1\n\n\n")
    assert len(records(path, "tsv", ("text",))) == 1


def test_an_empty_line_of_a_table_with_one_column_is_an_empty_text(tmp_path):
    path = write(tmp_path / "a.tsv", "text\nx\n\ny\n")
    assert [v for _, v in records(path, "tsv", ("text",))] == [("x",), ("",), ("y",)]
