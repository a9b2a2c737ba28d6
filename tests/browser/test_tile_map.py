"""The tile map in the real JupyterLab: at a step of the program, by its own keys and as the liveness says; enlarged."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.browser.looking import eventually, view
from tests.profiler.handmade import handmade_pipeline

pytestmark = pytest.mark.browser

CELL = (
    "from tests.profiler.handmade import handmade_pipeline\nimport workbench as wb\n"
    "views = wb.views(handmade_pipeline(), 'tile_map', 'liveness')\nviews"
)


def column(shown: Locator, number: int) -> dict[int, int]:
    """Numbers of the data table by tile."""
    cells = [row.split("\t") for row in shown.locator(".wb-data tbody tr").all_inner_texts()]
    return {int(row[0]): int(row[number].replace(",", "")) for row in cells}


@EVERY_SCREEN
def test_a_step_is_walked_to_and_a_tile_looked_at(screens: Screens, run_views: Callable[..., NotebookPage]) -> None:
    profile = handmade_pipeline()
    lab = run_views(CELL, screen=screens[0])
    page = lab.page
    plan, liveness = view(page, "Tile map"), view(page, "Liveness")
    plan.get_by_label("colour").select_option("step_live")
    report = profile.playback.of(ipu=profile.tile_map.ipu)
    said = plan.locator(".wb-said")
    expect(said).to_contain_text(f"place {report.position} of {len(report.steps)}")
    expect(plan.locator("output")).to_have_text(f"place {report.position} of {len(report.steps)}")
    plan.get_by_text("Data table").click()
    assert column(plan, 1) == dict(enumerate(report.frame().live_bytes.tolist()))
    canvas = plan.locator("canvas.wb-canvas")
    canvas.focus()
    canvas.press(",")
    expect(said).to_contain_text(f"place {report.position - 1} of ")
    assert column(plan, 1) == dict(enumerate(report.frame(report.position - 1).live_bytes.tolist()))
    liveness.get_by_role("heading", name=str(report.there.name[report.position - 1])).wait_for()
    liveness.locator("canvas.wb-canvas").focus()
    liveness.locator("canvas.wb-canvas").press("ArrowLeft")
    expect(said).to_contain_text(f"place {report.position - 2} of ")
    slider = plan.get_by_role("slider", name="Place in the program")
    expect(slider).to_have_value(str(report.position - 2))
    plan.get_by_label("colour").select_option("step_received")
    moving = int(report.to_pandas()["received_bytes"].to_numpy().argmax())
    slider.fill(str(moving))
    expect(said).to_contain_text(f"place {moving} of ")
    assert column(plan, 1) == dict(enumerate(report.frame(moving).received_bytes.tolist()))
    assert sum(column(plan, 1).values()) > 0
    for screen in lab.on(screens):
        canvas.scroll_into_view_if_needed()
        lab.screenshot(f"tile-map-step-{screen}")
    canvas.focus()
    before = lab.picture(canvas)
    for _ in range(3):
        canvas.press("+")
    canvas.press("End")
    plan.get_by_role("heading", name=re.compile(r"Tile 15 of IPU")).wait_for()
    eventually(page, lambda: lab.picture(canvas) != before, "the plan is enlarged")
    for screen in lab.on(screens):
        canvas.scroll_into_view_if_needed()
        lab.screenshot(f"tile-map-zoomed-{screen}")
    size = canvas.bounding_box()
    assert size is not None
    page.mouse.move(size["x"] + size["width"] / 2, size["y"] + size["height"] / 2)
    page.mouse.down()
    page.mouse.move(size["x"] + size["width"], size["y"] + size["height"], steps=6)
    page.mouse.up()  # a drag moves what is seen, and chooses no tile
    plan.get_by_role("heading", name=re.compile(r"Tile 15 of IPU")).wait_for()
    plan.get_by_role("button", name="Whole plan").click()
    page.wait_for_timeout(300)
    canvas.click(position={"x": 40, "y": 30})
    plan.get_by_role("heading", name=re.compile(r"Tile 0 of IPU")).wait_for()
    assert len(lab.cells()) == 1
