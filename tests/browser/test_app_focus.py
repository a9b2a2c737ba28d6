"""The keyboard's place in the app in the real JupyterLab: what is pressed by key keeps it, or what comes has it."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.apps import COMPILE_MS, DIAGNOSE_MS, START, RunApp, button, choose_ready, enter
from tests.browser.looking import eventually, top_of

pytestmark = pytest.mark.browser


def is_focused(control: Locator) -> bool:
    return bool(control.evaluate("(node) => node === node.ownerDocument.activeElement")) if control.count() else False


def keeps(page: Page, control: Locator, what: str) -> None:
    eventually(page, partial(is_focused, control), f"{what} has the focus")


def press(control: Locator, key: str) -> None:
    control.focus()
    control.page.keyboard.press(key)


def test_what_is_pressed_by_key_keeps_the_focus_or_what_comes_has_it(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "cnn")
    enter(page, "batch size", 256)
    enter(page, "tiles per IPU (0: all there are)", 16)
    press(button(page, "Compile"), "Enter")
    page.get_by_role("heading", name="Does not fit", exact=True).wait_for(timeout=COMPILE_MS)
    keeps(page, button(page, "Compile"), "Compile")
    press(button(page, "Diagnose"), "Space")
    page.locator(".wb-fixes tbody tr.wb-fits").first.wait_for(timeout=DIAGNOSE_MS)
    apply = page.locator(".wb-fixes").get_by_role("button", name=re.compile("Apply")).first
    apply.wait_for(timeout=DIAGNOSE_MS)
    keeps(page, button(page, "Diagnose"), "Diagnose")
    press(apply, "Enter")
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
    keeps(page, button(page, "Undo: .+"), "Undo, which came in the place of Apply,")
    page.keyboard.press("Space")
    page.get_by_role("heading", name="Does not fit", exact=True).wait_for(timeout=COMPILE_MS)
    keeps(page, apply, "Apply, which came in the place of Undo,")
    press(button(page, "Show the diagnosis"), "Enter")
    bar, mending = page.locator(".wb-app-actions").bounding_box(), page.locator(".wb-app-mending")
    assert bar is not None
    eventually(page, lambda: bar["height"] <= top_of(mending) < 450, "the diagnosis is in sight, below the bar")
    versus = page.get_by_role("button", name=re.compile("Compare result 2 with what is shown$"))
    press(versus, "Enter")
    press(button(page, "Close the comparison"), "Enter")
    keeps(page, versus, "what opened the comparison")
    assert len(lab.cells()) == 1


def test_keys_go_to_the_progress_while_a_compile_runs_and_who_goes_on_stays_there(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "resnet50")
    press(button(page, "Compile"), "Enter")
    progress = page.get_by_role("group", name="Progress", exact=True)
    keeps(page, progress, "the progress")
    page.keyboard.type("bb")  # which adds cells where JupyterLab takes it
    field = page.get_by_label("batch size", exact=True)
    field.focus()
    page.get_by_text(re.compile("^Done: resnet50")).wait_for(timeout=COMPILE_MS)
    page.wait_for_timeout(300)
    assert is_focused(field)
    assert len(lab.cells()) == 1


def test_a_tab_that_is_put_in_anew_keeps_the_focus_and_its_key_compiles_nothing(run_app: RunApp) -> None:
    """Tabs are put in anew once what they show has come: a key of then went to Compile, which had the focus last."""
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "mlp")
    press(button(page, "Compile"), "Enter")
    page.get_by_text("Done: mlp fits").wait_for(timeout=COMPILE_MS)
    keeps(page, button(page, "Compile"), "Compile has the focus again")
    tab = page.get_by_role("tab", name="Liveness", exact=True)
    tab.focus()
    assert tab.evaluate("node => node.tabIndex") == -1
    tab.evaluate("node => node.replaceWith(node.cloneNode(true))")
    keeps(page, tab, "the tab in its place")
    assert not is_focused(button(page, "Compile"))
