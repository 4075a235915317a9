from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from microtome.models import content_hash
from support.tiny import save_tiny

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    return save_tiny(tmp_path / "model", with_tokenizer=True)


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def change_tensor(folder, change):
    tensors = load_file(folder / WEIGHTS)
    name = "bert.encoder.layer.2.output.dense.weight"
    save_file(tensors | {name: change(tensors[name])}, folder / WEIGHTS, metadata={"format": "pt"})


def test_sharding_does_not_count(folder, tmp_path):
    assert content_hash(save_tiny(tmp_path / "shards", max_shard_size="40KB")) == content_hash(
        folder
    )


def test_place_tokenizer_card_and_header_text_do_not_count(folder, tmp_path):
    before = content_hash(folder)
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, metadata={"format": "pt", "by": "me"})
    (folder / "tokenizer.json").unlink()
    (folder / "README.md").write_text("a card")
    moved = shutil.move(folder, tmp_path / "elsewhere")
    assert content_hash(moved) == before


@pytest.mark.parametrize("key", ["transformers_version", "dtype", "_name_or_path", "use_cache"])
def test_config_entries_without_meaning_do_not_count(folder, key):
    before = content_hash(folder)
    change_config(folder, **{key: "another"})
    assert content_hash(folder) == before


@pytest.mark.parametrize(
    "change", [{"hidden_act": "relu"}, {"layer_norm_eps": 1e-5}, {"num_labels": 3}]
)
def test_config_entries_with_meaning_count(folder, change):
    before = content_hash(folder)
    change_config(folder, **change)
    assert content_hash(folder) != before


@pytest.mark.parametrize(
    "change",
    [
        lambda weight: weight.index_fill(0, torch.tensor([0]), 0.5),
        lambda weight: weight.half(),
        lambda weight: weight.T.contiguous(),
        lambda weight: weight.reshape(-1),
        lambda weight: -weight,
    ],
)
def test_every_change_of_a_tensor_counts(folder, change):
    before = content_hash(folder)
    change_tensor(folder, change)
    assert content_hash(folder) != before


def test_a_tensors_name_counts(folder):
    before = content_hash(folder)
    tensors = load_file(folder / WEIGHTS)
    name = "bert.embeddings.LayerNorm.bias"
    tensors[name + "2"] = tensors.pop(name)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    assert content_hash(folder) != before
