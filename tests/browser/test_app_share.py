"""Sharing in the real JupyterLab: results are kept in the notebook's folder if the user says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.apps import COMPILE_MS, START, RunApp, button, choose_ready
from tests.browser.conftest import LoadNotebook, StartLab
from tests.browser.driver import NotebookPage
from tests.browser.looking import eventually
from workbench.profiler.storage import load_profile

pytestmark = pytest.mark.browser


def test_the_history_is_kept_in_the_notebooks_folder(run_app: RunApp, lab_folder: Path) -> None:
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "mlp")
    keep = page.get_by_role("checkbox", name="keep every result in workbench-history/")
    in_the_way = lab_folder / "workbench-history"
    in_the_way.write_text("a file", encoding="utf-8")
    for _ in range(2):  # told again, the box is not ticked again
        keep.focus()
        page.keyboard.press("Space")
        page.get_by_role("alert").get_by_text("is no folder").wait_for()
        expect(keep).not_to_be_checked()
    in_the_way.unlink()
    keep.focus()
    page.keyboard.press("Space")
    page.get_by_text("every result is kept in workbench-history").wait_for()
    button(page, "Compile").click()
    page.get_by_text("Done: mlp fits").wait_for(timeout=COMPILE_MS)
    eventually(page, lambda: any((lab_folder / "workbench-history").glob("*.wbprofile")), "a file of the result")
    (path,) = (lab_folder / "workbench-history").glob("*.wbprofile")
    assert load_profile(path).name == "mlp"
    path.unlink()


def insert(page: Page) -> None:
    """Press the button, and find the code in a new cell under the one of the app."""
    button(page, "Insert as cell").click(timeout=COMPILE_MS)
    page.get_by_text("the code stands in a new cell below").wait_for()
    expect(page.locator(".jp-Notebook .jp-Cell").nth(1)).to_contain_text("executable = wb.compile(")


def test_the_code_is_inserted_as_a_cell(run_app: RunApp) -> None:
    insert(run_app(START).page)


def test_the_code_is_inserted_as_a_cell_in_notebook_7(
    chromium: Browser, start_lab: StartLab, add_views: LoadNotebook
) -> None:
    pytest.importorskip("notebook", reason="Notebook 7 is not here: it is one of the packages for tests")
    server = start_lab("light")
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    try:
        opened = NotebookPage(context.new_page(), server)
        opened.open_in_notebook_7(add_views(START))
        opened.run_all()
        assert opened.cell_errors() == []
        insert(opened.page)
    finally:
        context.close()
        server.end_kernels()
