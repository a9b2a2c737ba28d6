"""Lines of a program, from the code that AutoGraph wrote of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from malt.pyct import origin_info

WRITTEN: dict[str, Any] = {}  # of each file that AutoGraph wrote, where its lines come from


def line(frame: Any, number: int) -> str:
    """Where a frame of converted code is in the program, "" for all others."""
    lines = WRITTEN.get(frame.f_code.co_filename)
    if lines is None:
        return ""
    found = lines.get(origin_info.LineLocation(frame.f_code.co_filename, number))
    if found is None:
        return ""
    text = (found.source_code_line or "").strip()
    return f"line {found.loc.lineno} of {Path(found.loc.filename).name}: {text}"


def here() -> str:
    """The line of the program that is being recorded, "" where none is."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        found = line(frame, frame.f_lineno)
        if found:
            return found
        frame = frame.f_back
    return ""


def tell_line(error: BaseException, name: str) -> None:
    """Note on an error which line of the program it came from, once."""
    if getattr(error, "told_line", False):
        return
    found, trace = "", error.__traceback__
    while trace is not None:
        found = line(trace.tb_frame, trace.tb_lineno) or found
        trace = trace.tb_next
    if found:
        error.add_note(f"while {name} was recorded, {found}")
        error.told_line = True  # type: ignore[attr-defined]


__all__ = ["WRITTEN", "here", "line", "tell_line"]
