"""Multi-label rows: columns of 0 and 1, one column with a separator, lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtome.errors import DataError, RequestError
from microtome.tasks import DataSpec, as_kind, open_data


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


WANTED = [[True, False, True], [False, False, False], [False, True, False]]


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.csv", "text,a,b,c\nx,1,0,1\ny,0,0,0\nz,0,1,0\n", {"label_column": "a,b,c"}),
        ("a.tsv", "text\tlabel\nx\ta; c\ny\t\nz\tb\n", {"label_separator": ";"}),
        (
            "a.jsonl",
            (
                '{"text": "x", "label": ["c", "a"]}\n{"text": "y", "label": []}\n'
                '{"text": "z", "label": ["b"]}\n'
            ),
            {},
        ),
        (
            "b.jsonl",
            (
                '{"text": "x", "a": true, "b": 0, "c": 1}\n{"text": "y", "a": 0, "b": 0, "c": 0}\n'
                '{"text": "z", "a": 0, "b": 1.0, "c": false}\n'
            ),
            {"label_column": "a,b,c"},
        ),
        ("n.csv", "x,1,0,1\ny,0,0,0\nz,0,1,0\n", {"text_column": "1", "label_column": "2,3,4"}),
    ],
)
def test_every_way_to_write_several_labels_is_the_same(tmp_path, name, text, options):
    data = open_data(DataSpec(path=write(tmp_path / name, text), **options))
    assert data.task.kind == "multilabel"
    assert data.task.metrics == ("micro_f1", "macro_f1", "accuracy")
    assert data.targets.tolist() == WANTED
    assert [row.label for row in data.rows()] == [{0, 2}, set(), {1}]
    assert [row.text for row in data.rows()] == ["x", "y", "z"]


def test_labels_in_another_order_and_unknown_ones(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\nx\ta,c\nz\tb\n")
    data = open_data(DataSpec(path=path, label_separator=",", labels=("c", "b", "a")))
    assert data.targets.tolist() == [[True, False, True], [False, True, False]]
    spec = DataSpec(path=path, label_separator=",", labels=("a", "c"))
    with pytest.raises(DataError, match=r"line 3: expected one of a, c, got label 'b'"):
        open_data(spec)


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        ("text,a,b\nx,1,2\n", {"label_column": "a,b"}, "line 2: expected 0 or 1 in 'b', got '2'"),
        ("text,a,b\nx,1,\n", {"label_column": "a,b"}, "line 2: expected 0 or 1 in 'b', got ''"),
        ("text,a\nx,1\n", {"label_column": "a,b"}, "no column 'b'"),
        ("text,label\nx,1\n", {"kind": "multilabel"}, "expected a list of labels, got '1'"),
    ],
)
def test_what_is_no_mark_is_refused_with_its_line(tmp_path, text, options, problem):
    with pytest.raises(DataError, match=problem):
        open_data(DataSpec(path=write(tmp_path / "a.csv", text), **options))


def test_a_column_with_a_comma_in_its_name_is_one_column(tmp_path):
    path = write(tmp_path / "a.csv", 'text,"a,b"\nx,yes\ny,no\n')
    assert open_data(DataSpec(path=path, label_column="a,b")).labels == ("no", "yes")


def test_pairs_with_a_number_serve_a_classifier_and_an_embedder(tmp_path):
    path = write(tmp_path / "a.csv", "text,pair,label\na,b,0.5\nc,d,1.5\n")
    data = open_data(DataSpec(path=path))
    similar = as_kind(data, "similarity")
    assert (data.task.primary, similar.task.primary) == ("pearson", "cosine_spearman")
    assert similar.targets.tolist() == data.targets.tolist() == [0.5, 1.5]
    assert as_kind(similar, "regression").task.metrics == data.task.metrics
    assert as_kind(similar, "similarity") is similar
    asked = open_data(DataSpec(path=path, kind="similarity"))
    assert asked.task == similar.task
    single = open_data(DataSpec(path=write(tmp_path / "b.csv", "text,label\na,0.5\nb,1.5\n")))
    with pytest.raises(RequestError, match=r"single texts"):
        as_kind(single, "similarity")
    with pytest.raises(RequestError, match=r"expected rows of retrieval, got b.csv"):
        as_kind(single, "retrieval")
    with pytest.raises(DataError, match=r"similarity needs pairs"):
        open_data(DataSpec(path=tmp_path / "b.csv", kind="similarity"))
