"""The builder in the real JupyterLab: rows with what they give and hold, moved by keys and by drag, a second input."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.apps import COMPILE_MS, START, RunApp, button
from tests.browser.driver import EVERY_SCREEN, Screens

pytestmark = pytest.mark.browser


@EVERY_SCREEN
def test_a_transformer_of_rows(screens: Screens, run_app: RunApp) -> None:
    lab = run_app(START, screen=screens[0])
    page = lab.page
    page.get_by_label("start from").select_option("Transformer")
    rows = page.locator("li.wb-row")
    expect(rows).to_have_count(10)
    expect(rows.nth(0)).to_contain_text("gives 64 × 128, 128,000 parameters")
    for screen in lab.on(screens):
        lab.screenshot(f"app-builder-{screen}")
    handle = page.get_by_label("Move layer 5: drag it, or press the arrow keys")
    handle.press("ArrowDown")  # to row 6, and the focus goes with it
    moved = page.get_by_label("Move layer 6: drag it, or press the arrow keys")
    expect(moved).to_be_focused()
    expect(page.get_by_label("units of layer 6")).to_have_value("512")
    expect(rows.nth(6)).to_contain_text("are not alike")  # 512 wide, and its second input 128
    lab.screenshot("app-builder-problem")
    moved.press("ArrowUp")
    expect(handle).to_be_focused()
    handle.scroll_into_view_if_needed()
    box, goal = handle.bounding_box(), rows.nth(5).bounding_box()
    assert box is not None
    assert goal is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 5, goal["y"] + goal["height"] - 2, steps=4)
    page.mouse.up()
    expect(page.get_by_label("units of layer 6")).to_have_value("512")
    button(page, "Move layer 6 up").click()
    page.get_by_label("Insert a layer before layer 10").click()
    expect(rows).to_have_count(11)
    page.get_by_label("units of layer 10").fill("0")
    page.get_by_label("units of layer 10").press("Tab")
    expect(rows.nth(9)).to_contain_text("units is '0'")
    page.get_by_label("units of layer 10").fill("32")
    page.get_by_label("units of layer 10").press("Tab")
    expect(rows.nth(9)).to_contain_text("gives 32, 4,128 parameters")
    page.get_by_label("units of layer 10").fill("48")  # rows that come meanwhile do not take away what is being typed
    page.get_by_label("Insert a layer before layer 10").evaluate("button => button.click()")
    expect(rows).to_have_count(12)
    expect(page.get_by_label("units of layer 11")).to_be_focused()
    page.get_by_label("units of layer 11").press("Tab")
    expect(rows.nth(10)).to_contain_text("gives 48, 6,192 parameters")
    button(page, "Compile").click()
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
