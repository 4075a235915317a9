"""The page "Cut your embedding model": its commands are typed, its Python is run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from microtome.cli import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cut-your-embedder.md"

pytestmark = pytest.mark.real


def test_the_pages_commands_do_what_it_says(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "texts.txt").write_text("A microtome cuts thin slices.\nWhy?\n", encoding="utf-8")
    commands = re.findall(r"^\$ microtome (.*)$", page, re.MULTILINE)
    assert commands
    for command in commands:
        assert run(shlex.split(command)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for check in re.findall(r"^ok {2}([\w -]+?) {2,}", page, re.MULTILINE):
        assert f"ok {check}" in shown
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    names = {}
    exec(code, names)
    assert names["model"].encode(["A microtome cuts thin slices.", "Why?"]).shape == (2, 384)
