"""Recipes: the papers' defaults by task, the model card's rate, wrong settings."""

from __future__ import annotations

import pytest

from microtome.errors import RequestError
from microtome.models.front_matter import learning_rate_of
from microtome.tasks import find_task
from microtome.training.finetune.finetuning import finetune
from microtome.training.recipe import Recipe, recipe_for
from support.training_rows import checkpoint, rows


def test_the_papers_defaults_by_task_and_the_cards_learning_rate(tmp_path):
    sst2, squad2 = recipe_for(find_task("sst2")), recipe_for(find_task("squad2"))
    assert (sst2.learning_rate, sst2.batch_size, sst2.epochs, sst2.max_length) == (2e-5, 32, 3, 128)
    assert (sst2.warmup, sst2.weight_decay, sst2.clip) == (0.1, 0.01, 1.0)
    assert (squad2.learning_rate, squad2.batch_size, squad2.epochs) == (3e-5, 32, 2)
    assert (squad2.max_length, squad2.stride) == (384, 128)
    card = tmp_path / "README.md"
    for text, rate in [
        ("---\nlicense: mit\nlearning_rate: 0.0003\n---\n# A model", 3e-4),
        ("---\nlearning_rate: 3e-4\n---\n", 3e-4),
        ("# A model\nlearning_rate: 0.0003\n", None),
        ("---\nlearning_rate: fast\n---\n", None),
        ("---\nlearning_rate: 0\n---\n", None),
    ]:
        card.write_text(text)
        assert learning_rate_of(tmp_path) == rate
    card.write_text("---\nlearning_rate: 0.0003\n---\n")
    assert recipe_for(find_task("sst2"), tmp_path).learning_rate == 3e-4
    assert learning_rate_of(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("batch_size", 0),
        ("epochs", 1.5),
        ("steps", 0),
        ("warmup", 1.5),
        ("layerdrop", 1.0),
        ("freeze", "everything"),
        ("freeze", -1),
        ("freeze", True),
        ("keep", "first"),
        ("precision", "float16"),
        ("clip", 0),
    ],
)
def test_a_wrong_setting_is_refused_by_name(name, value):
    with pytest.raises(RequestError, match=name):
        Recipe(**{name: value})


def test_the_models_card_decides_the_rate_where_no_recipe_is_given(tmp_path):
    model = checkpoint(tmp_path / "base")
    train, dev = rows(tmp_path, n=30), rows(tmp_path, n=12, seed=1)
    (model / "README.md").write_text("---\nlearning_rate: 0.004\n---\n")
    done = finetune(model, train, dev, fraction=8)
    assert done.recipe.learning_rate == 0.004
    assert done.recipe.max_length == 128
