from __future__ import annotations

import json

import pytest

from microtome.errors import ModelError
from microtome.models import load_tokenizer
from support.tiny import FAMILY_TYPES, save_tiny, tiny_tokenizer


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_a_tokenizer_comes_back_as_it_was_saved(tmp_path, family):
    folder = save_tiny(tmp_path / "m", family, with_tokenizer=True)
    text = "the cat sees a small dog, and it runs."
    loaded = load_tokenizer(folder)
    assert loaded.is_fast
    assert loaded(text)["input_ids"] == tiny_tokenizer(family)(text)["input_ids"]


def test_a_model_may_have_no_tokenizer(tmp_path):
    assert load_tokenizer(save_tiny(tmp_path / "m")) is None


def test_more_tokens_than_embeddings_are_refused_with_both_numbers(tmp_path):
    n_tokens = len(tiny_tokenizer())
    folder = save_tiny(tmp_path / "m", vocab_size=n_tokens - 1, with_tokenizer=True)
    with pytest.raises(
        ModelError, match=f"has {n_tokens} tokens, but .* {n_tokens - 1} embeddings"
    ):
        load_tokenizer(folder)
    assert load_tokenizer(save_tiny(tmp_path / "n", vocab_size=n_tokens, with_tokenizer=True))


def test_code_in_a_tokenizer_is_refused(tmp_path):
    folder = save_tiny(tmp_path / "m", with_tokenizer=True)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["auto_map"] = {"AutoTokenizer": ["evil.Tokenizer", None]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="would run code that comes with it"):
        load_tokenizer(folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xff", b'{"model": 3}'])
def test_a_broken_tokenizer_is_one_line(tmp_path, content):
    folder = save_tiny(tmp_path / "m", with_tokenizer=True)
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(ModelError, match="can't be read") as error:
        load_tokenizer(folder)
    assert "\n" not in str(error.value)


@pytest.mark.real
def test_chem_albert_has_the_tokenizer_of_its_vocabulary(shared_data):
    tokenizer = load_tokenizer(shared_data("models/chem-albert-12"))
    assert len(tokenizer) == 591
    assert tokenizer.decode(tokenizer("CC(=O)O", add_special_tokens=False)["input_ids"])
