"""The pages on deciding: what they store holds together, and their cells run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
FIND, CUT = (ROOT / "notebooks" / f"{name}.ipynb" for name in ("04-find-a-configuration", "06-cut-a-model"))
each_page = pytest.mark.parametrize("path", [FIND, CUT], ids=lambda path: path.stem)


def texts(notebook: Any, source: str) -> str:
    """What the cell with this text said."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source]
    return "\n".join(str(each.get("data", {}).get("text/plain", each.get("text", ""))) for each in cell.outputs)


def check(path: Path, notebook: Any) -> None:
    """Numbers of one cell are those of another."""
    if path == FIND:
        assert re.search(r"(?m)^8 points, .*: \d fit", texts(notebook, "sweep = wb.sweep"))
        assert "makes it fit with" in texts(notebook, "diagnosis = wb.diagnose")
        assert texts(notebook, "mended = diagnosis").startswith("Fits: ")
        speed = re.search(r": (\S+ k) samples/s, modelled", texts(notebook, "plan = wb.plan"))
        assert speed is not None
        assert f"{speed.group(1)} samples/s, modelled" in texts(notebook, "planned = plan")
        return
    cycles = dict(re.findall(r"(\w+) +([\d,]+) cycles a weight update", texts(notebook, "cuts = ")))
    found, even, mine = (int(cycles[name].replace(",", "")) for name in ("found", "even", "mine"))
    assert found <= min(even, mine)
    assert "the best of 28" in texts(notebook, "least = ")
    assert re.match(r"It fits on \d IPUs?", texts(notebook, "wb.fewest_ipus"))


@each_page
def test_stored_numbers_hold_together(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    check(path, notebook)
    assert "widgets" not in notebook.metadata
    assert path.stat().st_size < 1_000_000


@pytest.mark.slow
@each_page
def test_the_page_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
    check(path, notebook)
