"""What the tests of replications share: a cache of their own, two tiny models."""

from __future__ import annotations

import pytest

from support.training_rows import checkpoint


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def models(tmp_path):
    """Layers with weights of their own, and shared ones."""
    return [
        str(checkpoint(tmp_path / "own", num_hidden_layers=3)),
        str(checkpoint(tmp_path / "shared", "albert", num_hidden_layers=3)),
    ]
