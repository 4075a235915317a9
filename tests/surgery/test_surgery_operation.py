"""The whole operation, from a folder to a folder, for every family, head and dtype."""

from __future__ import annotations

import copy

import pytest
import torch
from safetensors.torch import load_file, save_file

from microtome import load, parse, save
from microtome.errors import EditError
from microtome.surgery import certify, operate
from support.surgery_cases import disable_text
from support.tiny import (
    AUTO_CLASSES,
    FAMILY_TYPES,
    KINDS_AND_HEADS,
    save_tiny,
    tiny_batch,
    tiny_model,
)

WITH_POOLER = [kind for kind in FAMILY_TYPES if getattr(tiny_model(kind, "none"), "pooler", None)]


def edits_for(kind):
    before = "unshare() | " if kind == "albert" else ""
    text = f"{before}duplicate(1) | disable(2.1) | reinit(3, seed=0, std=0.3)"
    return parse(disable_text(kind, text))


@pytest.mark.parametrize(("kind", "head"), KINDS_AND_HEADS)
def test_every_head_survives_the_operation(kind, head, tmp_path):
    base = save_tiny(tmp_path / "base", kind, head)
    done = operate(base, edits_for(kind), tmp_path / "out")
    assert done.certificate.passed
    assert done.layers == 4
    loaded = AUTO_CLASSES[head].from_pretrained(tmp_path / "out").eval()
    edited = edits_for(kind)(load(base))
    with torch.no_grad():
        ours, theirs = edited(**tiny_batch(kind))[0], loaded(**tiny_batch(kind))[0]
    torch.testing.assert_close(theirs, ours, rtol=1e-6, atol=1e-6)


def without_pooler(folder):
    """The weights of ``folder`` written again without a pooler, as those of embedders often are."""
    file = folder / "model.safetensors"
    kept = {name: value for name, value in load_file(file).items() if "pooler" not in name}
    save_file(kept, file, metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("kind", WITH_POOLER)
def test_a_headless_model_without_a_pooler_is_operated_on_and_gets_none(kind, tmp_path):
    base = without_pooler(save_tiny(tmp_path / "base", kind, "none"))
    done = operate(base, edits_for(kind), tmp_path / "out")
    assert done.certificate.passed
    assert any("no pooler" in warning for warning in done.certificate.warnings)
    stored = load_file(tmp_path / "out" / "model.safetensors")
    assert not any("pooler" in name for name in stored)
    assert "add_pooling_layer=False" in (tmp_path / "out" / "README.md").read_text()
    edited = edits_for(kind)(load(base))
    loaded = AUTO_CLASSES["none"].from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        ours, theirs = edited(**tiny_batch(kind))[0], loaded(**tiny_batch(kind))[0]
    torch.testing.assert_close(theirs, ours, rtol=1e-6, atol=1e-6)
    assert operate(tmp_path / "out", parse("remove(3)"), tmp_path / "again").layers == 3


@pytest.mark.parametrize("kind", WITH_POOLER)
def test_a_pooler_that_gets_lost_still_fails_the_certificate(kind, tmp_path):
    """The model in memory has one: its absence from the file is a loss of weights."""
    base = load(save_tiny(tmp_path / "base", kind, "none"))
    edit = edits_for(kind)
    edited = edit(base)
    save(edited, tmp_path / "out")
    certificate = certify(edit, base, edited, without_pooler(tmp_path / "out"))
    assert [check.name for check in certificate.checks if not check.passed] == ["round trip"]
    assert certificate.warnings == ()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_a_half_precision_base_is_saved_in_its_dtype_and_equal_after_rounding(
    kind, dtype, tmp_path
):
    base = save_tiny(tmp_path / "base", kind, dtype=dtype)
    assert operate(base, edits_for(kind), tmp_path / "out").certificate.passed
    stored = AUTO_CLASSES["mlm"].from_pretrained(tmp_path / "out")
    assert stored.dtype == dtype
    edited = edits_for(kind)(load(base))
    rounded = copy.deepcopy(edited).to(dtype).state_dict()
    for name, value in stored.state_dict().items():
        assert torch.equal(value, rounded[name]), name


def test_a_sharded_base_works(tmp_path):
    base = save_tiny(tmp_path / "base", "bert", max_shard_size="20KB")
    assert (base / "model.safetensors.index.json").exists()
    assert operate(base, parse("extend(4)"), tmp_path / "out").certificate.passed


def test_a_base_without_a_tokenizer_works_and_with_one_keeps_it(tmp_path):
    bare = save_tiny(tmp_path / "bare", "bert")
    operate(bare, parse("extend(4)"), tmp_path / "bare-out")
    assert not (tmp_path / "bare-out" / "tokenizer.json").exists()
    whole = save_tiny(tmp_path / "whole", "bert", with_tokenizer=True)
    operate(whole, parse("extend(4)"), tmp_path / "whole-out")
    assert (tmp_path / "whole-out" / "tokenizer.json").exists()


def test_an_edit_that_does_not_fit_leaves_nothing(tmp_path):
    base = save_tiny(tmp_path / "base", "bert")
    with pytest.raises(EditError):
        operate(base, parse("extend(4) | remove(9)"), tmp_path / "a" / "out")
    assert not (tmp_path / "a").exists()
