"""The loop of a tuner in the real JupyterLab, by clicks and keys: does not fit, change, compile, compare."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.browser.apps import COMPILE_MS, START, RunApp, button, choose_ready, enter
from tests.browser.looking import eventually, is_drawn

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_resnet50_at_batch_32_from_does_not_fit_through_two_compiles_side_by_side(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "resnet50")
    enter(page, "batch size", 32)
    button(page, "Compile").click()
    page.get_by_role("heading", name="Does not fit", exact=True).wait_for(timeout=COMPILE_MS)
    enter(page, "batch size", 4)
    accumulation = re.compile("^gradient accumulation")
    enter(page, accumulation, 8)
    page.get_by_text("the form has changed since").wait_for()
    button(page, "Compile").press("Enter")
    chips = page.locator(".wb-app-chip")
    chips.nth(1).wait_for(timeout=COMPILE_MS)
    page.get_by_label("precision", exact=True).select_option("float16")
    button(page, "Compile").press("Enter")
    chips.nth(2).wait_for(timeout=COMPILE_MS)
    page.get_by_role("heading", name=re.compile("^(Fits|Within the model's error)$")).wait_for(timeout=COMPILE_MS)
    page.get_by_text("Done: resnet50 fits").wait_for(timeout=COMPILE_MS)
    assert "does not fit" in chips.nth(0).inner_text()
    assert "does not fit" not in chips.nth(2).inner_text()
    page.get_by_role("button", name=re.compile("Compare result 2 with what is shown$")).press("Enter")
    page.get_by_role("heading", name=re.compile("^2 against 3: ")).wait_for(timeout=COMPILE_MS)
    compared = page.locator('section.wb[aria-label="Comparison"]')
    compared.wait_for()
    # The halves of float16 are seen in the picture: tiles hold less, and the table says by how much.
    expect(compared).to_contain_text(re.compile("[−-][0-9.]+ [KM]iB"))
    drawn = partial(is_drawn, lab, compared.locator("canvas.wb-canvas").first, colours=3, filled=0.02)
    eventually(page, drawn, "the comparison is drawn")
    lab.screenshot_whole("app-resnet50-loop")
    assert lab.websocket_bytes < 10_000_000
