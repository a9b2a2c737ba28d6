"""The program tree in the real JupyterLab: unfolded by keys and mouse, searched, chosen from and by other views."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.profiler.handmade import handmade_pipeline
from tests.widgets.evil import evil_profile

pytestmark = pytest.mark.browser

CELL = (
    'profile = __import__("workbench").profile("cnn", batch_size=8, mode="training")\n'
    'views = __import__("workbench").views(profile, "tree", "trace")\nviews'
)


@EVERY_SCREEN
def test_tree_and_trace_follow_one_another(screens: Screens, run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views(CELL, screen=screens[0])
    page = lab.page
    view = page.get_by_role("region", name="Program tree", exact=True)
    view.wait_for()
    tree = view.get_by_role("treegrid")
    tree.focus()
    tree.press("Home")
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        tree.press(key)
    view.get_by_role("button", name="Dearest").click()
    step = tree.locator(".wb-at")
    expect(step).to_have_attribute("aria-selected", "true")
    name = (step.get_attribute("title") or "").split("\n")[0].removeprefix("compute ")
    trace = page.get_by_role("region", name="Trace", exact=True)
    trace.locator("aside h4", has_text=name).wait_for()
    for screen in lab.on(screens):
        view.scroll_into_view_if_needed()
        lab.screenshot(f"program-tree-{screen}")
    view.get_by_label("Search in the program tree").fill("exchange")
    found = view.get_by_role("status")
    expect(found).to_have_text(re.compile(r"^\d[\d,]* found, .* cycles, \d"))
    lab.screenshot("program-tree-found")
    view.get_by_role("button", name="Fold all").click()
    expect(tree.get_by_role("row").first).to_have_attribute("aria-expanded", "true")
    assert lab.script_errors == []


def test_a_page_unfolds_and_its_totals_are_the_profile_s(chromium: Browser, tmp_path: Path) -> None:
    profile = handmade_pipeline()
    page = chromium.new_page()
    failed: list[object] = []
    page.on("pageerror", lambda error: failed.append(error))
    page.goto(profile.to_html(tmp_path / "profile.html").as_uri())
    view = page.locator("#view-program_tree")
    rows = view.locator(".wb-branch")
    expect(rows.first.locator(".wb-num")).to_have_text(["1", "10,350", "10,350", "100.0 %"])
    view.get_by_label("Search in the program tree").fill("stage_1/bwd")
    expect(view.get_by_role("status")).to_contain_text("found, 4.00 k cycles, 38.6 %")  # 4 x (100 + 900)
    view.get_by_label("Search in the program tree").fill("")
    view.get_by_role("treegrid").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(rows).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(rows).to_have_count(1 + len(profile.program_tree.branches.below(profile.program_tree.branches.root)))
    assert failed == []
    page.close()


def test_names_are_text(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto(evil_profile().to_html(tmp_path / "evil.html").as_uri())
    view = page.locator("#view-program_tree")
    view.locator(".wb-branch").first.wait_for()
    assert view.locator("script, img, iframe").count() == 0
    assert "<" in view.inner_text()
    page.close()
