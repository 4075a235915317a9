"""Head importance as an experiment: shared trials, the measured change, refusals, words."""

from __future__ import annotations

import pytest

from microtome.errors import MicrotomeError
from microtome.experiments import find_experiment, subject_of
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.sentence_folders import sentence_folder
from support.tiny import tiny_model
from support.training_rows import rows, similarity_rows, tokenizer_for

EXPERIMENT = find_experiment("head-importance")
NAMES = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}


def classifier(folder, family="bert"):
    tiny_model(family, "classification", **NAMES).save_pretrained(folder)
    tokenizer_for(family).save_pretrained(folder)
    return folder


def subject_for(tmp_path, family="bert"):
    data = rows(tmp_path / "data", n=24)._source.path
    folder = classifier(tmp_path / family, family)
    return subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert"])
def test_the_measured_changes_are_those_of_disabling_and_removing(tmp_path, family):
    subject = subject_for(tmp_path, family)
    (part,) = study_here("head-importance", subject, tmp_path / "run", metric="accuracy").parts
    disabling = {"splits": 0, "random_sets": 0, "metric": "accuracy"}
    (other,) = study_here("head-disabling", subject, tmp_path / "off", **disabling).parts
    (cuts,) = study_here("layer-removal", subject, tmp_path / "cuts", metric="accuracy").parts
    heads = {
        (row["layer"], row["head"]): row["delta"]
        for row in other.rows
        if row["head"] is not None and row["metric"] == "accuracy"
    }
    found = {
        (row["layer"], row["head"]): row["delta"] for row in part.rows if row["unit"] == "head"
    }
    assert found == pytest.approx(heads)
    removed = {
        int(row["target"]): row["delta"]
        for row in cuts.rows
        if row.get("strategy") == "each" and row["target"] != "baseline"
        and row["metric"] == "accuracy"
    }  # fmt: skip
    layers = {row["layer"]: row["delta"] for row in part.rows if row["unit"] == "layer"}
    assert layers == removed  # ModernBERT's layer 0 can't go: None in both
    assert (None in layers.values()) == (family == "modernbert")
    shares = [row["rollout"] for row in part.rows if row["unit"] == "token" and row["text"] == 0]
    assert sum(shares) == pytest.approx(1.0, abs=1e-5)


def test_the_sweep_is_the_very_trials_of_head_disabling(tmp_path):
    subject = subject_for(tmp_path)
    hashes = []
    for name in ("head-importance", "head-disabling"):
        experiment = find_experiment(name)
        trials = experiment.plan(subject, experiment.settings({}))
        hashes.append({trial.hash for trial in trials if trial.name == "head-disabling.sweep"})
    assert hashes[0] == hashes[1] != set()


def test_scores_alone_disable_nothing_and_say_so(tmp_path):
    subject = subject_for(tmp_path)
    settings = {"scores_only": True, "examples": 0}
    (part,) = study_here("head-importance", subject, tmp_path / "run", **settings).parts
    assert {row["unit"] for row in part.rows} == {"head", "layer"}
    assert all(row["delta"] is None for row in part.rows)
    assert all(row["low"] <= row["importance"] <= row["high"] for row in part.rows)
    assert "Nothing was disabled" in part.finding
    most = max((r for r in part.rows if r["unit"] == "head"), key=lambda row: row["importance"])
    assert f"Head {most['layer']}.{most['head']} has the largest gradient" in part.finding
    assert EXPERIMENT.summary(part.rows)["spearman"] == {"head": None, "layer": None}
    assert len(EXPERIMENT.views(part.rows)) == 3


def test_an_embedder_has_importance_on_pairs(tmp_path):
    folder = sentence_folder(tmp_path / "model")
    data = similarity_rows(tmp_path / "data", n=20)._source.path
    columns = {"text_column": "a", "pair_column": "b", "label_column": "score"}
    subject = subject_of(str(folder), DataSpec(path=data, **columns))
    (part,) = study_here("head-importance", subject, tmp_path / "run").parts
    heads = [row for row in part.rows if row["unit"] == "head"]
    assert {row["n"] for row in heads} == {20}
    assert {row["metric"] for row in heads} == {"cosine_spearman"}
    assert "rank alike by Spearman" in part.finding
    titles = [view.title for view in EXPERIMENT.views(part.rows)]
    assert any("not an importance" in title for title in titles)


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("micro-retrieval", {}, "a search has no loss"),
        ("micro-similarity", {"examples": -1}, "--examples must be 0 or more, got -1"),
    ],
)
def test_what_has_no_gradient_is_refused_in_a_line(tmp_path, task, settings, message):
    folder = sentence_folder(tmp_path / "model")
    subject = subject_of(str(folder), DataSpec(task, limit=8))
    with pytest.raises(MicrotomeError, match=message):
        EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))
