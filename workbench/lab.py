"""`workbench lab`: the first notebook, open in JupyterLab or run without a screen, each phase with its time."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from workbench.base.files import log_file, made_folder, refuse_no_file, whole_file
from workbench.base.text import markup
from workbench.errors import InputError, WorkbenchError

FIRST_NOTEBOOK = Path("notebooks/00-first-look.ipynb")
FIRST_PAGE = Path("build/first-look.html")
BUILD = Path("build")
CELL_TIMEOUT_SECONDS = 600
SERVER_TIMEOUT_SECONDS = 60
CLOSE_TIMEOUT_SECONDS = 15  # a kernel at work is given five to end
PREFERRED_PORT = 8888

# Shows the stored picture of a view whose kernel has ended; an install lays it where JupyterLab looks, too.
EXTENSIONS = Path(__file__).with_name("labextensions")

# JupyterLab asks about news, and looks for updates, at its first opening; only a settings file answers beforehand.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
}
SERVER_OPTIONS = (
    "--no-browser",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.answer_yes=True",
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    f"--LabServerApp.extra_labextensions_path={EXTENSIONS}",
)


class NotebookError(WorkbenchError):
    """A notebook that cannot be run to its end."""


def has_screen() -> bool:
    """Whether someone looks on: a terminal on both ends and no CI."""
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return not in_ci and sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def phase(name: str, note: str = "") -> Iterator[None]:
    """Print the name of a phase, the seconds it took and a note, once it has ended well."""
    start = time.perf_counter()
    yield
    print(f"{name:<12} {time.perf_counter() - start:6.1f} s  {note}".rstrip(), flush=True)


def environment_note() -> str:
    """The versions a bug report needs."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("jax", "keras", "jupyterlab"))
    return f"Python {sys.version.split()[0]}, {packages}"


def kernel_environment() -> dict[str, str]:
    """Variables of the kernel: Keras on JAX, and this environment's own kernel before any other of the user's."""
    return {**os.environ, "KERAS_BACKEND": "jax", "JUPYTER_PREFER_ENV_PATH": "1"}


def write_settings(folder: Path, settings: dict[str, dict[str, Any]] = SETTINGS) -> Path:
    """Write JupyterLab settings files that are not there yet, and return the folder; a user's own choices stay."""
    for name, values in settings.items():
        path = folder / name
        if not path.exists():
            made_folder(path.parent)
            with whole_file(path, text=True) as file:
                file.write(json.dumps(values, indent=2))
    return folder.resolve()


def run_headless(notebook: Path, page: Path) -> str:
    """Run the notebook in a fresh kernel, write its last `profile` as one HTML file, return the verdict.

    Raises `NotebookError` when a cell fails, or when the notebook leaves no variable `profile`.
    """
    with phase("environment", environment_note()):
        import nbclient
        from nbclient.exceptions import CellExecutionError, DeadKernelError

        document = read_notebook(notebook)
        made_folder(page.parent)
        refuse_no_file(page)
    client = nbclient.NotebookClient(
        document,
        timeout=CELL_TIMEOUT_SECONDS,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40"],  # else: a warning that this machine's kernel is not encrypted
        resources={"metadata": {"path": str(notebook.parent)}},
    )
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    try:
        return _execute(client, notebook, page)
    except CellExecutionError as error:
        raise NotebookError(f"a cell of {notebook} failed:\n{str(error).rstrip()}") from None
    except DeadKernelError:
        raise NotebookError(
            f"the kernel died while running {notebook}", todo="look whether this machine ran out of memory"
        ) from None


def read_notebook(notebook: Path) -> Any:
    """The cells of a notebook file; an `InputError` for a file that is none."""
    import nbformat

    try:
        return nbformat.read(notebook, as_version=4)
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        nbformat.ValidationError,
    ) as error:
        why = type(error).__name__ if isinstance(error, RecursionError) else str(error).split("\n", 1)[0][:200]
        raise InputError(f"{str(notebook)!r} is no notebook: {why}", expected="an .ipynb file") from None


def _execute(client: Any, notebook: Path, page: Path) -> str:
    import nbformat

    before = _stamp(page)
    with ExitStack() as stack:
        stack.callback(_end_kernel, client)  # one that was interrupted while it started
        with phase("kernel", "Keras on JAX"):
            stack.enter_context(client.setup_kernel(env=kernel_environment()))
        count = len(client.nb.cells)
        with phase("notebook", f"{notebook}, {count} cells"):
            for index, cell in enumerate(client.nb.cells):
                client.execute_cell(cell, index)
        with phase("page", str(page)):
            client.nb.cells.append(nbformat.v4.new_code_cell(_PROBE.format(page=str(page.resolve()))))
            outputs = client.execute_cell(client.nb.cells[-1], count).outputs
    text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    lines = text.strip().splitlines()
    if not lines or _stamp(page) == before:
        raise NotebookError(f"the variable 'profile' of {notebook} wrote no page and no verdict", expected="a profile")
    return lines[-1]


def _stamp(page: Path) -> tuple[int, ...]:
    """What changes with a file; nothing where there is none."""
    with contextlib.suppress(OSError):
        found = page.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return ()


def _end_kernel(client: Any) -> None:
    if client.km is not None and client.km.has_kernel:
        client._cleanup_kernel()


_PROBE = """
if "profile" not in globals():
    raise NameError("the notebook leaves no variable 'profile' to write as HTML")
profile.to_html({page!r})
print(str(profile.summary).strip().splitlines()[0])
"""


def free_port(preferred: int = 0) -> int:
    """A free port of this machine: the preferred one when it is free."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise WorkbenchError("no free port on 127.0.0.1", todo="close some program that listens, and try again")


class Server:
    """A JupyterLab that runs inside a `with`, and is ended with its kernels on the way out: `url`, `token`, `process`.

    `root` is the folder it serves, `settings` that of JupyterLab's settings files, `log` receives its output. The token
    goes to the server through its environment, which only its owner can read.
    """

    def __init__(
        self,
        root: Path,
        *,
        settings: Path,
        log: Path,
        port: int = 0,
        options: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = secrets.token_hex(24)
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self._command = [sys.executable, "-m", "jupyterlab", *SERVER_OPTIONS, *options]
        self._command += [f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0"]
        self._command += [f"--ServerApp.root_dir={root}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self._command.append("--allow-root")
        self._environment = {**kernel_environment(), **(environment or {})}
        self._environment |= {"JUPYTER_TOKEN": self.token, "JUPYTERLAB_SETTINGS_DIR": str(settings)}

    def __enter__(self) -> Server:
        try:
            self._start()
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def _start(self) -> None:
        output = log_file(self.log)
        try:
            with held_signals():  # the moment between a process that runs and our knowing of it
                command, settings = self._command, self._environment
                self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=settings)
        finally:
            os.close(output)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The decoded answer of the server's REST interface; None when it has no content."""
        request = urllib.request.Request(
            f"{self.url}/api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=SERVER_TIMEOUT_SECONDS) as answer:
            return json.loads(answer.read() or b"null")

    def _wait_until_ready(self) -> None:
        """Return when the server answers; raise `WorkbenchError` with the end of its log when it does not."""
        deadline = time.monotonic() + SERVER_TIMEOUT_SECONDS
        while time.monotonic() < deadline and self.process is not None and self.process.poll() is None:
            try:
                self.request("GET", "status")
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        raise NotebookError(f"JupyterLab did not start; the end of {self.log} is:\n{self.end_of_log()}")

    def end_of_log(self) -> str:
        """The last lines of what the server said."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:])

    def start_kernel(self, notebook: str) -> None:
        """Start the kernel of a notebook before the page asks for it."""
        kernel = {"name": "python3"}
        self.request("POST", "sessions", {"path": notebook, "name": notebook, "type": "notebook", "kernel": kernel})

    def end_kernels(self) -> None:
        """End every kernel of this server and free its memory."""
        for session in self.request("GET", "sessions"):
            self.request("DELETE", f"sessions/{session['id']}")

    def address(self, notebook: str) -> str:
        """Where a browser finds the notebook, token included: for a terminal or a private file, never an argument."""
        return f"{self.url}/lab/tree/{urllib.parse.quote(notebook)}?token={self.token}"

    def close(self) -> None:
        """End the server, and with it its kernels; one that does not end in time is killed, and they notice."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=CLOSE_TIMEOUT_SECONDS)
        except BaseException as error:  # also a second Ctrl-C
            self.process.kill()
            self.process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise


@contextmanager
def held_signals() -> Iterator[None]:
    """What asks this process to end is heard after the block; what is started in it hears everything at once."""
    came: list[int] = []
    asked = [each for each in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(each))]
    if threading.current_thread() is not threading.main_thread():
        asked = []
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in asked}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in came:
            signal.raise_signal(number)


def open_in_browser(notebook: Path) -> None:
    """Serve the current folder in JupyterLab, open the notebook in the browser, return when the user ends it."""
    try:
        served = notebook.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        expected = "a notebook in the current folder, which is what JupyterLab shows"
        raise InputError(f"the notebook {str(notebook)!r} is outside {str(Path.cwd())!r}", expected=expected) from None
    with phase("environment", environment_note()):
        settings = write_settings(BUILD / "jupyterlab-settings")
    try:
        with ExitStack() as stack:
            with phase("server", f"log in {BUILD / 'jupyterlab.log'}"):
                log, port = BUILD / "jupyterlab.log", free_port(PREFERRED_PORT)
                server = stack.enter_context(Server(Path.cwd(), settings=settings, log=log, port=port))
            with phase("kernel", "Keras on JAX"):
                server.start_kernel(served)
            address = server.address(served)
            print(f"notebook     {address}\nCtrl-C ends it.", flush=True)
            if has_display():
                webbrowser.open(stack.enter_context(redirect(address)).as_uri())
            wait_for_end(server)
    except KeyboardInterrupt:
        print("\nended", flush=True)


def wait_for_end(server: Server) -> None:
    """Return when the server was ended from within JupyterLab; a `NotebookError` when it fell."""
    if server.process is not None and server.process.wait() != 0:
        raise NotebookError(f"JupyterLab ended; the end of {server.log} is:\n{server.end_of_log()}")


@contextmanager
def redirect(address: str, folder: Path = BUILD) -> Iterator[Path]:
    """A page that leads to the address, in a file that only its owner can read, for as long as it is needed.

    A browser's arguments stand in the list of processes, where every user reads them; this file's path may.
    """
    path = made_folder(folder).resolve() / "jupyterlab-open.html"
    there = markup(address)
    page = (
        f'<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={there}"><a href="{there}">JupyterLab</a>\n'
    )
    with whole_file(path, text=True, private=True) as file:
        file.write(f"<!doctype html>{page}")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def has_display() -> bool:
    """Whether a browser window can appear; on Linux without one, `webbrowser` would take over the terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def lab(notebook: Path | None = None, page: Path = FIRST_PAGE, *, headless: bool | None = None) -> None:
    """Open the notebook (the first by default) in JupyterLab; without a screen run it and print its verdict."""
    notebook = notebook or FIRST_NOTEBOOK
    if not notebook.is_file():
        raise InputError(
            f"no notebook {str(notebook)!r} in {str(Path.cwd())!r}",
            expected="the project's folder as the current one, or --notebook PATH",
        )
    if headless is None:
        headless = not has_screen()
    if headless:
        print(f"verdict      {run_headless(notebook, page)}", flush=True)
    else:
        open_in_browser(notebook)
