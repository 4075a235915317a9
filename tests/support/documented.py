"""The packages that the docs write down, built as they are there and put on the path."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"\n\n([^\n].*?)\n\n```\w+\n(.*?)^```", re.S | re.M)
_NAME = re.compile(r"`([\w./-]+\.(?:toml|py|csv))`")


def documented_package(page: str, folder: Path) -> Path:
    """Write the files of a page into ``folder``, as pip would install them; gives it back."""
    text = (DOCS / page).read_text(encoding="utf-8")
    files = {}
    for before, content in _BLOCK.findall(text):
        # A file is named in the paragraph before it.
        if names := _NAME.findall(before.rpartition("\n\n")[2]):
            files[names[-1]] = content
    install(tomllib.loads(files.pop("pyproject.toml"))["project"], files, folder)
    return folder


def install(project: dict, files: dict[str, str], folder: Path) -> None:
    """Modules, and the ``.dist-info`` by which a package's entry points are found."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(content)
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def forget(*packages: str) -> None:
    """Let the modules of packages be imported anew."""
    for name in [n for n in sys.modules if n.partition(".")[0] in packages]:
        del sys.modules[name]
