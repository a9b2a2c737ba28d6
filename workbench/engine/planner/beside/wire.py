"""Questions and answers as lines of JSON: numbers and words, of which the reader makes the types, so no line runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from workbench.engine.planner.problem import ConvProblem, FieldAxis
from workbench.engine.planner.search import Settings
from workbench.engine.target import CodeSizes, MemoryMap, Target

Question: TypeAlias = tuple[ConvProblem, Target, Settings]
Order: TypeAlias = tuple[int, ...]  # of a choice, which says all of it

READY, MACHINE, PLAN, DROP, FOUND = "ready", "machine", "plan", "drop", "found"
# What the fields are made of that are neither numbers nor words nor rows of these.
_INSIDE: Mapping[tuple[type, str], type] = {
    (ConvProblem, "field"): FieldAxis,
    (Target, "memory"): MemoryMap,
    (Target, "code"): CodeSizes,
}
_ALONE = (MemoryMap, CodeSizes)  # of which there is one, not a row
T = TypeVar("T")


def line(word: str, *values: Any) -> bytes:
    """A line to send."""
    return json.dumps([word, *values], separators=(",", ":")).encode() + b"\n"


def plain(value: Any) -> Any:
    """A problem, target or settings as JSON has it: the values of its fields in their order, without the names."""
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def made(of: type[T], values: Sequence[Any]) -> T:
    """What `plain` was told of."""
    names = [field.name for field in dataclasses.fields(of)]  # type: ignore[arg-type]
    pairs = zip(names, values, strict=True)
    return of(**{name: _value(_INSIDE.get((of, name)), value) for name, value in pairs})


def _value(inside: type | None, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if inside is None:
        return tuple(value)
    return made(inside, value) if inside in _ALONE else tuple(made(inside, each) for each in value)


class Lines:
    """Whole lines out of what a pipe brings piece by piece."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, chunk: bytes) -> list[list[Any]]:
        """The lines that a further piece completes; `ValueError` for what is none."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return [json.loads(each) for each in whole]


__all__ = ["DROP", "FOUND", "MACHINE", "PLAN", "READY", "Lines", "Order", "Question", "line", "made", "plain"]
