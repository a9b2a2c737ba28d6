"""What is asked of every notebook on a screen: its cells found, its views drawn, its looks kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from playwright.sync_api import Locator, Page

from tests.browser.driver import NotebookPage

RUN_SECONDS = 420  # two workers and a browser share two cores


def cell_of(lab: NotebookPage, source: str) -> int:
    """The number of the cell with this text in its source."""
    return next(place for place, cell in enumerate(lab.cells()) if source in "".join(cell["source"]))


def shown(lab: NotebookPage, source: str) -> Locator:
    """The output of the cell with this text, scrolled to."""
    output = lab.output(cell_of(lab, source))
    output.scroll_into_view_if_needed()
    return output


def top_of(element: Locator) -> float:
    """Pixels from the window's upper edge."""
    size = element.bounding_box()
    assert size is not None
    return size["y"]


def left_of(element: Locator) -> float:
    """Pixels from the window's left edge."""
    size = element.bounding_box()
    assert size is not None
    return size["x"]


def view(place: Page | Locator, title: str) -> Locator:
    return place.locator(f'section.wb[aria-label="{title}"]')


def eventually(page: Page, holds: Callable[[], bool], what: str, *, seconds: float = 20) -> None:
    """Waits until something holds that the page does in its own time, which a busy machine makes long."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        page.wait_for_timeout(100)


def is_drawn(lab: NotebookPage, canvas: Locator, *, colours: int, filled: float) -> bool:
    return lab.picture(canvas).is_drawn(colours=colours, filled=filled)


def assert_drawn(lab: NotebookPage, source: str, *titles: str) -> None:
    output = shown(lab, source)
    for title in titles:
        canvas = view(output, title).locator("canvas.wb-canvas")
        canvas.wait_for()
        canvas.scroll_into_view_if_needed()
        drawn = partial(is_drawn, lab, canvas, colours=12, filled=0.1)
        eventually(lab.page, drawn, f"{title} of {source} is drawn")


def keep_looks(lab: NotebookPage, name: str) -> None:
    """The whole notebook as a picture, from its first cell; JupyterLab lays cells out when they are first seen."""
    for place in range(len(lab.cells())):
        lab.page.locator(".jp-Notebook .jp-Cell").nth(place).scroll_into_view_if_needed()
    with lab.as_high_as_the_notebook():
        lab.page.evaluate("() => { document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0 }")
        lab.page.wait_for_timeout(500)
        lab.screenshot(name)
