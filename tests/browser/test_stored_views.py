"""A notebook that was saved and is opened when its kernel has ended: views are their pictures until a cell runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import LoadNotebook, OpenNotebook
from tests.browser.driver import NotebookPage
from workbench import lab

pytestmark = pytest.mark.browser

VIEWS = """
import numpy as np
import workbench as wb
x = np.zeros((64, 64), "float32")
profile = wb.profile(lambda x: x @ x, x, target=wb.target("ipu2", tiles_per_ipu=8))
wb.views(profile, "memory", "liveness")
"""
MODEL_MS = 3000  # ipywidgets looks for a model for two seconds
_SEEN = """new MutationObserver(() => {
    if (document.querySelector('.jp-OutputArea img[alt]')) window.pictureWasSeen = true;
}).observe(document, {childList: true, subtree: true})"""
WIDGET = "application/vnd.jupyter.widget-view+json"


def saved(opened: NotebookPage, file: Path) -> None:
    """Run every cell and save, as JupyterLab does: the output is a widget and a picture, the state of neither."""
    opened.run_all()
    assert opened.cell_errors() == []
    live(opened)
    opened.command("docmanager:save")
    notebook = json.loads(file.read_text())
    assert {WIDGET, "text/html"} <= {*notebook["cells"][0]["outputs"][0]["data"]}
    assert "widgets" not in notebook["metadata"]


def live(opened: NotebookPage) -> None:
    """Both views are drawn by the kernel's widgets, and no picture stands beside them."""
    output = opened.output(0)
    expect(output.locator("section.wb canvas.wb-canvas")).to_have_count(2)
    expect(output.locator("img[alt]")).to_have_count(0)


def pictures(opened: NotebookPage) -> None:
    """Both views are their pictures, and nothing speaks of a widget."""
    output = opened.output(0)
    expect(output.locator("img[alt]")).to_have_count(2, timeout=10_000)
    for each in output.locator("img[alt]").all():
        assert opened.picture(each).is_drawn(colours=6, filled=0.02)
    expect(output.get_by_text("widget")).to_have_count(0)
    expect(output.locator("section.wb")).to_have_count(0)


def test_a_saved_view_is_its_picture_when_its_kernel_has_ended(
    add_views: LoadNotebook, open_notebook: OpenNotebook, lab_folder: Path
) -> None:
    name = add_views(VIEWS)
    opened = open_notebook(name)
    saved(opened, lab_folder / name)
    opened.page.context.close()
    while_it_runs = open_notebook(name)
    live(while_it_runs)
    while_it_runs.page.context.close()
    while_it_runs.server.end_kernels()
    again = open_notebook(name)
    assert again.trusted()  # or JupyterLab would not look at the widget
    pictures(again)
    again.screenshot_whole("saved-views")
    again.run_all()
    live(again)
    assert again.foreign_requests == []


@pytest.mark.slow
def test_in_notebook_7_too_it_is_its_picture(
    add_views: LoadNotebook, open_notebook: OpenNotebook, lab_folder: Path
) -> None:
    pytest.importorskip("notebook", reason="Notebook 7 is not here: it is one of the packages for tests")
    name = add_views(VIEWS)
    opened = open_notebook(name)
    saved(opened, lab_folder / name)
    opened.server.end_kernels()
    opened.open_in_notebook_7(name)
    assert opened.page.evaluate("() => window.jupyterapp.name") == "Jupyter Notebook"
    pictures(opened)
    opened.screenshot_whole("saved-views-notebook-7")
    opened.run_all()
    live(opened)


def test_a_saved_view_is_its_picture_while_no_kernel_comes(
    add_views: LoadNotebook, open_notebook: OpenNotebook, lab_folder: Path
) -> None:
    name = add_views(VIEWS)
    opened = open_notebook(name)
    saved(opened, lab_folder / name)
    opened.server.end_kernels()
    held: list[Route] = []
    opened.page.route(
        "**/api/sessions**", lambda route: held.append(route) if route.request.method == "POST" else route.fallback()
    )
    opened.open(name)
    pictures(opened)
    assert held
    opened.screenshot_whole("saved-views-no-kernel")
    for each in held:
        each.continue_()
    opened.wait_until_idle()
    opened.page.wait_for_timeout(MODEL_MS)
    pictures(opened)


def test_a_live_view_takes_the_place_of_a_picture_that_came_first(
    add_views: LoadNotebook, open_notebook: OpenNotebook, lab_folder: Path
) -> None:
    name = add_views(VIEWS)
    opened = open_notebook(name)
    saved(opened, lab_folder / name)
    script = (lab.EXTENSIONS / "workbench" / "static" / "stored.js").read_text()
    impatient = script.replace("WAIT_MS = 3000", "WAIT_MS = 0")
    assert impatient != script
    opened.page.route("**/stored.js*", lambda route: route.fulfill(body=impatient, content_type="text/javascript"))
    opened.page.add_init_script(_SEEN)
    opened.open(name)
    live(opened)
    assert opened.page.evaluate("() => window.pictureWasSeen")
    assert opened.script_errors == []
