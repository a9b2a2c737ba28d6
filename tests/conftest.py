"""What all tests share: golden files, the three lengths of a property, and saying what a run left out."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Examples are derived from the test itself, so a run on another machine tries the same ones; no deadline, because
# two workers share two cores with a compiler.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow],
    "print_blob": True,
}
settings.register_profile("short", max_examples=30, **_COMMON)
settings.register_profile("long", max_examples=60, **_COMMON)
settings.register_profile("whole", max_examples=200, **_COMMON)
settings.load_profile("short")
os.environ.setdefault("KERAS_BACKEND", "jax")  # one file alone may import Keras before the workbench, which sets it
os.environ["WORKBENCH_CACHE"] = "memory"  # kernels and commands that tests start have it too
# Small programs that run once or twice: XLA would spend most of a test's time making them fast.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("engine/operators.txt", text)` compares text with tests/golden/, or writes it on --update-golden."""

    def compare(name: str, text: str) -> None:
        root = request.config.rootpath
        path = root / "tests" / "golden" / name
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"no golden file {path.relative_to(root)}; write it with --update-golden and read it")
        assert text == path.read_text(encoding="utf-8"), f"differs from {path.relative_to(root)} (--update-golden)"

    return compare


@pytest.fixture
def as_from_a_terminal() -> Generator[None]:
    """What the test starts heeds Ctrl-C and a hang-up, though who runs the tests ignores them, as jobs in the
    background do: processes inherit what is ignored, and no handlers.
    """
    ignored = [each for each in (signal.SIGHUP, signal.SIGINT) if signal.getsignal(each) is signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, signal.default_int_handler)
    yield
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)


@pytest.fixture(scope="session")
def node() -> str:
    """Path of a node executable for the tests of our JavaScript: the machine's, else the one playwright ships."""
    found = shutil.which("node")
    if found is not None:
        return found
    import playwright

    shipped = Path(playwright.__file__).parent / "driver" / "node"
    if not shipped.exists():
        pytest.skip("no node on this machine")
    return str(shipped)


class _LeftOut:
    """Counts the deselected tests, in each worker and in all, so that the summary can say what did not run."""

    def __init__(self) -> None:
        self.count = 0

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.count += len(items)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left_out"] = self.count

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # Every worker collects, and so deselects, the same tests.
        self.count = max(self.count, getattr(node, "workeroutput", {}).get("left_out", 0))

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        expression = config.getoption("markexpr") or config.getoption("keyword")
        if self.count and expression:
            terminalreporter.section("left out")
            rest = "`make test-all` runs them" if expression == "not slow" else "`make test` runs them"
            terminalreporter.write_line(f"{self.count} tests are outside {expression!r}; {rest}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_LeftOut(), "left-out")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests share one JupyterLab, so one worker takes them all."""
    for item in items:
        if item.get_closest_marker("browser") is not None:
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where WORKBENCH_REQUIRE_BROWSER is 1, a browser test that was skipped has failed."""
    report = yield
    required = os.environ.get("WORKBENCH_REQUIRE_BROWSER") == "1"
    if required and report.skipped and item.get_closest_marker("browser") is not None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"browser tests are required here, and this one did not run. {reason}"
    return report
