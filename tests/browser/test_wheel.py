"""The installed wheel: it holds the scripts of the clone, and is drawn in the real JupyterLab and in Notebook 7."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser

from tests.browser.apps import COMPILE_MS, button
from tests.browser.conftest import ROOT, OpenNotebook, environment_of
from tests.browser.driver import FIRST, NotebookPage
from tests.browser.looking import eventually, is_drawn
from workbench import lab
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
APP = """
app = wb.app("mlp")
app.target = wb.target("ipu2", tiles_per_ipu=16)
app
"""

# What Notebook 7.6 says on its console of its own settings, with nothing but `1 + 1` in the notebook too.
OF_ITSELF = "Cannot read properties of undefined (reading 'schema')"


class Notebook7(lab.Server):
    """The classic application in place of JupyterLab, on the same server."""

    def __init__(self, root: Path, home: Path) -> None:
        options = ("--JupyterNotebookApp.expose_app_in_browser=True", "--ServerApp.open_browser=False")
        super().__init__(
            root,
            settings=lab.write_settings(home / "settings"),
            log=ROOT / "build" / "browser-tests-notebook-7.log",
            options=options,
            environment=environment_of(home),
        )
        self._command[self._command.index("jupyterlab")] = "notebook"

    def address(self, notebook: str) -> str:
        """Where this application shows a notebook."""
        return super().address(notebook).replace("/lab/tree/", "/notebooks/")


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


def write(path: Path, *sources: str) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    nbformat.write(notebook, path)


def test_a_wheel_has_the_scripts_and_styles_of_the_clone(installed: Path) -> None:
    folder = installed / "workbench" / "widgets"
    for suffix in ("js", "css"):
        found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob(f"*.{suffix}")}
        own = {path.relative_to(assets.FOLDER): path.read_bytes() for path in assets.FOLDER.rglob(f"*.{suffix}")}
        assert found == own
        assert found


def test_a_wheel_lays_its_extension_where_jupyter_looks(installed: Path) -> None:
    own = contents(lab.EXTENSIONS / "workbench")
    assert {"package.json", "static/stored.js"} == {*own}
    # In the prefix, for every JupyterLab of the environment; in the package, for `workbench lab`.
    assert contents(installed / "share" / "jupyter" / "labextensions" / "workbench") == own
    assert contents(installed / "workbench" / "labextensions" / "workbench") == own
    assert json.loads(own["package.json"])["version"] == version_of(installed)


def test_the_clone_s_environment_has_the_extension_where_jupyter_looks() -> None:
    """So that its plain `jupyter lab` shows stored pictures, too."""
    found = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "workbench"
    assert contents(found) == contents(lab.EXTENSIONS / "workbench")


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder by their paths in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def version_of(installed: Path) -> str:
    """The version of the wheel that was installed there."""
    (found,) = distributions(name="workbench", path=[str(installed)])
    return found.version


def test_views_of_the_wheel_are_drawn(installed: Path, lab_folder: Path, open_notebook: OpenNotebook) -> None:
    write(lab_folder / "wheel.ipynb", CELL.format(installed=str(installed)))
    opened = open_notebook("wheel.ipynb")
    opened.run_all()
    assert opened.cell_errors() == []
    opened.page.get_by_role("heading", name="Fits").wait_for()
    opened.page.get_by_role("tab", name="Trace", exact=True).click()
    opened.page.locator('section.wb[aria-label="Trace"] canvas').first.wait_for()
    assert opened.script_errors == []
    assert opened.foreign_requests == []


@pytest.mark.slow
def test_views_and_the_app_of_the_wheel_are_drawn_in_notebook_7(
    installed: Path, chromium: Browser, tmp_path: Path
) -> None:
    pytest.importorskip("notebook", reason="Notebook 7 is not here: it is one of the packages for tests")
    (tmp_path / "served").mkdir()
    write(tmp_path / "served" / "classic.ipynb", CELL.format(installed=str(installed)), APP)
    context = chromium.new_context(viewport={"width": FIRST[0][0], "height": 900})
    with Notebook7(tmp_path / "served", tmp_path) as server:
        opened = NotebookPage(context.new_page(), server)
        page = opened.page
        opened.open("classic.ipynb")
        assert page.url.startswith(f"{server.url}/notebooks/classic.ipynb")
        assert page.evaluate("() => window.jupyterapp.name") == "Jupyter Notebook"
        opened.run_all()
        assert opened.cell_errors() == []
        button(page, "Compile").click()
        page.get_by_text("Done: mlp fits").wait_for(timeout=COMPILE_MS)
        for cell in (0, 1):
            output = opened.output(cell)
            for title in ("Memory", "Trace"):
                output.get_by_role("tab", name=title, exact=True).click()
                canvas = output.locator(f'section.wb[aria-label="{title}"] canvas.wb-canvas').first
                canvas.wait_for()
                eventually(page, lambda canvas=canvas: is_drawn(opened, canvas, colours=12, filled=0.1), title)
        opened.screenshot("notebook-7")
        assert set(opened.script_errors) <= {OF_ITSELF}
        assert opened.foreign_requests == []
    context.close()
