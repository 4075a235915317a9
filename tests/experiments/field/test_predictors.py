"""Predictors: every number against one computed by hand, choices on one half, words by verdict."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from microtome.edits import parse
from microtome.errors import DataError, RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.field.predictors.measure import weight_norms
from microtome.experiments.field.trim.judging import Halves
from microtome.experiments.field.trim.plan import measured_apart
from microtome.families import adapt
from microtome.models import load, load_tokenizer
from microtome.observe.evaluation import evaluate
from microtome.surgery import apply
from microtome.tasks import DataSpec, open_data
from support.experiment_rows import study_here
from support.sentence_folders import sentence_folder
from support.tiny import FAMILY_TYPES, N_HEADS, tiny_model
from support.training_rows import checkpoint, rows, tokenizer_for

EXPERIMENT = find_experiment("predictors")
NAMES = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}


def classifier(folder, family="bert"):
    tiny_model(family, "classification", **NAMES).save_pretrained(folder)
    tokenizer_for(family).save_pretrained(folder)
    return folder


def subject_for(tmp_path, family="bert", n=40):
    data = rows(tmp_path / "data", n=n)._source.path
    folder = classifier(tmp_path / family, family)
    return subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))


def stage(found, name, **columns):
    return [
        row
        for row in found
        if row["stage"] == name and all(row[key] == value for key, value in columns.items())
    ]


def accuracy(model, subject, rows=None):
    dataset = open_data(subject.data)
    dataset = dataset if rows is None else dataset.select(rows)
    return evaluate(model, load_tokenizer(subject.model_path), dataset).scores["accuracy"].value


def test_every_figure_equals_one_made_from_edited_models(tmp_path):
    subject = subject_for(tmp_path)
    (part,) = study_here("predictors", subject, tmp_path / "run", metric="accuracy").parts
    model = load(subject.model_path)
    whole = accuracy(model, subject)
    (base,) = stage(part.rows, "baseline")
    assert base["value"] == pytest.approx(whole)
    for unit, edit in (("layer", "remove({})"), ("head", "disable({})")):
        for agreement in stage(part.rows, "agreement", unit=unit):
            units = stage(part.rows, "unit", unit=unit, score=agreement["score"])
            assert len(units) == agreement["n"] == (3 if unit == "layer" else 3 * N_HEADS)
            assert agreement["sweep_seconds"] > 0
            if unit == "layer":
                assert agreement["spearman"] is None  # three layers tell nothing
                continue
            values, losses = ([row[name] for row in units] for name in ("value", "loss"))
            expected = spearmanr(values, losses).statistic
            assert agreement["spearman"] == pytest.approx(expected)
            assert agreement["low"] <= agreement["spearman"] <= agreement["high"]
        for row in stage(part.rows, "unit", unit=unit, score="random"):
            name = row["layer"] if unit == "layer" else f"{row['layer']}.{row['head']}"
            changed = accuracy(apply(parse(edit.format(name)), model), subject)
            assert row["loss"] == pytest.approx(whole - changed)
    halves = Halves.of(len(subject.dataset), None)
    for cut in stage(part.rows, "cut"):
        edit = "remove({})" if cut["unit"] == "layer" else "disable({})"
        edited = apply(parse(edit.format(", ".join(cut["cut"].split()))), model)
        assert cut["value"] == pytest.approx(accuracy(edited, subject, halves.scoring))
        same_size = {"unit": cut["unit"], "n_cut": cut["n_cut"]}
        (measured,) = stage(part.rows, "cut", score="measured", **same_size)
        assert cut["regret"] == pytest.approx(measured["value"] - cut["value"])
        assert len(cut["cut"].split()) == cut["n_cut"]
    assert {cut["unit"] for cut in stage(part.rows, "cut")} == {"layer", "head"}


def test_measuring_chooses_on_one_half_what_loses_least_there(tmp_path):
    subject = subject_for(tmp_path)
    (part,) = study_here("predictors", subject, tmp_path / "run", metric="accuracy").parts
    model, halves = load(subject.model_path), Halves.of(len(subject.dataset), None)
    losses = {
        layer: -accuracy(apply(parse(f"remove({layer})"), model), subject, halves.picking)
        for layer in range(3)
    }
    for cut in stage(part.rows, "cut", unit="layer", score="measured"):
        kept = [losses[layer] for layer in range(3) if str(layer) not in cut["cut"].split()]
        assert max(losses[int(layer)] for layer in cut["cut"].split()) <= min(kept)
        assert cut["regret"] == 0


def test_the_loss_after_healing_is_that_of_healed_models(tmp_path):
    """Against the answers that the trials left; the whole model's are the base's."""
    data = rows(tmp_path / "data", n=60)._source.path
    folder = classifier(tmp_path / "bert")
    subject = subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))
    done = study_here("predictors", subject, tmp_path / "run", metric="accuracy", heal_steps=4)
    (part,) = done.parts
    healings = [r for r in done.result.records.values() if r.name == "trim.heal_one"]
    assert sorted(r.request["edit"] for r in healings) == [f"remove({i})" for i in range(3)]
    apart = measured_apart(subject, {"text": None})
    gold = open_data(apart.data).targets
    assert len(gold) == stage(part.rows, "baseline")[0]["n"] < 60  # not those that are healed on
    whole = stage(part.rows, "baseline")[0]["value"]
    for record in healings:
        layer = int(record.request["edit"][len("remove(") : -1])
        answers = np.load(done.folder / "arrays" / f"{record.hash}.npz")["healed"]
        right = (answers.argmax(-1) == gold).mean()
        for row in stage(part.rows, "healed unit", layer=layer):
            assert row["loss"] == pytest.approx(whole - right)
    untrained = {row["layer"]: row["loss"] for row in stage(part.rows, "unit", unit="layer")}
    found = stage(part.rows, "healed unit", score="measured without training")
    assert {row["layer"]: row["value"] for row in found} == pytest.approx(untrained)
    (best,) = stage(part.rows, "healed cut", score="measured")
    for cut in stage(part.rows, "healed cut"):
        assert cut["n_cut"] == 1
        assert cut["regret"] == pytest.approx(best["value"] - cut["value"])
    assert "After healing" in part.finding
    assert set(EXPERIMENT.summary(part.rows)) == {"layer", "head", "healed layer"}


def test_one_layer_at_every_depth_cannot_be_healed_without_one(tmp_path):
    folder = classifier(tmp_path / "albert", "albert")
    data = rows(tmp_path / "data", n=40)._source.path
    subject = subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))
    with pytest.raises(RequestError, match="one layer at every depth"):
        EXPERIMENT.plan(subject, EXPERIMENT.settings({"heal_steps": 5}))


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_norms_are_those_of_a_layers_weights_and_a_heads_columns(family):
    model = tiny_model(family, "none")
    layers, heads = weight_norms(adapt(model))
    for index, layer in enumerate(adapt(model).layers):
        flat = np.concatenate([p.detach().double().numpy().ravel() for p in layer.parameters()])
        assert layers[index] == pytest.approx(np.linalg.norm(flat))
        output = adapt(model).module(index, "attention_output").weight.detach().double().numpy()
        assert (heads[index] ** 2).sum() == pytest.approx((output**2).sum())


def test_layers_that_cant_go_have_no_loss_and_are_never_cut(tmp_path):
    subject = subject_for(tmp_path, "modernbert")
    (part,) = study_here("predictors", subject, tmp_path / "run").parts
    first = stage(part.rows, "unit", unit="layer", layer=0)
    assert first
    assert {row["loss"] for row in first} == {None}
    cuts = stage(part.rows, "cut", unit="layer")
    assert cuts
    assert all("0" not in row["cut"].split() for row in cuts)


@pytest.mark.parametrize("task", ["micro-retrieval", "micro-similarity", "micro-reranking"])
def test_searches_pairs_and_queries_are_scored_as_they_are(tmp_path, task):
    if task == "micro-reranking":
        model = checkpoint(tmp_path / "model", head="classification", num_labels=1)
    else:
        model = sentence_folder(tmp_path / "model")
    subject = subject_of(str(model), DataSpec(task, limit=48))
    (part,) = study_here("predictors", subject, tmp_path / "run").parts
    scores = {row["score"] for row in stage(part.rows, "agreement", unit="head")}
    assert ("gradient" in scores) == (task != "micro-retrieval")
    assert part.finding


def agreement(unit, score, spearman, spread=0.1):
    return {
        "stage": "agreement", "unit": unit, "score": score, "spearman": spearman,
        "low": spearman - spread, "high": spearman + spread, "n": 12, "seconds": 3.0,
        "sweep_seconds": 90.0, "metric": "accuracy",
    }  # fmt: skip


def cut(unit, score, regret, spread=0.005):
    return {
        "stage": "cut", "unit": unit, "score": score, "n_cut": 2, "cut": "1 2", "value": 0.8,
        "delta": -regret, "delta_low": -regret, "delta_high": -regret, "regret": regret,
        "regret_low": regret - spread, "regret_high": regret + spread, "metric": "accuracy",
    }  # fmt: skip


def made(constant=0.5):
    base = {"stage": "baseline", "value": 0.9, "n": 100, "metric": "accuracy"}
    base |= {"constant_value": constant, "one_answer": False}
    return [
        base,
        agreement("layer", "angle", 0.6), cut("layer", "angle", 0.01),
        agreement("layer", "weight norm", 0.7), cut("layer", "weight norm", 0.08),
        agreement("layer", "random", 0.9), cut("layer", "random", 0.0),
        agreement("head", "gradient", 0.05), cut("head", "gradient", 0.0),
        agreement("head", "random", 0.0), cut("head", "random", 0.0),
    ]  # fmt: skip


def test_a_score_is_trusted_by_its_interval_and_by_what_following_it_costs():
    told = EXPERIMENT.finding(made())
    assert told.startswith("Layers: angle agrees best with measuring, Spearman 0.60 (0.50 to 0.70)")
    assert "Misleading for layers: weight norm (+8.0 points at 2)" in told
    assert "No cheap score of heads is sure to agree" in told
    assert "3 s instead of 90 s" in told
    verdicts = EXPERIMENT.summary(made())
    assert verdicts["layer"]["weight norm"]["verdict"] == "misleads"
    assert verdicts["head"]["gradient"]["verdict"] == "can't tell"


def test_a_model_that_learnt_nothing_is_not_judged():
    assert "hasn't learnt" in EXPERIMENT.finding(made(constant=0.95))


def test_too_few_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="expected 8 rows or more"):
        EXPERIMENT.plan(subject_for(tmp_path, n=6), EXPERIMENT.settings({}))
