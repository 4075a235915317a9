"""``microtome operate``: what it writes, what it prints, and what it refuses in one line."""

from __future__ import annotations

import json
import pickle
import struct
import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForMaskedLM

from microtome.cli import run
from support.tiny import save_tiny, tiny_batch


@pytest.fixture
def base(tmp_path):
    return save_tiny(tmp_path / "base", "bert")


def refused(capsys, arguments, *, code=2):
    """Run a command that must fail; gives its one line."""
    assert run([str(a) for a in arguments]) == code
    seen = capsys.readouterr()
    assert seen.out == ""
    lines = [line for line in seen.err.splitlines() if not line.startswith("operating on")]
    assert len(lines) == 1, seen.err
    assert "Traceback" not in seen.err
    return lines[0]


def test_operate_writes_a_checkpoint_that_plain_transformers_loads(base, tmp_path, capsys):
    out = tmp_path / "out"
    code = run(["operate", str(base), "extend(5)", "disable(3.2)", "--out", str(out), "--json"])
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert code == 0
    assert {"schema_version", "base", "edits", "out", "layers", "certificate"} == set(document)
    assert document["schema_version"] == 1
    assert document["edits"] == ["extend(5)", "disable(3.2)"]
    assert document["layers"] == 5
    assert document["certificate"]["passed"] is True
    assert {"name", "passed", "detail"} == set(document["certificate"]["checks"][0])
    model = AutoModelForMaskedLM.from_pretrained(out, attn_implementation="eager")
    batch = tiny_batch("bert")
    with torch.no_grad():
        maps = model(**batch, output_attentions=True).attentions
    assert len(maps) == 5
    torch.testing.assert_close(maps[3][1, 2, :5, :5], torch.full((5, 5), 0.2))
    assert json.loads((out / "microtome.json").read_text())["edits"] == document["edits"]


def test_people_see_the_certificate_and_the_cost(base, tmp_path, capsys):
    assert run(["operate", str(base), "remove(2)", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    for word in ("Certificate", "round trip", "parameters", "2 layers"):
        assert word in printed


def test_editing_an_edited_checkpoint_keeps_its_history(base, tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run(["operate", str(base), "extend(4)", "--out", str(first)]) == 0
    assert run(["operate", str(first), "disable(0.1)", "--out", str(second)]) == 0
    history = json.loads((second / "microtome.json").read_text())
    assert history["edits"] == ["extend(4)", "disable(0.1)"]
    assert history["base"]["name"] == "base"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("exend(4)", ["exend", "extend"]),
        ("extend(4", ['expected ")"', "position 9"]),
        ("disable(3.7", ["position"]),
        ("disable(9.0)", ["layer 9", "layers 0 to 2"]),
        ("disable(0.9)", ["head 9", "heads 0 to 3"]),
        ("remove(7)", ["layer 7", "layers 0 to 2"]),
        ("extend(2)", ["extend(2)", "extend(3) to extend(6)"]),
        ("extend(7)", ["extend(7)", "extend(3) to extend(6)"]),
        ("unshare()", ["share no layers"]),
        ("head_mask(3.7)", ["disable("]),
    ],
)
def test_edits_that_are_wrong_are_one_line(base, tmp_path, capsys, edit, words):
    out = tmp_path / "out"
    line = refused(capsys, ["operate", base, edit, "--out", out])
    for word in words:
        assert word in line
    assert not out.exists()


def spoil(folder, how):
    weights, config = folder / "model.safetensors", folder / "config.json"
    if how == "no model":
        config.unlink()
    elif how == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "pickle":
        weights.unlink()
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))
    elif how == "remote code":
        settings = json.loads(config.read_text())
        config.write_text(json.dumps(settings | {"auto_map": {"AutoModel": "evil.Model"}}))
    elif how == "foreign family":
        settings = json.loads(config.read_text())
        config.write_text(json.dumps(settings | {"model_type": "longformer"}))
    elif how == "huge header":
        weights.write_bytes(struct.pack("<Q", 2**62) + weights.read_bytes()[8:])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no model", ["config.json"]),
        ("truncated", ["model.safetensors"]),
        ("pickle", ["--allow-pickle"]),
        ("remote code", ["auto_map"]),
        ("foreign family", ["longformer", "bert", "modernbert"]),
        ("huge header", ["model.safetensors"]),
    ],
)
def test_checkpoints_that_are_wrong_are_one_line(base, tmp_path, capsys, how, words):
    spoil(base, how)
    out = tmp_path / "out"
    line = refused(capsys, ["operate", base, "extend(4)", "--out", out])
    for word in words:
        assert word in line
    assert not out.exists()


def test_an_output_folder_with_something_in_it_is_left_alone(base, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert "not empty" in refused(capsys, ["operate", base, "extend(4)", "--out", out])
    assert [file.name for file in out.iterdir()] == ["mine.txt"]


def test_a_hub_id_while_offline_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    line = refused(capsys, ["operate", "google/no-such", "extend(4)", "--out", tmp_path / "out"])
    assert "offline" in line


def test_a_head_mask_is_refused_on_the_command_line_and_in_python(base, tmp_path, capsys):
    from microtome import load
    from microtome.errors import RequestError

    arguments = ["operate", base, "extend(4)", "--head-mask", "1", "--out", tmp_path / "out"]
    assert "disable(3.7)" in refused(capsys, arguments)
    model = load(base)
    with pytest.raises(RequestError, match="head_mask"):
        model(**tiny_batch("bert"), head_mask=torch.ones(3, 4))


def test_errors_are_the_only_document_with_json(base, tmp_path, capsys):
    for arguments in (
        ["operate", str(base), "extend(99)", "--out", str(tmp_path / "out"), "--json"],
        ["operate", "--json"],
        ["list", "nonsense", "--json"],
    ):
        assert run(arguments) == 2
        document = json.loads(capsys.readouterr().out)
        assert set(document) == {"schema_version", "error"}
        assert set(document["error"]) == {"kind", "message", "hint"}


def test_a_failed_certificate_writes_nothing_and_exits_1(base, tmp_path, capsys, monkeypatch):
    from microtome.surgery import application

    monkeypatch.setattr(application, "disable_", lambda family, head, edit: None)
    out = tmp_path / "out"
    line = refused(capsys, ["operate", base, "disable(1.2)", "--out", out], code=1)
    assert "should be zero" in line
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base"]


def test_the_installed_command_works(base, tmp_path):
    command = [sys.executable, "-c", "from microtome.cli import main; main()", "list", "edits"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "extend" in done.stdout


def test_list_edits_has_the_fixed_shape(capsys):
    assert run(["list", "edits", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "edits"
    assert {"name", "form", "summary"} <= set(document["items"][0])
    named = {item["name"] for item in document["items"]}
    assert named == {
        "extend", "duplicate", "repeat", "remove", "keep", "order", "reinit", "randomize",
        "disable", "unshare", "vocabulary",
    }  # fmt: skip


def test_list_models_has_the_fixed_shape(capsys):
    assert run(["list", "models", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for item in document["items"]:
        assert {"name", "family", "layers", "heads", "width", "parameters"} <= set(item)
        assert {"source", "license"} <= set(item)
