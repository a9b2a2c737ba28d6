"""The variables of a program in the making, and those that are numbered behind all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, SupportsIndex, overload

from workbench.engine.program import Leaf, StreamCopy, Variable

LAST = -2  # the number of the first that is behind; -1 is nobody's: a step says so that it has no buffer


class NumberedVariables(list[Variable]):
    """Variables by number. Those put `behind` have numbers from -2 down until all others are there, so that how many
    they are moves no other number: what waits between stages differs by schedule, and the stages do not.
    """

    __slots__ = ("behind",)

    def __init__(self) -> None:
        super().__init__()
        self.behind: list[Variable] = []

    @overload
    def __getitem__(self, place: SupportsIndex) -> Variable: ...
    @overload
    def __getitem__(self, place: slice) -> list[Variable]: ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice) or place >= 0:
            return super().__getitem__(place)
        return self.behind[LAST - place]

    def __setitem__(self, place: Any, variable: Any) -> None:
        if isinstance(place, slice) or place >= 0:
            super().__setitem__(place, variable)
        else:
            self.behind[LAST - place] = variable

    def in_order(self) -> dict[int, int]:
        """Put those that are behind at the end; returns their numbers, old to new."""
        numbers = {each.id: len(self) + place for place, each in enumerate(self.behind)}
        self.extend(replace(each, id=numbers[each.id]) for each in self.behind)
        self.behind = []
        return numbers


def renumbered(step: Leaf, numbers: Mapping[int, int]) -> Leaf:
    """A step with other numbers for some variables; itself where it has none of them."""
    has_buffer = isinstance(step, StreamCopy) and step.buffer in numbers
    if not has_buffer and min(step.reads, default=0) >= 0 and min(step.writes, default=0) >= 0:
        return step
    changed: dict[str, Any] = {
        "reads": tuple(numbers.get(each, each) for each in step.reads),
        "writes": tuple(numbers.get(each, each) for each in step.writes),
    }
    if isinstance(step, StreamCopy):
        changed["buffer"] = numbers.get(step.buffer, step.buffer)
    return replace(step, **changed)
