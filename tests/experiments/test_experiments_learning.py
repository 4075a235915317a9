"""A model that gives one answer is said to, and what learnt nothing isn't compared."""

from __future__ import annotations

import numpy as np
import pytest

from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kit.learning import constant_line, has_learnt, no_better, not_learnt
from microtome.tasks import DataSpec
from microtome.views import Curve, Table
from support.experiment_rows import study_here
from support.labelled_texts import write_rows
from support.training_rows import checkpoint

SETTINGS = {
    "duplication": {"layers": [3, 4]},
    "reinitialization": {"counts": [0, 1, 3]},
    "initialization": {"heads": 2},
    "frozen-probing": {"recipes": ["paper"]},
    "head-disabling": {"splits": 0, "random_sets": 1},
    "layer-removal": {},
}
COMPARED = ("points (", "picked and scored", "alone change", "takes the", "The best", "helps")


def run_of(value, constant=0.75, **columns):
    return {"metric": "f1", "value": value, "constant_value": constant, **columns}


@pytest.fixture
def subject(tmp_path):
    """Every text is the same two tokens, one of them unknown: no model can tell them apart."""
    labels = [int(i % 4 > 0) for i in range(160)]
    texts = (f"cat ω{i}" for i in range(len(labels)))
    file = write_rows(tmp_path / "rows.csv", texts, labels)
    return subject_of(str(checkpoint(tmp_path / "model")), DataSpec(path=file))


@pytest.mark.parametrize("name", SETTINGS)
def test_one_answer_is_said_to_be_one_and_is_not_compared(name, subject, tmp_path):
    settings = SETTINGS[name] | ({} if name == "frozen-probing" else {"epochs": 1})
    if "seeds" in (option.name for option in find_experiment(name).options):
        settings["seeds"] = [0]
    (part,) = study_here(name, subject, tmp_path / "run", **settings).parts
    commonest = float(np.bincount(subject.dataset.targets).max() / len(subject.dataset))
    rows = [row for row in part.rows if row["metric"] == "accuracy" and "one_answer" in row]
    assert {row["one_answer"] for row in rows if row.get("head") is None} == {True}
    constants = {row.get("constant_value") for row in rows}
    assert constants - {None} == {commonest}
    assert "learnt" in part.finding
    assert "one constant answer" in part.finding
    assert not any(words in part.finding for words in COMPARED), part.finding
    answers = part.experiment.claims(part.rows).values()
    assert {answer.verdict for answer in answers} <= {"can't tell", None}
    pictures = part.experiment.views(part.rows)
    lines = [line.name for view in pictures if isinstance(view, Curve) for line in view.series]
    cells = [str(row[0]) for view in pictures if isinstance(view, Table) for row in view.rows]
    assert {"one constant answer", "majority"} & {*lines, *cells}


def test_better_than_a_constant_answer_on_average_is_learnt():
    assert has_learnt([run_of(0.74), run_of(0.78)])
    assert not has_learnt([run_of(0.74), run_of(0.75)])
    assert not has_learnt([run_of(0.76, one_answer=True), run_of(0.76, one_answer=True)])
    assert has_learnt([{"value": 0.1}])  # a run of an earlier version doesn't say


def test_the_words_say_what_a_constant_answer_scores_and_who_gives_one():
    alike = [run_of(0.75, one_answer=True)] * 2
    assert (
        no_better(alike)
        == ", no better than one constant answer (75.0 %), the only answer it gives"
    )
    assert no_better([run_of(0.7)]) == ", no better than one constant answer (75.0 %)"
    assert no_better([run_of(0.9), run_of(0.75, one_answer=True)]) == (
        " (1 of 2 runs give one answer only)"
    )
    assert no_better([run_of(0.9)]) == not_learnt([run_of(0.9)], "It") == ""
    assert not_learnt(alike, "It").startswith("It hasn't learnt the task: its f1 is 75.0 %, no")


def test_the_constant_answer_is_a_flat_line():
    (line,) = constant_line([run_of(0.9)], [2.0, 1.0, 2.0])
    assert (line.x, line.y, line.is_control) == ((1.0, 2.0), (0.75, 0.75), True)
    assert constant_line([{"value": 0.9}], [1.0]) == ()
