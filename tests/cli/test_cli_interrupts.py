"""Ctrl-C ends a command in one line that says how to resume."""

from __future__ import annotations

import json

import microtome.edits
from microtome.cli import run


def test_ctrl_c_says_how_to_resume(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(microtome.edits, "catalogue", interrupted)
    assert run(["list", "edits"]) == 1
    line = "microtome: interrupted; run the same command to resume\n"
    assert capsys.readouterr().err == line
    assert run(["list", "edits", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "Interrupted"
    assert error["hint"] == "run the same command to resume"
