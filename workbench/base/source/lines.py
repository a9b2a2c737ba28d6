"""The user's lines: which of them runs at the moment, and the text that stands there.

A line is named by its file's name and its number (`"model.py:12"`); where the file lies is remembered in this process
only, so that a profile names no folder of its author.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

from workbench.base.text import shown

AROUND = 20  # lines of text before and behind one that made a step
LONGEST_LINE = 400  # letters
_LIBRARY_PARTS = ("/jax/_src/", "/keras/src/", "/jaxlib/", "/numpy/")
_OWN_FOLDER = str(Path(__file__).resolve().parents[2]) + os.sep
_STANDARD_FOLDER = os.path.dirname(os.__file__) + os.sep
_paths: dict[str, str] = {}


@lru_cache(maxsize=4096)
def is_own(filename: str) -> bool:
    """Whether a file of code is ours."""
    return filename.startswith(_OWN_FOLDER)


@lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether a file of code is not the user's: ours, Python's, or of the libraries models are made of."""
    path = filename.replace(os.sep, "/")
    if any(part in path for part in _LIBRARY_PARTS) or filename.startswith("<"):
        return True
    return (is_own(filename) or filename.startswith(_STANDARD_FOLDER)) and "ipykernel" not in path


def line_name(filename: str, number: int) -> str:
    """The name of a line of a file, whose place is remembered for `texts`."""
    name = f"{shown(os.path.basename(filename))}:{number}"
    _paths[name] = filename
    return name


def calling_line(*, through_own: bool) -> str:
    """The innermost line of the user on the way here, "" where there is none.

    Our own code on the way is passed over where `through_own`; else what it makes is nobody's line.
    """
    frame: FrameType | None = sys._getframe(1)
    own = frame.f_code.co_filename if frame else ""
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_library(filename):
            return line_name(filename, frame.f_lineno)
        if not through_own and filename != own and is_own(filename):
            return ""
        frame = frame.f_back
    return ""


def file_and_number(line: str) -> tuple[str, int]:
    """The file's name and the number of a line; 0 where a name has none."""
    file, _, number = line.rpartition(":")
    return (file, int(number)) if file and number.isdecimal() and number.isascii() else (line, 0)


def texts(lines: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What stands at lines and around them, by file: its `name` for people, and `stretches`, pairs of the number of a
    first line and the texts from there on.

    A file that is gone, or of whose name there are several, has no stretches.
    """
    numbers: dict[str, list[int]] = {}
    for line in sorted(set(lines) & _paths.keys()):
        file, number = file_and_number(line)
        numbers.setdefault(file, []).append(number)
    found = {}
    for file, wanted in numbers.items():
        paths = {_paths[f"{file}:{number}"] for number in wanted}
        path = paths.pop()
        stretches = [] if paths else _stretches(linecache.getlines(path), wanted)
        found[file] = {"name": _name_of(path, file), "stretches": stretches}
    return found


def _stretches(content: list[str], numbers: list[int]) -> list[list[Any]]:
    spans: list[list[int]] = []
    for number in sorted(each for each in numbers if each <= len(content)):
        first, last = max(1, number - AROUND), min(len(content), number + AROUND)
        if spans and first <= spans[-1][1] + 1:
            spans[-1][1] = last
        else:
            spans.append([first, last])
    return [[first, [_text(line) for line in content[first - 1 : last]]] for first, last in spans]


def _text(line: str) -> str:
    text = shown(line.rstrip("\r\n").expandtabs(4))
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"


def _name_of(path: str, file: str) -> str:
    """A cell by its number, as the notebook has it; a file by its own name."""
    if "ipykernel" not in path or "IPython" not in sys.modules:
        return file
    shell = sys.modules["IPython"].get_ipython()
    told = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(path)
    return shown(" ".join(map(str, told))) if told else file
