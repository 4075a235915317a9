"""Surgery needs no job: any head stays what it is; embedders and cross-encoders stay loadable."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder

from microtome.edits import parse
from microtome.errors import CertificateFailed
from microtome.models import load, saving
from microtome.models.checkpoint import look_at
from microtome.models.heads import job_of
from microtome.surgery import operate
from support.sentence_folders import sentence_folder, write_json
from support.tiny import save_tiny, scale_up_, tiny_config, tiny_tokenizer

CLASSES = {
    "bert": ("ForPreTraining", "ForNextSentencePrediction", "ForMultipleChoice", "LMHeadModel"),
    "roberta": ("ForMultipleChoice", "ForCausalLM"),
    "electra": ("ForPreTraining", "ForMultipleChoice"),
    "distilbert": ("ForMultipleChoice",),
    "albert": ("ForPreTraining", "ForMultipleChoice"),
    "modernbert": ("ForMultipleChoice",),
    "mpnet": ("ForMultipleChoice",),
}
PREFIX = {
    "distilbert": "DistilBert", "modernbert": "ModernBert", "mpnet": "MPNet",
}  # fmt: skip
CASES = [(family, ending) for family, endings in CLASSES.items() for ending in endings]


@pytest.mark.parametrize(("family", "ending"), CASES)
def test_any_head_is_kept_with_its_tensors(tmp_path, family, ending):
    cls = getattr(transformers, PREFIX.get(family, family.capitalize()) + ending)
    model = cls(tiny_config(family))
    scale_up_(model)
    model.save_pretrained(tmp_path / "base")
    done = operate(tmp_path / "base", parse("remove(2)"), tmp_path / "out")
    assert done.certificate.passed
    edited, info = cls.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    before, after = model.state_dict(), edited.state_dict()
    outside = [name for name in before if "layer" not in name.lower()]
    assert outside
    assert all(torch.equal(before[name], after[name]) for name in outside)
    assert edited.config.num_hidden_layers == 2


def test_an_embedders_certificate_is_held_against_sentence_transformers(tmp_path):
    base = sentence_folder(tmp_path / "base", modes=("cls",), then=("Dense", "Normalize"))
    done = operate(base, parse("remove(1)"), tmp_path / "out")
    checks = {check.name: check for check in done.certificate.checks}
    assert checks["sentence-transformers"].passed is True
    assert checks["other files"].passed is True
    stored = json.loads((tmp_path / "out" / "microtome.json").read_text())["certificate"]
    assert {"sentence-transformers", "other files"} <= {one["name"] for one in stored["checks"]}


@pytest.mark.parametrize("lost", ["1_Pooling/config.json", "modules.json"])
@pytest.mark.parametrize("mode", ["cls", "mean"])
def test_a_lost_file_fails_the_certificate(tmp_path, monkeypatch, lost, mode):
    """The library would pool by the mean, without a word."""
    base = sentence_folder(tmp_path / "base", modes=(mode,), then=())
    whole = saving.copy_sentence_files

    def forgetful(model, provenance, folder):
        whole(model, provenance, folder)
        (folder / lost).unlink()

    monkeypatch.setattr(saving, "copy_sentence_files", forgetful)
    failing = "other files" if mode == "mean" else "other files.*sentence-transformers"
    with pytest.raises(CertificateFailed, match=failing):
        operate(base, parse("remove(1)"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_the_extra_the_check_says_how_to_run_it(tmp_path, monkeypatch):
    base = sentence_folder(tmp_path / "base")
    monkeypatch.setattr("microtome.surgery.sentence_proof.find_spec", lambda name: None)
    done = operate(base, parse("remove(1)"), tmp_path / "out")
    check = next(one for one in done.certificate.checks if one.name == "sentence-transformers")
    assert check.passed is None
    assert check.detail == "not run: pip install 'microtome-lab[embedding]'"
    assert done.certificate.passed
    assert "| sentence-transformers | not run |" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("n_labels", [1, 2])
@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_a_cross_encoder_stays_one(tmp_path, family, n_labels):
    folder = save_tiny(tmp_path / "base", family, "classification", num_labels=n_labels)
    tiny_tokenizer(family).save_pretrained(folder)
    write_json(
        folder / "modules.json",
        [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}],
    )
    settings = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity"}
    write_json(folder / "config_sentence_transformers.json", settings)
    write_json(
        folder / "sentence_bert_config.json", {"transformer_task": "sequence-classification"}
    )
    assert job_of(look_at(folder)) == job_of(load(folder)) == "reranking"
    done = operate(folder, parse("remove(2)"), tmp_path / "out")
    checks = {check.name: check.passed for check in done.certificate.checks}
    assert checks["sentence-transformers"] is True
    assert CrossEncoder(str(tmp_path / "out"), device="cpu").num_labels == n_labels


def test_a_cross_encoder_of_three_labels_is_a_classifier(tmp_path):
    folder = save_tiny(tmp_path / "base", head="classification", num_labels=3)
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | {"sentence_transformers": {"version": "4.0"}})
    assert job_of(look_at(folder)) == "classification"
