"""The page on the architecture tells what is there: its paths exist, and what it adds is what tests add."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:workbench|tests|docs|benchmarks)/[\w./]*)`", PAGE)))
DIFFS = re.findall(r"```diff\n# (\S+), tried by (\S+)\n(.*?)```", PAGE, re.DOTALL)
# Where the sources of a test lie, if not in its own file.
BESIDE = {
    "tests/widgets/views/test_new_view.py": "tests/widgets/views/longest_view.py",
    "tests/profiler/test_new_report.py": "tests/profiler/added.py",
}


def flat(text: str) -> str:
    """Text without the blanks by which the formatter lays it out."""
    return re.sub(r",?\s+|,(?=[)}\]])", "", text)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("place", "test", "lines"), DIFFS, ids=[place for place, _, _ in DIFFS])
def test_what_is_added_is_what_its_test_adds(place: str, test: str, lines: str) -> None:
    folder = (ROOT / place).parent
    assert folder.is_dir()
    source = flat((ROOT / BESIDE.get(test, test)).read_text(encoding="utf-8"))
    added = [line.removeprefix("+") for line in lines.splitlines()]
    assert added
    for line in added:
        assert flat(f"{line}\n") in source, line


def test_eight_kinds_of_things_are_told() -> None:
    told = re.findall(r"^### An? (\w+)", PAGE, re.MULTILINE)
    assert told == ["operator", "codelet", "pass", "option", "target", "report", "view", "export"]
    assert len(DIFFS) == len(told)


def test_every_folder_of_the_trip_is_there() -> None:
    named = set(re.findall(r"(?<![\w/])(?:engine|profiler|widgets)/[a-z/]*/", PAGE))
    assert named
    assert not [name for name in named if not (ROOT / "workbench" / name).is_dir()]
