"""axe finds nothing above minor in what is ours: the file of a profile, the app and the views in JupyterLab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

import workbench as wb
from tests.browser.apps import COMPILE_MS, START, RunApp, button, choose_ready, enter
from tests.browser.axe import COLOURS, ROOTS, found_by_axe
from tests.browser.driver import NotebookPage, Screens
from tests.profiler.advice.fake_compiler import FakeCompiler, over
from tests.profiler.handmade import handmade_pipeline, handmade_profile
from workbench.profiler.advice.diagnose import diagnose
from workbench.profiler.export.html import page_of
from workbench.profiler.report import face

pytestmark = pytest.mark.browser
BOTH_THEMES: Screens = ((1280, "light"), (1920, "dark"))


def open_all(place: Page | Locator) -> None:
    """Unfold what is folded, so that axe sees it."""
    for closed in (each for each in place.locator("details:not([open]) > summary").all() if each.is_visible()):
        closed.click()


def in_both_themes(lab: NotebookPage, state: str, *roots: str) -> list[str]:
    """What axe finds in this state of the page: by every rule, and in the other theme by those of colours."""
    found: list[str] = []
    for screen in lab.on(BOTH_THEMES):
        only = () if screen.endswith(BOTH_THEMES[0][1]) else COLOURS
        found += [f"{state} ({screen}): {each}" for each in found_by_axe(lab.page, *roots, only=only)]
    return found


def every_tab(lab: NotebookPage, place: Locator) -> list[str]:
    """What axe finds in the view of each tab of an output, opened in turn."""
    found: list[str] = []
    for tab in place.get_by_role("tab").all():
        if not tab.is_visible():
            continue
        tab.click()
        lab.page.wait_for_timeout(400)
        open_all(place)
        found += in_both_themes(lab, tab.inner_text(), ROOTS[1])
    return found


def test_it_finds_what_is_wrong(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content('<html lang="en"><main><section class="wb"><h1>a</h1><input><p>b</p></section></main></html>')
    assert any(each.startswith("label (critical): <input>") for each in found_by_axe(page, *ROOTS))
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_file_of_a_profile(scheme: Any, chromium: Browser, tmp_path: Path) -> None:
    profile = handmade_pipeline()
    first, *names = face("html").shown(profile)
    reports = {first: getattr(profile, first), "comparison": wb.compare(profile, handmade_profile())}
    reports["diagnosis"] = diagnose(over(), FakeCompiler(lambda asked: (9_000, 12_000)))  # fixes that fit
    reports |= {name: getattr(profile, name) for name in names}
    path = tmp_path / "profile.html"
    path.write_text(page_of(reports, profile.name, "training", "x = 1"), encoding="utf-8")
    # axe is a script of others, which the policy of the file refuses.
    context = chromium.new_context(color_scheme=scheme, offline=True, bypass_csp=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator("canvas.wb-canvas").nth(4).wait_for()
    page.wait_for_timeout(1_000)
    open_all(page)
    assert found_by_axe(page) == []
    context.close()


@pytest.mark.slow
def test_the_app(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    app = page.locator(".wb-app").first
    found = in_both_themes(lab, "at the start", *ROOTS)
    choose_ready(page, "mlp")
    button(page, "Compile").click()
    page.get_by_text("Done: mlp fits").wait_for(timeout=COMPILE_MS)
    enter(page, "batch size", 8)
    button(page, "Compile").click()
    page.locator(".wb-app-chip").nth(1).wait_for(timeout=COMPILE_MS)
    page.get_by_role("button", name="Compare result 1 with what is shown").click()
    page.get_by_role("heading", name="1 against 2: batch size 8").wait_for()
    open_all(app)
    found += in_both_themes(lab, "compared", *ROOTS)
    button(page, "Close the comparison").click()
    assert [*found, *every_tab(lab, app)] == []


# What can be focused inside, visible and not switched off; of radio buttons one of a group is.
_REACHABLE = """(root) => [...root.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter((each) => !each.disabled && each.tabIndex >= 0 && each.type !== 'radio' && each.checkVisibility()
        && !each.closest('[inert], details:not([open]) > :not(summary)'))"""
_WALKED = """(root) => {
    const inside = root.contains(document.activeElement);
    if (inside) document.activeElement.dataset.walked = 1;
    return inside;
}"""


@pytest.mark.slow
def test_tab_reaches_every_control_of_the_app_and_leaves_it(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "mlp")
    button(page, "Compile").click()
    page.get_by_text("Done: mlp fits").wait_for(timeout=COMPILE_MS)
    app = page.locator(".wb-app").first
    wanted = app.evaluate(f"(root) => ({_REACHABLE})(root).length")
    app.evaluate(f"(root) => ({_REACHABLE})(root)[0].focus()")
    steps = 0
    while app.evaluate(_WALKED):
        page.keyboard.press("Tab")
        steps += 1
        assert steps < 3 * wanted, "a trap"
    left = app.evaluate(
        f"(root) => ({_REACHABLE})(root).filter((each) => !each.dataset.walked).map((each) => each.outerHTML)"
    )
    assert left == []
    assert steps > 40


@pytest.mark.slow
def test_views_of_a_notebook(run_views: Callable[..., NotebookPage]) -> None:
    lab = run_views("from tests.profiler.handmade import handmade_pipeline\nhandmade_pipeline()")
    lab.page.get_by_role("tab", name="Trace", exact=True).wait_for()
    assert every_tab(lab, lab.output(0)) == []
