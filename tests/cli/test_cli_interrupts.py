"""Ctrl-C ends a command in one line that says how to resume."""

from __future__ import annotations

import errno
import json
import os

import pytest

import microtome.edits
from microtome.cli import run
from microtome.training.finetune import loop
from support.labelled_texts import write_cats
from support.training_rows import checkpoint


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def test_ctrl_c_says_how_to_resume(capsys, monkeypatch):
    monkeypatch.setattr(microtome.edits, "catalogue", interrupted)
    assert run(["list", "edits"]) == 1
    line = "microtome: interrupted; run the same command to resume\n"
    assert capsys.readouterr().err == line
    assert run(["list", "edits", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "Interrupted"
    assert error["hint"] == "run the same command to resume"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("can't start new thread"),
        ImportError("some.so: failed to map segment from shared object"),
    ],
)
def test_no_memory_is_a_line_and_no_bug(error, capsys, monkeypatch):
    def starved():
        raise error

    monkeypatch.setattr(microtome.edits, "catalogue", starved)
    assert run(["list", "edits"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("microtome: out of memory")
    assert "free some memory, then run the same command again" in said
    assert run(["list", "edits", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "OutOfMemory"


def test_ctrl_c_in_a_fine_tuning_says_it_too(tmp_path, capsys, monkeypatch):
    model, data = checkpoint(tmp_path / "model"), write_cats(tmp_path / "rows.csv")
    monkeypatch.setattr(loop, "rate_factor", interrupted)  # in the first step
    out = ["--out", str(tmp_path / "out")]
    assert run(["finetune", str(model), "--data", str(data), *out]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "microtome: interrupted; run the same command to resume"
