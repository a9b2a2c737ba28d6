"""Whole numbers that users give: any integer of Python's or NumPy's in a range, and no other kind."""

from __future__ import annotations

import operator
from typing import Any

from workbench.errors import InputError

MOST_EXACT = 2**53  # whole numbers up to here are exact as doubles, which JSON and a view's script have
MOST_TURNS = 2**32 - 1  # what a loop on the IPU counts with has 32 bits


def whole(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """The number; an `InputError` that calls it `name` for another kind, yes and no too, and outside the range."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least or (most is not None and number > most):
        up_to = "" if most is None else f" and at most {most}"
        raise InputError(f"{name} is {value!r}", expected=f"a whole number of at least {least}{up_to}")
    return number
