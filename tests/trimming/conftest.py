"""Encodings of the tests go to a folder of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROTOME_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
