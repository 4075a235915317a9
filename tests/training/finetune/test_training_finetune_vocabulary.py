"""Fine-tuning a model whose vocabulary was made smaller first: the same training, fewer rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from transformers import AutoTokenizer

from microtome import Vocabulary, load
from microtome.errors import RequestError
from microtome.training.finetune.finetuning import finetune
from microtome.training.recipe import Recipe
from support.training_rows import checkpoint, rows

RECIPE = Recipe(learning_rate=1e-3, batch_size=4, epochs=2, max_length=32)


@pytest.fixture
def data(tmp_path):
    """Few rows to train on and to score, and a file with the texts of both."""
    sides = rows(tmp_path / "rows", n=8), rows(tmp_path / "rows", n=6, seed=1)
    files = sorted((tmp_path / "rows").glob("*.jsonl"))
    (tmp_path / "all.jsonl").write_text("".join(file.read_text() for file in files))
    return (*sides, tmp_path / "all.jsonl")


@pytest.mark.parametrize("family", ["bert", "roberta", "albert"])
def test_it_learns_what_the_whole_model_learns(family, data, tmp_path):
    """Rows that no text uses get no gradient: without them nothing else differs."""
    train, dev, file = data
    model = checkpoint(tmp_path / "base", family)
    whole = finetune(model, train, dev, recipe=RECIPE)
    done = finetune(model, train, dev, recipe=RECIPE, edits=Vocabulary(file), out=tmp_path / "out")
    np.testing.assert_allclose(done.logits, whole.logits, rtol=0, atol=1e-5)
    saved = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert len(saved) == load(tmp_path / "out").config.vocab_size < whole.model.config.vocab_size
    again = finetune(model, train, dev, recipe=RECIPE, edits=Vocabulary(file), out=tmp_path / "out")
    np.testing.assert_allclose(again.logits, done.logits, rtol=0, atol=1e-6)


def test_the_request_is_the_content_of_the_file(data, tmp_path):
    train, dev, file = data
    model = checkpoint(tmp_path / "base")
    finetune(model, train, dev, recipe=RECIPE, edits=Vocabulary(file), out=tmp_path / "out")
    request = json.loads((tmp_path / "out" / "finetuning.json").read_text())["request"]
    assert request["edits"] == Vocabulary(file).identity
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(file.read_bytes())
    finetune(model, train, dev, recipe=RECIPE, edits=Vocabulary(copy), out=tmp_path / "out")
    copy.write_text(file.read_text() + '{"text": "more", "label": "no"}\n')
    with pytest.raises(RequestError):
        finetune(model, train, dev, recipe=RECIPE, edits=Vocabulary(copy), out=tmp_path / "out")
