"""A small checkpoint in one file, and one in shards."""

from __future__ import annotations

import pytest

from support.tiny import save_tiny


@pytest.fixture
def folder(tmp_path):
    return save_tiny(tmp_path / "model")


@pytest.fixture
def sharded(tmp_path):
    made = save_tiny(tmp_path / "sharded", max_shard_size="40KB")
    assert len(list(made.glob("*.safetensors"))) >= 3
    return made
