"""What an app says while it works keeps the room it has: what stands below is read meanwhile, and does not move."""

from __future__ import annotations

import pytest

from tests.browser.apps import COMPILE_MS, DIAGNOSE_MS, START, RunApp, button, choose_ready, enter

pytestmark = pytest.mark.browser

HEARD = """() => {
  window.heights = new Set();
  const bar = document.querySelector(".wb-app-actions");
  new ResizeObserver(() => {
    if (bar.querySelector(".wb-running")) window.heights.add(bar.getBoundingClientRect().height);
  }).observe(bar);
}"""


def test_the_texts_of_a_diagnosis_take_the_same_room(run_app: RunApp) -> None:
    """Candidates of three changes have names that are longer than a narrow page is wide, others have not."""
    lab = run_app(START, screen=(640, "light"))
    page = lab.page
    choose_ready(page, "cnn")
    enter(page, "batch size", 256)
    enter(page, "tiles per IPU (0: all there are)", 16)
    button(page, "Compile").click()
    page.get_by_role("heading", name="Does not fit", exact=True).wait_for(timeout=COMPILE_MS)
    page.evaluate(HEARD)
    button(page, "Diagnose").click()
    page.wait_for_function("() => document.querySelector('.wb-doing')?.textContent.includes(', with ')")
    lab.screenshot("app-diagnosing-640-light")
    page.locator(".wb-app-actions .wb-done").wait_for(timeout=DIAGNOSE_MS)
    assert len(page.evaluate("() => [...window.heights]")) == 1
