"""Every promise of docs/reliability.md has a command, and what it names is there."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
PROMISES = [line for line in PAGE.splitlines() if re.fullmatch(r"\|.*\| `[^`|]+` \|", line)]


def test_every_promise_ends_with_a_command():
    table = PAGE.split("| promise |")[1].split("\n\n")[0]
    assert table.splitlines()[2:] == PROMISES


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.split("|")[1].strip())
def test_its_script_or_test_is_there_and_has_the_options(promise):
    program, *words = shlex.split(promise.split("`")[-2])
    assert program in ("python", "pytest", "make")
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.M)
        return
    path = ROOT / words[0]
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    for option, value in itertools.pairwise([*words[1:], ""]):
        if program == "pytest" and option == "-k":
            assert re.search(rf"def test_\w*{value}", source), f"{path.name} has no test {value}"
        elif option.startswith("--"):
            assert f'"{option}"' in source, f"{path.name} has no option {option}"
