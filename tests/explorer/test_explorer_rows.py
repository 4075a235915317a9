"""How labels read, and what the outputs of a head without names are called."""

from __future__ import annotations

import pytest

from microtome.explorer.rows import label_text
from microtome.explorer.session import Session, SessionRequest
from microtome.tasks import DataSpec
from microtome.tasks.task import Answer, Task
from support.training_rows import checkpoint

TEXT, PAIR = "the cat sees a big red dog", "she sings and he never sleeps"


@pytest.mark.parametrize(
    ("n_labels", "expected"), [(1, ["relevant"]), (2, ["not relevant", "relevant"])]
)
def test_a_reranker_without_names_answers_relevance(n_labels, expected, tmp_path):
    """Labels that are the rows' numbers would be taken for them."""
    model = checkpoint(tmp_path / "model", "bert", "classification", num_labels=n_labels)
    file = tmp_path / "rows.csv"
    file.write_text(f"text,pair,label\n{TEXT},{PAIR},1\n{TEXT},{TEXT},0\n")
    rows = DataSpec(path=file, kind="reranking", pair_column="pair")
    session = Session(SessionRequest(str(model), rows))
    assert session.about()["job"] == "reranking"
    shown = session.text(TEXT, PAIR, session.stacked("")[0])["after"]
    assert [each["label"] for each in shown] == expected
    if n_labels == 2:
        assert sum(each["share"] for each in shown) == pytest.approx(1)


def test_labels_read_as_words():
    answers = (Answer("a bird", 3), Answer("bird", 5), Answer("a bird", 20))
    spans = Task("spans", "spans", (), "")
    tags = Task("tags", "tokens", (), "", labels=("O", "B-X"))
    assert label_text(spans, answers) == "a bird / bird"
    assert label_text(spans, ()) == "no answer"
    assert label_text(tags, (0, 1, 1)) == "O B-X B-X"
