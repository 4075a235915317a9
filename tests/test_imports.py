"""Imports point down only, and light parts stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import microtome

PACKAGE = Path(microtome.__file__).parent
BELOW = {
    "errors": set(),
    "values": {"errors"},
    "views": {"values", "errors"},
    "papers": {"values", "errors"},
    # The one call upwards is `edit(model)`: see the comment in edits/edit.py.
    "edits": {"values", "errors", "surgery"},
    "statistics": {"values", "errors"},
    "families": {"values", "errors"},
    "models": {"families", "edits", "statistics", "values", "errors"},
    "surgery": {"models", "families", "edits", "statistics", "values", "errors"},
    "observe": {"models", "families", "edits", "statistics", "values", "errors"},
    "tasks": {"models", "families", "edits", "statistics", "values", "errors"},
    "runs": {"values", "errors"},
    "report": {"runs", "views", "papers", "statistics", "values", "errors"},
}
BELOW["evaluation"] = {*BELOW["observe"], "tasks", "observe"}
BELOW["training"] = {*BELOW["evaluation"], "surgery", "evaluation"}
BELOW["experiments"] = {
    *BELOW["training"], "surgery", "training", "runs", "views", "papers",
}  # fmt: skip
BELOW["experiments"] |= {"evaluation"}
BELOW["study"] = {*BELOW["experiments"], "experiments", "report"}
BELOW["several_tasks"] = {"errors", "experiments", "tasks", "views"}
BELOW["examination"] = {*BELOW["study"], "study", "several_tasks"}

WITHOUT_TORCH = ("edits", "statistics", "runs", "report", "views", "papers", "values", "errors")
HEAVY = {"torch", "transformers"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def parts_imported(path: Path) -> set[str]:
    names = imported(ast.parse(path.read_text(encoding="utf-8")))
    inner = {name.split(".")[1] for name in names if name.startswith("microtome.")}
    return {
        name for name in inner if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()
    }


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    part = part_of(path)
    if part in ("__init__", "cli", "embedded"):
        return
    assert part in BELOW, f"{part} has no place in the import order yet"
    assert parts_imported(path) - {part} <= BELOW[part]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_relative_imports(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level > 0]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_torch_free_parts_name_no_torch(path):
    if part_of(path) in WITHOUT_TORCH:
        names = {name.split(".")[0] for name in imported(ast.parse(path.read_text("utf-8")))}
        assert not names & HEAVY


def test_ray_is_imported_in_one_file():
    users = [
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        if any(n.split(".")[0] == "ray" for n in imported(ast.parse(path.read_text("utf-8"))))
    ]
    assert users in ([], ["runs/ray_executor.py"])


LIGHT_COMMANDS = [
    ["--help"],
    ["operate", "--help"],
    ["list", "edits"],
    ["list", "edits", "--json"],
    ["list", "models"],
    ["list", "tasks"],
    ["operate", "minilm", "extend(15", "--out", "x"],
    ["operate", "./no-such-folder", "extend(15)", "--out", "x"],
    ["operate"],
]


@pytest.mark.parametrize("arguments", LIGHT_COMMANDS, ids=" ".join)
def test_help_lists_and_argument_errors_import_neither_torch_nor_numpy(arguments):
    code = (
        "import sys\nfrom microtome.cli import run\n"
        f"run({arguments!r})\n"
        "heavy = {'torch', 'numpy', 'transformers', 'scipy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_exist_and_are_sorted():
    assert sorted(microtome.__all__) == microtome.__all__
    for name in microtome.__all__:
        assert getattr(microtome, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = microtome.no_such_name
