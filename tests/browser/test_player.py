"""The player in the real JupyterLab: it plays, steps, scrubs; the other views follow; what is asked for arrives."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens

pytestmark = pytest.mark.browser

CELL = (
    'profile = __import__("workbench").profile("cnn", batch_size=8, mode="training")\n'
    'views = __import__("workbench").views(profile, "player", "liveness_view")\nviews'
)


@EVERY_SCREEN
def test_play_step_and_scrub(screens: Screens, run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views(CELL, screen=screens[0])
    page = lab.page
    player = page.get_by_role("region", name="Player", exact=True)
    player.wait_for()
    player.scroll_into_view_if_needed()
    for screen in lab.on(screens):
        lab.screenshot(f"player-{screen}")
    place = player.get_by_label("Place in the program")
    player.get_by_label("First step").click()
    expect(place).to_have_value("0")
    canvas = player.locator("canvas.wb-canvas")
    canvas.focus()
    canvas.press(".")
    canvas.press(".")
    expect(place).to_have_value("2")
    expect(player.locator("output")).to_have_text(re.compile(r"^place 2 of \d+$"))
    expect(player.locator(".wb-said")).to_contain_text("place 2 of ")
    canvas.press(",")
    expect(place).to_have_value("1")
    canvas.press("ArrowRight")
    player.locator("aside").get_by_text(re.compile(r"^tile \d+$")).wait_for()
    player.get_by_label("speed").select_option("60 steps/s")
    canvas.press(" ")
    player.get_by_role("button", name="Pause").wait_for()
    page.wait_for_function(
        "() => Number(document.querySelector('[aria-label=\"Place in the program\"]').value) > 70"  # the next block
    )
    canvas.press(" ")
    player.get_by_role("button", name="Play").wait_for()
    step = player.locator("aside h4").inner_text()
    liveness = page.get_by_role("region", name=re.compile("^Liveness"))
    liveness.get_by_role("heading", name=step).wait_for()
    lab.screenshot("player-played")
