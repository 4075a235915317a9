"""Tiny models on the table; encodings go to a folder of the tests' own."""

from __future__ import annotations

import pytest

from microtome.explorer.session import Session, SessionRequest
from microtome.tasks import DataSpec
from support.explorer.client import running
from support.trimming.cases import case


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROTOME_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A checkpoint that is good at its rows, and the file that they are in."""
    model, options = case("classification", tmp_path_factory.mktemp("classifier"))
    return model, options[options.index("--dev-data") + 1]


@pytest.fixture(scope="module")
def session(classifier, tmp_path_factory):
    model, rows = classifier
    out = tmp_path_factory.mktemp("saved")
    return Session(SessionRequest(str(model), DataSpec(path=rows), out=out))


@pytest.fixture(scope="module")
def client(session):
    with running(session) as found:
        yield found
