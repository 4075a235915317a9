"""Checkpoints that people have: recognised from their classes and labels, rebuilt small."""

from __future__ import annotations

import json

import pytest
import transformers

from microtome.models import job_of, known_checkpoints, load
from microtome.models.checkpoint import look_at
from support.sentence_folders import sentence_folder, write_json
from support.tiny import tiny_config


@pytest.mark.parametrize("known", known_checkpoints(), ids=lambda known: known["name"])
def test_a_published_checkpoint_is_taken_for_what_it_is(tmp_path, known):
    kind, folder = known["model_type"], tmp_path / "m"
    if "pooling" in known:
        sentence_folder(folder, kind, modes=(known["pooling"],))
        config = json.loads((folder / "config.json").read_text())
        write_json(folder / "config.json", config | {"architectures": [known["architecture"]]})
    else:
        labels = {"num_labels": known["labels"]} if "labels" in known else {}
        config = tiny_config(kind, **labels, **known.get("config", {}))
        getattr(transformers, known["architecture"])(config).save_pretrained(folder)
    checkpoint = look_at(folder)
    assert (checkpoint.facts.name, job_of(checkpoint)) == (known["family"], known["job"])
    assert job_of(load(folder)) == known["job"]


def test_the_list_has_every_name_once():
    names = [known["name"] for known in known_checkpoints()]
    assert len(names) == len(set(names)) > 30
