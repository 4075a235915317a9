"""The embedded tasks that ship are those that the generator makes, row by row."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from micro import generated_rows
from micro.write import main, table_of
from microtome.tasks.embedded import SIZES, TASKS
from microtome.tasks.reading.embedded import FOLDER, embedded_rows, gold_rows

SPLITS = [(task, split) for task in TASKS for split in SIZES]


@pytest.mark.parametrize(("task", "split"), SPLITS, ids=lambda part: getattr(part, "name", part))
def test_rows_and_their_annotation_are_the_generators(task, split):
    made = generated_rows(task.name, split)
    assert gold_rows(task.name, split) == made
    plain = [(row.text, row.pair, row.label, row.id, row.cluster) for row in made]
    shipped = embedded_rows(task.name, split)
    assert [tuple(row)[:5] for row in shipped] == plain
    labels = [type(row.label) for row in shipped]
    assert labels == [type(row.label) for row in made]  # 1 == 1.0 == True


def test_the_words_of_a_tagged_row_are_those_of_its_tree():
    gold = gold_rows("micro-tagging", "dev")
    for row, made in zip(embedded_rows("micro-tagging", "dev"), gold, strict=True):
        (annotated,) = made.first
        assert row.words == tuple(word.form for word in annotated.sentence.words)
        assert len(row.label) == len(row.words)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_file_has_every_column_of_the_writer_and_is_compressed(task):
    for split in SIZES:
        with pq.ParquetFile(FOLDER / task.name / f"{split}.parquet") as file:
            assert file.schema_arrow.equals(table_of((), task.kind).schema)
            assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_writing_twice_gives_the_same_bytes(tmp_path):
    for folder in ("first", "second"):
        main(tmp_path / folder, TASKS[:1])
    for split in SIZES:
        path = f"{TASKS[0].name}/{split}.parquet"
        first = (tmp_path / "first" / path).read_bytes()
        assert first == (tmp_path / "second" / path).read_bytes()


def test_nothing_else_ships_and_it_stays_below_5_mb():
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert files == {f"{task.name}/{split}.parquet" for task, split in SPLITS}
    assert sum((FOLDER / file).stat().st_size for file in files) < 5e6
