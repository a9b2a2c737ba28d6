"""`workbench lab`: headless it ends with a verdict and a page, in a terminal with an address that answers."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from workbench import lab
from workbench.errors import InputError

ROOT = Path(__file__).parents[1]
PROFILE = """
class Profile:
    summary = "Fits with 12 bytes to spare\\nand more"
    def to_html(self, path):
        import os
        open(path, "w").write(os.environ["KERAS_BACKEND"])
profile = Profile()
"""


def write_notebook(path: Path, *sources: str) -> Path:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_markdown_cell("# A lesson"), *map(nbformat.v4.new_code_cell, sources)]
    nbformat.write(notebook, path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_headless_writes_the_page_and_gives_the_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_notebook(folder / "lesson.ipynb", PROFILE)
    lab.lab(Path("lesson.ipynb"), Path("build/page.html"), headless=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["environment", "kernel", "notebook", "page", "verdict"]
    assert all(re.match(r"\w+ +\d+\.\d s", line) for line in lines[:-1])
    assert lines[-1].split(maxsplit=1)[1] == "Fits with 12 bytes to spare"
    assert (folder / "build/page.html").read_text() == "jax"


def test_headless_stops_at_a_failing_cell(folder: Path) -> None:
    write_notebook(folder / "lesson.ipynb", PROFILE, "1 / 0")
    with pytest.raises(lab.NotebookError, match=r"a cell of lesson\.ipynb failed(.|\n)*ZeroDivisionError"):
        lab.lab(Path("lesson.ipynb"), Path("page.html"), headless=True)
    assert not (folder / "page.html").exists()


def test_headless_asks_for_a_profile(folder: Path) -> None:
    write_notebook(folder / "lesson.ipynb", "x = 1")
    with pytest.raises(lab.NotebookError, match="leaves no variable 'profile'"):
        lab.lab(Path("lesson.ipynb"), Path("page.html"), headless=True)


def test_a_missing_notebook_says_what_to_give(folder: Path) -> None:
    with pytest.raises(InputError, match=r"^no notebook 'notebooks/00-first-look\.ipynb' in .* --notebook PATH\.$"):
        lab.lab()


@pytest.mark.parametrize(("ci", "tty", "expected"), [("", True, True), ("true", True, False), ("", False, False)])
def test_a_screen_is_a_terminal_outside_ci(ci: str, tty: bool, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: tty)
    assert lab.has_screen() is expected


def test_settings_turn_the_news_off_and_keep_the_users_own(tmp_path: Path) -> None:
    name = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    lab.write_settings(tmp_path)
    assert '"fetchNews": "false"' in (tmp_path / name).read_text()
    (tmp_path / name).write_text("{}")
    lab.write_settings(tmp_path)
    assert (tmp_path / name).read_text() == "{}"


def read_terminal(terminal: int, until: str, seconds: float) -> str:
    """What the other end wrote until `until` appears, its end comes or the time is over."""
    text, deadline = "", time.monotonic() + seconds
    while until not in text and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                text += os.read(terminal, 4096).decode()
            except OSError:
                break
    return text


@pytest.mark.slow
@pytest.mark.usefixtures("as_from_a_terminal")
def test_in_a_terminal_it_serves_the_notebook_until_interrupted(folder: Path) -> None:
    write_notebook(folder / "lesson.ipynb", PROFILE)
    near, far = pty.openpty()
    unwanted = ("CI", "DISPLAY", "WAYLAND_DISPLAY")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli", "lab", "--notebook", "lesson.ipynb"],
        stdin=far,
        stdout=far,
        stderr=far,
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        text = read_terminal(near, "ends it.", 120)
        assert re.findall(r"^(\w+) +\d+\.\d s", text, re.MULTILINE) == ["environment", "server", "kernel"]
        assert re.search(r"http://127\.0\.0\.1:\d+/lab/tree/lesson\.ipynb\?token=\w{48}", text)
        os.killpg(process.pid, signal.SIGINT)
        assert "ended" in read_terminal(near, "ended", 120)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        os.close(near)
        os.close(far)
