"""Fine-tuning on real data: a small version for every day, the long claims in ``make studies``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from microtome.models.source import minilm_folder
from microtome.tasks import DataSpec, open_data
from microtome.training.finetune import finetune
from microtome.training.probe import majority
from microtome.training.recipe import Recipe

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "studies"))  # the plain Trainer to compare with is there


@pytest.fixture
def sst2(shared_data):
    if minilm_folder() is None:
        pytest.skip("the extra english isn't installed")
    folder = shared_data("data/sst2_sentence")
    return open_data(DataSpec("sst2-sentence", folder, "train")), open_data(
        DataSpec("sst2-sentence", folder, "dev")
    )


@pytest.mark.real
def test_minilm_learns_sentiment_from_384_rows_as_plain_trainer_does(sst2):
    from finetuning import plain_accuracy

    train, dev = sst2
    part, scored = train.fraction(384), dev.limit(400)
    recipe = Recipe(learning_rate=2e-4, batch_size=32, epochs=2, max_length=64)
    done = finetune("minilm", part, scored, recipe=recipe)
    ours = done.scores["accuracy"]
    assert ours.low > majority(part, scored).scores["accuracy"].value + 0.1
    # Both are one run on 400 rows: 1.96 · √2 · √(.8 · .2 / 400) is 5.5 points.
    assert abs(ours.value - plain_accuracy(part, scored, recipe, seed=0)) < 0.06


@pytest.fixture
def studies(shared_data, tmp_path):
    shared_data("data/sst2_sentence")
    import finetuning

    return finetuning, tmp_path


def mean_accuracy(results) -> float:
    values = [one["accuracy"] for one in results]
    values = [value["value"] if isinstance(value, dict) else value for value in values]
    return sum(values) / len(values)


@pytest.mark.studies
def test_minilm_on_2000_rows_reaches_83_percent_and_trainers_own_score(studies):
    module, out = studies
    ours = mean_accuracy([module.sst2(out, seed) for seed in range(3)])
    theirs = mean_accuracy([module.trainer(out, seed) for seed in range(3)])
    assert ours >= 0.83
    assert abs(ours - theirs) <= 0.015


@pytest.mark.studies
def test_deeper_and_reinitialised_variants_learn_mrpc(studies, shared_data):
    module, out = studies
    shared_data("data/glue/MRPC")
    found = [module.mrpc(out, seed) for seed in range(3)]
    for variant in ("unchanged", "extend(8)", "reinit(top=2, seed=0)"):
        # All-equivalent has F1 .812 on MRPC's dev (279 of 408 rows: 2·.684 / 1.684).
        assert mean_accuracy([one[variant] for one in found]) > 0.684


@pytest.mark.studies
def test_squad2_ends_clearly_above_all_empty_on_answerable_questions(studies, shared_data):
    module, out = studies
    shared_data("data/squad2/dev-v2.0.json")
    found = module.squad2(out, 0)
    assert found["all empty, answerable"]["f1"]["value"] == 0
    assert found["answerable"]["f1"]["low"] > 0.02
