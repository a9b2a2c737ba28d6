"""The code in the real JupyterLab: from a variable of the X-ray to its layer to its line of the cell, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.profiler.handmade import handmade_profile
from tests.widgets.evil import EVIL, evil_profile

pytestmark = pytest.mark.browser

CELL = """import keras
import workbench as wb

inputs = keras.Input((64,))
hidden = keras.layers.Dense(96, activation="relu", name="wide")(inputs)
outputs = keras.layers.Dense(10, name="narrow")(hidden)
profile = wb.profile(keras.Model(inputs, outputs), batch_size=8, target=wb.target("ipu2", tiles_per_ipu=16))
views = wb.views(profile, "xray", "operations", "code", "trace")
views"""


def marked(code: Locator) -> Locator:
    return code.locator('[role="option"][aria-selected="true"]')


@EVERY_SCREEN
def test_from_a_variable_to_its_line_and_back(screens: Screens, run_views: Callable[..., NotebookPage]) -> None:
    """By keys alone."""
    lab = run_views(CELL, screen=screens[0])
    page = lab.page
    xray, code, operations = (
        page.get_by_role("region", name=re.compile(f"^{name}")) for name in ("X-ray", "Source", "Operations")
    )
    listed = code.get_by_role("listbox")
    listed.wait_for()
    xray.locator("aside tr", has_text="kernel").filter(has_text="wide").first.press("Enter")
    operations.locator('tr[aria-current="true"]', has_text="wide").first.wait_for()
    expect(marked(code)).to_have_count(1)
    expect(marked(code)).to_contain_text('name="wide"')
    for screen in lab.on(screens):
        code.scroll_into_view_if_needed()
        lab.screenshot(f"source-{screen}")
    listed.focus()
    listed.press("n")
    listed.press("Enter")
    expect(marked(code)).to_contain_text('name="narrow"')
    chosen = xray.locator('aside tr[aria-current="true"], aside tr.wb-chosen')
    operations.locator('tr[aria-current="true"]', has_text="narrow").first.wait_for()
    for row in chosen.all():
        expect(row).to_contain_text("narrow")
    steps = code.get_by_role("region", name=re.compile("^Steps of "))
    steps.press("ArrowDown")
    steps.press("Enter")
    name = steps.locator("tr.wb-chosen td").nth(1).inner_text()
    trace = page.get_by_role("region", name="Trace", exact=True)
    trace.locator("aside h4", has_text=name).wait_for()
    canvas = trace.locator("canvas.wb-canvas")
    high = canvas.bounding_box()
    canvas.focus()
    canvas.press("]")
    canvas.press("t")  # two markers, whose range the kernel measures
    trace.get_by_role("heading", name=re.compile("^A to B: cycles ")).wait_for()
    trace.get_by_text(re.compile(r"^Tile balance of compute on IPU 0: \d")).wait_for()
    canvas.press("d")
    for _ in range(3):
        page.keyboard.press("=")
    page.wait_for_timeout(500)  # the kernel's answer may bring bands of tiles
    after = canvas.bounding_box()
    assert high is not None
    assert after is not None
    assert after["height"] == high["height"]
    listed.focus()
    listed.press("Escape")
    expect(marked(code)).to_have_count(0)
    assert len(lab.cells()) == 1  # none of the keys was JupyterLab's own


def test_what_is_drawn_is_in_the_table_and_sums_up(chromium: Browser, tmp_path: Path) -> None:
    profile = handmade_profile()
    page = chromium.new_page()
    page.goto(profile.to_html(tmp_path / "profile.html").as_uri())
    code = page.locator("#view-source")
    code.get_by_text("Data table").click()
    rows = code.locator("details tbody tr")
    expect(rows).to_have_count(3)
    cycles = [int(row.locator("td").nth(2).inner_text().replace(",", "")) for row in rows.all()]
    assert sum(cycles) == profile.total_cycles
    assert cycles[:2] == profile.source.lines["cycles"].tolist()
    canvas = code.locator("canvas.wb-canvas")
    canvas.focus()
    canvas.press("ArrowRight")
    expect(marked(code)).to_contain_text("dense_1" if "dense_1" in marked(code).inner_text() else "dense_2")
    for measure, said in (("peak", "9.2 KiB"), ("code", "2.0 KiB"), ("cycles", "6.27 k cycles")):
        code.locator("select").select_option(measure)
        expect(code.get_by_role("option").filter(has_text="dense_1")).to_contain_text(said)
    page.close()


def test_code_is_text(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto(evil_profile().to_html(tmp_path / "evil.html").as_uri())
    code = page.locator("#view-source")
    code.get_by_role("listbox").wait_for()
    assert code.locator("script, img, iframe").count() == 0
    assert f"{EVIL}(line_1)" in code.inner_text()
    assert "was not recorded" in code.inner_text()
    page.close()


def test_there_is_one_way_to_choose_nothing_and_it_clears_the_line(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto(handmade_profile().to_html(tmp_path / "profile.html").as_uri())
    source, tile = page.locator("#view-source"), page.locator("#view-tile_map .wb-side h4").first
    page.locator("#view-tile_map canvas.wb-canvas").focus()
    page.keyboard.press("ArrowUp")
    chosen = tile.inner_text()
    source.get_by_role("button", name="Dearest").click()
    steps = source.locator(".wb-code-steps tbody tr")
    assert steps.count() > 0
    expect(source.get_by_role("button", name="Nothing chosen")).to_have_count(0)
    source.get_by_role("button", name="Choose nothing").click()
    expect(steps).to_have_count(0)
    expect(tile).not_to_have_text(chosen)
    page.close()
