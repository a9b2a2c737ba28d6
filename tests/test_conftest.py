"""The run's own machinery: golden files, what is left out, and browser tests that must not be skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ONE_SKIPS_IN_A_BROWSER = """
@pytest.mark.browser
def test_it():
    pytest.skip("no chromium")
def test_other():
    pytest.skip("not a browser test")
"""
THREE_ARE_SLOW = """
@pytest.mark.slow
@pytest.mark.parametrize("n", range(3))
def test_it(n):
    pass
def test_other():
    pass
"""

WHERE_BROWSER_TESTS_RUN = """
import os
from pathlib import Path
@pytest.mark.browser
@pytest.mark.parametrize("n", range(6))
def test_it(n):
    with Path("{seen}").open("a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
@pytest.mark.parametrize("n", range(3))
def test_other(n):
    pass
"""


def run_pytest(folder: Path, source: str, *options: str, required: str = "") -> subprocess.CompletedProcess[str]:
    """Run the source as a test of a project whose conftest is ours."""
    (folder / "test_it.py").write_text("import pytest\n" + source)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), *options, str(folder / "test_it.py")]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Sources of one length that follow within a second are one to what was compiled of the first: none is kept.
    environment = {**outside, "WORKBENCH_REQUIRE_BROWSER": required, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def test_golden_is_written_then_compared(tmp_path: Path) -> None:
    source = "def test_it(golden):\n    golden('area/a.txt', '{}')\n"
    missing = run_pytest(tmp_path, source.format("one"))
    assert missing.returncode == 1
    assert "no golden file tests/golden/area/a.txt; write it with --update-golden" in missing.stdout
    assert run_pytest(tmp_path, source.format("one"), "--update-golden").returncode == 0
    assert (tmp_path / "tests/golden/area/a.txt").read_text() == "one\n"
    assert run_pytest(tmp_path, source.format("one")).returncode == 0
    assert run_pytest(tmp_path, source.format("two")).returncode == 1


@pytest.mark.parametrize(("required", "code"), [("", 0), ("1", 1)])
def test_a_skipped_browser_test_fails_where_required(required: str, code: int, tmp_path: Path) -> None:
    done = run_pytest(tmp_path, ONE_SKIPS_IN_A_BROWSER, required=required)
    assert done.returncode == code
    assert ("this one did not run. Skipped: no chromium" in done.stdout) == bool(required)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_run_says_what_it_left_out(workers: str, tmp_path: Path) -> None:
    done = run_pytest(tmp_path, THREE_ARE_SLOW, "-m", "not slow", "-n", workers)
    lines = done.stdout.splitlines()
    assert "3 tests are outside 'not slow'; `make test-all` runs them" in lines
    assert "1 passed" in lines[-1]


def test_browser_tests_are_all_in_one_worker(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    done = run_pytest(tmp_path, WHERE_BROWSER_TESTS_RUN.format(seen=seen), "-n", "2", "--dist", "loadgroup")
    assert done.returncode == 0, done.stdout
    workers = seen.read_text().split()
    assert len(workers) == 6
    assert len(set(workers)) == 1
