"""Names that are markup, code and hidden letters in the live widgets of the real JupyterLab: they are text there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.driver import NotebookPage
from tests.browser.looking import shown
from tests.widgets.hostile import FOREIGN, FREE, NAMES, hostile_answers

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ANSWERS = "from tests.widgets.hostile import hostile_answers\nanswers = dict(hostile_answers())"
KEYS = ("ArrowRight", "ArrowDown", "p", "+", "Enter", "Home")


class Watched:
    """What a page must not do: open a dialog or a window, leave, ask for more, or run what stands in a name."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.done: list[str] = []
        page.on("dialog", lambda dialog: (self.done.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda window: self.done.append(f"window {window.url}"))
        page.on("download", lambda file: self.done.append(f"download {file.url}"))
        page.on("request", self._asked)
        self.address = page.url

    def _asked(self, request: Any) -> None:
        if FOREIGN in request.url or "onerror" in request.url or "window.ran" in request.url:
            self.done.append(f"request {request.url}")

    def assert_nothing(self) -> None:
        """None of it happened, and no element was made of a name."""
        assert self.done == []
        assert self.page.url == self.address
        assert self.page.evaluate("() => window.ran ?? 0") == 0
        made = ".jp-OutputArea :is(script, iframe, [onerror], [onload], [href^='javascript:'], img[src='x'])"
        assert self.page.locator(made).count() == 0


def handle(output: Locator) -> None:
    """Everything a hand can do in an output: each tab, its canvas by mouse and keys, each disclosure and field."""
    page, tabs = output.page, output.get_by_role("tab")
    for place in range(tabs.count() or 1):
        if tabs.count():
            tabs.nth(place).click()
        page.wait_for_timeout(200)
        for canvas in (each for each in output.locator("canvas.wb-canvas").all() if each.is_visible()):
            size = canvas.bounding_box()
            assert size is not None
            for part in (0.15, 0.5, 0.85):
                where = {"x": size["width"] * part, "y": min(60.0, size["height"] / 2)}
                canvas.hover(position=where)  # type: ignore[arg-type]
                canvas.click(position=where)  # type: ignore[arg-type]
            for key in KEYS:
                page.keyboard.press(key)
        for closed in (each for each in output.locator("summary").all() if each.is_visible()):
            closed.click()
        for field in (each for each in output.locator("input[type=search], input[type=text]").all()):
            if field.is_visible():
                field.fill("<img")
                field.press("Enter")
        page.wait_for_timeout(200)


def test_names_are_text_in_every_live_view(run_views: Callable[..., NotebookPage]) -> None:
    names = [name for name, _ in hostile_answers()]
    cells = [f"answers[{name!r}]" for name in names]
    figures = "answers['profile'].memory.figure()"
    lab = run_views(ANSWERS, *cells, figures)
    watched = Watched(lab.page)
    texts: dict[str, str] = {}
    for name, cell in zip(names, cells, strict=True):
        output = shown(lab, cell)
        handle(output)
        watched.assert_nothing()
        lab.screenshot(f"hostile-{name}")
        texts[name] = output.inner_text()  # now: the notebook takes cells out of the page that are far away
    shown(lab, figures).hover()
    watched.assert_nothing()
    first, second = (texts[name] for name in names[:2])
    assert NAMES[0] in first
    assert FREE.partition("<img")[0] in second
    assert not set(first) & set("\u202e\u2066\x1b\u2028\ud800")
