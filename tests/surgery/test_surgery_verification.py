"""``verify``: a folder as it was saved passes; one that was changed by a byte doesn't."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import pytest
from safetensors.torch import load_file, save_file

from microtome import parse
from microtome.cli import run
from microtome.errors import ModelError, RequestError
from microtome.models.contents import file_hashes
from microtome.models.provenance import record_hash
from microtome.surgery import operate, verify
from support.tiny import FAMILY_TYPES, save_tiny
from support.training_rows import checkpoint, rows

ALBERTS = "unshare() | remove(1)"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A tiny BERT and its cut."""
    root = tmp_path_factory.mktemp("verify")
    base = save_tiny(root / "base", "bert", "classification", with_tokenizer=True)
    operate(str(base), parse("remove(1) | disable(0.1)"), root / "cut")
    return base, root / "cut"


def copy_of(folder: Path, place: Path) -> Path:
    return Path(shutil.copytree(folder, place / "copy"))


def rewrite(folder: Path, **parts: object) -> None:
    """Change the record, and its own hash with it, as somebody would on purpose."""
    record = json.loads((folder / "microtome.json").read_text()) | parts
    record["record_sha256"] = record_hash(record)
    (folder / "microtome.json").write_text(json.dumps(record))


def failed(folder: Path, **options: object) -> list[str]:
    return [check.name for check in verify(folder, **options).checks if check.passed is False]


@pytest.mark.parametrize("family", FAMILY_TYPES)
def test_every_family_s_cut_is_what_it_says_and_can_be_made_again(family, tmp_path):
    base = save_tiny(tmp_path / "base", family, with_tokenizer=True)
    edit = ALBERTS if family == "albert" else "remove(1)"
    operate(str(base), parse(edit), tmp_path / "cut")
    found = verify(tmp_path / "cut")
    assert found.passed
    assert [check.name for check in found.checks if check.passed] == [
        "files", "record", "certificate", "surgery again", "weights",
    ]  # fmt: skip


def test_one_byte_is_enough_in_any_file(made, tmp_path):
    _, cut = made
    for name in file_hashes(cut):
        place = tmp_path / name.replace("/", "-")
        changed = copy_of(cut, place)
        content = bytearray((changed / name).read_bytes())
        content[len(content) // 2] ^= 1
        (changed / name).write_bytes(content)
        assert failed(changed) == ["files"], name


@pytest.mark.parametrize("seed", range(3))
def test_every_flipped_bit_of_the_weights_config_and_tokenizer_is_seen(made, tmp_path, seed):
    _, cut = made
    changed, drawn = copy_of(cut, tmp_path), Random(seed)
    for name in file_hashes(cut):
        content = (cut / name).read_bytes()
        for _ in range(200 if name == "model.safetensors" else 40):
            flipped = bytearray(content)
            flipped[drawn.randrange(len(content))] ^= 1 << drawn.randrange(8)
            (changed / name).write_bytes(flipped)
            assert failed(changed) == ["files"], name
        (changed / name).write_bytes(content)
    assert verify(changed).passed


@pytest.mark.parametrize("seed", range(3))
def test_every_flipped_bit_of_the_record_is_seen(made, tmp_path, seed):
    """But for those that change no value: a flip in white space is refused, or says the same."""
    _, cut = made
    changed, drawn = copy_of(cut, tmp_path), Random(seed)
    content = (cut / "microtome.json").read_bytes()
    said = json.loads(content)
    for _ in range(300):
        flipped = bytearray(content)
        flipped[drawn.randrange(len(content))] ^= 1 << drawn.randrange(8)
        (changed / "microtome.json").write_bytes(flipped)
        try:
            is_seen = bool(failed(changed))
        except ModelError:
            continue  # no JSON any more, or no record
        assert is_seen or json.loads(flipped) == said


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"edits": ["remove(2)", "disable(0.1)"]}, ["certificate", "weights"]),
        ({"edits": []}, ["certificate", "weights"]),
        ({"certificate": None}, ["certificate"]),
        ({"certificate": {"passed": True, "checks": 3}}, ["certificate"]),
        ({"certificate": {"passed": True, "checks": ["fine"]}}, ["certificate"]),
        ({"certificate": {"passed": True, "checks": []}}, ["certificate"]),
    ],
)
def test_a_record_that_was_rewritten_on_purpose_is_told_by_its_base(made, tmp_path, parts, said):
    changed = copy_of(made[1], tmp_path)
    rewrite(changed, **parts)
    found = failed(changed, base=made[0])
    assert found
    assert set(found) <= {*said, "surgery again"}


def test_a_base_whose_name_no_disk_takes_is_not_at_hand(made, tmp_path):
    changed = copy_of(made[1], tmp_path)
    record = json.loads((changed / "microtome.json").read_text())
    rewrite(changed, base=record["base"] | {"name": "x" * 1_500})
    assert verify(changed).checks[-1].passed is None


def test_missing_and_added_files_are_seen(made, tmp_path):
    changed = copy_of(made[1], tmp_path)
    (changed / "config.json").rename(changed / "other.json")
    (found, *_) = verify(changed).checks
    assert "config.json missing" in found.detail
    assert "other.json added" in found.detail


def test_weights_that_the_edits_do_not_give_are_seen_though_the_hashes_were_made_anew(
    made, tmp_path
):
    changed = copy_of(made[1], tmp_path)
    tensors = load_file(changed / "model.safetensors")
    name = next(name for name in tensors if "layer.0.intermediate.dense.weight" in name)
    tensors[name][0, 0] += 1e-3
    save_file(tensors, changed / "model.safetensors", metadata={"format": "pt"})
    rewrite(changed, sha256=file_hashes(changed))
    assert "weights" in failed(changed, base=made[0])


def test_the_card_may_be_written_on(made, tmp_path):
    changed = copy_of(made[1], tmp_path)
    (changed / "README.md").write_text("Mine.")
    assert verify(changed).passed


def test_another_base_and_a_failed_certificate_are_seen(made, tmp_path):
    other = save_tiny(tmp_path / "other", "bert", "classification", seed=1, with_tokenizer=True)
    assert failed(made[1], base=other) == ["surgery again"]
    changed = copy_of(made[1], tmp_path)
    certificate = json.loads((changed / "microtome.json").read_text())["certificate"]
    certificate["checks"][0]["passed"] = False
    rewrite(changed, certificate=certificate)
    assert failed(changed) == ["certificate"]


def test_what_cannot_be_checked_is_said_and_not_called_wrong(made, tmp_path):
    base, cut = made
    moved = base.rename(tmp_path / "moved")
    found = verify(cut)
    assert found.passed
    assert [check.name for check in found.checks if check.passed is None] == ["surgery again"]
    assert verify(cut, base=moved).checks[-1].name == "weights"
    moved.rename(base)
    changed = copy_of(cut, tmp_path)
    record = json.loads((changed / "microtome.json").read_text())
    del record["sha256"], record["record_sha256"]  # as earlier versions saved it
    (changed / "microtome.json").write_text(json.dumps(record))
    assert [check.passed for check in verify(changed).checks[:2]] == [None, None]
    with pytest.raises(RequestError, match="nothing to verify it against"):
        verify(base)


def test_of_a_trained_folder_the_surgery_is_proven_and_the_bytes_are_checked(tmp_path, capsys):
    base = checkpoint(tmp_path / "base")
    rows(tmp_path, n=40)
    asked = ["finetune", base, "--data", tmp_path / "single-40-0.jsonl", "--edit", "remove(1)"]
    recipe = ["--epochs", 1, "--out", tmp_path / "tuned", "--quiet"]
    assert run([str(word) for word in (*asked, *recipe)]) == 0
    capsys.readouterr()
    assert run(["verify", str(tmp_path / "tuned"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is True
    assert document["edits"] == ["remove(1)"]
    again = next(one for one in document["checks"] if one["name"] == "surgery again")
    assert "before its training" in again["detail"]
    weights = tmp_path / "tuned" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    assert run(["verify", str(tmp_path / "tuned"), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert "model.safetensors changed" in said["error"]["message"]
