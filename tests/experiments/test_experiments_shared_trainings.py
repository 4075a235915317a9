"""Equal trainings are equal trials: several experiments in one run train a model once."""

from __future__ import annotations

import pytest

from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kit.arms import Arm, training_trial
from microtome.report.page import Page
from microtome.study import Wanted, Workers, page_of, study
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.training_rows import checkpoint, rows

TRAIN = "finetuning.train"
SHORT = {"epochs": 1, "learning_rate": 1e-3}
HERE = Workers(n_workers=0, progress=False)


@pytest.fixture
def data(tmp_path):
    rows(tmp_path, n=60)
    return DataSpec(path=tmp_path / "single-60-0.jsonl", labels=("no", "yes"))


def trainings(result):
    return [record for record in result.records.values() if record.name == TRAIN]


def planned(name, subject, **settings):
    experiment = find_experiment(name)
    trials = experiment.plan(subject, experiment.settings(settings))
    return {trial.hash for trial in trials if trial.name == TRAIN}


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_study_of_several_experiments_trains_each_model_once(family, tmp_path, data):
    subject = subject_of(str(checkpoint(tmp_path / "model", family)), data)
    seeds = {"seeds": [0, 1], **SHORT}
    wanted = {
        "reinitialization": {"counts": [0, 3], **seeds},
        "weight-drift": {"fractions": [1.0], **seeds},
        "attention-drift": seeds,
        "initialization": {"heads": 1, **seeds},
        "decoding": {"finetuned": True, **SHORT},
        "head-disabling": {"splits": 2, **SHORT},
    }
    done = study(
        subject, [Wanted(*item) for item in wanted.items()], tmp_path / "all", workers=HERE
    )
    by_edit = {}
    for record in trainings(done.result):
        by_edit.setdefault(record.request["edits"], []).append(record.request["seed"])
    # Layers that share their weights get copies of their own where single ones are looked at.
    first = {"albert": "unshare()"}.get(family, "")
    assert by_edit == {
        "": [0, 1],
        first: [0, 1],
        **{f"{first} | reinit(top=3, seed={s})".removeprefix(" | "): [s] for s in (0, 1)},
        **{f"randomize(seed={s})": [s] for s in (0, 1)},
    }
    for record in trainings(done.result):  # an edited arm's weights are of no further use
        kept = done.result.checkpoint(record.hash)
        assert (kept is not None) == (record.request["edits"] in ("", first))
        assert (kept is None) or (kept / "model" / "config.json").is_file()
    for name, settings in wanted.items():
        if name == "head-disabling":
            continue  # it has timings of no interest here
        alone = study_here(name, subject, tmp_path / name, **settings).parts[0]
        assert done.part(name).rows == alone.rows


def test_what_decides_no_weight_is_no_other_training(tmp_path, data):
    subject = subject_of(str(checkpoint(tmp_path / "model")), data)
    one = {"seeds": [0]}
    plain = planned("reinitialization", subject, counts=[0], **one)
    assert len(plain) == 1
    # The recipe's own values, updates that all rows give anyway, an untrained model's new head,
    # and what an experiment says in its rows.
    for name, settings in {
        "reinitialization": {"counts": [0], "epochs": 3, "warmup": 0.1, "side": "bottom"},
        "weight-drift": {"fractions": [1.0], "match_steps": True},
        "attention-drift": {"least_steps": 2},
        "duplication": {"layers": [3, 4], "fraction": 1},
    }.items():
        assert plain <= planned(name, subject, **settings, **one), name
    for settings in (
        {"epochs": 2}, {"warmup": 0.2}, {"weight_decay": 0.0}, {"learning_rate": 1e-3},
        {"batch_size": 8}, {"max_length": 16}, {"least_steps": 500}, {"fractions": [24.0]},
        {"seeds": [1]},
    ):  # fmt: skip
        assert not plain & planned(
            "reinitialization", subject, **{"counts": [0], **one, **settings}
        )


def test_a_head_that_is_there_is_kept_or_drawn_afresh(tmp_path, data):
    """Of a fine-tuned model these are two trainings."""
    settings = find_experiment("reinitialization").settings({})
    folder = checkpoint(tmp_path / "tuned", head="classification")
    for model, same in ((checkpoint(tmp_path / "model"), True), (folder, False)):
        subject = subject_of(str(model), data)
        kept, drawn = (
            training_trial(subject, settings, Arm(fraction=1.0, new_head=new))
            for new in (False, True)
        )
        assert (kept.hash == drawn.hash) == same


def test_a_training_that_fails_is_named_by_the_experiment(tmp_path, data):
    subject = subject_of(str(checkpoint(tmp_path / "model")), data)
    settings = {"counts": [0, 3], "seeds": [0], "learning_rate": 1e30, "epochs": 1}
    done = study(subject, [Wanted("reinitialization", settings)], tmp_path / "run", workers=HERE)
    first, second = done.parts[0].problems
    assert first.startswith("re-initialise nothing, seed 0, all rows: ")
    assert second.startswith("re-initialise top 3, seed 0, all rows: ")
    assert all("isn't a number" in problem for problem in (first, second))


def test_a_sweep_is_not_about_one_of_its_checkpoints(tmp_path, data):
    """The page of an examined model names the checkpoint it fine-tuned; that of a sweep doesn't."""
    subject = subject_of(str(checkpoint(tmp_path / "model")), data)

    def page(name, **settings) -> Page:
        done = study_here(name, subject, tmp_path / name, **settings)
        return page_of(done.result, done.parts)

    assert page("attention-patterns", **SHORT).steps
    assert not page("reinitialization", counts=[0, 1], seeds=[0], **SHORT).steps
    assert not page("attention-drift", seeds=[0, 1], **SHORT).steps


def test_a_wider_request_replaces_what_was_computed_from_fewer(tmp_path, data):
    """Else the rows of seed 0 would be there twice, and the shape of a curve that has grown."""
    subject = subject_of(str(checkpoint(tmp_path / "model")), data)
    study_here("attention-drift", subject, tmp_path / "drift", seeds=[0], **SHORT)
    wider = study_here("attention-drift", subject, tmp_path / "drift", seeds=[0, 1], **SHORT)
    assert wider.result.n_run == 2  # a training and the comparison
    rows = wider.parts[0].rows
    assert len({(row["seed"], row["layer"], row["head"]) for row in rows}) == len(rows)
    for counts in ([0, 1, 2], [0, 1, 2, 3]):
        settings = {"seeds": [0], "counts": counts, **SHORT}
        rows = study_here("reinitialization", subject, tmp_path / "curve", **settings).parts[0].rows
        assert [row["n_counts"] for row in rows if "n_counts" in row] == [len(counts)]
