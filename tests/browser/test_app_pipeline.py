"""A pipeline made by clicks and keys in the real JupyterLab: its stages found, one cut moved, compiled again."""

from __future__ import annotations

import re

import pytest

from tests.browser.apps import COMPILE_MS, START, RunApp, button, choose_ready, enter
from tests.browser.driver import FIRST, OTHERS

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_bert_base_on_four_ipus_with_a_moved_cut(run_app: RunApp) -> None:
    lab = run_app(START)
    page = lab.page
    choose_ready(page, "bert-base")
    enter(page, "batch size", 2)
    page.get_by_label("precision", exact=True).select_option("float16")
    enter(page, re.compile("^IPUs"), 4)
    page.get_by_label("stages", exact=True).select_option("by measured cost")
    button(page, "Compile").click()
    ribbon = page.get_by_label("The pipeline, cut by hand")
    ribbon.wait_for(timeout=COMPILE_MS)
    ribbon.scroll_into_view_if_needed()
    for screen in lab.on(FIRST + OTHERS):
        lab.screenshot(f"app-ribbon-{screen}")
    knob = page.get_by_role("slider", name="Cut between stage 0 and 1")
    before = knob.get_attribute("aria-valuetext")
    knob.focus()
    knob.press("ArrowRight")
    assert knob.get_attribute("aria-valuetext") != before
    ribbon.get_by_text(re.compile("^An estimate from the layers' measured costs")).wait_for()
    moved = knob.get_attribute("aria-valuetext")
    lab.screenshot("app-ribbon-moved")
    button(page, "Compile this split").press("Enter")
    ribbon.get_by_text("As compiled.").wait_for(timeout=COMPILE_MS)
    assert knob.get_attribute("aria-valuetext") == moved
    assert page.get_by_label("stages", exact=True).input_value() == "cut by hand"
