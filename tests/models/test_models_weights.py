"""Reading a safetensors header, compared with the library that will read the file afterwards."""

from __future__ import annotations

import json
import struct

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from microtome.errors import ModelError
from microtome.models.weights import stored_tensors
from support.tiny import save_tiny

CONTENT = save(
    {
        "a": torch.arange(6.0).reshape(2, 3),
        "b.c": torch.ones(4, dtype=torch.float16),
        "empty": torch.zeros(0, 5),
        "ids": torch.arange(3),
        "scalar": torch.tensor(2.5, dtype=torch.bfloat16),
    },
    metadata={"format": "pt"},
)


def as_the_library_reads(file):
    """Names and shapes by the safetensors library; None where it refuses the file."""
    try:
        with safe_open(file, framework="pt") as tensors:
            return {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError):
        return None


def test_names_shapes_and_bytes_are_the_librarys(tmp_path):
    file = save_tiny(tmp_path / "m") / "model.safetensors"
    found = stored_tensors(file)
    assert {tensor.name: tensor.shape for tensor in found} == as_the_library_reads(file)
    with safe_open(file, framework="pt") as tensors:
        for tensor in found:
            content = file.read_bytes()[tensor.begin : tensor.begin + tensor.n_bytes]
            assert content == tensors.get_tensor(tensor.name).numpy().tobytes()


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_as_the_library_reads_it(tmp_path, data):
    content = bytearray(CONTENT)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    try:
        found = {tensor.name: tensor.shape for tensor in stored_tensors(file)}
    except ModelError:
        return
    assert found == as_the_library_reads(file)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    entry=st.fixed_dictionaries(
        {},
        optional={
            "dtype": st.sampled_from(["F32", "F16", "I64", "F8_E4M3", "x"]) | st.none(),
            "shape": st.lists(st.integers(-1, 4), max_size=3) | st.text(max_size=2),
            "data_offsets": st.lists(st.integers(-1, 40), max_size=3) | st.integers(),
        },
    )
)
def test_an_odd_entry_is_refused_or_read_as_the_library_reads_it(tmp_path, entry):
    header = json.dumps({"a": entry}).encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
    try:
        found = {tensor.name: tensor.shape for tensor in stored_tensors(file)}
    except ModelError:
        return
    assert found == as_the_library_reads(file)


def test_too_many_tensors_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("microtome.models.weights.MAX_TENSORS", 4)
    (tmp_path / "model.safetensors").write_bytes(CONTENT)
    with pytest.raises(ModelError, match="more than 4"):
        stored_tensors(tmp_path / "model.safetensors")
