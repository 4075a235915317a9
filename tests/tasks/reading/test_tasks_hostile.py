"""What fuzzing found: files that crashed a reader, hung it, or lost something without a word.

``python studies/fuzz`` looks for more.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from microtome.errors import DataError
from microtome.tasks import DataSpec, open_data
from microtome.tasks.reading.tables import column_names, read_records

HALF = "\ud800"  # half a character: JSON may hold it, UTF-8 may not


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def json_lines(path: Path, *rows: dict) -> Path:
    return write(path, "\n".join(map(json.dumps, rows)))


def seconds(work) -> float:
    """Of the processor: others use the machine, too."""
    started = time.process_time()
    work()
    return time.process_time() - started


@pytest.mark.parametrize(("name", "mark"), [("a.tsv", "\t"), ("a.csv", ",")])
def test_a_header_of_many_columns_takes_no_quadratic_time(tmp_path, name, mark):
    header = mark.join(f"c{i}" for i in range(20_000))
    path = write(tmp_path / name, f"{header}\n")
    assert seconds(lambda: column_names(path, name.split(".")[1])) < 1
    with pytest.raises(DataError, match=r"no column 'text'; its columns are 'c0'.* more") as error:
        list(read_records(path, name.split(".")[1], ("text",)))
    assert len(str(error.value)) < 500


def test_a_broken_parquet_page_is_refused_though_the_file_opens(tmp_path):
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"text": [f"text {i}" for i in range(50)], "label": ["a", "b"] * 25})
    pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False)
    content = path.read_bytes()
    with pyarrow.parquet.ParquetFile(path) as file:
        begin = file.metadata.row_group(0).column(0).data_page_offset
    write(path, content[:begin] + b"\xff" * 40 + content[begin + 40 :])
    assert column_names(path, "parquet") == ("text", "label")
    with pytest.raises(DataError, match="isn't a parquet file that can be read"):
        list(read_records(path, "parquet", ("text",)))


def test_no_bit_of_a_parquet_file_loses_rows_without_a_word(tmp_path):
    """A page's header may say that its column is empty; Arrow then ends all columns there."""
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"text": ["a", "b"], "more": [1, 2]})
    pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False)
    content, refused = path.read_bytes(), []
    for at, byte in enumerate(content):
        write(path, content[:at] + bytes([byte ^ 1 << at % 8]) + content[at + 1 :])
        try:
            assert len(list(read_records(path, "parquet", ("text", "more")))) == 2, at
        except DataError as error:
            refused.append(error.message)
    assert "a.parquet has 2 rows, and 0 can be read" in refused


def test_parquet_text_that_is_not_utf8_is_refused(tmp_path):
    bad = pyarrow.array([b"caf\xe9"]).view(pyarrow.utf8())
    pyarrow.parquet.write_table(pyarrow.table({"text": bad}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="isn't a parquet file that can be read"):
        list(read_records(tmp_path / "a.parquet", "parquet", ("text",)))


def test_a_parquet_column_twice_is_refused(tmp_path):
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, names=["text", "text"])
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="two columns 'text'"):
        open_data(DataSpec(path=tmp_path / "a.parquet"))


@pytest.mark.parametrize("odd", [None, ["b"], {}])
def test_what_is_no_label_in_a_list_is_refused_not_left_out(tmp_path, odd):
    path = json_lines(tmp_path / "a.jsonl", {"text": "x", "label": ["a", odd]})
    with pytest.raises(DataError, match="line 1: expected a list of labels, got"):
        open_data(DataSpec(path=path))


def test_rows_that_all_have_no_label_are_no_multilabel_data(tmp_path):
    path = json_lines(tmp_path / "a.jsonl", {"text": "x", "label": []}, {"text": "y", "label": []})
    with pytest.raises(DataError, match="expected labels in column 'label', got none"):
        open_data(DataSpec(path=path))


@pytest.mark.parametrize("odd", [["a"], {}])
def test_a_list_or_an_object_is_no_class(tmp_path, odd):
    rows = [{"text": "x", "label": "a"}, {"text": "y", "label": odd}]
    path = json_lines(tmp_path / "a.jsonl", *rows)
    with pytest.raises(DataError, match="line 2: expected a label, got"):
        open_data(DataSpec(path=path))


def test_pandas_nan_is_no_label_and_not_a_class_of_its_own(tmp_path):
    rows = [{"text": "x", "label": 0.0}, {"text": "y", "label": float("nan")}]
    path = json_lines(tmp_path / "a.jsonl", *rows, {"text": "z", "label": 1.0})
    with pytest.raises(DataError, match="line 2: no label in column 'label'"):
        open_data(DataSpec(path=path))


@pytest.mark.parametrize("tag", [-1, -100, True, 7, None])
def test_a_number_that_stands_for_no_tag_is_refused(tmp_path, tag):
    path = json_lines(tmp_path / "a.jsonl", {"tokens": ["x", "y"], "tags": [0, tag]})
    with pytest.raises(DataError, match=f"line 1: expected a tag or its number, got {tag}"):
        open_data(DataSpec(path=path, kind="tokens", labels=("O", "B-X", "I-X")))


def beir(folder: Path, *, grade: str = "1", id: str = "d") -> DataSpec:
    json_lines(folder / "corpus.jsonl", {"_id": "d", "text": "x"}, {"_id": f"{id}2", "text": "y"})
    json_lines(folder / "queries.jsonl", {"_id": "q", "text": "z"})
    write(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\nq\td\t{grade}\n")
    return DataSpec(path=folder)


def test_ids_with_half_a_character_are_ids(tmp_path):
    assert [row.text for row in open_data(beir(tmp_path, id=HALF)).rows()] == ["z", "x", "y"]
    path = json_lines(
        tmp_path / "a.jsonl", *({"text": t, "label": t, "id": HALF + t} for t in "ab")
    )
    assert len(open_data(DataSpec(path=path))) == 2


def test_a_grade_beyond_any_whole_number_is_refused(tmp_path):
    with pytest.raises(DataError, match="line 2: expected a whole number as grade, got '1e300'"):
        open_data(beir(tmp_path, grade="1e300"))
    rows = [{"text": "q", "pair": "p", "label": grade} for grade in (1, 1e300)]
    spec = DataSpec(path=json_lines(tmp_path / "a.jsonl", *rows), kind="reranking")
    with pytest.raises(DataError, match=r"line 2: .*got label '1e\+300'"):
        open_data(spec)


QUESTION = {"question": "q", "id": "1", "answers": [{"text": "c", "answer_start": 0}]}


def squad(question: dict = QUESTION, title: str = "t") -> dict:
    return {"title": title, "paragraphs": [{"context": "c", "qas": [question]}]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"data": [' + "[" * 100_000, "broken JSON"),
        ('{"data": [{"title": ' + "9" * 5_000 + "}]}", "broken JSON"),
        (json.dumps({"data": [squad(QUESTION | {"answers": ["c"]})]}), "answers without texts"),
        (
            json.dumps({"meta": {"data": []}, "data": [squad()]}),
            'expected an object with one "data"',
        ),
        (
            '{"data": [], "data": ' + json.dumps([squad()]) + "}",
            'expected an object with one "data"',
        ),
    ],
)
def test_a_squad_file_is_read_whole_or_refused(tmp_path, content, said):
    with pytest.raises(DataError, match=said):
        open_data(DataSpec("squad2", path=write(tmp_path / "a.json", content)))


def test_a_squad_title_with_half_a_character_is_a_title(tmp_path):
    content = json.dumps({"data": [squad(QUESTION | {"id": HALF}, title=HALF)]})
    assert len(open_data(DataSpec("squad2", path=write(tmp_path / "a.json", content)))) == 1


def test_conll_names_beyond_the_columns_that_are_there_are_no_columns(tmp_path):
    text = "# global.columns = a b words\nx O\n"
    spec = DataSpec(path=write(tmp_path / "a.conll", text))
    assert [row.words for row in open_data(spec).rows()] == [("x",)]
    with pytest.raises(DataError, match="no column '²'"):
        open_data(DataSpec(path=spec.path, label_column="²"))


def test_an_error_is_one_short_line_whatever_the_file_holds(tmp_path):
    path = write(tmp_path / "a.conll", "x O\n\x1b[31m" + "long" * 10_000 + "\n")
    with pytest.raises(DataError) as error:
        open_data(DataSpec(path=path))
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 2_100
