"""The installed wheel: it holds the scripts of the clone, and its views are drawn in the real JupyterLab."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.browser.conftest import ROOT, OpenNotebook
from workbench.widgets.kit import assets

pytestmark = pytest.mark.browser

CELL = """
import sys
sys.path.insert(0, {installed!r})
import numpy as np
import workbench as wb
from workbench.widgets.kit import assets
assert assets.FOLDER.is_relative_to({installed!r}), assets.FOLDER
x = np.zeros((64, 64), "float32")
wb.profile(lambda x: x @ x, x, target=wb.target("ipu2", tiles_per_ipu=8))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as its wheel lays it; built from a copy, so that nothing is left in the clone."""
    place = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "workbench", place / "source" / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, place / "source")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", place, place / "source"], check=True, timeout=300)
    (wheel,) = place.glob("workbench-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", place / "site", wheel], check=True, timeout=300)
    return place / "site"


def test_a_wheel_has_the_scripts_and_styles_of_the_clone(installed: Path) -> None:
    folder = installed / "workbench" / "widgets"
    for suffix in ("js", "css"):
        found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob(f"*.{suffix}")}
        own = {path.relative_to(assets.FOLDER): path.read_bytes() for path in assets.FOLDER.rglob(f"*.{suffix}")}
        assert found == own
        assert found


def test_views_of_the_wheel_are_drawn(installed: Path, lab_folder: Path, open_notebook: OpenNotebook) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell(CELL.format(installed=str(installed)).strip())]
    nbformat.write(notebook, lab_folder / "wheel.ipynb")
    lab = open_notebook("wheel.ipynb")
    lab.run_all()
    assert lab.cell_errors() == []
    lab.page.get_by_role("heading", name="Fits").wait_for()
    lab.page.get_by_role("tab", name="Trace", exact=True).click()
    lab.page.locator('section.wb[aria-label="Trace"] canvas').first.wait_for()
    assert lab.script_errors == []
    assert lab.foreign_requests == []
