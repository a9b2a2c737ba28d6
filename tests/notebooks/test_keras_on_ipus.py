"""The page of Keras on IPUs: what it stores holds together, and its cells run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "notebooks" / "07-keras-on-ipus.ipynb"
WIDGET = "application/vnd.jupyter.widget-view+json"
# 16 batches; 4 an update; without stages the second IPU is a replica, and has half of the batches.
UPDATES = {"ipu.keras.Model": 2, "ipu.keras.Sequential": 2, "ipu.keras.PipelineModel": 4}


def outputs(notebook: Any, source: str) -> list[Any]:
    """The outputs of the cell with this text."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source]
    return list(cell.outputs)


def printed(notebook: Any, source: str) -> str:
    return "".join(each.text for each in outputs(notebook, source) if each.output_type == "stream")


def table(notebook: Any, source: str) -> list[dict[str, str]]:
    """The rows of the table a cell ends with."""
    html = outputs(notebook, source)[-1].data["text/html"]
    head, *rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"(?s)<tr.*?</tr>", html)]
    return [dict(zip(head, row, strict=True)) for row in rows]


def check(notebook: Any) -> None:
    losses = [float(each) for each in re.findall(r"loss: ([\d.]+)", printed(notebook, "import workbench.tf as tf"))]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    lines = printed(notebook, "for steps in (1, 20)").splitlines()
    shares = [float(each) for line in lines for each in re.findall(r"([\d.]+)% of them", line)]
    copied = [each for line in lines for each in re.findall(r"([\d,]+) bytes a batch", line)]
    assert shares[1] < shares[0] / 15  # launched once, not 20 times
    assert copied == [f"{32 * (64 + 1) * 4 + 4:,}"] * 2  # images and labels of four bytes, and a loss
    sums = table(notebook, "held = ")
    weights = (64 * 32, 32, 32 * 16, 16, 16 * 10, 10)
    assert sorted(int(each["bytes"]) for each in sums) == sorted(4 * each for each in weights)
    assert {each["always_live"] for each in sums} == {"True"}
    assert printed(notebook, "heard = []") == "20 calls\n"
    assert "Pipeline Stage" in printed(notebook, 'name="functional"')
    ported = {each["TensorFlow 2.1"]: each for each in table(notebook, "RUNS = ")}
    assert len(ported) == 19
    for each in ported.values():
        assert each["equal"] == "True"
        assert float(each["apart"]) < 1e-6
        assert int(each["updates (old)"]) == int(each["updates (new)"]) > 0
    assert {name: int(ported[name]["updates (new)"]) for name in UPDATES} == UPDATES


def test_the_stored_numbers_hold_together() -> None:
    notebook = nbformat.read(PAGE, 4)
    check(notebook)
    assert "widgets" not in notebook.metadata
    assert PAGE.stat().st_size < 1_000_000
    views = [each.data for cell in notebook.cells for each in cell.get("outputs", []) if WIDGET in each.get("data", {})]
    assert len(views) == 2
    assert all(re.search(r'<img alt="[^"]{20,}" src="data:image/', view["text/html"]) for view in views)


@pytest.mark.slow
def test_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(PAGE, 4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
    check(notebook)
