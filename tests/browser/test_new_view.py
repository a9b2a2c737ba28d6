"""A view that was added as its own files is drawn by its script."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.widgets.views.longest_view import shown_in

pytestmark = pytest.mark.browser


def test_its_script_draws(chromium: Browser, tmp_path: Path) -> None:
    page = chromium.new_page()
    page.goto(shown_in(tmp_path)[0].as_uri())
    expect(page.locator("#view-longest p.mine")).to_have_text("3 longest steps")
    page.close()
