from __future__ import annotations

import copy
import errno
import json

import pytest
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file

from microtome import models
from microtome.errors import ModelError, RequestError, StorageError
from microtome.models.front_matter import learning_rate_of
from microtome.models.provenance import MAX_EDITS, attach
from support.tiny import KINDS_AND_HEADS, save_tiny, tiny_batch, tiny_model, tiny_tokenizer

CERTIFICATE = {
    "passed": True,
    "checks": [{"name": "only | these", "passed": True, "detail": "<b>layers</b> 3\nand 4"}],
}


def output(model, family="bert"):
    with torch.no_grad():
        return model(**tiny_batch(family))[0]


def everything_below(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


@pytest.mark.parametrize(("family", "head"), KINDS_AND_HEADS)
def test_a_saved_model_loads_with_plain_transformers(tmp_path, family, head):
    model = models.load(save_tiny(tmp_path / "base", family, head))
    out = models.save(model, tmp_path / "out")
    plain = getattr(transformers, type(model).__name__).from_pretrained(out)
    assert torch.equal(output(plain, family), output(model, family))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_precision_base_is_saved_in_its_own_dtype(tmp_path, dtype):
    base = save_tiny(tmp_path / "base", dtype=dtype)
    model = models.load(base)
    before = copy.deepcopy(model.state_dict())
    config = copy.deepcopy(model.config.to_dict())
    models.save(model, tmp_path / "out")
    saved, stored = (load_file(f / "model.safetensors") for f in (tmp_path / "out", base))
    assert saved.keys() == stored.keys()
    assert all(torch.equal(saved[name], stored[name]) for name in stored)
    declared = json.loads((tmp_path / "out" / "config.json").read_text())["dtype"]
    assert declared == str(dtype).removeprefix("torch.")
    # In memory nothing changed: still fp32, and the same numbers.
    assert model.config.to_dict() == config
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.dtype == torch.float32


def test_a_large_model_is_saved_in_shards_that_load_again(tmp_path):
    model = models.load(save_tiny(tmp_path / "base"))
    out = models.save(model, tmp_path / "out", max_shard_size="40KB")
    assert len(list(out.glob("*.safetensors"))) >= 3
    assert torch.equal(output(models.load(out)), output(model))


def test_a_saved_folder_is_as_readable_as_any_other(tmp_path):
    base = save_tiny(tmp_path / "base", with_tokenizer=True)
    out = models.save(models.load(base), tmp_path / "out")
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    assert out.stat().st_mode == (tmp_path / "folder").stat().st_mode
    modes = {path.stat().st_mode for path in out.iterdir()}
    assert modes == {(tmp_path / "file").stat().st_mode}


def test_the_head_mask_hook_is_no_part_of_a_checkpoint(tmp_path):
    model = models.load(save_tiny(tmp_path / "base"))
    plain = type(model).from_pretrained(models.save(model, tmp_path / "out"))
    assert not plain._forward_pre_hooks


def test_the_tokenizer_goes_along_byte_for_byte(tmp_path):
    base = save_tiny(tmp_path / "base", with_tokenizer=True)
    out = models.save(models.load(base), tmp_path / "out")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (out / name).read_bytes() == (base / name).read_bytes()


def test_a_tokenizer_that_is_given_is_saved(tmp_path):
    base = save_tiny(tmp_path / "base")
    assert models.load_tokenizer(models.save(models.load(base), tmp_path / "a")) is None
    out = models.save(models.load(base), tmp_path / "b", tokenizer=tiny_tokenizer())
    assert len(models.load_tokenizer(out)) == len(tiny_tokenizer())


def test_history_accumulates_over_generations(tmp_path):
    base = save_tiny(tmp_path / "base")
    first = models.load(base)
    attach(first, models.provenance_of(first).with_edits(["extend(4)"]))
    second = models.load(models.save(first, tmp_path / "one", certificate=CERTIFICATE))
    assert models.provenance_of(second).edits == ("extend(4)",)
    attach(second, models.provenance_of(second).with_edits(["disable(1.2)"]))
    third = models.provenance_of(models.load(models.save(second, tmp_path / "two")))
    assert third.edits == ("extend(4)", "disable(1.2)")
    assert (third.base.name, third.base.content_hash) == ("base", models.content_hash(base))
    assert third.content_hash == models.content_hash(tmp_path / "two")


def test_the_record_says_what_the_design_promises(tmp_path):
    base = save_tiny(tmp_path / "base")
    out = models.save(models.load(base), tmp_path / "out", certificate=CERTIFICATE)
    record = json.loads((out / "microtome.json").read_text())
    assert record["schema_version"] == 1
    assert record["base"] == {"name": "base", "content_hash": models.content_hash(base)}
    assert record["edits"] == []
    assert record["certificate"] == CERTIFICATE
    assert record["versions"]["torch"] == torch.__version__
    assert str(tmp_path) not in (out / "microtome.json").read_text()


def test_provenance_survives_a_deep_copy(tmp_path):
    model = models.load(save_tiny(tmp_path / "base"))
    assert models.provenance_of(copy.deepcopy(model)) == models.provenance_of(model)
    assert models.provenance_of(tiny_model("bert")) is None


def test_a_model_that_was_not_loaded_here_can_be_saved(tmp_path):
    model = tiny_model("bert")
    out = models.save(model, tmp_path / "out")
    assert torch.equal(output(models.load(out)), output(model))


class TestCard:
    def test_it_tells_base_edits_certificate_licence_and_use(self, tmp_path):
        base = save_tiny(tmp_path / "base")
        (base / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# Base\n")
        model = models.load(base)
        attach(model, models.provenance_of(model).with_edits(["extend(4)", "disable(1.2)"]))
        card = (
            models.save(model, tmp_path / "out", certificate=CERTIFICATE) / "README.md"
        ).read_text()
        front = "---\nlibrary_name: transformers\npipeline_tag: fill-mask\nlicense: apache-2.0\n"
        assert card.startswith(front)
        for text in ("`base`", "1. `extend(4)`", "2. `disable(1.2)`", "Passed.", "28,976"):
            assert text in card
        assert "BertForMaskedLM.from_pretrained" in card
        # Text that comes from elsewhere stays in its table cell.
        assert "| only \\| these | yes | &lt;b>layers&lt;/b> 3 and 4 |" in card

    @pytest.mark.parametrize(
        "front", ["", "license: mit", "---\nlicense: [a]\n---\n", "---\nlicense: mit\n", "---\n"]
    )
    def test_without_a_licence_in_the_base_it_claims_none(self, tmp_path, front):
        base = save_tiny(tmp_path / "base")
        (base / "README.md").write_text(front)
        card = (models.save(models.load(base), tmp_path / "out") / "README.md").read_text()
        assert "license:" not in card
        assert "names none" in card


class TestRefusals:
    def test_a_folder_with_something_in_it(self, tmp_path):
        model = models.load(save_tiny(tmp_path / "base"))
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "precious").write_text("data")
        with pytest.raises(RequestError, match="not empty, and nothing is overwritten"):
            models.save(model, tmp_path / "out")
        assert everything_below(tmp_path / "out")[0].name == "precious"

    def test_a_file(self, tmp_path):
        model = models.load(save_tiny(tmp_path / "base"))
        (tmp_path / "out").write_text("data")
        with pytest.raises(RequestError, match="is not a folder, expected a new or empty one"):
            models.save(model, tmp_path / "out")

    def test_an_empty_folder_is_fine(self, tmp_path):
        model = models.load(save_tiny(tmp_path / "base"))
        (tmp_path / "out").mkdir()
        assert (models.save(model, tmp_path / "out") / "model.safetensors").is_file()


class TestFailure:
    """A save that fails at any point leaves the disk as it was."""

    @pytest.mark.parametrize(
        "step", ["save_pretrained", "copy_tokenizer", "model_card", "_history"]
    )
    @pytest.mark.parametrize(
        "error",
        [
            OSError(errno.ENOSPC, "No space left"),
            SafetensorError("I/O error: No space left on device (os error 28)"),
            KeyboardInterrupt(),
        ],
    )
    def test_nothing_is_left(self, tmp_path, monkeypatch, step, error):
        model = models.load(save_tiny(tmp_path / "base"))

        def fail(*args, **options):
            raise error

        home = type(model) if step == "save_pretrained" else "microtome.models.saving"
        if step == "save_pretrained":
            monkeypatch.setattr(home, step, fail)
        else:
            monkeypatch.setattr(f"{home}.{step}", fail)
        before = everything_below(tmp_path)
        wanted = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else StorageError
        with pytest.raises(wanted) as raised:
            models.save(model, tmp_path / "deep" / "down" / "out")
        assert everything_below(tmp_path) == before
        assert wanted is KeyboardInterrupt or "the disk is full" in str(raised.value)

    def test_a_failed_proof_leaves_nothing(self, tmp_path):
        model = models.load(save_tiny(tmp_path / "base"))
        before = everything_below(tmp_path)
        seen = []

        def prove(folder):
            seen.append((folder / "model.safetensors").is_file())
            raise RequestError("no proof")

        with pytest.raises(RequestError, match="no proof"):
            models.save(model, tmp_path / "out", prove=prove)
        assert seen == [True]
        assert everything_below(tmp_path) == before

    def test_a_file_in_the_way_is_one_line(self, tmp_path):
        model = models.load(save_tiny(tmp_path / "base"))
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match="can't be written: Not a directory"):
            models.save(model, tmp_path / "file" / "out")


GOOD = {"schema_version": 1, "base": {"name": "b", "content_hash": "0"}, "edits": ["extend(4)"]}


class TestForeignHistory:
    """A microtome.json may come from anybody."""

    def written(self, tmp_path, content):
        folder = save_tiny(tmp_path / "base")
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "microtome.json").write_text(text)
        return folder

    def test_a_good_one_is_read(self, tmp_path):
        model = models.load(self.written(tmp_path, GOOD))
        assert models.provenance_of(model).edits == ("extend(4)",)

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("{", "not valid JSON"),
            ("[]", "expected a JSON object"),
            ({"padding": "x" * 1_000_001}, "more than the 1000000 allowed"),
            (GOOD | {"schema_version": 2}, "schema_version '2', not 1"),
            (GOOD | {"base": "b"}, "names no base"),
            (GOOD | {"base": {"name": 3}}, "'3', expected a short line of text"),
            (GOOD | {"edits": "extend(4)"}, "no list of at most"),
            (GOOD | {"edits": ["x"] * (MAX_EDITS + 1)}, "no list of at most"),
            (GOOD | {"edits": [{"a": 1}]}, "expected a short line of text"),
            (GOOD | {"edits": ["a\nb"]}, "expected a short line of text"),
            (GOOD | {"edits": ["\x1b[31m"]}, "expected a short line of text"),
            (GOOD | {"edits": ["x" * 2001]}, "expected a short line of text"),
        ],
    )
    def test_a_bad_one_is_refused(self, tmp_path, content, text):
        folder = self.written(tmp_path, content)
        with pytest.raises(ModelError, match=text) as error:
            models.load(folder)
        assert "\n" not in str(error.value)


def test_an_edited_checkpoint_keeps_its_bases_learning_rate(tmp_path):
    folder = save_tiny(tmp_path / "base", "bert")
    (folder / "README.md").write_text("---\nlearning_rate: 3e-4\n---\n# tiny\n")
    models.save(models.load(folder), tmp_path / "out")
    assert learning_rate_of(tmp_path / "out") == 3e-4
