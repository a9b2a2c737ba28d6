"""Liveness of all IPUs in the real JupyterLab: by mouse and keys to an IPU and a place, and on to that IPU alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.browser.looking import view
from tests.widgets.large import large_profile
from workbench.base.units import bytes_text

pytestmark = pytest.mark.browser

CELL = (
    "from tests.widgets.large import large_profile\nimport workbench as wb\n"
    "views = wb.views(large_profile(ipus={ipus}, tiles=64, steps=600), 'liveness')\nviews"
)


@EVERY_SCREEN
@pytest.mark.parametrize("ipus", [4, pytest.param(64, marks=pytest.mark.slow)])
def test_all_ipus(ipus: int, screens: Screens, run_views: Callable[..., NotebookPage]) -> None:
    report = large_profile(ipus=ipus, tiles=64, steps=600).liveness_view
    table = report.over_ipus
    lab = run_views(CELL.format(ipus=ipus), screen=screens[0])
    shown = view(lab.page, "Liveness")
    shown.get_by_label("over").select_option("ipus")
    expect(shown.locator(".wb-said")).to_contain_text(f"Modelled liveness of {ipus} IPUs")
    rows = shown.get_by_role("region", name="IPUs").locator("tbody tr")
    expect(rows).to_have_count(ipus)
    drawn = [int(row.split("\t")[1].replace(",", "")) for row in rows.all_inner_texts()]
    assert drawn == table["peak_bytes"].tolist()
    canvas = shown.locator("canvas.wb-canvas")
    canvas.focus()
    canvas.press("ArrowDown")
    canvas.press("ArrowDown")
    told = shown.locator("aside p").first
    expect(told).to_contain_text(f"IPU 1: {bytes_text(table['peak_bytes'][1])}")
    expect(told).to_contain_text(f"step {table['peak_step'][1]}")
    shown.get_by_role("combobox", name="bytes").select_option("full")
    expect(told).to_contain_text("on tile ")
    for screen in lab.on(screens):
        canvas.scroll_into_view_if_needed()
        assert lab.picture(canvas).is_drawn(colours=12, filled=0.1)
        lab.screenshot(f"liveness-{ipus}-ipus-{screen}")
    canvas.click(position={"x": 100, "y": 12})
    expect(told).to_contain_text("IPU 0: ")
    shown.get_by_label("over").select_option("ipu")
    expect(shown.locator(".wb-said")).to_have_text(report.of(ipu=0).sentence)


LINKED = (
    "from tests.profiler.handmade import handmade_pipeline\nimport workbench as wb\n"
    "views = wb.views(handmade_pipeline(), 'liveness', 'xray', 'trace', 'tile_map')\nviews"
)


def test_a_chosen_step_stays_with_another_tile_and_is_found_on_another_ipu(
    run_views: Callable[..., NotebookPage],
) -> None:
    lab = run_views(LINKED)
    page = lab.page
    liveness, xray = view(page, "Liveness"), view(page, "X-ray")
    places = [shown.locator("aside p").first for shown in (liveness, xray)]
    liveness.locator("canvas.wb-canvas").press("ArrowLeft")  # the peak, at place 5; then the place before it
    liveness.locator("canvas.wb-canvas").press("ArrowLeft")
    for told in places:
        expect(told).to_contain_text("Step 10, at place 4:")
    tiles = view(page, "Tile map").locator("canvas.wb-canvas")
    tiles.press("ArrowDown")
    for shown, told in zip((liveness, xray), places, strict=True):
        expect(shown.locator(".wb-said")).to_contain_text("ile 1 of IPU 0")
        expect(told).to_contain_text("Step 10, at place 4:")
    # The dearest step is the backward one of stage 1, which IPU 1 runs at place 4.
    view(page, "Trace").get_by_role("region", name="Dearest steps").get_by_text("stage_1/bwd", exact=True).click()
    for shown, told in zip((liveness, xray), places, strict=True):
        expect(shown.locator(".wb-said")).to_contain_text("of IPU 1")
        expect(told).to_contain_text("Step 6, at place 4:")
