"""What is asked of every notebook on a screen: its cells found, its views drawn, its looks kept."""

from __future__ import annotations

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


def view(place: Page | Locator, title: str) -> Locator:
    return place.locator(f'section.wb[aria-label="{title}"]')


def assert_drawn(lab: NotebookPage, source: str, *titles: str) -> None:
    output = shown(lab, source)
    for title in titles:
        canvas = view(output, title).locator("canvas.wb-canvas")
        canvas.wait_for()
        canvas.scroll_into_view_if_needed()
        lab.page.wait_for_timeout(300)
        assert lab.picture(canvas).is_drawn(colours=12, filled=0.1), f"{title} of {source}"


def keep_looks(lab: NotebookPage, name: str) -> None:
    """The whole notebook as a picture, from its first cell; JupyterLab lays cells out when they are first seen."""
    for place in range(len(lab.cells())):
        lab.page.locator(".jp-Notebook .jp-Cell").nth(place).scroll_into_view_if_needed()
    with lab.as_high_as_the_notebook():
        lab.page.evaluate("() => { document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0 }")
        lab.page.wait_for_timeout(500)
        lab.screenshot(name)
