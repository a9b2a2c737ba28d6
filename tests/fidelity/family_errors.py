"""Validation errors: the call a case names, made wrong as its condition says; the exception and text it gives."""

from __future__ import annotations

import re
from typing import Any

from tests.fidelity.outcome import Case, NotRun


def _where(case: Case) -> tuple[str, str, str]:
    """The file and function that raise, and the condition they raise under."""
    if "func" in case:
        return case["file"], case["func"], case["cond"]
    source = case["source"]
    path = source["path"] if isinstance(source, dict) else str(source)
    found = re.search(r"([\w/]+\.py)(?::[\d,-]+)? \[([\w.]+)\]", path)
    condition = str(case["description"]).partition("when:")[2]
    return (found[1], found[2], condition) if found else ("", "", condition)


def validation_error(case: Case) -> Any:
    """`{"exception", "message"}` of the call a case names."""
    from tests.fidelity.error_calls import CALLS, NAMED  # loads Keras and JAX, which most families do without

    if named := NAMED.get(str(case.get("id"))):
        return _told(named())
    file, function, condition = _where(case)
    calls = next((found for tail, found in CALLS.items() if file.endswith(tail)), None)
    if calls is None:
        return NotRun(f"{file.rpartition('/')[2] or 'what the case is about'} is no part of this API")
    for (name, words), call in calls.items():
        if name == function and words in condition:
            return _told(call())
    return NotRun(f"{function} has no such condition here")


def _told(text: str) -> dict[str, str]:
    exception, _, message = text.partition(" ")
    return {"exception": exception, "message": message}
