"""Encodings of the tests go to a folder of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTOME_CACHE", str(tmp_path / "cache"))
