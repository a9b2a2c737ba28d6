"""Whole numbers that users give: any integer of Python's or NumPy's in a range, and no other kind."""

from __future__ import annotations

import operator
from typing import Any

from workbench.errors import InputError

MOST_EXACT = 2**53  # whole numbers up to here are exact as doubles, which JSON and a view's script have
MOST_TURNS = 2**32 - 1  # what a loop on the IPU counts with has 32 bits


MOST_COUNT = 2**31 - 1  # what is counted in 32 bits with a sign, as the sizes of arrays are
MOST_BYTES = 2**63 - 1  # what has 64 bits in the SDK


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


def count(name: str, value: Any, *, least: int = 1) -> int:
    """A number of samples, steps or chips, which 31 bits hold: as `whole`, the bound told only to what is beyond it."""
    number = whole(name, value, least=least)
    return whole(name, number, least=least, most=MOST_COUNT)
