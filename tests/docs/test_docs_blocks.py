"""The code of every page is run from top to bottom, as somebody who reads it would type it."""

from __future__ import annotations

import ast
import doctest
import re
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import microtome
from microtome.cli import run
from microtome.experiments import subject_of
from microtome.runs import RunResult

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:<!-- not run: (.*?) -->\n+)?^```(\w*)\n(.*?)^```", re.M | re.S)

# Why a block isn't run, as its page says, and how many are not.
NOT_RUN = {
    "needs FrameNet": 1,
    "needs the hub": 1,
    "needs the package to be installed": 3,
    "needs damaged files": 1,
}
# Hours as they are written: only their options are checked (tests/test_docs.py).
LONG = ("examine", "trim", "replicate", "finetune", "pretrain", "run", "explore")
WITH_WORKERS = ("examine", "trim", "replicate", "compare")  # tests of their own run those
TUTORIAL = "tutorial"  # its long ones are run, too
GALLERY = "gallery"  # tools/gallery.py runs its commands
# The same code with less to do.
LITTLE = {"seeds": (0,), "fractions": (16,), "epochs": 1}
SMALLER = {
    "README": {"report runs/singh": "report RUN", 'load("minilm")': 'load("./six")'},
    "reference": {'"nano-bert"': '"./tiny"', "limit=100": "limit=10"},
    "compare": {"./my-model-small": "./tiny", "./my-model": "./six"},
    "experiments": {
        '"nano-bert"': '"./my-bert"',
        'Wanted("reinitialization")': 'Wanted("reinitialization", {**LITTLE, "counts": (0, 6)})',
        'Wanted("weight-drift")': 'Wanted("weight-drift", LITTLE)',
        'Wanted("attention-drift")': 'Wanted("attention-drift", {"fraction": 16, "epochs": 1})',
    },
    "api": {'"nano-bert", DataSpec': '"./my-bert", DataSpec', "fraction=200": "fraction=16"},
    "report": {'request("./my-model"': 'request("./tiny"'},
    "trim": {'request("./my-model"': 'request("./tiny"'},
    "tutorial": {
        "examine ./my-model": "examine ./tiny",
        "trim ./my-model": "trim ./tiny --steps 20",
        "finetune ./my-model-10": "finetune ./my-model-10 --epochs 1",
    },
    "training": {
        '"minilm"': '"./my-bert"',
        "fraction=320": "fraction=32",
        "limit(200)": "limit(40)",
    },
    "pretraining": {"hours=2": "hours=0.002, layers=2, width=32", "steps=500": "steps=2"},
}


@dataclass(frozen=True)
class Block:
    """A block of code of a page; ``reason``: why it isn't run."""

    reason: str
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    for long, short in SMALLER.get(page.stem, {}).items():
        assert long in text, f"{page.name} has no {long} any more"
        text = text.replace(long, short)
    return [Block(*found.groups(default="")) for found in BLOCK.finditer(text)]


def typed(block: Block, page: Path) -> list[list[str]]:
    """The commands of a block, without forms (MODEL, [--option], …) and what takes long."""
    lines = block.code.replace("\\\n", " ").splitlines()
    # What explains a command is behind it, after some space.
    lines = [re.split(r" {3,}", line.removeprefix("$ "))[0] for line in lines]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if is_command(line)]
    return [
        words
        for words in commands
        if words[0] not in LONG or page.stem == TUTORIAL or {"--plan", "--help"} & {*words}
    ]


def is_command(line: str) -> bool:
    """Something to type, not the form of a command; the folder RUN is there."""
    return line.startswith("microtome ") and not re.search(r"…|\[|\s(?!RUN\b)[A-Z]+\b", line)


def run_python(code: str, names: dict[str, object]) -> None:
    """Execute; where a line ends with a comment that is a value, the line has that value."""
    lines = code.splitlines()
    for step in ast.parse(code).body:
        if not isinstance(step, ast.Expr):
            exec(compile(ast.Module([step], []), "page", "exec"), names)
            continue
        value = eval(compile(ast.Expression(step.value), "page", "eval"), names)
        comment = lines[step.end_lineno - 1].partition("  # ")[2]
        try:
            said = ast.literal_eval(comment)
        except (ValueError, SyntaxError):
            continue  # a comment in words
        assert value == said


def run_session(code: str, names: dict[str, object], page: Path) -> None:
    """What ``>>>`` shows is what is shown."""
    session = doctest.DocTestParser().get_doctest(code, names, page.name, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(session)
    assert runner.summarize(verbose=False).failed == 0


def run_typed(words: list[str], block: Block, capsys) -> None:
    """The command ends well, or with the error that is shown; its certificate is the shown one."""
    errors = re.findall(r"^microtome: .*", block.code, re.M)
    n_workers = ["--workers", "0"] if words[0] in WITH_WORKERS else []
    capsys.readouterr()
    code = run([*words, *n_workers])
    printed = capsys.readouterr()
    assert (code == 0) == (not errors), printed.err
    for error in errors:
        assert error in printed.err
    checks = re.findall(r"^ok {2}(\w.*?) {2,}", block.code, re.M)
    assert set(checks) <= set(re.findall(r"^ *ok +(\w.*?) {2,}", printed.out, re.M))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_from_top_to_bottom(page, reader, capsys):
    here = reader(page.read_text(encoding="utf-8"))
    names: dict[str, object] = {"__file__": str(here / "page.py"), "LITTLE": LITTLE}
    if page.stem == "reference":  # examples of docstrings import nothing
        for module in (microtome, microtome.runs, microtome.study):
            names |= {name: getattr(module, name) for name in module.__all__}
        names["subject_of"] = subject_of
    for block in blocks(page):
        if block.reason:
            continue
        if block.language == "python" and ">>> " in block.code:
            run_session(block.code, names, page)
        elif block.language == "python":
            if module := re.match(r"# (\w+\.py)\n", block.code):
                (here / module[1]).write_text(block.code)
            run_python(block.code, names)
        for words in typed(block, page) if not block.language and page.stem != GALLERY else ():
            run_typed(words, block, capsys)
    assert all(value.ok for value in names.values() if isinstance(value, RunResult))


def test_few_blocks_are_not_run_and_they_say_why():
    assert Counter(b.reason for page in PAGES for b in blocks(page) if b.reason) == NOT_RUN
