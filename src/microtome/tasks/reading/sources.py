"""Where a task's rows come from: its native files, any one file, or the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from microtome.errors import DataError
from microtome.tasks.catalogue import find_split
from microtome.tasks.reading.embedded import embedded_rows
from microtome.tasks.reading.lines import read_lines
from microtome.tasks.reading.rows import Located, Oddities, column_order, rows_of
from microtome.tasks.reading.squad import squad_rows
from microtome.tasks.reading.tables import column_names, format_as, missing_column, read_records
from microtome.tasks.task import Columns, Format, NativeFile, Split, Task

FILE_SPLIT = "file"
"""The split's name of a single file."""

PLAIN = Columns("text", "pair", "label", "id")
"""The columns of own data unless others are named."""


@dataclass(frozen=True)
class RowSource:
    """Rows that can be read again and again; ``read`` collects what it meets on the way.

    With ``skip_unknown`` rows whose label isn't one of the task's are left out, else refused.
    """

    task: Task
    split: str
    read: Callable[[Oddities], Iterator[Located]]
    labelled: bool
    path: Path | None = None
    published: Split | None = None
    notes: tuple[str, ...] = ()
    unit: str = "line"
    """What the numbers of its rows count."""
    skip_unknown: bool = False


def native_source(task: Task, folder: Path, split_name: str) -> RowSource:
    """A split out of the folder that directly holds the task's native files."""
    split = find_split(task, split_name)
    for file in split.files:
        if (folder / file.name).is_file():
            source = _table(task, folder / file.name, file, split=split.name)
            return replace(source, published=split)
    names = " or ".join(file.name for file in split.files) or "no file"
    there = sorted(path.name for path in folder.iterdir())[:8]
    raise DataError(
        f"{folder} has no {task.name} {split.name}: expected {names}",
        f"it has {', '.join(there) or 'no files'}",
    )


def file_source(task: Task, path: Path, chosen: Columns | None = None) -> RowSource:
    """Any file read as ``task``: by its native name, else by the columns that are there."""
    native = next((file for file in _native_files(task) if file.name == path.name), None)
    if native is not None and chosen is None:
        return _table(task, path, native, split=FILE_SPLIT)
    format = format_as(path, task.kind)
    if format == "txt" and _is_table(task, path):
        format = "tsv"
    if format == "txt":
        return _table(task, path, NativeFile(path.name, format, Columns("text"), skip_broken=True))
    if (format == "squad") != (task.kind == "spans" and format not in ("jsonl", "parquet")):
        formats = "SQuAD's .json" if task.kind == "spans" else ".csv .tsv .jsonl or .parquet"
        raise DataError(f"expected {formats} for {task.name}, got {path.name}")
    if format == "squad":
        return _table(task, path, NativeFile(path.name, format, _known_columns(task)[0]))
    columns = chosen or fitting_columns(task, path, format)
    # QQP's own slices have its broken rows, too.
    skip = any(file.skip_broken for file in _native_files(task)) and format == "tsv"
    return _table(task, path, NativeFile(path.name, format, columns, skip))


def embedded_source(task: Task, split_name: str) -> RowSource:
    """A split that ships with the package."""
    split = find_split(task, split_name)

    def read(_: Oddities) -> Iterator[Located]:
        rows = embedded_rows(task.name, split.name)
        return (Located(number, row) for number, row in enumerate(rows, start=1))

    return RowSource(task, split.name, read, labelled=True, published=split, unit="row")


def _native_files(task: Task) -> tuple[NativeFile, ...]:
    return tuple(file for split in task.splits for file in split.files)


def _table(task: Task, path: Path, file: NativeFile, *, split: str = FILE_SPLIT) -> RowSource:
    labelled = file.columns.labelled
    if file.format == "squad":
        read_questions = partial(_questions, task, path)
        return RowSource(task, split, read_questions, labelled, path, unit="question")
    unit = "row" if file.format == "parquet" else "line"
    columns = file.columns
    there = column_names(path, file.format, columns.header)
    with_id = columns.id in there
    names = column_order(columns, with_id=with_id)

    def read(oddities: Oddities) -> Iterator[Located]:
        records = read_records(
            path,
            file.format,
            names,
            header=columns.header,
            broken=oddities.broken if file.skip_broken else None,
        )
        return rows_of(task, path, records, columns, oddities, with_id=with_id, unit=unit)

    return RowSource(task, split, read, labelled, path, unit=unit)


def _questions(task: Task, path: Path, _: Oddities) -> Iterator[Located]:
    return squad_rows(task, path)


def fitting_columns(
    task: Task,
    path: Path,
    format: Format,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
) -> Columns:
    """The first of the task's known columns that the file has.

    ``text``, ``pair`` and ``label`` replace the known names.
    """
    candidates = [
        replace(known, text=text or known.text, pair=pair or known.pair, label=label or known.label)
        for known in _known_columns(task)
    ]
    there = column_names(path, format)
    with_header = sorted((c for c in candidates if c.header is None), key=lambda c: not c.label)
    for columns in with_header:
        if set(columns.named) <= set(there):
            return columns
    for columns in candidates:
        if columns.header is not None and _fits_headerless(task, columns, there):
            return columns
    best = with_header[0]
    roles = {"text": best.text, "pair": best.pair, "label": best.label}
    role = next(role for role, name in roles.items() if name and name not in there)
    raise missing_column(path, roles[role] or "", there, option=f"--{role}-column")


def _known_columns(task: Task) -> tuple[Columns, ...]:
    known = [file.columns for file in _native_files(task)]
    if task.hub is not None:
        known.append(task.hub.columns)
    is_pair = task.kind == "spans" or any(columns.pair for columns in known)
    return tuple(dict.fromkeys([*known, PLAIN if is_pair else replace(PLAIN, pair=None)]))


def _is_table(task: Task, path: Path) -> bool:
    """Whether a .txt file is a table of this task (msr_paraphrase_train.txt), not plain text."""
    there = set(next(read_lines(path)).text.split("\t"))
    return any(set(columns.named) <= there for columns in _known_columns(task))


def _fits_headerless(task: Task, columns: Columns, first_row: tuple[str, ...]) -> bool:
    """Whether the file's first line is a row of a format without a header (CoLA)."""
    header = columns.header or ()
    if len(header) != len(first_row) or columns.label is None:
        return False
    known = {*task.labels, *(str(index) for index in range(len(task.labels)))}
    return first_row[header.index(columns.label)] in known
