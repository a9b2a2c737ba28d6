"""The panel of all options in the real JupyterLab: an option is found, set, tried, and seen in code and profile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.apps import COMPILE_MS, START, RunApp, button
from tests.browser.driver import EVERY_SCREEN, Screens

pytestmark = pytest.mark.browser

NAME = "optimizations.prefetch_data_streams"
BELOW = """each => {
    const bottom = element => element.getBoundingClientRect().bottom;
    return bottom(each.closest('.wb-panel-rows')) - bottom(each);
}"""


@EVERY_SCREEN
def test_an_option_outside_the_first_twelve(screens: Screens, run_app: RunApp) -> None:
    lab = run_app(START, screen=screens[0])
    page = lab.page
    button(page, "Compile").click()
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
    page.get_by_text(re.compile("^Every option that acts")).click()
    search = page.get_by_label("Search the options")
    search.scroll_into_view_if_needed()
    for screen in lab.on(screens):
        lab.screenshot(f"app-options-{screen}")
    search.fill("prefetch streams")
    page.get_by_text("1 shown", exact=True).wait_for()
    field = page.get_by_label(NAME, exact=True)
    assert field.is_checked()
    page.get_by_text("read by lowering and planning").wait_for()
    page.get_by_label(f"Try values beside {NAME}").click()
    page.locator(".wb-tried").wait_for(timeout=COMPILE_MS)
    expect(page.get_by_label(f"Set {NAME} to false")).to_be_in_viewport(ratio=1)
    for screen in lab.on(screens):
        lab.screenshot(f"app-options-tried-{screen}")
    page.get_by_label(f"Set {NAME} to false").click()
    page.locator(".wb-code pre").get_by_text("prefetch_data_streams = False").wait_for()
    button(page, "Compile").click()
    page.locator(".wb-app-shown").get_by_text(f"{NAME} = False").wait_for(timeout=COMPILE_MS)
    button(page, "Write TOML").click()
    area = page.get_by_label("The configuration as text")
    page.wait_for_function("() => document.querySelector('.wb-panel textarea').value.includes('= false')")
    area.fill("no.such.option = 1")
    button(page, "Take this text").click()
    page.locator(".wb-text-problem").get_by_text("no.such.option").wait_for()
    area.fill('{"io_tiles.num_io_tiles": 32}')
    button(page, "Take this text").click()
    page.locator(".wb-app-foot").get_by_text("1 changed from the default").wait_for()
    assert Path(lab.screenshot("app-options-text")).exists()


def test_what_is_being_typed_stays_when_the_kernel_answers_meanwhile(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    page.get_by_text(re.compile("^Every option that acts")).click()
    field = page.get_by_label("io_tiles.num_io_tiles", exact=True)
    field.press_sequentially("3")
    page.get_by_label("The configuration as text").evaluate("area => { area.value = 'no.such.option = 1' }")
    button(page, "Take this text").evaluate("button => button.click()")  # its answer draws every row anew
    page.locator(".wb-text-problem").get_by_text("no.such.option").wait_for()
    expect(field).to_be_focused()
    lab.wait_until_idle()
    expect(page.locator(".wb-app-foot")).to_contain_text("all at their defaults")  # half a number is sent by nobody
    page.keyboard.type("2")
    expect(field).to_have_value("32")
    field.press("Tab")
    page.locator(".wb-app-foot").get_by_text("1 changed from the default").wait_for()
    expect(field).to_have_value("32")


def test_what_values_gave_is_seen_in_the_list_that_scrolls(run_app: RunApp) -> None:
    page = run_app(START).page
    page.get_by_text(re.compile("^Every option that acts")).click()
    asked = page.get_by_label(f"Try values beside {NAME}")
    asked.evaluate("each => each.scrollIntoView({block: 'end'})")  # nothing of what comes below it would be seen
    asked.click()
    table = page.locator(".wb-tried")
    table.wait_for(timeout=COMPILE_MS)
    assert table.evaluate(BELOW) >= 0  # pixels of the list below it
