"""Schedules in a stored page: chosen by keys and mouse, their causes' cycles are their time, names are text."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.widgets.views.made_schedules import PROBLEM, compared
from workbench.profiler.export.html import page_of

pytestmark = pytest.mark.browser


def test_a_schedule_is_chosen_and_its_causes_are_its_time(chromium: Browser, tmp_path: Path) -> None:
    report = compared()
    path = tmp_path / "schedules.html"
    path.write_text(page_of({"schedules": report}, "schedules", ""), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    failed: list[object] = []
    page.on("pageerror", lambda error: failed.append(error))
    page.goto(path.as_uri())
    view = page.locator("#view-schedules")
    canvas = view.locator("canvas.wb-canvas")
    canvas.focus()
    heading = view.locator("aside h4")
    for key, place in (("ArrowUp", 0), ("ArrowDown", 1)):
        canvas.press(key)
        canvas.press(key)
        profile = report.profiles[place]
        expect(heading).to_have_text(["Grouped", "Interleaved, recomputed"][place])
        cells = view.locator("aside tbody td:nth-child(2)").all_inner_texts()
        assert sum(int(text.replace(",", "")) for text in cells) == profile.ipus * profile.total_cycles
    assert PROBLEM in view.locator("aside").inner_text()
    assert view.locator("b").count() == 0
    canvas.click(position={"x": 300, "y": 20})
    expect(heading).to_have_text("Grouped")
    view.locator("summary").click()
    expect(view.locator("details tbody tr")).to_have_count(2)
    assert failed == []
    page.screenshot(path=tmp_path / "schedules.png")
    page.close()
