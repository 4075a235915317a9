"""Disabling heads by every metric of a task, on a second split, and in sets: against slow ways."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score

from microtome import load, parse
from microtome.cli import run
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kovaleva.head_disabling import head_sets
from microtome.experiments.kovaleva.head_disabling.claims import claims
from microtome.statistics import halves, honest_gain
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.paraphrases import (
    N_DEV,
    N_TEST,
    answers_of,
    logits_of,
    pairs_of,
    tiny_mrpc,
    write_mrpc,
)
from support.tiny import save_tiny

OFFICIAL = {"f1": f1_score, "accuracy": accuracy_score}
HEADS = [f"{i}.{j}" for i in range(3) for j in range(4)]
LAYERS = ["0.*", "1.*", "2.*"]


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return tiny_mrpc(tmp_path_factory.mktemp("mrpc"))


@pytest.fixture(scope="module")
def done(mrpc, tmp_path_factory):
    folder, data, *_ = mrpc
    subject = subject_of(str(folder), DataSpec("mrpc", path=data))
    out = tmp_path_factory.mktemp("run")
    return study_here("head-disabling", subject, out, test_split=True, splits=3).parts[0]


def by_hand(mrpc, target, split="dev", metric="f1"):
    """The score with a target disabled by an edit, minus the unedited model's."""
    folder, _, rows, labels = mrpc
    model, score = load(folder), OFFICIAL[metric]
    base = score(labels[split], answers_of(model, rows[split]))
    if target == "baseline":
        return base, 0.0
    edited = parse(f"disable({', '.join(target.split())})")(model)
    changed = score(labels[split], answers_of(edited, rows[split]))
    return changed, changed - base


def measured(done, metric):
    rows = [row for row in done.rows if row["metric"] == metric and not row.get("picked_on")]
    return {row["target"]: row for row in rows if not row.get("chosen")}


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_every_official_metric_has_rows_that_equal_edits_by_hand(mrpc, done, metric):
    rows = measured(done, metric)
    assert {*HEADS, *LAYERS, "baseline"} <= set(rows)
    assert {row["primary"] for row in done.rows} == {"f1"}
    for target in ("baseline", "0.1", "2.3", "1.*"):
        value, delta = by_hand(mrpc, target, metric=metric)
        assert rows[target]["value"] == pytest.approx(value)
        assert rows[target]["delta"] == pytest.approx(delta)


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_the_mean_over_all_heads_is_known_for_every_metric(done, metric):
    rows = measured(done, metric)
    base = rows["baseline"]
    assert base["mean_delta"] == pytest.approx(np.mean([rows[head]["delta"] for head in HEADS]))
    assert base["mean_low"] < base["mean_delta"] < base["mean_high"]
    assert base["smallest_significant"] > 0


def test_every_claim_of_the_paper_is_answered_on_mrpc(done):
    assert set(claims(done.rows)) == {"best head", "random head", "some heads", "whole layer"}


@pytest.mark.parametrize("kind", [HEADS, LAYERS])
def test_layers_have_an_honest_gain_as_heads_do(mrpc, done, kind):
    folder, _, rows, labels = mrpc
    model, gold = load(folder), labels["dev"]
    right = [
        (answers_of(parse(f"disable({name})")(model), rows["dev"]) == gold).astype(float)
        for name in kind
    ]
    base = (answers_of(model, rows["dev"]) == gold).astype(float)
    expected = honest_gain(np.stack(right), base)
    row = measured(done, "accuracy")["baseline"]
    which = "honest_layer_" if kind is LAYERS else "honest_"
    ends = [row[which + end] for end in ("gain", "low", "high")]
    gain = expected.gain
    assert ends == pytest.approx([gain.value, gain.low, gain.high])
    assert row[which + "target"] == kind[expected.picks[0][0]]
    assert row[which + "value"] == pytest.approx(row["value"] + gain.value)


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_what_dev_rows_pick_is_scored_on_test_rows(mrpc, done, metric):
    rows = [row for row in done.rows if row.get("picked_on") and row["metric"] == metric]
    base = measured(done, metric)["baseline"]
    assert [row["target"] for row in rows] == [base["naive_target"], base["naive_layer_target"]]
    for row in rows:
        value, delta = by_hand(mrpc, row["target"], "test", metric)
        assert (row["split"], row["picked_on"], row["n"]) == ("test", "dev", N_TEST)
        assert row["value"] == pytest.approx(value)
        assert row["delta"] == pytest.approx(delta)
        assert row["low"] <= row["delta"] <= row["high"]


def test_only_the_picked_targets_run_on_test(mrpc, tmp_path, monkeypatch):
    folder, data, *_ = mrpc
    swept = []
    sweep = head_sets.swept_answers

    def counted(model, dataset, encoded, targets, **settings):
        swept.append((len(encoded), len(targets)))
        return sweep(model, dataset, encoded, targets, **settings)

    monkeypatch.setattr(head_sets, "swept_answers", counted)
    subject = subject_of(str(folder), DataSpec("mrpc", path=data))
    study_here("head-disabling", subject, tmp_path / "run", test_split=True, splits=0)
    assert {n_rows for n_rows, _ in swept} == {N_TEST}
    assert sum(n_targets for _, n_targets in swept) <= 4  # a head and a layer for each metric


def test_metric_chooses_what_is_shown_and_nothing_else(mrpc, done, tmp_path):
    folder, data, *_ = mrpc
    subject = subject_of(str(folder), DataSpec("mrpc", path=data))
    other = study_here("head-disabling", subject, tmp_path / "run", metric="accuracy", splits=3)
    part = other.parts[0]
    assert {row["primary"] for row in part.rows} == {"accuracy"}
    for metric in ("f1", "accuracy"):
        before, after = measured(done, metric), measured(part, metric)
        assert {t: row["delta"] for t, row in before.items()} == {
            t: row["delta"] for t, row in after.items()
        }
    assert "accuracy without any edit" in part.finding
    assert "f1 without any edit" in done.finding
    chosen = next(row for row in part.rows if row.get("chosen"))
    assert chosen["metric"] == "accuracy"
    assert part.experiment.summary(part.rows)["metric"] == "accuracy"


def test_what_cant_work_is_refused_in_a_line(mrpc, tmp_path):
    folder, data, rows, labels = mrpc
    experiment = find_experiment("head-disabling")

    def refused(spec, **settings):
        subject = subject_of(str(folder), spec)
        with pytest.raises(RequestError) as caught:
            experiment.plan(subject, experiment.settings(settings))
        return caught.value.message

    here = DataSpec("mrpc", path=data)
    assert refused(here, metric="pearson") == (
        "--metric must be one of mrpc's, f1 or accuracy, got 'pearson'"
    )
    assert refused(here, splits=-1) == "--splits must be 0 or more, got -1"
    on_test = DataSpec("mrpc", path=data, split="test")
    assert "picks on other rows than test's" in refused(on_test, test_split=True)
    own = tmp_path / "own.csv"
    own.write_text("text,label\na cat,yes\na dog,no\nthe cat,yes\nthe dog,no\n")
    assert refused(DataSpec(path=own), test_split=True) == (
        "--test-split needs a task with a test split"
    )
    unlabelled = tmp_path / "MRPC"
    unlabelled.mkdir()
    write_mrpc(unlabelled / "dev.tsv", rows["dev"], labels["dev"])
    lines = [f"{i}\t1\t2\t{one}\t{other}" for i, (one, other) in enumerate(rows["test"])]
    header = "index\t#1 ID\t#2 ID\t#1 String\t#2 String"
    (unlabelled / "test.tsv").write_text("\n".join([header, *lines]) + "\n")
    assert "its test rows have no labels" in refused(
        DataSpec("mrpc", path=unlabelled), test_split=True
    )


def slow_greedy(mrpc, n_splits):
    """Every half by itself, every set by an edit: what is chosen, and its gain on the others."""
    folder, _, rows, labels = mrpc
    model, gold = load(folder), labels["dev"]
    stored = {(): answers_of(model, rows["dev"])}

    def score(heads, chosen_rows):
        if heads not in stored:
            stored[heads] = answers_of(parse(f"disable({', '.join(heads)})")(model), rows["dev"])
        return accuracy_score(gold[chosen_rows], stored[heads][chosen_rows])

    picks, gains = [], []
    for half in halves(N_DEV, n_splits=n_splits):
        gain = {head: score((head,), half) - score((), half) for head in HEADS}
        helping = [head for head in sorted(HEADS, key=lambda head: -gain[head]) if gain[head] >= 0]
        sets = {tuple(sorted(helping[:k])) for k in (1, 2, 4, 8, 16) if k <= len(helping)}
        best = max(sorted(sets), key=lambda heads: score(heads, half))
        picks.append(best if score(best, half) > score((), half) else ())
        gains.append(score(picks[-1], ~half) - score((), ~half))
    return picks, np.mean(gains)


def test_sets_chosen_greedily_equal_the_slow_way_and_take_one_pass(mrpc, tmp_path, monkeypatch):
    folder, data, *_ = mrpc
    passes = []
    sweep = head_sets.swept_answers

    def counted(model, dataset, encoded, targets, **settings):
        passes.append(list(targets))
        return sweep(model, dataset, encoded, targets, **settings)

    monkeypatch.setattr(head_sets, "swept_answers", counted)
    subject = subject_of(str(folder), DataSpec("mrpc", path=data))
    settings = {"splits": 4, "metric": "accuracy"}
    part = study_here("head-disabling", subject, tmp_path / "run", **settings).parts[0]
    (targets,) = passes
    assert len(targets) == len(set(targets))
    assert all(len(heads) > 1 for heads in targets)  # single heads are stored already
    picks, gain = slow_greedy(mrpc, 4)
    row = next(row for row in part.rows if row.get("chosen"))
    assert row["delta"] == pytest.approx(gain)
    assert row["target"] in {" ".join(heads) or "none" for heads in picks}


def test_a_regression_has_rows_of_both_correlations(tmp_path):
    """STS-B's metrics, neither of them a mean over rows; values against scipy's."""
    folder = save_tiny(
        tmp_path / "model", "bert", "classification", with_tokenizer=True, num_labels=1
    )
    model, pairs = load(folder), pairs_of(30)
    gold = logits_of(model, pairs)[:, 0] + np.random.default_rng(0).normal(0, 0.3, 30)
    data = tmp_path / "STS-B"
    data.mkdir()
    lines = [
        f"{i}\t{one}\t{other}\t{label:.3f}"
        for i, ((one, other), label) in enumerate(zip(pairs, gold, strict=True))
    ]
    (data / "dev.tsv").write_text("\n".join(["index\tsentence1\tsentence2\tscore", *lines]) + "\n")
    subject = subject_of(str(folder), DataSpec("stsb", path=data))
    part = study_here("head-disabling", subject, tmp_path / "run", splits=0, random_sets=0).parts[0]
    edited = logits_of(parse("disable(1.2)")(model), pairs)[:, 0]
    for metric, score in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        rows = measured(part, metric)
        assert rows["1.2"]["value"] == pytest.approx(score(edited, np.round(gold, 3))[0], abs=1e-4)
        assert rows["baseline"]["mean_delta"] == pytest.approx(
            np.mean([rows[head]["delta"] for head in HEADS])
        )
    assert set(part.experiment.claims(part.rows)) == {
        "best head", "random head", "some heads", "whole layer",
    }  # fmt: skip


def test_the_command_takes_both_options(mrpc, tmp_path, capsys):
    folder, data, *_ = mrpc
    arguments = ["run", "head-disabling", "--model", folder, "--task", "mrpc", "--data", data]
    arguments += ["--metric", "accuracy", "--test-split", "--splits", "0", "--random-sets", "0"]
    arguments += ["--limit", "20", "--workers", "0", "--out", tmp_path / "run", "--json"]
    assert run([str(a) for a in arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"]["metric"] == "accuracy"
    assert "Picked on dev and scored on 20 test rows" in document["finding"]
