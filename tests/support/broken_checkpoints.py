"""Checkpoints made wrong on purpose, and the line with which they are refused."""

from __future__ import annotations

import json
import struct

import pytest

from microtome.errors import ModelError
from microtome.models import load

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


def refused(folder, text, **options):
    """The one line with which loading is refused; the torch-free look refuses alike."""
    with pytest.raises(ModelError, match=text) as error:
        load(folder, **options)
    assert "\n" not in str(error.value)
    return error.value


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def rewrite_header(folder, change):
    """Replace the header of the weights by what ``change`` makes of it, with the data as it was."""
    content = (folder / WEIGHTS).read_bytes()
    (n_header,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + n_header])
    new = json.dumps(change(header)).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(new)) + new + content[8 + n_header :])
