"""The exchange view in the real JupyterLab: tiles and steps are chosen by mouse and keys, the other views follow, and
what the page says sums to what the kernel's tables say."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens

pytestmark = pytest.mark.browser

CELL = (
    'profile = __import__("workbench").profile("cnn", batch_size=8, mode="training")\n'
    'views = __import__("workbench").views(profile, "exchange", "trace")\nviews'
)


@EVERY_SCREEN
def test_a_tile_and_a_step(screens: Screens, run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views(CELL, screen=screens[0])
    page = lab.page
    view = page.get_by_role("region", name="Exchange", exact=True)
    view.wait_for()
    view.scroll_into_view_if_needed()
    panel = view.locator("aside")
    panel.get_by_text(re.compile(r"the step waits for it")).wait_for()  # the busiest tile is the first that is shown
    for screen in lab.on(screens):
        lab.screenshot(f"exchange-{screen}")
    facts = panel.locator("p").first  # the step's number, among others
    first, name = facts.inner_text(), panel.locator("h4").inner_text()
    canvas = view.locator("canvas.wb-canvas")
    canvas.focus()
    canvas.press("]")
    expect(facts).not_to_have_text(first)
    canvas.press("[")
    expect(facts).to_have_text(first)
    panel.get_by_text(re.compile(r"the step waits for it")).wait_for()
    canvas.press("ArrowRight")
    panel.get_by_text(re.compile(r"the step waits for tile \d+")).wait_for()
    panel.get_by_role("table").nth(0).get_by_text("← decides").wait_for()
    canvas.press("b")
    panel.get_by_text(re.compile(r"the step waits for it")).wait_for()
    page.get_by_role("region", name=re.compile("^Trace")).get_by_text(name.split("/")[0]).first.wait_for()
    rows = panel.get_by_role("region", name="The other ends of its arrows").locator("tbody tr")
    cells = rows.evaluate_all("rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    told = re.search(r"receives ([\d.]+) (\w+) from (\d+) tile", panel.locator("p").nth(1).inner_text())
    assert told is not None
    into = [int(cell[2].replace(",", "")) for cell in cells if len(cell) == 3 and "from" in cell[0]]
    assert len(into) == int(told[3])
    size = {"B": 1, "KiB": 1024, "MiB": 1 << 20}[told[2]]
    assert abs(sum(into) - float(told[1]) * size) <= 0.051 * size  # as the text is rounded
    rows.first.click()
    assert re.search(rf"Tile {cells[0][1]} of IPU 0 receives", panel.locator("p").nth(1).inner_text())
    panel.get_by_text("Where these cycles come from").click()
    panel.get_by_text(re.compile("busiest tile. Directly")).wait_for()
    lab.screenshot("exchange-explained")


SEVERAL = (
    "from tests.profiler.handmade import handmade_pipeline\nimport workbench as wb\n"
    "views = wb.views(handmade_pipeline(), 'exchange', 'memory')\nviews"
)


@EVERY_SCREEN
def test_an_exchange_names_its_ipu_and_another_is_chosen(
    screens: Screens, run_views: Callable[..., NotebookPage]
) -> None:
    lab = run_views(SEVERAL, screen=screens[0])
    shown = lab.page.get_by_role("region", name="Exchange", exact=True)
    memory = lab.page.get_by_role("region", name="Memory", exact=True)
    ipu, of_memory = (
        place.locator("label", has_text=re.compile("^IPU")).locator("select") for place in (shown, memory)
    )
    facts = shown.locator("aside p").first
    ipu.wait_for()
    for chosen in ("1", "0"):
        ipu.select_option(chosen)
        expect(facts).to_contain_text(f" on IPU {chosen}")
        expect(shown.locator("aside p").nth(1)).to_contain_text(f" of IPU {chosen} receives")
        expect(ipu).to_have_value(chosen)
        expect(of_memory).to_have_value(chosen)
    of_memory.select_option("1")
    expect(ipu).to_have_value("1")
    for screen in lab.on(screens):
        lab.screenshot(f"exchange-of-two-{screen}")
