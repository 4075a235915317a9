"""Hostile and broken weight files, whole or in shards: each is refused with one line."""

from __future__ import annotations

import json
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

from microtome.models import load
from support.broken_checkpoints import INDEX, WEIGHTS, refused, rewrite_header


class TestSafetensors:
    @pytest.mark.parametrize("length", [2**63, 200_000_000, 10**6])
    def test_a_header_longer_than_the_file(self, folder, length):
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", length) + content[8:])
        refused(folder, f"announces a header of {length} bytes")

    @pytest.mark.parametrize("size", [0, 7])
    def test_no_room_for_a_header(self, folder, size):
        (folder / WEIGHTS).write_bytes(b"x" * size)
        refused(folder, f"has {size} bytes, too few")

    @pytest.mark.parametrize("n_bytes", [1, 1000, 100_000])
    def test_cut_off(self, folder, n_bytes):
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[:-n_bytes])
        refused(folder, "is cut off: its tensors end at byte")

    def test_something_after_the_end(self, folder):
        with (folder / WEIGHTS).open("ab") as stream:
            stream.write(b"more")
        refused(folder, "has 4 bytes after its last tensor")

    @pytest.mark.parametrize(
        "header", [b"{", b"[" * 50_000, b"\xff\xfe", b'{"a": 1, "a": 2}', b'{"\\ud800": 1}']
    )
    def test_a_header_that_is_not_json(self, folder, header):
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header)
        refused(folder, "header that is not valid JSON")

    @pytest.mark.parametrize("header", [b"[]", b"3"])
    def test_a_header_that_is_no_object(self, folder, header):
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header)
        refused(folder, "not a JSON object")

    def test_no_tensors(self, folder):
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", 2) + b"{}")
        refused(folder, "holds no tensors")

    @pytest.mark.parametrize("dtype", ["F99", "F8_E4M3", None, 5, "f32"])
    def test_an_unknown_dtype(self, folder, dtype):
        rewrite_header(folder, lambda header: _changed(header, dtype=dtype))
        refused(folder, "in the unknown dtype")

    @pytest.mark.parametrize("shape", [[2**63], [10**4_000] * 2, [1] * 17, [2**61] * 16])
    def test_sizes_beyond_any_file(self, folder, shape):
        rewrite_header(folder, lambda header: _changed(header, shape=shape))
        refused(folder, "no usable shape|but its shape needs")

    @pytest.mark.parametrize("told", [[], {"format": 1}, "pt"])
    def test_metadata_that_is_not_of_texts(self, folder, told):
        rewrite_header(folder, lambda header: header | {"__metadata__": told})
        refused(folder, "__metadata__ that is not of texts")

    def test_integer_weights(self, folder):
        rewrite_header(folder, lambda header: _changed(header, dtype="I32"))
        refused(folder, "as I32, expected floating-point weights")

    @pytest.mark.parametrize(
        "shape", [None, "x", [-1, 32], [True], [1.5], [[1]], {"a": 1}, [-96, -32]]
    )
    def test_a_shape_that_is_none(self, folder, shape):
        rewrite_header(folder, lambda header: _changed(header, shape=shape))
        refused(folder, "no usable shape and offsets")

    def test_a_shape_of_other_size(self, folder):
        rewrite_header(folder, lambda header: _changed(header, shape=[10**15, 10**15]))
        refused(folder, "but its shape needs 4" + "0" * 30)

    @pytest.mark.parametrize("offsets", [None, [0], [0, 1, 2], [-4, 0], ["0", "4"]])
    def test_offsets_that_are_none(self, folder, offsets):
        rewrite_header(folder, lambda header: _changed(header, data_offsets=offsets))
        refused(folder, "no usable shape and offsets")

    def test_an_overlap(self, folder):
        refused_layout(folder, {"a": [0, 8], "b": [4, 12]}, 12, "an overlap of 4 bytes")

    def test_the_same_bytes_twice(self, folder):
        refused_layout(folder, {"a": [0, 8], "b": [0, 8]}, 8, "an overlap of 8 bytes")

    def test_a_hole(self, folder):
        refused_layout(folder, {"a": [0, 8], "b": [12, 20]}, 20, "a hole of 4 bytes")

    def test_a_hole_at_the_start(self, folder):
        refused_layout(folder, {"a": [4, 12]}, 12, "a hole before tensor 'a'")


def refused_layout(folder, offsets, n_bytes, text):
    header = {
        name: {"dtype": "F32", "shape": [2], "data_offsets": pair} for name, pair in offsets.items()
    }
    encoded = json.dumps(header).encode()
    content = struct.pack("<Q", len(encoded)) + encoded + bytes(n_bytes)
    (folder / WEIGHTS).write_bytes(content)
    refused(folder, text)


def _changed(header, **changes):
    """The header with the first tensor's entry changed."""
    name = next(name for name in header if name != "__metadata__")
    return header | {name: header[name] | changes}


class TestShards:
    def test_sharded_and_whole_give_the_same_model(self, folder, sharded):
        for one, other in zip(load(folder).parameters(), load(sharded).parameters(), strict=True):
            assert torch.equal(one, other)

    def test_a_missing_shard(self, sharded):
        shard = sorted(sharded.glob("*.safetensors"))[1]
        shard.unlink()
        refused(sharded, f"lacks the shard {shard.name}")

    def test_a_tensor_in_two_shards(self, sharded):
        first, second = sorted(sharded.glob("*.safetensors"))[:2]
        name, value = next(iter(load_file(first).items()))
        save_file(load_file(second) | {name: value}, second, metadata={"format": "pt"})
        refused(sharded, f"tensor {name} is in two shards")

    def test_an_index_that_names_a_tensor_that_is_not_there(self, sharded):
        change_map(
            sharded, lambda weight_map: weight_map | {"a.b": next(iter(weight_map.values()))}
        )
        refused(sharded, "puts tensor a.b into .*, but it isn't there")

    def test_a_tensor_that_the_index_does_not_name(self, sharded):
        change_map(sharded, lambda weight_map: dict(list(weight_map.items())[1:]))
        refused(sharded, "which the index doesn't name")

    @pytest.mark.parametrize(
        "name",
        [
            "../outside.safetensors",
            "/etc/passwd",
            "a/b.safetensors",
            "x.bin",
            "",
            "a\n.safetensors",
        ],
    )
    def test_a_shard_name_that_is_a_path(self, sharded, name):
        change_map(sharded, lambda weight_map: weight_map | {"a.b": name})
        refused(sharded, "expected a plain file name ending in .safetensors")

    @pytest.mark.parametrize("weight_map", [None, {}, [], "x"])
    def test_an_index_without_a_map(self, sharded, weight_map):
        change_map(sharded, lambda _: weight_map)
        refused(sharded, "has no weight_map")

    def test_a_map_to_no_file_names(self, sharded):
        change_map(sharded, lambda weight_map: weight_map | {"a.b": 3})
        refused(sharded, "other than a file name")


def change_map(folder, change):
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"] = change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))
