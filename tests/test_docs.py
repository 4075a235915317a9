"""The docs can't drift: generated parts are up to date, links lead somewhere."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer

from microtome.cli.application import app
from microtome.experiments import all_experiments

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def test_generated_parts_are_up_to_date(monkeypatch, capsys):
    for name in ("COLUMNS", "TERM"):  # what it sets is as before afterwards
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs"), *sys.path])
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    code = importlib.import_module("generate").main()
    assert code == 0, capsys.readouterr().out


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", _prose(page)):
            if "://" in target:
                continue
            place = page.parent / target if target else page
            assert place.exists(), f"{page.name} links to {target}"
            if anchor and place.suffix == ".md":
                assert anchor in _anchors(place), f"{page.name} links to {target}#{anchor}"


def _prose(page: Path) -> str:
    """The page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """What its headings are called in a link."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in headings}


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name in listed, f"{page.name} is not in mkdocs.yml"
        assert page.name == "index.md" or f"({page.name})" in index, f"{page.name}: not in index"


def test_the_readme_names_every_module():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "microtome"
    parts = [p for p in package.iterdir() if p.name not in ("__pycache__", "py.typed")]
    for part in parts:
        name = f"{part.name}/" if part.is_dir() else part.name
        assert name in readme, f"{name} is not in the README's tree"
    for name in re.findall(r"^[├└]── (\S+)", readme, re.MULTILINE):
        assert (package / name).exists(), f"{name} is in the README's tree only"


def commands(page: Path) -> list[list[str]]:
    """The commands of a page's blocks of code, without comments and without those with a gap."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    typed = [line.strip().removeprefix("$ ") for line in lines]
    # What explains a command is behind it, after some space.
    return [
        shlex.split(re.sub(r"[\[\]]", " ", re.split(r" {3,}", line)[0]), comments=True)[1:]
        for line in typed
        if line.startswith("microtome ") and "…" not in line
    ]


TYPED = [page for page in PAGES if page.stem != "commands"]  # that page is the help itself


@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.stem)
def test_commands_have_the_options_that_pages_give_them(page):
    group = typer.main.get_command(app)
    ours = {one.name: {option.flag for option in one.options} for one in all_experiments()}
    for name, *arguments in commands(page):
        if name.startswith("--"):
            continue
        command = group.commands[name]
        context = typer.Context(command, info_name=name, **command.context_settings)
        given, rest, _ = command.make_parser(context).parse_args(args=arguments)
        if name == "run" and given.get("experiment") in ours:
            flags = {word.partition("=")[0] for word in rest if word.startswith("--")}
            assert flags <= ours[given["experiment"]], shlex.join([name, *arguments])
