"""What pip installs is what the code needs, under the names that our hints give."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from microtome.errors import DISTRIBUTION, install_command

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Extras for people who use the package; the others are for those who work on it.
FOR_USERS = EXTRAS.keys() - {"bench", "test"}
# Imported only when asked for by name (`--track wandb`, a spaCy tagger); the error says how to
# install each, and which version is the user's choice.
USERS_CHOICE = {"mlflow", "spacy", "wandb"}


def named(requirement: str) -> str:
    """The module that a requirement installs: "huggingface_hub>=1.0" gives huggingface_hub."""
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return name[0].lower().replace("-", "_")


def third_party_imports() -> set[str]:
    roots = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                roots |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                roots.add(node.module.partition(".")[0])
    return roots - set(sys.stdlib_module_names) - {"microtome"}


CORE = {named(requirement) for requirement in PROJECT["dependencies"]}
OPTIONAL = {named(requirement) for extra in FOR_USERS for requirement in EXTRAS[extra]}


def test_every_dependency_is_imported_somewhere():
    assert CORE - third_party_imports() == set()


def test_every_import_is_a_dependency_or_in_an_extra():
    assert third_party_imports() - CORE - OPTIONAL - USERS_CHOICE == set()


def test_no_package_is_both_required_and_optional():
    assert set() == CORE & OPTIONAL


def test_torch_has_no_upper_bound_but_in_the_constraints():
    torch = next(text for text in PROJECT["dependencies"] if named(text) == "torch")
    assert not set("<=!~") & set(torch.replace(">=", ""))
    lines = constraint_lines()
    assert "<2.14" in next(text for text in lines if named(text) == "torch")


def constraint_lines(name: str = "constraints.txt") -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_constraints_hold_what_is_installed_for_tests_and_nothing_else():
    ours = named(DISTRIBUTION)
    tested = {named(requirement) for requirement in EXTRAS["test"]} - {ours}
    constrained = {named(line) for line in constraint_lines()}
    assert constrained >= CORE | OPTIONAL
    assert constrained <= CORE | OPTIONAL | tested


def test_the_lowest_versions_are_those_that_the_package_allows():
    extras = (text for extra, texts in EXTRAS.items() if extra != "bench" for text in texts)
    bounds = (re.match(r"[\w.-]+>=[\w.]+", text) for text in (*PROJECT["dependencies"], *extras))
    lines = constraint_lines("constraints-lowest.txt")
    assert len(set(lines)) == len(lines)
    assert set(lines) == {bound[0].replace(">=", "==") for bound in bounds if bound}


def test_tests_are_run_with_every_extra_of_users():
    prefix = f"{DISTRIBUTION}["
    own = next(text for text in EXTRAS["test"] if text.startswith(prefix))
    assert set(own.removeprefix(prefix).removesuffix("]").split(",")) == FOR_USERS


def test_hints_name_our_distribution_and_extras_that_exist():
    assert PROJECT["name"] == DISTRIBUTION
    assert install_command("ray") == "pip install 'microtome-lab[ray]'"
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.py")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "microtome[" not in text, f"{page} sends users to another project"
        for extras in re.findall(rf"{DISTRIBUTION}\[([\w,-]+)\]", text):
            assert set(extras.split(",")) <= EXTRAS.keys(), page


def code_of_errors() -> list[ast.Call]:
    """Every ``MissingExtra.named(…)`` and ``install_command(…)`` in the source."""
    return [
        node
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("MissingExtra.named", "install_command")
    ]


def test_errors_name_extras_that_exist():
    named_extras = {
        argument.value
        for call in code_of_errors()
        for argument in call.args[-1:]
        if isinstance(argument, ast.Constant)
    }
    assert named_extras == FOR_USERS


@pytest.mark.parametrize("target", ["Makefile", ".ci/run"])
def test_scripts_that_are_run_exist(target):
    text = (ROOT / target).read_text(encoding="utf-8")
    for path in re.findall(r"\b((?:bench|studies|tools|docs|tests)/[\w/]+\.py)\b", text):
        assert (ROOT / path).is_file(), path
