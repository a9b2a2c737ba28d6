"""A notebook open in the real JupyterLab: run it, wait for it, read its errors, look at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, WebSocket

from tests.browser.pixels import Picture
from workbench.lab import Server

SCREENS = Path(__file__).parents[2] / "build" / "screens"
OPEN_MS = 60_000
# Width in pixels and theme.
Screen = tuple[int, str]
Screens = tuple[Screen, ...]
FIRST: Screens = ((1280, "light"),)
OTHERS: Screens = ((1920, "dark"), (1280, "dark"), (1920, "light"))
# Every width and theme a view is looked at in; `make test` takes the first, `make test-all` the others in one run.
EVERY_SCREEN = pytest.mark.parametrize(
    "screens",
    [pytest.param(FIRST, id="1280-light"), pytest.param(OTHERS, id="other-screens", marks=pytest.mark.slow)],
)
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}

_PANEL = "window.jupyterapp?.shell.currentWidget"
_IS_OPEN = f"() => {{ const p = {_PANEL}; return !!(p?.context?.isReady && p.content?.model?.cells?.length) }}"
_KERNEL_IS_IDLE = f"() => {_PANEL}?.sessionContext?.session?.kernel?.status === 'idle'"
_START = """command => {
    window.commandState = 'running';
    window.jupyterapp.commands.execute(command).then(
        () => { window.commandState = 'done' }, error => { window.commandState = String(error) });
}"""
_CHANGE_THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
_THEME_IS_LIGHT = "light => document.body.dataset.jpThemeLight === light"
# Resolves when nothing that is drawn has changed its size or place for half a second.
_STILL = """() => new Promise(resolve => {
    const places = () => JSON.stringify([...document.querySelectorAll('canvas')].map(canvas => {
        const {x, y, width, height} = canvas.getBoundingClientRect();
        return [x, y, width, height, canvas.width, canvas.height];
    }));
    let last = places(), since = performance.now();
    const look = now => {
        const seen = places();
        if (seen !== last) [last, since] = [seen, now];
        now - since > 500 ? resolve() : requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})"""
_SETTLED = "() => window.commandState !== 'running'"


# ipywidgets 8.1.9, setLayout: when the layout of a view is there a message is posted to the view, though its box may
# have let go of it in between. It is reported and lost with the view; nothing else is, and nothing is to be seen.
_OF_WIDGETS_THAT_ARE_GONE = "Cannot read properties of null (reading 'processLuminoMessage')"


class NotebookPage:
    """One notebook in one browser page.

    Fields: `page` (Playwright's), `websocket_bytes` (what the server sent to this page over websockets so far),
    `foreign_requests` (addresses asked for outside this machine), `script_errors` (uncaught, or on the console, but
    for the one that JupyterLab's widgets report of views that are gone).
    """

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.server = server
        self.websocket_bytes = 0
        self.foreign_requests: list[str] = []
        self.script_errors: list[str] = []
        page.on("websocket", self._watch_socket)
        page.on("request", self._watch_request)
        page.on("pageerror", lambda error: self.script_errors.append(str(error)))
        page.on("console", self._watch_console)

    def _watch_socket(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._count)

    def _count(self, payload: str | bytes) -> None:
        self.websocket_bytes += len(payload if isinstance(payload, bytes) else payload.encode())

    def _watch_request(self, request: Any) -> None:
        if not re.match(r"(https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:", request.url):
            self.foreign_requests.append(request.url)

    def _watch_console(self, message: Any) -> None:
        if message.type == "error" and _OF_WIDGETS_THAT_ARE_GONE not in message.text:
            self.script_errors.append(message.text)

    def open(self, notebook: str) -> None:
        """Open the notebook (a path under the served folder) and wait until its cells are there; runs nothing."""
        self._open(self.server.address(notebook) + "&reset")

    def open_in_notebook_7(self, notebook: str) -> None:
        """The same in Notebook 7, which the same server has where it is installed."""
        self._open(self.server.address(notebook).replace("/lab/tree/", "/notebooks/"))

    def _open(self, address: str) -> None:
        self.page.goto(address, timeout=OPEN_MS)
        self.page.wait_for_function(_IS_OPEN, timeout=OPEN_MS)

    def wait_until_idle(self, *, seconds: float = 60) -> None:
        """Return when the kernel is idle."""
        self.page.wait_for_function(_KERNEL_IS_IDLE, timeout=seconds * 1000)

    def command(self, name: str, *, seconds: float = 60) -> None:
        """Execute a JupyterLab command and wait until it has ended and the kernel is idle."""
        self.page.evaluate(_START, name)
        self.page.wait_for_function(_SETTLED, timeout=seconds * 1000)
        state = self.page.evaluate("() => window.commandState")
        assert state == "done", f"{name}: {state}"
        self.wait_until_idle(seconds=seconds)

    def run_all(self, *, seconds: float = 120) -> None:
        """Run All Cells, to its end."""
        self.wait_until_idle()
        self.command("notebook:run-all-cells", seconds=seconds)

    def run_all_by_keys(self, *, seconds: float = 120) -> None:
        """Shift-Enter on every cell from the first, until the kernel rests."""
        self.wait_until_idle()
        page = self.page
        page.locator(".jp-Cell").first.click(position={"x": 4, "y": 4})
        page.keyboard.press("Escape")
        for _ in self.cells():
            page.keyboard.press("Shift+Enter")
        self.wait_until_idle(seconds=seconds)

    def cells(self) -> list[dict[str, Any]]:
        """The cells as the notebook format has them, outputs included, as they are now."""
        cells: list[dict[str, Any]] = self.page.evaluate(f"() => {_PANEL}.content.model.toJSON().cells")
        return cells

    def cell_errors(self) -> list[str]:
        """`name: message` of every error a cell shows."""
        outputs = [output for cell in self.cells() for output in cell.get("outputs", [])]
        return [f"{each['ename']}: {each['evalue']}" for each in outputs if each["output_type"] == "error"]

    def trusted(self) -> bool:
        """Whether JupyterLab trusts every code cell, that is: shows its HTML unsanitised."""
        code = f"{_PANEL}.content.widgets.filter(cell => cell.model.type === 'code')"
        answer: bool = self.page.evaluate(f"() => {code}.every(cell => cell.model.trusted)")
        return answer

    def output(self, cell: int) -> Locator:
        """The output area of a cell, counted from 0 over all cells."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".jp-OutputArea").first

    def picture(self, element: Locator) -> Picture:
        """An element as it is on the screen, scrolled into view first."""
        element.scroll_into_view_if_needed()
        return Picture.from_png(element.screenshot())

    def show_at(self, width: int, theme: str) -> None:
        """Make the window that wide and turn JupyterLab to that theme, as its user would, with all that is drawn."""
        size = self.page.viewport_size
        assert size is not None
        self.page.set_viewport_size({"width": width, "height": size["height"]})
        self.page.evaluate(_CHANGE_THEME, THEMES[theme])
        self.page.wait_for_function(_THEME_IS_LIGHT, arg=str(theme == "light").lower())
        self.page.evaluate(_STILL)

    def on(self, screens: Screens) -> Iterator[str]:
        """The name of each screen, shown; at the end the first again."""
        for width, theme in screens:
            self.show_at(width, theme)
            yield f"{width}-{theme}"
        if len(screens) > 1:
            self.show_at(*screens[0])

    def keep_whole(self, name: str, screens: Screens) -> None:
        """The notebook from its first to its last cell on each screen, in build/screens."""
        for screen in self.on(screens):
            self.screenshot_whole(f"{name}-{screen}")

    def screenshot(self, name: str) -> Path:
        """The window as the user sees it, in build/screens."""
        return self._save(name)

    def screenshot_whole(self, name: str) -> Path:
        """The notebook from its first to its last cell, in build/screens."""
        with self.as_high_as_the_notebook():
            return self._save(name)

    @contextmanager
    def as_high_as_the_notebook(self) -> Iterator[None]:
        """Make the window high enough to show every cell without scrolling."""
        size = self.page.viewport_size
        assert size is not None
        outer = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer"
        hidden: int = self.page.evaluate(
            "selector => { const e = document.querySelector(selector); return e.scrollHeight - e.clientHeight }", outer
        )
        self.page.set_viewport_size({"width": size["width"], "height": size["height"] + max(hidden, 0) + 50})
        self.page.wait_for_timeout(500)
        try:
            yield
        finally:
            self.page.set_viewport_size(size)

    def _save(self, name: str) -> Path:
        SCREENS.mkdir(parents=True, exist_ok=True)
        path = SCREENS / f"{name}.png"
        self.page.screenshot(path=path)
        return path
