"""Names that are markup, code and hidden letters in the live widgets of the real JupyterLab: they are text there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.browser.apps import COMPILE_MS, RunApp, button
from tests.browser.driver import NotebookPage
from tests.browser.looking import shown
from tests.widgets.hostile import FOREIGN, FREE, NAMES, RUN, hostile_answers, hostile_executable

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ANSWERS = "from tests.widgets.hostile import hostile_answers\nanswers = dict(hostile_answers())"
APP = """import workbench as wb
from tests.widgets.hostile import hostile_model, target
app = wb.app(hostile_model())
app.target = target()
app"""
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


def test_names_are_text_in_the_app(run_app: RunApp) -> None:
    """Its list of models, chips, what if, diagnosis and comparison; and what a file that is none is called."""
    lab = run_app(APP)
    page, watched = lab.page, Watched(lab.page)
    for batch in ("4", "8"):
        field = page.get_by_label("batch size", exact=True).first
        field.fill(batch)
        field.press("Tab")
        button(page, "Compile").click()
        page.locator(".wb-app-shown").get_by_text(f"batch size {batch} ").wait_for(timeout=COMPILE_MS)
    assert NAMES[0] in page.locator(".wb-app-shown").inner_text()
    button(page, "Diagnose").click()
    page.locator('section.wb[aria-label="Diagnosis"]').wait_for(timeout=COMPILE_MS)
    button(page, "Compare result 1 with what is shown").click()
    page.get_by_text("1 against 2").wait_for()
    chooser = page.locator("input[type=file]")
    chooser.set_input_files({"name": f"{NAMES[0]}.wbprofile", "mimeType": "text/plain", "buffer": b"no profile"})
    page.get_by_text("is not a whole profile file").first.wait_for()
    handle(page.locator(".wb-app"))
    watched.assert_nothing()


def test_names_are_text_in_a_page_that_was_saved(chromium: Browser, tmp_path: Path) -> None:
    path = hostile_executable().profile.to_html(tmp_path / "page.html")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    watched = Watched(page)
    page.goto(path.as_uri())
    watched.address = page.url
    page.locator("canvas.wb-canvas").nth(4).wait_for()
    handle(page.locator("main"))
    watched.assert_nothing()
    assert RUN in page.locator("h1").inner_text()
    context.close()
