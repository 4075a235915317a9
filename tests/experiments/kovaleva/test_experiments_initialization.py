"""Initialisation: untrained heads against plain models, random weights, words against rows."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
import torch

from microtome import load, parse
from microtome.errors import RequestError
from microtome.experiments import find_experiment, subject_of
from microtome.experiments.kovaleva.initialization.claims import claims
from microtome.runs import run_here
from microtome.tasks import DataSpec
from support.experiment_rows import study_here
from support.tiny import tiny_model
from support.training_rows import checkpoint, rows

EXPERIMENT = find_experiment("initialization")


def subject_for(tmp_path, kind="single", family="bert"):
    folder = checkpoint(tmp_path / "base", family)
    data = rows(tmp_path / "data", kind, n=60)._source.path
    if kind == "spans":
        return subject_of(str(folder), DataSpec(task="squad2", path=data))
    return subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))


def trial_of(subject, function, **settings):
    plan = EXPERIMENT.plan(subject, EXPERIMENT.settings(settings))
    return next(trial for trial in plan if trial.name == f"initialization.{function}")


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "nomic_bert", "eurobert"])
def test_untrained_heads_score_as_models_loaded_one_by_one(tmp_path, family):
    from microtome.observe.evaluation import evaluate
    from support.training_rows import tokenizer_for

    subject = subject_for(tmp_path, family=family)
    found = run_here(trial_of(subject, "score_untrained_heads", heads=4)).rows
    found = [row for row in found if row["metric"] == "accuracy"]
    assert [row["seed"] for row in found] == [0, 1, 2, 3]
    assert {row["start"] for row in found} == {"pretrained"}
    for row in found:
        model = load(
            subject.model_path, head="classification", id2label={0: "no", 1: "yes"},
            head_seed=row["seed"],
        )  # fmt: skip
        score = evaluate(model, tokenizer_for(family), subject.dataset).scores["accuracy"]
        assert row["value"] == pytest.approx(score.value)
        assert row["n"] == len(subject.dataset)


def test_questions_are_scored_with_untrained_heads_and_have_no_probe(tmp_path):
    subject = subject_for(tmp_path, "spans")
    found = run_here(trial_of(subject, "score_untrained_heads", heads=2)).rows
    assert {row["metric"] for row in found} == {"exact_match", "f1"}
    assert not run_here(trial_of(subject, "probe_frozen")).rows


def test_random_means_every_matrix_from_an_untruncated_normal():
    """Protocol: σ is the model's initializer_range, embeddings too, nothing cut at 2 σ."""
    model = tiny_model(
        "bert", "classification", hidden_size=128, intermediate_size=256, vocab_size=2000
    )
    drawn = parse("randomize(seed=3)")(model)
    sigma = model.config.initializer_range
    matrices = {name: p for name, p in drawn.named_parameters() if p.dim() == 2}
    assert any("word_embeddings" in name for name in matrices)
    for name, matrix in matrices.items():
        assert not torch.equal(matrix, model.get_parameter(name))
        if matrix.numel() > 10_000:
            assert matrix.std().item() == pytest.approx(sigma, rel=0.05)
            assert matrix.abs().max().item() > 3 * sigma  # a cut normal ends at 2 σ


def test_all_starts_are_there_and_pretraining_starts_differ(tmp_path):
    subject = subject_for(tmp_path)
    settings = {"epochs": 3, "learning_rate": 1e-3, "seeds": [0, 1, 2], "heads": 5}
    (part,) = study_here("initialization", subject, tmp_path / "run", **settings).parts
    accuracies = [row for row in part.rows if row["metric"] == "accuracy"]
    n_runs = {
        start: len([r for r in accuracies if r["start"] == start])
        for start in ("pretrained", "random", "finetuned", "probe", "majority")
    }
    assert n_runs == {"pretrained": 5, "random": 3, "finetuned": 3, "probe": 1, "majority": 1}
    edits = {row["edit"] for row in accuracies if row["start"] == "random"}
    assert edits == {f"randomize(seed={seed})" for seed in range(3)}
    mean = fmean(row["value"] for row in accuracies if row["start"] == "pretrained")
    assert part.experiment.summary(part.rows)["pretrained"] == pytest.approx(mean)
    assert f"{100 * mean:.1f} %" in part.finding
    table, *_ = part.experiment.views(part.rows)
    assert [row[0] for row in table.rows] == [
        "pretrained", "random", "finetuned", "probe", "majority",
    ]  # fmt: skip


def test_a_fine_tuned_model_is_refused(tmp_path):
    folder = checkpoint(
        tmp_path / "tuned", head="classification",
        id2label={0: "no", 1: "yes"}, label2id={"no": 0, "yes": 1},
    )  # fmt: skip
    data = rows(tmp_path / "data", n=20)._source.path
    subject = subject_of(str(folder), DataSpec(path=data, labels=("no", "yes")))
    with pytest.raises(RequestError, match="fine-tuned already"):
        EXPERIMENT.plan(subject, EXPERIMENT.settings({}))


def scores(start, values, task="stsb", metric="pearson"):
    return [
        {"start": start, "seed": seed, "metric": metric, "value": value, "task": task}
        for seed, value in enumerate(values)
    ]


def test_the_claims_are_judged_by_seeds():
    rng = np.random.default_rng(0)
    low, middle, high = (
        (centre + 0.01 * rng.standard_normal(3)).tolist() for centre in (0.1, 0.45, 0.9)
    )
    made = [*scores("pretrained", middle), *scores("random", low), *scores("finetuned", high)]
    assert str(claims(made)["gain"]).startswith("holds: +4")
    assert str(claims(made)["random"]).startswith("holds: −3")
    idle = str(claims([*made, *scores("majority", [0.95])])["gain"])
    assert idle.startswith("can't tell: +4")
    assert idle.endswith("a constant answer is as good (95.0 %)")
    near = str(claims([*made, *scores("majority", [fmean(high) - 0.005])])["gain"])
    assert near.startswith("can't tell: +4")
    assert "a constant answer is indistinguishable from it" in near
    assert str(claims([*made, *scores("majority", [0.5])])["gain"]).startswith("holds: +4")
    assert str(claims(made)["start"]).startswith("holds: −8")
    crossed = [*scores("pretrained", low), *scores("random", high), *scores("finetuned", middle)]
    assert str(claims(crossed)["start"]).startswith("doesn't hold: +4")
    best = [row | {"constant_value": 0.95} for row in made]  # the commonest label scores less
    for judged in claims([*best, *scores("majority", [0.5])]).values():
        assert (judged.verdict, judged.learnt) == ("can't tell", False)
    turned = [*scores("pretrained", low), *scores("random", middle), *scores("finetuned", high)]
    assert str(claims(turned)["random"]).startswith("doesn't hold")
    single = [*scores("pretrained", middle), *scores("random", [0.1]), *scores("finetuned", [0.8])]
    assert str(claims(single)["gain"]).startswith("can't tell")
    assert "can't separate" in str(claims(single)["gain"])
    elsewhere = [row | {"task": "rte"} for row in made]
    assert str(claims(elsewhere)["random"]).startswith("on rte: ")
