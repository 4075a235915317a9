"""What is told of a pair; printed numbers show with their own rows."""

from __future__ import annotations

import pytest

from microtome.papers.exhibits import PAPERS
from microtome.replication.answers import answers_of, judgements
from microtome.replication.drawings import DRAWINGS
from microtome.replication.measured import Measured
from microtome.replication.page import Replicated

FACTS = {"layers": 12, "shared": False, "family": "BERT", "width": 768, "heads": 12,
         "parameters": 1}  # fmt: skip


def drift_rows(seed, *cosines):
    return tuple(
        {"seed": seed, "layer": i, "head": None, "cosine": c, "low": c - 0.01, "high": c + 0.01,
         "task": "t", "model": "m"}
        for i, c in enumerate(cosines)
    )  # fmt: skip


def tuning(value, *, edit="", fraction=1.0, metric="f1", seed=0):
    return {"edit": edit, "seed": seed, "fraction": fraction, "metric": metric, "value": value,
            "low": value - 0.05, "high": value + 0.05, "constant_value": 0.5,
            "one_answer": False}  # fmt: skip


def drifted(*tunings):
    rows = {("attention-drift", "m", "t"): drift_rows(0, 0.9, 0.9, 0.5, 0.5),
            ("finetuning", "m", "t"): tunings}  # fmt: skip
    measured = Measured(rows, {}, {"m": FACTS}, {"t": {"metric": "f1"}})
    return answers_of(measured, "attention-drift", "m", "t")["layers"]


def test_maps_of_a_fine_tuning_that_learnt_nothing_decide_nothing():
    assert drifted(tuning(0.6)).verdict == "holds"
    assert drifted().verdict == "holds"  # of a model that came with its head nobody knows
    found = drifted(tuning(0.5))
    assert (found.verdict, found.learnt) == ("can't tell", False)
    assert found.words.startswith(drifted().words)
    assert "the fine-tuned model's f1 is 50.0 %, no better than one constant answer" in found.words
    edited, other = tuning(0.9, edit="randomize(seed=0)"), tuning(0.9, metric="accuracy")
    assert drifted(tuning(0.5), edited, other).verdict == "can't tell"
    assert drifted(tuning(0.6), tuning(0.1, edit="randomize(seed=0)")).verdict == "holds"
    near = drifted(tuning(0.54))  # 49 to 59 %
    assert (near.verdict, near.learnt) == ("can't tell", False)
    assert "54.0 %, not surely better than one constant answer (50.0 %)" in near.words
    copies = tuning(0.4, edit="unshare()")  # shared layers, each with weights of its own
    assert drifted(copies).verdict == "can't tell"


def test_a_recipe_teaches_over_seeds_and_the_run_that_is_looked_at_must_have_learnt():
    """The rows are of seed 0. Three seeds: 0.6, 0.61 and 0.59 are surely above 0.5."""
    sure = [tuning(value, seed=seed) for seed, value in enumerate((0.52, 0.6, 0.61))]
    assert drifted(*sure).verdict == "can't tell"  # 0.577 ± 0.12
    tight = [tuning(value, seed=seed) for seed, value in enumerate((0.59, 0.6, 0.61))]
    assert drifted(*tight).verdict == "holds"
    unlucky = [tuning(value, seed=seed) for seed, value in enumerate((0.5, 0.9, 0.91))]
    assert "f1 is 50.0 %, no better than" in drifted(*unlucky).words


def test_weights_that_moved_are_judged_by_the_models_of_the_largest_size():
    rows = tuple(
        {"seed": seed, "layer": i, "part": "output", "distance": i + size, "fraction": size,
         "n_train": int(1000 * size), "match_steps": False, "task": "t", "relative": i}
        for seed in range(3)
        for size in (1.0, 0.1)
        for i in range(6)
    )  # fmt: skip

    def depth(large, small):
        tuned = (tuning(large), tuning(small, fraction=0.1))
        found = {("weight-drift", "m", "t"): rows, ("finetuning", "m", "t"): tuned}
        measured = Measured(found, {}, {"m": FACTS}, {"t": {"metric": "f1"}})
        return answers_of(measured, "weight-drift", "m", "t")["depth"].verdict

    assert depth(0.9, 0.1) == "holds"
    assert depth(0.1, 0.9) == "can't tell"


def trained(task, layers, value, metric="f1"):
    return [
        {"model": "bert-base-uncased", "task": task, "layers": layers, "edit": "", "seed": seed,
         "strategy": "baseline" if layers == 12 else "first", "stage": "finetuned",
         "metric": metric, "primary": "f1", "value": value + seed / 100, "low": 0.0, "high": 1.0,
         "constant_value": 0.5, "one_answer": False, "selection": None}
        for seed in range(3)
    ]  # fmt: skip


def table_3(task, whole):
    exhibit = next(one for one in PAPERS["kao2021"].exhibits if one.name == "Table 3")
    rows = tuple(
        row
        for metric in ("f1", "exact_match")
        for layers, value in ((12, 0.7), (13, 0.72))
        for row in trained(task, layers, value, metric)
    )
    key = ("duplication", "bert-base-uncased", task)
    measured = Measured({key: rows}, {}, {key[1]: FACTS}, {task: {}}, frozenset(whole))
    views = DRAWINGS[exhibit.drawing](measured, exhibit)
    return Replicated(exhibit, measured, views, tuple(judgements(measured, exhibit, measured)))


def printed(shown):
    return [line.paper for line in shown.section(PAPERS["kao2021"]).reported]


def test_a_printed_number_shows_with_the_paper_s_own_task_and_split_alone():
    own = table_3("squad2", ["squad2"])
    assert "76.80 %" in printed(own)
    line = next(one for one in own.section(PAPERS["kao2021"]).reported if one.paper == "76.80 %")
    assert line.measured == "73.00 % (mean of 3 runs)"
    assert not [words for words in printed(table_3("squad2", [])) if words.endswith(" %")]
    assert not [words for words in printed(table_3("micro-squad", ["micro-squad"]))
                if words.endswith(" %")]  # fmt: skip


def test_a_table_of_depths_marks_what_is_better_than_the_baseline():
    (table,) = table_3("squad2", []).views
    assert table.columns == ("model", "layers", "exact_match", "f1")
    assert table.groups == (("", 2), ("squad2", 2))
    assert [tuple(row[1:]) for row in table.rows] == [
        (12, pytest.approx(0.71), pytest.approx(0.71)),
        (13, pytest.approx(0.73), pytest.approx(0.73)),
    ]
    assert table.better == ((1, 2), (1, 3))
    assert table.worse == ()


def test_data_sets_have_the_sizes_that_the_paper_prints():
    """Kao et al. 2020, Table 3: dev and test; SQuAD 2.0's test isn't published."""
    exhibit = next(one for one in PAPERS["kao2020"].exhibits if one.drawing == "sizes of tasks")
    counted = {"kind": "", "metric": "", "train": 5, "measured_split": "test", "measured_rows": 3}
    sizes = {task: {"task": task, **counted} for task in exhibit.tasks}
    (table,) = DRAWINGS[exhibit.drawing](Measured({}, {}, {}, sizes), exhibit)
    assert table.columns[3:6] == ("train", "dev", "test")
    assert [row[3:6] for row in table.rows] == [(5, 872, 1821), (5, 10000, 10000), (5, 11873, None)]
