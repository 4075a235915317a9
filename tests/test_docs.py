"""The docs can't drift: generated parts are up to date, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_generated_parts_are_up_to_date():
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_names_every_module():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "microtome"
    parts = [p for p in package.iterdir() if p.name not in ("__pycache__", "py.typed")]
    for part in parts:
        name = f"{part.name}/" if part.is_dir() else part.name
        assert name in readme, f"{name} is not in the README's tree"
    for name in re.findall(r"^[├└]── (\S+)", readme, re.MULTILINE):
        assert (package / name).exists(), f"{name} is in the README's tree only"
