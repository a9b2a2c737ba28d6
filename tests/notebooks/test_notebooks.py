"""The notebooks: what they import and store, what their cells answer, and the README's examples."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
FIRST_LOOK = ROOT / "notebooks" / "00-first-look.ipynb"
LESSON = ROOT / "notebooks" / "01-tiles-and-steps.ipynb"
MAY_IMPORT = {"workbench", "workbench.ipu", "keras", "numpy"}
WIDGET = "application/vnd.jupyter.widget-view+json"

each_notebook = pytest.mark.parametrize("path", [FIRST_LOOK, LESSON], ids=lambda path: path.stem)


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def execute(path: Path, monkeypatch: pytest.MonkeyPatch, *, change: dict[str, str] | None = None) -> list[Any]:
    """The code cells after a run in a fresh kernel; `change` replaces text in the sources first."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells:
        for old, new in (change or {}).items():
            cell.source = cell.source.replace(old, new)
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cells: list[Any]) -> str:
    return "\n".join(output.text for cell in cells for output in cell.outputs if output.output_type == "stream")


@each_notebook
def test_they_import_what_a_user_would(path: Path) -> None:
    for cell in code_cells(path):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= MAY_IMPORT
            if isinstance(node, ast.ImportFrom):
                assert node.module == "workbench"


@each_notebook
def test_stored_views_have_pictures_and_no_widget_state(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    assert "widgets" not in notebook.metadata
    views = [output.data for cell in code_cells(path) for output in cell.outputs if WIDGET in output.get("data", {})]
    assert len(views) >= 6
    for data in views:
        assert re.search(r'<img alt="[^"]{20,}" src="data:image/', data["text/html"])
        assert "<svg" not in data["text/html"]
        assert "<style" not in data["text/html"]


def test_the_first_cell_loads_neither_keras_nor_jax() -> None:
    first = code_cells(FIRST_LOOK)[0].source
    code = first + "\nimport sys\nprint([name for name in ('jax', 'keras', 'plotly') if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"


def test_the_lesson_reveals_the_numbers_its_text_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = "my_mapping = {tile: slice(75_000 * tile, 75_000 * (tile + 1)) for tile in range(16)}"
    start = next(
        line for cell in code_cells(LESSON) for line in cell.source.splitlines() if line.startswith("my_mapping =")
    )
    cells = execute(LESSON, monkeypatch, change={start: solved})
    answers = re.findall(r"It is (\S+?)( B| cycles)?: ", printed(cells))
    # 100 floats of 4 B; 1,000 of them; 400 B at 4 a cycle and 40; (9 x 600 + 6,000) / 10 / 6,000; its slowest tile
    # with launch, sync and exchange; a tensor of 20,000 floats
    assert answers == [
        ("400", " B"),
        ("4,000", " B"),
        ("140", " cycles"),
        ("0.19", ""),
        (f"{6_000 + 80 + 83 + 140:,}", " cycles"),
        ("80,000", " B"),
    ]
    grades = [output.data["text/plain"] for cell in cells for output in cell.outputs if "data" in output]
    assert any(grade.startswith("fit-the-tile: 10 of 10 points, solved") for grade in grades)


@pytest.mark.slow
def test_the_first_look_learns_and_mends(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = execute(FIRST_LOOK, monkeypatch, change={"train(mended)": "train(mended)\nprint(mended.profile.fits)"})
    text = printed(cells)
    losses = [float(loss) for loss in re.findall(r"epoch \d+ +loss ([\d.]+)", text)]
    assert len(losses) == 6
    assert losses[-1] < losses[0] / 4
    assert re.search(r"Out of memory on tile \d+: \d+ bytes used but tiles only have 638976 bytes of memory", text)
    assert re.search(r"\{'loss': [\d.]+\}\nTrue", text)


@pytest.mark.slow
def test_the_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert len(examples) >= 4
    names: dict[str, Any] = {}
    for number, example in enumerate(examples):
        file = tmp_path / f"example_{number}.py"  # functions that are recorded are read from their source
        file.write_text(example, encoding="utf-8")
        exec(compile(example, str(file), "exec"), names)


def test_the_readme_shows_a_small_picture() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]{20,}\]\(([^)]+\.png)\)", readme)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 300_000
