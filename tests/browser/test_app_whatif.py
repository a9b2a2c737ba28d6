"""What if in the real JupyterLab: sliders and menus by keys, the earlier picture behind, a curve, taken over."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.apps import COMPILE_MS, START, RunApp, button
from tests.browser.driver import EVERY_SCREEN, Screens

pytestmark = pytest.mark.browser


# Chooses another option without going to its menu.
ADD_UNFOCUSED = """() => {
    const menu = document.querySelector('.wb-what-other select');
    menu.value = 'io_tiles.num_io_tiles';
    menu.dispatchEvent(new Event('change'));
}"""


def focused(page: Page) -> str:
    """What has the focus is called, or the first cell of a row that has it."""
    called = "(at) => at.tagName === 'TR' ? at.firstElementChild.textContent : at.ariaLabel ?? at.tagName"
    return str(page.evaluate(f"() => ({called})(document.activeElement)"))


def value_of(field: Locator) -> str:
    return field.get_attribute("aria-valuetext") or ""


@EVERY_SCREEN
def test_what_if_by_keys(screens: Screens, run_app: RunApp) -> None:
    lab = run_app(START, screen=screens[0])
    page = lab.page
    page.get_by_label("start from").select_option("CNN")
    button(page, "Compile").click()
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
    page.get_by_text("What if: move it, and see").focus()
    page.keyboard.press("Enter")
    what = page.locator(".wb-whatif")
    what.get_by_text("As it was compiled: fits").wait_for()
    assert not what.locator(".wb-what-curve").is_visible()  # there is none yet
    batch = what.get_by_label("What if batch size", exact=True)
    batch.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")  # which folds headings where JupyterLab takes it
    assert value_of(batch) == "7"
    page.locator("canvas.wb-canvas[tabindex]").locator("visible=true").first.focus()
    page.keyboard.type("bb")  # which adds cells where JupyterLab takes it
    assert len(lab.cells()) == 1
    what.get_by_text("What if batch size 7: fits").wait_for(timeout=COMPILE_MS)
    canvas = what.locator("canvas").first
    assert lab.picture(canvas).is_drawn(colours=3, filled=0.05)
    what.get_by_label("What if precision", exact=True).select_option("float16")
    what.get_by_text("What if batch size 7, precision float16: fits").wait_for(timeout=COMPILE_MS)
    card = what.locator('.wb-card[data-label="Fullest tile"]')
    before, after = (float(card.get_attribute(f"data-{side}") or 0) for side in ("before", "after"))
    assert f"{'+' if after > before else '−'}{abs(after - before) / 1024:.1f} KiB from" in card.inner_text()
    for screen in lab.on(screens):
        what.scroll_into_view_if_needed()
        lab.screenshot_whole(f"app-whatif-{screen}")
    what.get_by_label("Curve of batch size").focus()
    page.keyboard.press("Enter")
    rows = what.locator(".wb-what-curve tbody tr")
    rows.nth(8).wait_for(timeout=COMPILE_MS)
    what.get_by_text("fits: the fastest that fits", exact=True).wait_for(timeout=COMPILE_MS)
    page.wait_for_function("() => !document.querySelector('.wb-what-work').textContent", timeout=COMPILE_MS)
    for screen in lab.on(screens):
        lab.screenshot_whole(f"app-whatif-curve-{screen}")
    rows.first.focus()
    page.keyboard.press("Enter")
    what.get_by_text("What if batch size 1, precision float16").wait_for(timeout=COMPILE_MS)
    assert focused(page) == "1"  # the row that was pressed, in the table that was drawn anew
    batch.focus()  # as it was: what can be moved is drawn anew, with one more
    page.evaluate(ADD_UNFOCUSED)
    what.get_by_label("What if num_io_tiles (io_tiles)", exact=True).wait_for()
    assert focused(page) == "What if batch size"
    another = what.get_by_label("another option")
    another.focus()
    another.select_option("io_tiles.available_memory_proportion")
    what.get_by_label("What if available_memory_proportion (io_tiles)", exact=True).wait_for()
    assert focused(page) == "SELECT"
    button(page, "Take over").click()
    page.locator(".wb-app-shown").get_by_text("batch size 1 ").wait_for(timeout=COMPILE_MS)
    assert page.get_by_label("precision", exact=True).input_value() == "float16"
