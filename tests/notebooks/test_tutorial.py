"""The tutorial notebook: the first programs of the user guide with their printed results, stored and run again."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "notebooks" / "02-graphs-and-sessions.ipynb"
PROGRAMS = ROOT / "tests" / "data" / "programs"
WIDGET = "application/vnd.jupyter.widget-view+json"


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook: Any) -> str:
    outputs = (output for cell in code_cells(notebook) for output in cell.outputs)
    return "".join(output.text for output in outputs if output.output_type == "stream")


def results(text: str) -> None:
    """The numbers the user guide prints, and what training must do."""
    assert "[3. 8.]\n" in text
    assert "[array([3., 8.], dtype=float32)]\n" in text
    assert "[array([ 4., 14.], dtype=float32)]\n" in text
    losses = [float(found) for found in re.findall(r"^(\d+\.\d+)$", text, re.MULTILINE)]
    assert len(losses) == 3
    assert losses == sorted(losses, reverse=True)
    first, last = map(float, re.search(r"\(400,\) first ([\d.]+) last ([\d.]+)", text).groups())  # type: ignore[union-attr]
    assert last < first / 3


def statements(source: str) -> set[str]:
    """Every statement of a program, but its imports, as Python writes it."""
    tree = ast.parse(source)
    kept = (ast.With, ast.FunctionDef, ast.Import, ast.ImportFrom)
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.stmt) and not isinstance(node, kept)}


def test_it_is_stored_with_its_results_and_pictures() -> None:
    notebook = nbformat.read(TUTORIAL, 4)
    results(printed(notebook))
    views = [
        output.data for cell in code_cells(notebook) for output in cell.outputs if WIDGET in output.get("data", {})
    ]
    assert len(views) >= 2
    assert all("data:image/" in data["text/html"] for data in views)
    assert "widgets" not in notebook.metadata


def test_it_has_the_programs_of_the_guide() -> None:
    mine = statements("\n".join(cell.source for cell in code_cells(nbformat.read(TUTORIAL, 4))))
    for name in ("tutorial_basic_graph", "tutorial_sharded_graph"):
        theirs = statements((PROGRAMS / f"{name}.txt").read_text(encoding="utf-8"))
        sums = {each for each in theirs if re.match(r"o\d|out|p[abc] =|return|simple", each)}
        assert len(sums) >= 5
        assert sums <= mine


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(TUTORIAL, 4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
    results(printed(notebook))
