"""Debian's chromium and the real JupyterLab, one server per theme, with nothing of this user's in it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.apps import RunApp, button
from tests.browser.driver import FIRST, THEMES, NotebookPage, Screen
from workbench import lab

ROOT = Path(__file__).parents[2]
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
OpenNotebook = Callable[..., NotebookPage]
LoadNotebook = Callable[..., str]
StartLab = Callable[[str], lab.Server]


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The browser's path; without one the test is skipped, which WORKBENCH_REQUIRE_BROWSER=1 makes a failure."""
    path = os.environ.get("WORKBENCH_CHROMIUM") or shutil.which("chromium", path="/usr/bin") or shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium here (Debian: apt-get install chromium; else set WORKBENCH_CHROMIUM to its path)")
    return path


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the servers serve: a copy of notebooks/, to which a test may add its own."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, folder / "notebooks")
    return folder


@pytest.fixture(scope="session")
def start_lab(lab_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartLab]:
    """`start_lab("dark")`: the JupyterLab server of that theme, started at the first call."""
    servers: dict[str, lab.Server] = {}
    with contextlib.ExitStack() as stack:

        def start(theme: str) -> lab.Server:
            if theme not in servers:
                server = _server(theme, lab_folder, tmp_path_factory.mktemp(f"jupyter-{theme}"))
                servers[theme] = stack.enter_context(server)
            return servers[theme]

        yield start


def environment_of(home: Path) -> dict[str, str]:
    """Where Jupyter finds its files in a test: in a folder that nothing of this user is in."""
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",  # the signatures too: every stored notebook is untrusted, as in a fresh clone
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return {name: str(home / place) for name, place in places.items()}


def _server(theme: str, folder: Path, home: Path) -> lab.Server:
    appearance = {"@jupyterlab/apputils-extension/themes.jupyterlab-settings": {"theme": THEMES[theme]}}
    return lab.Server(
        folder,
        settings=lab.write_settings(home / "settings", {**lab.SETTINGS, **appearance}),
        log=ROOT / "build" / f"browser-tests-{theme}.log",
        options=("--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True"),
        environment={**environment_of(home), "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture(scope="module")
def chromium(chromium_path: str) -> Iterator[Browser]:
    """A running browser; one per module, because Playwright's event loop must end before other tests start theirs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def open_notebook(chromium: Browser, start_lab: StartLab) -> Iterator[OpenNotebook]:
    """`open_notebook("notebooks/x.ipynb", (1280, "light"), height=900)`: a page that shows it, not run."""
    contexts: list[BrowserContext] = []
    servers: set[lab.Server] = set()

    def open_it(notebook: str, screen: Screen = FIRST[0], *, height: int = 900) -> NotebookPage:
        width, theme = screen
        server = start_lab(theme)
        contexts.append(chromium.new_context(viewport={"width": width, "height": height}))
        servers.add(server)
        page = NotebookPage(contexts[-1].new_page(), server)
        page.open(notebook)
        return page

    yield open_it
    for context in contexts:
        context.close()
    for server in servers:
        server.end_kernels()


@pytest.fixture
def add_views(lab_folder: Path, request: pytest.FixtureRequest) -> LoadNotebook:
    """`add_views(source, ...)`: a served notebook of these cells; returns its path there."""

    def add(*sources: str) -> str:
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        name = f"{request.node.originalname}.ipynb"
        nbformat.write(notebook, lab_folder / name)
        return name

    return add


@pytest.fixture
def run_views(open_notebook: OpenNotebook, add_views: LoadNotebook) -> Iterator[Callable[..., NotebookPage]]:
    """Opens and runs the cells; afterwards nothing may have failed."""
    opened: list[NotebookPage] = []

    def run(*sources: str, screen: Screen = FIRST[0]) -> NotebookPage:
        page = open_notebook(add_views(*sources), screen)
        opened.append(page)
        page.run_all()
        assert page.cell_errors() == []
        return page

    yield run
    for page in opened:
        assert page.script_errors == []
        assert page.foreign_requests == []


@pytest.fixture
def run_app(open_notebook: OpenNotebook, lab_folder: Path, request: pytest.FixtureRequest) -> Iterator[RunApp]:
    """Opens a notebook of these cells and runs it; afterwards no script may have failed."""
    opened: list[NotebookPage] = []

    def run(*sources: str, screen: Screen = FIRST[0]) -> NotebookPage:
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        name = f"{request.node.originalname}.ipynb"
        nbformat.write(notebook, lab_folder / name)
        page = open_notebook(name, screen)
        opened.append(page)
        page.run_all()
        assert page.cell_errors() == []
        button(page.page, "Compile").wait_for()
        return page

    yield run
    for page in opened:
        assert page.script_errors == []
        assert page.foreign_requests == []
