"""The app in the real JupyterLab: what its tests share."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page

from tests.browser.driver import FIRST, NotebookPage, Screens

START = "import workbench as wb\napp = wb.app()\napp"
COMPILE_MS = 180_000
DIAGNOSE_MS = 600_000
RunApp = Callable[..., NotebookPage]


def button(page: Page, name: str) -> Locator:
    # The glyph of a button's icon is part of its name.
    return page.get_by_role("button", name=re.compile(rf"^\W*{name}$"))


def enter(page: Page, label: str | re.Pattern[str], value: object) -> None:
    """Type a number into the field of this label."""
    field = page.get_by_label(label, exact=True)
    field.fill(str(value))
    field.press("Tab")


def choose_ready(page: Page, name: str) -> None:
    page.get_by_role("tab", name="Ready-made", exact=True).click()
    page.get_by_label("ready model").select_option(name)


def press(control: Locator, screens: Screens) -> None:
    """By mouse at the first screen, by keyboard at the others."""
    control.click() if screens == FIRST else control.press("Enter")
