"""What stays over compiles in the real JupyterLab: the tab, the zoom, what is chosen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.apps import COMPILE_MS, START, RunApp, button, choose_ready, enter
from tests.browser.looking import eventually

pytestmark = pytest.mark.browser

ZOOM = "() => document.querySelector('section.wb[aria-label=\"Trace\"] canvas.wb-canvas').zoomed.get()"


def trace(page: Page) -> Locator:
    found = page.locator('section.wb[aria-label="Trace"] canvas.wb-canvas')
    found.wait_for()
    return found


def chosen(page: Page) -> str:
    """The name of the variable that is marked beside the liveness."""
    row = page.locator('section.wb[aria-label="Liveness"] .wb-side tbody tr[aria-current="true"]')
    row.wait_for()
    return row.locator("td").first.inner_text()


def compile_at(page: Page, batch: int) -> None:
    enter(page, "batch size", batch)
    button(page, "Compile").click()
    said = page.locator(".wb-app-shown").get_by_text(re.compile(rf"batch size {batch} "))
    said.wait_for(timeout=COMPILE_MS)


def test_the_tab_the_zoom_and_what_is_chosen_stay(run_app: RunApp) -> None:
    page = run_app(START).page
    choose_ready(page, "mlp")
    compile_at(page, 4)
    page.get_by_role("tab", name="Liveness", exact=True).click()
    listed = page.locator('section.wb[aria-label="Liveness"] .wb-side tbody tr')
    listed.nth(1).click()
    variable = chosen(page)
    page.get_by_role("tab", name="Trace", exact=True).click()
    canvas = trace(page)
    canvas.focus()
    for key in ("+", "+", "ArrowRight"):
        page.keyboard.press(key)
    before = page.evaluate(ZOOM)
    assert 0 < before[0] < before[1] < 1
    compile_at(page, 8)
    trace(page)
    assert page.get_by_role("tab", name="Trace", exact=True).get_attribute("aria-selected") == "true"
    page.wait_for_function(f"({ZOOM})()[0] > 0")
    assert page.evaluate(ZOOM) == pytest.approx(before, abs=1e-6)
    trace(page).focus()
    page.keyboard.press("Home")
    page.get_by_role("tab", name="Liveness", exact=True).click()
    assert chosen(page) == variable
    page.get_by_role("tab", name="Trace", exact=True).click()
    compile_at(page, 4)
    assert page.evaluate(ZOOM) == [0, 1]


@pytest.mark.slow
def test_the_app_beside_its_notebook(run_app: RunApp) -> None:
    """In JupyterLab's own new view for output: what is compiled there is shown in both places."""
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "mlp")
    compile_at(page, 4)
    page.locator(".jp-Notebook .wb-app-shown").first.click(button="right")
    page.get_by_role("menuitem", name="Create New View for Cell Output").click()
    beside = page.locator(".jp-LinkedOutputView .wb-app")
    beside.get_by_role("tab", name="Trace", exact=True).click()
    field = beside.get_by_label("batch size", exact=True)
    field.fill("16")
    field.press("Tab")
    beside.get_by_role("button", name=re.compile(r"^\W*Compile$")).click()
    said = page.locator(".wb-app-shown").get_by_text(re.compile("batch size 16 "))
    said.first.wait_for(timeout=COMPILE_MS)
    assert said.count() == 2
    picture = beside.locator('section.wb[aria-label="Trace"] canvas.wb-canvas')
    picture.wait_for()
    eventually(page, lambda: lab.picture(picture).is_drawn(colours=8, filled=0.1), "the trace beside the notebook")
    lab.screenshot("app-beside-1280-light")
    assert lab.script_errors == []
