"""The page on trust: it shows the shipped table and the worst cases by name, and its cells run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from workbench.profiler.fidelity import PATH, errors_table, fidelity_table, worst_cases

ROOT = Path(__file__).parents[2]
TRUST = ROOT / "notebooks" / "05-how-far-to-trust.ipynb"


def shown(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(str(output.get("data", {}).get("text/html", output.get("text", ""))) for output in outputs)


def test_what_ships_is_the_committed_table() -> None:
    first, later = (
        json.loads((ROOT / "tests" / "fidelity" / name).read_text()) for name in ("table.json", "also.json")
    )
    assert json.loads(PATH.read_text())["groups"].keys() == first.keys() | later.keys()
    table = fidelity_table().set_index("group")
    assert table.loc["vertex cycles", ["cases", "exact"]].tolist() == [209, 209]
    worst = worst_cases()
    assert worst.factor.is_monotonic_decreasing
    assert set(worst.group) <= set(table.index)


def test_the_page_says_the_error_of_every_kind_and_which_are_not_known() -> None:
    table, text = errors_table().set_index("kind of number"), shown(nbformat.read(TRUST, 4))
    assert set(table.index[table["numbers"] == 0]) == set(table.index[table["typical error"] == "not known"])
    assert "cycles to launch a compute set" in table.index[table["numbers"] == 0]
    assert all(kind in text for kind in table.index)


def test_the_stored_page_names_groups_and_worst_cases() -> None:
    text = shown(nbformat.read(TRUST, 4))
    assert all(group in text for group in ("GEMM n &gt;= 256", "vertex cycles", "whole model memory"))
    assert worst_cases().case.iloc[0] in text
    assert TRUST.stat().st_size < 1_000_000


@pytest.mark.slow
def test_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(TRUST, 4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert "fits: True" in shown(notebook)
