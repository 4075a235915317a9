"""docs/notebooks/layer_lab.ipynb runs from its first cell to its last, and its results show."""

from __future__ import annotations

import ast
import json
import tempfile
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "notebooks" / "layer_lab.ipynb"


def shown_by(cells: list[str]) -> list[object]:
    """The value of each cell's last line, all cells run in one namespace as a kernel does."""
    names: dict[str, object] = {}
    values = []
    for source in cells:
        *lines, last = ast.parse(source).body
        assert isinstance(last, ast.Expr), f"a cell that shows nothing: {source}"
        exec(compile(ast.Module(lines, []), "cell", "exec"), names)
        values.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return values


def test_the_notebook_runs_and_every_result_shows_itself(tmp_path, monkeypatch):
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells), "outputs aren't committed"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cost, *values = shown_by(["".join(cell["source"]) for cell in cells])
    assert "parameters" in repr(cost)
    for value in values:
        assert "<" in value._repr_html_()
    assert len(notebook["cells"]) == pytest.approx(15, abs=2)
