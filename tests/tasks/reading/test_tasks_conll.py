"""CoNLL columns and lists of words: schemes, columns, comments, and what is refused."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtome.errors import DataError, RequestError
from microtome.tasks import DataSpec, Row, open_data, open_training
from microtome.tasks.tags import strict_tags


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def tags_of(data) -> list[list[str]]:
    assert data.tags is not None
    names = [data.labels[tag] for tag in data.tags.values]
    offsets = data.tags.offsets
    return [names[a:b] for a, b in pairwise(offsets)]


def test_a_file_is_sentences_of_words_with_tags(tmp_path):
    text = "-DOCSTART- -X- O O\n\nMary NN I-NP B-PER\nsaw VB I-VP O\n\n\nKent NN I-NP B-LOC\n"
    data = open_data(DataSpec(path=write(tmp_path / "a.conll", text)))
    assert [row.words for row in data.rows()] == [("Mary", "saw"), ("Kent",)]
    assert [row.text for row in data.rows()] == ["Mary saw", "Kent"]
    assert data.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert tags_of(data) == [["B-PER", "O"], ["B-LOC"]]
    assert data.targets.tolist() == [1, 1]
    assert (data.task.kind, data.task.primary) == ("tokens", "entity_f1")


def test_tabs_keep_words_with_spaces_apart_and_a_tab_alone_ends_a_sentence(tmp_path):
    text = "10 000\tO\n\u00a0x\tB-A\n\t\ny\tO\r\n"
    data = open_data(DataSpec(path=write(tmp_path / "a.conll", text)))
    assert [row.words for row in data.rows()] == [("10 000", "\u00a0x"), ("y",)]
    glued = open_data(DataSpec(path=write(tmp_path / "b.conll", "10\tO\n000\tO\n\u00a0x\tB-A\n")))
    assert glued.text_hash != data.select(data.positions[:1]).text_hash


def test_a_hash_is_a_word_where_it_has_a_tag_and_a_comment_where_not(tmp_path):
    text = "# sent_id = 1\n# O\n#nlproc B-TAG\n\n# text = a b c d\na O\n"
    data = open_data(DataSpec(path=write(tmp_path / "a.conll", text)))
    assert [row.words for row in data.rows()] == [("#", "#nlproc"), ("a",)]


def test_columns_are_named_by_number_or_by_the_files_header(tmp_path):
    text = "# global.columns = ID FORM NER POS\n1\tMary\tB-PER\tNN\n2\tsaw\tO\tVB\n"
    path = write(tmp_path / "a.conll", text)
    for word, tag in (("2", "3"), ("FORM", "NER")):
        data = open_data(DataSpec(path=path, text_column=word, label_column=tag))
        assert [row.words for row in data.rows()] == [("Mary", "saw")]
        assert tags_of(data) == [["B-PER", "O"]]
    with pytest.raises(DataError, match=r"no column '5'.*4 columns, called ID, FORM"):
        open_data(DataSpec(path=path, label_column="5"))


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IOB2", ["B-A", "I-A", "B-A", "O", "B-B", "B-A"]),
        ("IOB1", ["I-A", "I-A", "B-A", "O", "I-B", "I-A"]),
        ("BIOES", ["B-A", "E-A", "S-A", "O", "S-B", "S-A"]),
        ("BILOU", ["B-A", "L-A", "U-A", "O", "U-B", "U-A"]),
    ],
)
def test_every_scheme_says_the_same(scheme, tags):
    strict, n_implied = strict_tags(tags)
    assert strict == ("B-A", "I-A", "B-A", "O", "B-B", "B-A")
    assert n_implied == (3 if scheme == "IOB1" else 0)


ENTITIES = st.lists(st.tuples(st.sampled_from("xyO"), st.integers(1, 3)), max_size=8)


@given(ENTITIES)
def test_writing_entities_in_any_scheme_and_reading_them_is_the_identity(parts):
    iob1, iob2, bioes, before = [], [], [], "O"
    for name, length in parts:
        if name == "O":
            for tags in (iob1, iob2, bioes):
                tags += ["O"] * length
        else:
            iob2 += [f"B-{name}"] + [f"I-{name}"] * (length - 1)
            iob1 += [f"{'B' if before == name else 'I'}-{name}"] + [f"I-{name}"] * (length - 1)
            inner = [f"B-{name}"] + [f"I-{name}"] * (length - 2) + [f"E-{name}"]
            bioes += [f"S-{name}"] if length == 1 else inner
        before = name
    assert strict_tags(iob1)[0] == strict_tags(iob2)[0] == strict_tags(bioes)[0] == tuple(iob2)
    assert strict_tags(iob2)[1] == strict_tags(bioes)[1] == 0


def test_iob1_is_converted_and_said(tmp_path):
    data = open_data(DataSpec(path=write(tmp_path / "a.iob", "a I-X\nb I-X\nc O\nd I-Y\n")))
    assert tags_of(data) == [["B-X", "I-X", "O", "B-Y"]]
    assert any("2 entities begin with an I" in note for note in data.notes)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a O\nb NOUN\n", "line 2: expected a tag like O, B-PER or I-PER, got 'NOUN'"),
        ("a O\nb B-\n", "line 2: expected a tag"),
        ("a O\n\nb\n", "line 3: expected a word and its tag, got 'b'"),
        ("word\nother\n", "line 1: expected a word and its tag, got 'word'"),
        ("a X O\nb O\n", "line 2: expected 3 columns, got 2"),
        ("a\tO\n\tO\n", "line 2: expected a word, got an empty one"),
        ("\n\n", "has no rows"),
    ],
)
def test_what_is_no_table_of_tags_is_refused_with_its_line(tmp_path, text, problem):
    with pytest.raises(DataError, match=problem):
        open_data(DataSpec(path=write(tmp_path / "a.conll", text)))


@pytest.mark.parametrize("name", ["dev", "a.txt", "a.tsv", "a.words"])
def test_any_file_of_kind_tokens_has_conll_columns(tmp_path, name):
    path = write(tmp_path / name, "en:Kent\tB-LOC\n\nen:x\tO\n")
    data = open_data(DataSpec(path=path, kind="tokens"))
    assert [row.words for row in data.rows()] == [("en:Kent",), ("en:x",)]


def test_lists_of_words_and_tags_in_json_lines(tmp_path):
    lines = [
        {"tokens": ["New York", "is"], "ner_tags": ["S-LOC", "O"]},
        {"tokens": ["x"], "ner_tags": ["O"]},
    ]
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))
    data = open_data(DataSpec(path=path))
    assert next(data.rows()) == Row("New York is", label=(1, 0), words=("New York", "is"))
    assert data.labels == ("O", "B-LOC", "I-LOC")
    numbers = [{"tokens": ["a", "b"], "ner_tags": [2, 0]}]
    path = write(tmp_path / "b.jsonl", "\n".join(map(json.dumps, numbers)))
    labels = ("O", "I-LOC", "B-LOC")
    assert tags_of(open_data(DataSpec(path=path, labels=labels))) == [["B-LOC", "O"]]
    with pytest.raises(DataError, match=r"got 2.*--labels"):
        open_data(DataSpec(path=path))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "expected a tag for each of 2 words, got 1"),
        ({"tokens": [], "tags": []}, "expected a list of words"),
        ({"tokens": ["a", ""], "tags": ["O", "O"]}, "got an empty one"),
        ({"tokens": ["a"], "tags": ["noun"]}, "expected tags like O"),
    ],
)
def test_lists_that_do_not_fit_are_refused_with_their_line(tmp_path, row, problem):
    path = write(tmp_path / "a.jsonl", json.dumps({"tokens": ["a"], "tags": ["O"]}) + "\n")
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    with pytest.raises(DataError, match=f"line 2: .*{problem}"):
        open_data(DataSpec(path=path))


def test_a_task_reads_its_native_files_and_refuses_other_entities(tmp_path):
    write(tmp_path / "emerging.dev.conll", "Kent\tB-location\n\nx\tO\n")
    data = open_data(DataSpec("wnut17", tmp_path))
    assert len(data) == 2
    assert data.notes == ("emerging.dev.conll: 2 rows, 1,009 were published",)
    write(tmp_path / "emerging.dev.conll", "a\tO\n\nKent\tB-place\n")
    with pytest.raises(DataError, match=r"line 3: expected one of O, B-corporation.* 'B-place'"):
        open_data(DataSpec("wnut17", tmp_path))
    data = open_data(DataSpec("wnut17", tmp_path, skip_unknown_labels=True))
    assert len(data) == 1


def test_training_rows_and_dev_rows_are_of_the_training_files_labels(tmp_path):
    train = write(tmp_path / "train.conll", "a B-X\nb B-Y\n\nc O\n")
    dev = write(tmp_path / "dev.conll", "a B-Y\n")
    rows, measured = open_training(DataSpec(path=train, dev_path=dev))
    assert rows.labels == measured.labels == ("O", "B-X", "I-X", "B-Y", "I-Y")
    assert tags_of(measured) == [["B-Y"]]


def test_sentences_are_selected_with_their_tags(tmp_path):
    text = "".join(f"w{i} {'B-X' if i % 2 else 'O'}\nv O\n\n" for i in range(40))
    data = open_data(DataSpec(path=write(tmp_path / "a.conll", text)))
    small = data.limit(7, seed=3)
    for row, tags in zip(small.rows(), tags_of(small), strict=True):
        assert tags == ["B-X" if int(row.words[0][1:]) % 2 else "O", "O"]
    assert small.content_hash != data.content_hash
    train, dev = data.held_out()
    assert (len(train), len(dev)) == (32, 8)
    assert dev.targets.sum() == 4  # a fifth of those with an entity


def test_the_hash_of_the_texts_is_not_that_of_the_tags(tmp_path):
    one = open_data(DataSpec(path=write(tmp_path / "a.conll", "a B-X\nb O\n")))
    other = open_data(DataSpec(path=write(tmp_path / "b.conll", "a O\nb B-X\n")))
    assert one.text_hash == other.text_hash
    assert one.content_hash != other.content_hash


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(RequestError, match="no data is of kind 'span'; there are classification"):
        DataSpec("squad2", kind="span")
