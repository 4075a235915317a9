"""``vocabulary(FILE)`` as a value: its text names the file, its identity and hash the content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from microtome.edits import Edits, Keep, Vocabulary, parse
from microtome.errors import EditError


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("a text\nanother\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("texts.txt", "vocabulary(texts.txt)"),
        ("./data//texts.txt", "vocabulary(data/texts.txt)"),
        (Path("/data/my-texts_1.csv"), "vocabulary(/data/my-texts_1.csv)"),
        ("~/texts.txt", "vocabulary(~/texts.txt)"),
        ("my texts.txt", 'vocabulary("my texts.txt")'),
        ("a,b|(c)=.txt", 'vocabulary("a,b|(c)=.txt")'),
        ("Größe.txt", 'vocabulary("Größe.txt")'),
    ],
)
def test_the_text_of_any_file_name_is_read_back(file, text):
    edit = Vocabulary(file)
    assert edit.text == text
    assert parse(text)[0] == edit
    assert parse(f"keep(0-3)|{text}|remove(1)").text == f"keep(0-3) | {text} | remove(1)"
    assert eval(repr(edit), {"Vocabulary": Vocabulary}) == edit


def test_the_hash_is_of_the_content_and_not_of_the_name(texts):
    (texts / "copy.txt").write_bytes((texts / "texts.txt").read_bytes())
    one, other = (
        parse("keep(0-3) | vocabulary(texts.txt)"),
        parse("keep(0-3) | vocabulary(copy.txt)"),
    )
    assert one.text != other.text
    assert one.identity == other.identity
    assert one.hash == other.hash == hashlib.sha256(one.identity.encode()).hexdigest()
    digits = hashlib.sha256((texts / "texts.txt").read_bytes()).hexdigest()[:16]
    assert one.identity == f"keep(0-3) | vocabulary(sha256={digits})"
    (texts / "copy.txt").write_text("a text\nanother one\n", encoding="utf-8")
    assert one.hash != other.hash


def test_the_identity_is_an_edit_that_is_the_same_and_names_no_file(texts):
    known = parse(Vocabulary("texts.txt").identity)
    assert known.text == known.identity == Vocabulary("texts.txt").identity
    assert known.hash == Edits(Vocabulary("texts.txt")).hash
    assert eval(repr(known[0]), {"Vocabulary": Vocabulary}) == known[0]
    with pytest.raises(EditError, match="names the content of a file, not the file"):
        _ = known[0].path


def test_other_edits_are_their_text():
    assert Keep("0-3").identity == Keep("0-3").text


@pytest.mark.parametrize(("name", "reason"), [("none.txt", "doesn't exist"), (".", "is a folder")])
def test_a_file_that_is_not_there_is_told_when_its_content_is_needed(texts, name, reason):
    with pytest.raises(EditError, match=f"expected a file of texts, but .* {reason}"):
        _ = Vocabulary(name).hash


@pytest.mark.parametrize(
    "make",
    [
        lambda: Vocabulary(),
        lambda: Vocabulary(""),
        lambda: Vocabulary('a".txt'),
        lambda: Vocabulary("a\n.txt"),
        lambda: Vocabulary(7),
        lambda: Vocabulary(sha256="xyz"),
        lambda: Vocabulary("a.txt", sha256="0" * 16),
        lambda: parse("vocabulary()"),
        lambda: parse("vocabulary(a.txt, b.txt)"),
        lambda: parse("vocabulary(sha256=12)"),
        lambda: parse('vocabulary("a.txt)'),
    ],
)
def test_what_is_no_file_name_is_refused(make):
    with pytest.raises(EditError) as caught:
        make()
    assert "\n" not in str(caught.value)
