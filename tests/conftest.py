"""What every test shares: no network, one way to reach real data, and a browser."""

from __future__ import annotations

import gc
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# Before transformers is imported anywhere: tests never ask the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# A busy machine must not fail a test: no example is timed.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Files of few tests first: theirs are long. Short ones keep both workers busy to the end."""
    n_tests = Counter(item.path for item in items)
    items.sort(key=lambda item: n_tests[item.path])


def pytest_collection_finish():
    """What is loaded by now stays: the collector needn't go through it in every test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def shared_folder() -> Path:
    """The folder with real data and models: MICROTOME_TEST_DATA, or ../shared."""
    return Path(os.environ.get("MICROTOME_TEST_DATA", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def shared_data():
    """A function from a relative path ("data/glue/MRPC") to a real one; skips where absent."""

    def find(relative: str) -> Path:
        path = shared_folder() / relative
        if not path.exists():
            reason = f"{relative} is not in {shared_folder()} (set MICROTOME_TEST_DATA)"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        return path

    return find


@pytest.fixture(autouse=True, scope="module")
def pdf_files():
    """A report's PDF files take longest: off, unless a module overrides this fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("microtome.report.writing.can_write_pdf", lambda: False)
        yield


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        reason = "no chromium on the PATH (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    api = pytest.importorskip("playwright.sync_api", reason="playwright isn't installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()
