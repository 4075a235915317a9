"""What the tests of experiments share: a cache and a folder of their own, a small encoder."""

from __future__ import annotations

import pytest

from support.tiny import tiny_model
from support.training_rows import tokenizer_for


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    tiny_model("bert", "none").save_pretrained(folder)
    tokenizer_for().save_pretrained(folder)
    return folder
