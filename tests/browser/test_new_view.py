"""A view that was added as its own files is drawn by its script."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.profiler.handmade import handmade_profile
from tests.widgets.views.source_view import shown_in

pytestmark = pytest.mark.browser


def test_its_script_draws(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto(shown_in(tmp_path)[0].as_uri())
    lines = len(handmade_profile().source.lines)
    expect(page.locator("#view-source p.mine")).to_have_text(f"{lines} lines of code")
    page.close()
