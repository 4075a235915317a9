"""The house: imports point down only, planning and reporting stay light, no room is crowded."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import microtome

PACKAGE = Path(microtome.__file__).parent
ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# What each part may import. An edge that nothing uses must go: see the test below.
BELOW = {
    "errors": set(),
    "values": {"errors"},
    "views": set(),
    "files": {"errors"},
    "requests": {"errors"},
    "threads": set(),
    "plugins": {"errors"},
    "papers": {"views"},
    # The one call upwards is `edit(model)`: see the comment in edits/edit.py.
    "edits": {"values", "errors", "surgery"},
    "statistics": {"errors"},
    "families": {"plugins", "edits", "errors"},
    "models": {"families", "files", "errors"},
    # The certificate holds what the engine computes against what sentence-transformers loads.
    # An edit of the vocabulary reads texts.
    "surgery": {"observe", "tasks", "models", "families", "edits", "values", "errors"},
    "tasks": {"plugins", "statistics", "errors"},
    "observe": {"tasks", "families", "statistics", "values", "errors"},
    "runs": {"requests", "files", "threads", "errors"},
    "report": {"papers", "files", "views", "errors"},
    "run_page": {"report", "runs", "views"},
    "training": {
        "surgery", "observe", "tasks", "models", "families", "edits", "statistics", "requests",
        "files", "errors",
    },
    "experiments": {
        "training", "surgery", "observe", "tasks", "models", "families", "edits", "statistics",
        "papers", "runs", "plugins", "views", "values", "files", "errors",
    },
    "study": {"experiments", "models", "papers", "report", "runs", "views", "errors"},
    "trimming": {
        "study", "experiments", "surgery", "models", "families", "tasks", "edits", "report", "runs",
        "views", "files", "errors",
    },
    "comparing": {"study", "experiments", "models", "tasks", "report", "runs", "errors"},
    "replication": {
        "study", "experiments", "papers", "report", "runs", "tasks", "models", "edits", "views",
        "values", "errors",
    },
    "examination": {
        "study", "trimming", "comparing", "replication", "run_page", "experiments", "models",
        "tasks", "report",
        "runs", "errors",
    },
    "explorer": {
        "study", "trimming", "experiments", "training", "surgery", "observe", "tasks", "models",
        "families", "edits", "statistics", "runs", "values", "errors",
    },
    "cli": {
        "explorer", "study", "examination", "trimming", "comparing", "replication", "report",
        "papers", "experiments", "training", "surgery", "observe", "tasks", "models", "families",
        "edits", "views", "values", "threads", "plugins", "errors",
    },
    "notebook": {
        "study", "experiments", "report", "runs", "tasks", "models", "views", "errors",
    },
    "__init__": {"notebook", "tasks", "surgery", "models", "families", "edits", "values", "errors"},
    "embedded": set(),
}  # fmt: skip

WITHOUT_TORCH = (
    "edits", "statistics", "runs", "report", "views", "papers", "values", "errors", "files",
    "requests", "threads", "plugins", "run_page", "study", "examination", "replication",
)  # fmt: skip
PHASES_WITHOUT_TORCH = ("plan.py", "report.py", "headline.py", "claims.py")
HEAVY = {"torch", "transformers"}
MOST_FILES = 20
# Start-up time is decided at the border; one value calls what interprets it.
MAY_IMPORT_LATE = ("cli/", "__init__.py", "notebook.py", "edits/edit.py")


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part_of(path: Path) -> str:
    return relative(path).split("/")[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    """Every imported name, in functions too: ``microtome.tasks``, ``microtome.tasks.DataSpec``."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def parts_imported(path: Path) -> set[str]:
    names = imported(ast.parse(path.read_text(encoding="utf-8")))
    inner = {name.split(".")[1] for name in names if name.startswith("microtome.")}
    return {part for part in inner if part in BELOW and part != part_of(path)}


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_imports_point_down(path):
    assert part_of(path) in BELOW, f"{part_of(path)} has no place in the import order yet"
    assert parts_imported(path) <= BELOW[part_of(path)]


@pytest.mark.parametrize("part", BELOW)
def test_every_allowed_import_is_used(part):
    used = {name for path in MODULES if part_of(path) == part for name in parts_imported(path)}
    assert BELOW[part] <= used


def test_the_order_has_no_circle():
    below = {part: set(names) for part, names in BELOW.items()}
    below["edits"].discard("surgery")
    while below:
        lowest = {part for part, names in below.items() if not names & below.keys()}
        assert lowest, f"a circle among {sorted(below)}"
        for part in lowest:
            del below[part]


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_no_relative_imports(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level > 0]


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_our_own_modules_are_imported_at_the_top(path):
    if relative(path).startswith(MAY_IMPORT_LATE) or relative(path).endswith(MAY_IMPORT_LATE):
        return
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    late = {name for function in functions for name in imported(function)}
    assert not {name for name in late if name.split(".")[0] == "microtome"}


def must_not_need_torch(path: Path) -> bool:
    return part_of(path) in WITHOUT_TORCH or path.name in PHASES_WITHOUT_TORCH


@pytest.mark.parametrize("path", list(filter(must_not_need_torch, MODULES)), ids=relative)
def test_torch_free_files_name_no_torch(path):
    names = {name.split(".")[0] for name in imported(ast.parse(path.read_text("utf-8")))}
    assert not names & HEAVY


def test_planning_and_reporting_reach_no_torch():
    names = [
        ".".join(("microtome", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in filter(must_not_need_torch, MODULES)
        if path.name != "__init__.py"
    ]
    assert any(name.endswith(".claims") for name in names)
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ray_is_imported_in_one_file():
    users = [
        relative(path)
        for path in MODULES
        if any(n.split(".")[0] == "ray" for n in imported(ast.parse(path.read_text("utf-8"))))
    ]
    assert users == ["runs/ray_executor.py"]


SCRIPTS = sorted(
    p for d in ("bench", "docs", "studies", "tools") for p in ROOT.glob(f"{d}/**/*.py")
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_scripts_outside_the_package_import_what_is_there(path):
    """Most of them run for too long to be run by a test."""
    for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
        module, _, last = name.rpartition(".")
        if module.split(".")[0] == "microtome":
            holder = importlib.import_module(module)
            assert hasattr(holder, last) or importlib.util.find_spec(name), name


def test_no_folder_is_crowded():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    folders: dict[str, int] = {}
    for name in listed.stdout.splitlines():
        if name.endswith(".py") and (ROOT / name).exists():
            folder = str(Path(name).parent)
            folders[folder] = folders.get(folder, 0) + 1
    assert not {folder: n for folder, n in folders.items() if n > MOST_FILES}


LIGHT_COMMANDS = [
    ["--help"],
    ["operate", "--help"],
    ["list", "edits"],
    ["list", "edits", "--json"],
    ["list", "models"],
    ["list", "tasks"],
    ["list", "families"],
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
