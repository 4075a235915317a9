"""Tables: csv, tsv, JSON lines, parquet, text and CoNLL columns, read a second way to compare."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random

import pyarrow
import pyarrow.parquet
from loop import Case, Files, Target, Wrong

from microtome.errors import MicrotomeError
from microtome.tasks import DataSpec, open_data, open_training
from microtome.tasks.reading.rows import Oddities
from microtome.tasks.reading.tables import column_names, format_of, read_records
from microtome.tasks.task import Row

csv.field_size_limit(2**31 - 1)

NASTY = ["", '"', '""', "'", ",", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029",
         "\ufeff", "NA", "null", "nan", "None", "-", " ", "\\", "é", "𝒳", "a", "word", "#", "0",
         "\x1b[1m"]  # fmt: skip


def text(rng: Random, *, without: str = "\0") -> str:
    """A text that has torn rows somewhere; now and then a long one."""
    pieces = [rng.choice(NASTY) for _ in range(rng.choice([0, 1, 3, 6]))]
    if rng.random() < 0.02:
        pieces.append("long " * 10_000)
    return "".join(c for c in "".join(pieces) if c not in without)


def labelled(rng: Random, *, without: str = "\0") -> list[list[str]]:
    """Rows of text, label and one more column; two labels at least."""
    labels = ["no", "yes", *(rng.choice(["no", "yes", "No?"]) for _ in range(rng.randrange(8)))]
    return [[text(rng, without=without), one, text(rng, without=without)] for one in labels]


def read_table(place: Path) -> list[str]:
    """Every field of a table, its header first; and the same rows as a data set, none lost."""
    (path,) = place.iterdir()
    format = format_of(path)
    columns = column_names(path, format)
    records = list(read_records(path, format, columns))
    _same_as_data(path, columns, [tuple(record.values) for record in records])
    return [repr(columns), *(repr(record.values) for record in records)]


def _same_as_data(path: Path, columns: tuple[str, ...], records: list[tuple]) -> None:
    spec = DataSpec(path=path)
    try:
        data = open_data(spec)
    except MicrotomeError:
        return
    texts = [record[columns.index("text")] for record in records]
    if len(data) != len(texts) or [row.text for row in data.rows()] != texts:
        raise Wrong(f"{len(texts)} rows of the file are {len(data)} rows of data")
    try:
        train, dev = open_training(spec)
    except MicrotomeError:
        return
    if sorted(row.text for part in (train, dev) for row in part.rows()) != sorted(texts):
        raise Wrong("training and dev rows aren't the rows of the file")


def _lines(content: bytes) -> list[str] | None:
    """The lines as a byte-wise reader sees them; None where the bytes aren't text."""
    try:
        decoded = content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return None
    *ended, last = decoded.split("\n")
    return [*(line.removesuffix("\r") for line in ended), *([last] if last else [])]


def _table(rows: list[list[str]]) -> list[str] | None:
    header = tuple(rows[0]) if rows else ()
    body = rows[1:]
    if len(header) == 1:
        body = [row or [""] for row in body]
    while body and not body[-1]:
        body.pop()
    return [repr(header), *(repr(tuple(row)) for row in body)]


def tsv_case(rng: Random) -> Case:
    rows = [["text", "label", "more"], *labelled(rng, without="\0\n\t")]
    end = rng.choice(["\n", "\r\n"])
    for row in rows:
        row[-1] = row[-1].rstrip("\r")
    content = end.join(map("\t".join, rows)) + rng.choice(["", end])
    return Case({"rows.tsv": rng.choice([b"", b"\xef\xbb\xbf"]) + content.encode()}, _table(rows))


def tsv_independent(files: Files) -> list[str] | None:
    lines = _lines(files["rows.tsv"])
    return None if lines is None else _table([line.split("\t") if line else [] for line in lines])


def csv_case(rng: Random) -> Case:
    rows = [["text", "label", "more"], *labelled(rng)]
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=rng.choice(["\n", "\r\n"]), quoting=csv.QUOTE_ALL).writerows(
        rows
    )
    content = rng.choice([b"", b"\xef\xbb\xbf"]) + out.getvalue().encode()
    return Case({"rows.csv": content}, _table(rows))


def csv_independent(files: Files) -> list[str] | None:
    """The standard reader; it takes a lone carriage return outside of quotes for a line's end."""
    content = files["rows.csv"]
    if b"\r" in content.replace(b"\r\n", b"") or _lines(content) is None or b"\0" in content:
        return None
    decoded = content.removeprefix(b"\xef\xbb\xbf").decode()
    try:
        return _table(list(csv.reader(io.StringIO(decoded, newline=""), strict=True)))
    except csv.Error:
        return None


def jsonl_case(rng: Random) -> Case:
    rows = [
        {"text": row[0], "label": row[1], "more": rng.choice([1, None, 0.5, [1], row[2]])}
        for row in labelled(rng)
    ]
    ascii = rng.random() < 0.5
    content = "\n".join(json.dumps(row, ensure_ascii=ascii) for row in rows)
    return Case(
        {"rows.jsonl": content.encode()}, jsonl_independent({"rows.jsonl": content.encode()})
    )


def jsonl_independent(files: Files) -> list[str] | None:
    try:
        lines = [line for line in _lines(files["rows.jsonl"]) or [] if line]
        rows = [json.loads(line) for line in lines]
        columns = tuple(rows[0])
        return [repr(columns), *(repr(tuple(row[name] for name in columns)) for row in rows)]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def parquet_case(rng: Random) -> Case:
    rows = labelled(rng)
    label = rng.choice([list, lambda names: pyarrow.array(names).dictionary_encode()])
    columns = {
        "text": [row[0] for row in rows],
        "label": label([row[1] for row in rows]),
        "more": [rng.choice([None, 1, 2]) for _ in rows],
    }
    out = io.BytesIO()
    compression = rng.choice(["none", "zstd", "snappy"])
    group = rng.choice([1, 3, 1000])
    pyarrow.parquet.write_table(
        pyarrow.table(columns), out, compression=compression, row_group_size=group
    )
    files = {"rows.parquet": out.getvalue()}
    return Case(files, parquet_independent(files))


def parquet_independent(files: Files) -> list[str] | None:
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(files["rows.parquet"]), use_threads=False)
        if len(set(table.column_names)) < len(table.column_names):
            return None
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return [repr(tuple(table.column_names)), *map(repr, rows)]
    except (pyarrow.ArrowException, OSError, ValueError):
        return None


def text_case(rng: Random) -> Case:
    lines = [text(rng, without="\0\n\ufeff").rstrip("\r") for _ in range(rng.randint(1, 8))] + [
        "end"
    ]
    content = rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])
    return Case({"rows.txt": content.encode()}, text_independent({"rows.txt": content.encode()}))


def text_independent(files: Files) -> list[str] | None:
    lines = _lines(files["rows.txt"])
    return None if lines is None else [repr(("text",)), *(repr((line,)) for line in lines)]


def read_text(place: Path) -> list[str]:
    """The lines; as a data set the empty ones are left out, and counted."""
    path = place / "rows.txt"
    records = [repr(tuple(record.values)) for record in read_records(path, "txt", ("text",))]
    try:
        data = open_data(DataSpec(path=path))
    except MicrotomeError:
        return [repr(("text",)), *records]
    check_rows(data, len(records))
    return [repr(("text",)), *records]


def check_rows(data, n_lines: int) -> list[Row]:
    """The rows of a data set; each of ``n_lines`` rows of the file must be accounted for."""
    oddities = Oddities()
    n_read = sum(1 for _ in data._source.read(oddities))
    rows = list(data.rows())
    if n_read + len(oddities.broken) != n_lines or len(data) + data.n_unlabelled != n_read:
        told = f"{n_read} read, {len(oddities.broken)} broken, {data.n_unlabelled} unlabelled"
        raise Wrong(f"the file has more rows than are accounted for: {n_lines}; {told}")
    if len(rows) != len(data):
        raise Wrong(f"{len(data)} rows, and {len(rows)} when they are read again")
    return rows


TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def conll_case(rng: Random) -> Case:
    mark = rng.choice([" ", "\t"])
    words = [[word(rng) for _ in range(rng.randint(1, 5))] for _ in range(rng.randint(1, 5))]
    words.append(["end"])
    blocks = [
        "\n".join(mark.join([one, "X", rng.choice(TAGS)]) for one in sentence) for sentence in words
    ]
    content = rng.choice(["", "-DOCSTART- X O\n\n"]) + "\n\n".join(blocks) + rng.choice(["", "\n"])
    files = {"rows.conll": content.replace("-DOCSTART- X O", mark.join(["-DOCSTART-", "X", "O"]))}
    return Case({n: c.encode() for n, c in files.items()}, words)


def word(rng: Random) -> str:
    """A word: no white space that ends a column, and nothing that begins a comment."""
    return "".join(c for c in text(rng) if c not in "\n\r\t \0#\ufeff" and len(c.strip())) or "w"


def read_conll(place: Path) -> list[list[str]]:
    data = open_data(DataSpec(path=place / "rows.conll", kind="tokens"))
    return [list(row.words or ()) for row in data.rows()]


def conll_independent(files: Files) -> list[list[str]] | None:
    lines = _lines(files["rows.conll"])
    if lines is None or any("#" in line or "DOCSTART" in line for line in lines):
        return None
    first = next((line for line in lines if line.strip(" \t")), "")
    mark = "\t" if "\t" in first else " "
    sentences: list[list[str]] = [[]]
    for line in lines:
        if not line.strip(" \t"):
            sentences.append([])
        else:
            parts = [part for part in line.split(mark) if part or mark == "\t"]
            sentences[-1].append(parts[0])
    return [sentence for sentence in sentences if sentence]


TARGETS = [
    Target("tsv", tsv_case, read_table, tsv_independent),
    Target("csv", csv_case, read_table, csv_independent),
    Target("jsonl", jsonl_case, read_table, jsonl_independent),
    Target("parquet", parquet_case, read_table, parquet_independent),
    Target("txt", text_case, read_text, text_independent),
    Target("conll", conll_case, read_conll, conll_independent),
]
