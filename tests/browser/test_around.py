"""What every live view has around it: where a number comes from, and anything by its name, by keys alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.driver import NotebookPage
from tests.browser.looking import view
from tests.profiler.handmade import handmade_pipeline

pytestmark = pytest.mark.browser

LINKED = (
    "from tests.profiler.handmade import handmade_pipeline\nfrom workbench.widgets import linked\n"
    "both = linked.views(handmade_pipeline(), 'tile_map', 'liveness')\nboth"
)
TABS = "linked.profile_view(handmade_pipeline())"


def test_a_number_says_where_it_comes_from_and_a_name_is_gone_to(run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views(LINKED)
    page, profile = lab.page, handmade_pipeline()
    tiles = view(page, "Tile map")
    tiles.locator("canvas.wb-canvas").focus()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to any").fill("tile 3")
    expect(page.get_by_role("option").filter(has_text="tile 3").first).to_be_visible()
    page.get_by_role("option").filter(has_text="tile 3").first.click()
    expect(tiles.get_by_role("heading", name="Tile 3 of IPU")).to_be_visible()
    tiles.locator("canvas.wb-canvas").focus()
    page.keyboard.press("e")
    told = page.get_by_role("region", name="Explanation")
    found = profile.explain(tile=3, ipu=profile.peak.ipu)
    expect(told.locator("summary").first).to_contain_text(f"{found.subject}: ")
    expect(told).to_contain_text(found.formula)
    lab.screenshot("around-explanation")
    page.keyboard.press("Escape")
    expect(told).to_be_hidden()
    variable = str(profile.variables["name"].iloc[0])
    page.keyboard.press("Control+k")
    page.keyboard.type(variable)
    expect(page.get_by_role("option").filter(has_text=variable).first).to_be_visible()
    lab.screenshot("around-palette")
    page.keyboard.press("Escape")
    assert len(lab.cells()) == 1


def test_the_palette_and_the_explanation_open_where_the_title_of_a_tab_has_the_focus(
    run_views: Callable[..., NotebookPage],
) -> None:
    lab = run_views(LINKED, TABS)
    page = lab.page
    title = lab.output(1).get_by_role("tab", name="Liveness", exact=True)
    title.click()
    lab.output(1).locator('section.wb[aria-label="Liveness"] canvas.wb-canvas').first.wait_for()
    title.focus()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Palette").locator("visible=true")
    expect(palette).to_have_count(1)  # of the view that is seen, not of those beside it
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.press("Escape")
    title.focus()
    page.keyboard.press("e")
    expect(lab.output(1).get_by_role("region", name="Explanation")).to_be_focused()
    assert len(lab.cells()) == 2


def test_what_is_chosen_is_let_go_by_escape_and_by_a_button(run_views: Callable[..., NotebookPage]) -> None:
    page = run_views(LINKED).page
    tiles, liveness = view(page, "Tile map"), view(page, "Liveness")
    offered = tiles.get_by_role("button", name="Choose nothing")
    expect(offered).to_be_hidden()
    for lets_go in (lambda: liveness.locator("canvas.wb-canvas").press("Escape"), offered.click):
        liveness.locator("canvas.wb-canvas").press("p")
        liveness.locator("canvas.wb-canvas").press("ArrowLeft")
        tiles.locator("canvas.wb-canvas").press("ArrowDown")
        expect(tiles.get_by_role("heading", name="Tile 1 of IPU 0")).to_be_visible()
        expect(liveness.locator("aside p").first).to_contain_text("Step 10, at place 4:")
        lets_go()
        expect(tiles.get_by_role("heading", name="Fullest tile: 0 of IPU 0")).to_be_visible()
        expect(liveness.get_by_role("heading", name="Peak: stage_0/bwd exchange")).to_be_visible()
        expect(offered).to_be_hidden()
