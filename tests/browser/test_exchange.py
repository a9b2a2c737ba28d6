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
ASK = """
report = profile.exchange.of(step=views.selection.step, tile=views.selection.tile)
print(report.step, report.tile, report.data["received_bytes"], report.data["senders"], report.cycles)
"""


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
    into = sum(
        int(row.locator("td").nth(2).inner_text().replace(",", ""))
        for row in rows.all()
        if "from" in row.locator("td").nth(0).inner_text()
    )
    told = panel.locator("p").nth(1).inner_text()
    assert re.search(r"receives [\d.]+ \w+ from \d+ tile", told)
    assert into > 0
    rows.first.click()
    other = int(rows.first.locator("td").nth(1).inner_text())
    assert other >= 0
    panel.get_by_text("Where these cycles come from").click()
    panel.get_by_text(re.compile("busiest tile. Directly")).wait_for()
    lab.screenshot("exchange-explained")
