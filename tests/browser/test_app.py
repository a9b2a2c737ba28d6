"""The app in the real JupyterLab, by clicks and keys only."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.browser.apps import COMPILE_MS, DIAGNOSE_MS, START, RunApp, button, choose_ready, enter, press
from tests.browser.driver import EVERY_SCREEN, NotebookPage, Screens
from tests.browser.looking import eventually, is_drawn, left_of, top_of

pytestmark = pytest.mark.browser


def mend(lab: NotebookPage) -> None:
    """From a verdict that does not fit to the applied fix that fits, by clicks."""
    page = lab.page
    page.get_by_role("heading", name="Does not fit", exact=True).wait_for(timeout=COMPILE_MS)
    button(page, "Diagnose").click()
    best = page.locator(".wb-fixes tbody tr.wb-fits").first
    best.wait_for(timeout=DIAGNOSE_MS)
    assert "to spare" in best.inner_text()
    unfolded = page.locator(".wb-fixes details[open]")
    best.get_by_text("Code", exact=True).click(delay=500)  # others come while it is pressed
    expect(unfolded).to_have_count(1)
    # Rows come in as they are measured; they can be applied once the search is over, and the best stands first then.
    best.get_by_role("button", name=re.compile("Apply")).wait_for(timeout=DIAGNOSE_MS)
    assert unfolded.count() == 1  # who reads the code of a fix goes on reading as others come


@EVERY_SCREEN
def test_build_compile_and_look(screens: Screens, run_app: RunApp) -> None:
    lab = run_app(START, screen=screens[0])
    page = lab.page
    page.get_by_text("Copy", exact=True).wait_for()
    for screen in lab.on(screens):
        lab.screenshot(f"app-start-{screen}")
    said = left_of(page.locator(".wb-app-asked p"))
    code = page.locator(".wb-code pre")
    button(page, "Add layer").click()
    page.get_by_label("layer 4: kind").select_option("Dropout")
    button(page, "Move layer 4 up").click()
    page.wait_for_function("() => document.querySelector('.wb-code pre').textContent.includes('name=\"dropout_3\"')")
    assert 'keras.layers.Dense(units=10, activation="softmax", name="dense_4")' in code.inner_text()
    button(page, "Remove layer 3").click()
    button(page, "Compile").click()
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
    page.get_by_text("Done: mlp fits").wait_for()
    page.get_by_role("tab", name="Trace", exact=True).click()
    canvas = page.locator('section.wb[aria-label="Trace"] canvas.wb-canvas')
    canvas.wait_for()
    for screen in lab.on(screens):
        eventually(page, partial(is_drawn, lab, canvas, colours=8, filled=0.05), f"the trace is drawn, {screen}")
        lab.screenshot_whole(f"app-compiled-{screen}")
    page.locator(".wb-app-shown").get_by_text("mlp, training, batch size 4 (4 samples").wait_for()
    page.get_by_label("batch size", exact=True).fill("8")
    page.keyboard.press("Tab")
    assert left_of(page.locator(".wb-app-shown p")) == said  # the line that comes first stands where the other began
    note = page.get_by_text("the form has changed since")
    note.wait_for()
    note.scroll_into_view_if_needed()
    for screen in lab.on(screens):
        lab.screenshot(f"app-changed-{screen}")
    button(page, "Form").click()
    page.locator(".wb-app-form").wait_for(state="hidden")
    page.evaluate("document.querySelector('.jp-WindowedPanel-outer').scrollBy(0, 150)")
    for screen in lab.on(screens):
        eventually(page, lambda: 0 < top_of(button(page, "Compile")) < 250, "the bar stays in sight")
        lab.screenshot(f"app-folded-{screen}")


@EVERY_SCREEN
def test_a_model_that_does_not_fit_is_mended_by_clicks(screens: Screens, run_app: RunApp) -> None:
    lab = run_app(START, screen=screens[0])
    page = lab.page
    choose_ready(page, "cnn")
    enter(page, "batch size", 256)
    enter(page, "tiles per IPU (0: all there are)", 16)
    page.get_by_label("tiles per IPU (default 0: all there are)").wait_for()
    button(page, "Compile").click()
    mend(lab)
    page.wait_for_timeout(500)
    lab.keep_whole("app-diagnosed", screens)
    before = page.get_by_label("batch size", exact=True).input_value()
    page.locator(".wb-fixes tbody tr.wb-fits").first.get_by_role("button", name=re.compile("Apply")).click()
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
    page.get_by_text("less on the fullest tile").wait_for()
    undo = button(page, "Undo: .+").locator("visible=true")
    for screen in lab.on(screens):
        assert undo.evaluate("node => node.scrollWidth <= node.clientWidth"), f"what it takes back is whole, {screen}"
        undo.scroll_into_view_if_needed()
        lab.screenshot(f"app-undo-{screen}")
    assert int(page.get_by_label("batch size", exact=True).input_value()) < int(before)
    lab.keep_whole("app-mended", screens)


@pytest.mark.slow
def test_cancel_and_errors(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "bert-base")
    button(page, "Compile").click()
    page.get_by_role("progressbar", name="Compiling").wait_for()
    button(page, "Cancel").click()
    page.get_by_role("alert").get_by_text("the compile was cancelled").wait_for(timeout=COMPILE_MS)
    page.get_by_role("tab", name="Build", exact=True).click()
    enter(page, "input shape", "64, x")
    button(page, "Compile").click()
    page.locator(".wb-problem").get_by_text("the input shape is '64, x'").wait_for()
    page.locator(".wb-builder").get_by_text("the input shape is '64, x'").wait_for()
    assert "Traceback" not in page.locator(".jp-OutputArea").first.inner_text()
    lab.screenshot("app-error-1280-light")


@pytest.mark.slow
def test_by_keyboard(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    page.get_by_label("batch size", exact=True).focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("16")
    page.keyboard.press("Tab")
    button(page, "Compile").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
    page.get_by_text(re.compile(r"^16 samples to a [a-z ]+: batch size 16$")).wait_for()


@EVERY_SCREEN
def test_two_compiles_are_chips_and_stand_side_by_side(screens: Screens, run_app: RunApp) -> None:
    lab = run_app(START, screen=screens[0])
    page = lab.page
    choose_ready(page, "mlp")
    press(button(page, "Compile"), screens)
    page.get_by_text("Done: mlp fits").wait_for(timeout=COMPILE_MS)
    liveness = page.get_by_role("tab", name="Liveness", exact=True)
    press(liveness, screens)
    expect(liveness).to_have_attribute("aria-selected", "true")  # the key went to the tab, not to Compile
    enter(page, "batch size", 64)
    page.get_by_text("the form has changed since: batch size 4 → 64").wait_for()  # the kernel has it
    press(button(page, "Compile"), screens)
    chips = page.locator(".wb-app-chip")
    chips.nth(1).wait_for(timeout=COMPILE_MS)
    assert [chips.nth(place).inner_text().splitlines()[0] for place in (0, 1)] == ["1 · mlp", "2 · batch size 64"]
    assert liveness.get_attribute("aria-selected") == "true"
    press(page.get_by_role("button", name=re.compile("Compare result 1 with what is shown$")), screens)
    compared = page.get_by_role("heading", name="1 against 2: batch size 64")
    compared.wait_for()
    for _ in range(2):  # a press in a low window, its chips just above the lower edge, shows what it made
        bar = page.locator(".wb-app-actions").bounding_box()
        assert bar is not None
        eventually(page, lambda low=bar: low["y"] + low["height"] - 2 <= top_of(compared) < 600, "it is in sight")
        press(button(page, "Close the comparison"), screens)
        against = page.get_by_role("button", name=re.compile("Compare result 1 with what is shown$"))
        against.evaluate("node => node.scrollIntoView({block: 'end'})")
        press(against, screens)
        compared.wait_for()
    page.wait_for_timeout(500)
    lab.keep_whole("app-compared", screens)
    press(button(page, "Close the comparison"), screens)
    place = left_of(chips.nth(1))
    press(chips.nth(0), screens)
    page.locator(".wb-app-shown").get_by_text("mlp, training, batch size 4 (4 samples").wait_for()
    page.get_by_text("the form has changed since").wait_for()
    assert left_of(chips.nth(1)) == place  # none moves away under the pointer
    used = page.locator(".wb-app-back")
    for screen in lab.on(screens):
        used.scroll_into_view_if_needed()
        lab.screenshot(f"app-earlier-{screen}")
    press(used, screens)  # Use its settings
    batch = page.get_by_label("batch size", exact=True)
    expect(batch).to_have_value("4")
    expect(page.get_by_text("the form has changed since")).to_have_count(0)
    expect(used).to_contain_text("Undo its settings")
    expect(used).to_be_focused()
    press(used, screens)
    expect(batch).to_have_value("64")
    page.get_by_text("the form has changed since").wait_for()
