"""What may be asked for in a scale's place, and data that has fewer rows or tasks than a paper."""

from __future__ import annotations

import pytest

from microtome.errors import RequestError
from microtome.replication import plan_of, replicate, replication_of
from microtome.requests import differences, widens
from microtome.study import Workers

WORDS = ["good", "bad", "fine", "poor", "warm", "cold"]


def tsv(path, header, lines):
    rows = ["\t".join(header), *("\t".join(map(str, line)) for line in lines)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture
def data(tmp_path):
    """40 and 12 rows of SST-2, STS-B in GLUE's columns; a folder of QQP that lacks its dev rows."""
    for folder in ("SST-2", "STS-B", "QQP"):
        (tmp_path / "glue" / folder).mkdir(parents=True)
    sst2, stsb = tmp_path / "glue" / "SST-2", tmp_path / "glue" / "STS-B"
    for split, n in (("train", 40), ("dev", 12)):
        texts = [f"{WORDS[i % 6]} {WORDS[i % 5]} film {i}" for i in range(n)]
        tsv(sst2 / f"{split}.tsv", ["sentence", "label"], [(t, i % 2) for i, t in enumerate(texts)])
        columns = ["index", "genre", "filename", "year", "old_index", "source1", "source2"]
        tsv(
            stsb / f"{split}.tsv", [*columns, "sentence1", "sentence2", "score"],
            [(i, *"abcdef", t, texts[-1], i % 6) for i, t in enumerate(texts)],
        )  # fmt: skip
    (tmp_path / "glue" / "QQP" / "train.tsv").write_text("nothing\n", encoding="utf-8")
    return tmp_path / "glue"


def trainings(plan):
    return [trial for trial in plan.trials if trial.name == "finetuning.train"]


def test_a_scale_takes_all_rows_where_a_task_has_fewer(models, data):
    """8,000 rows are asked for, and the task has 40: it isn't left out."""
    asked = replication_of(
        "kovaleva2019", models=models[:1], scale="small", data=data, only=["Figure cosine"]
    )
    fractions = {trial.request["fraction"] for trial in trainings(plan_of(asked))}
    assert fractions == {1.0}
    sizes = replication_of(
        "singh2020", models=models[:1], scale="small", data=data, only=["Figure 1 a"]
    )
    # 6,700 and 670 and 67 rows are all of the 40, once.
    assert {trial.request["fraction"] for trial in trainings(plan_of(sizes))} == {1.0}


def test_a_task_whose_files_are_not_whole_is_left_out_with_the_reason(models, data):
    asked = replication_of("kovaleva2019", models=models[:1], scale="small", data=data)
    assert set(asked.tasks) == {"stsb", "sst2"}
    (line,) = [why for why in asked.left_out if "QQP" in why]
    assert "dev.tsv" in line
    assert any("no folder for mrpc" in why for why in asked.left_out)


def test_stsb_gets_a_head_with_one_output_as_in_the_paper(models, data):
    asked = replication_of("kovaleva2019", models=models[:1], scale="small", data=data)
    assert asked.subjects[models[0], "stsb"].dataset.task.kind == "regression"


def test_settings_replace_the_scales_in_every_experiment_that_has_them(models, data, tmp_path):
    changes = {"learning_rate": 0.5, "epochs": 1, "fraction": 20.0, "seeds": [7], "warmup": None}
    asked = replication_of(
        "kovaleva2019", models=models[:1], scale="small", data=data, settings=changes, limit=5,
        only=["Figure cosine", "Figure disableheadsall"],
    )  # fmt: skip
    found = trainings(plan_of(asked))
    assert {trial.request["recipe"]["learning_rate"] for trial in found} == {0.5}
    assert {trial.request["recipe"]["epochs"] for trial in found} == {1}
    assert {trial.request["fraction"] for trial in found} == {20.0}
    assert {trial.request["seed"] for trial in found} == {0, 7}  # head-disabling has its own
    assert len(asked.subjects[models[0], "sst2"].dataset) == 5
    assert asked.as_json()["whole"] == []
    stored = asked.as_json()
    other = replication_of(
        "kovaleva2019", models=models[:1], scale="small", data=data, limit=5,
        settings={**changes, "learning_rate": 0.25}, only=["Figure cosine"],
    )  # fmt: skip
    different = differences(stored, other.as_json(), continues=widens)
    assert any("learning_rate" in line for line in different)


def test_a_request_without_changes_is_what_earlier_runs_stored(models):
    """Runs that were stored before there were changes resume."""
    now = replication_of("kao2021", models=models).as_json()
    before = {key: value for key, value in now.items() if key not in ("settings", "limit")}
    assert differences(before, now, continues=widens) == []


def test_what_was_asked_for_is_trained(models, data, tmp_path):
    asked = replication_of(
        "singh2020", models=models[:1], scale="small", data=data, only=["Figure 3 a"], limit=6,
        settings={"fractions": [16.0], "seeds": [3], "epochs": 1},
    )  # fmt: skip
    done = replicate(asked, tmp_path / "run", workers=Workers(n_workers=0, progress=False))
    (trained,) = [r for r in done.result.records.values() if r.name == "finetuning.train"]
    assert (trained.request["seed"], trained.request["fraction"]) == (3, 16.0)
    assert trained.rows[0]["n"] == 6


def test_a_setting_of_no_experiment_is_refused(models):
    with pytest.raises(RequestError, match="kovaleva2019 has the option --fractions"):
        replication_of("kovaleva2019", models=models, settings={"fractions": [1.0]})
