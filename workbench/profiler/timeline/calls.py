"""How often the calls of a control tree run and for whom: who calls a body, and of a branch the arm that is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.base.arrays import IntArray
from workbench.profiler.schema import Table
from workbench.profiler.timeline.tree import (
    Call,
    ControlTree,
    If,
    Part,
    Repeat,
    Sequence,
    Step,
    below,
    children,
    in_order,
)


class Caller(NamedTuple):
    """For whom a body runs, as the innermost call of an outlined body above its steps says; `layer` None leaves the
    steps what they are for by themselves. `again`: a call above computes something again."""

    layer: str | None = None
    operator: str = ""
    layer_class: str = ""
    sources: tuple[str, ...] = ()
    again: bool = False


OWN = Caller()
Runs = Mapping[Caller, int]


class Arms:
    """The arms that the branches of a control tree take: the dearest, of equals the first."""

    def __init__(self, functions: Mapping[str, Part], steps: Table) -> None:
        self._functions = functions
        self._cycles = dict(zip(steps["id"].tolist(), steps["cycles"].tolist(), strict=True))
        self._known: dict[str, int] = {}

    def taken(self, branch: If) -> int:
        """The place of the arm that is taken; 0 where there is none."""
        lengths = [self._length(arm) for arm in branch.arms]
        return lengths.index(max(lengths)) if lengths else 0

    def _length(self, part: Part) -> int:
        if isinstance(part, Step):
            return int(self._cycles[part.id])
        if isinstance(part, Call):
            if part.function not in self._known:
                self._known[part.function] = self._length(self._functions[part.function])
            return self._known[part.function]
        if isinstance(part, Repeat):
            return part.times * self._length(part.body)
        lengths = [self._length(child) for child in children(part)]
        return sum(lengths) if isinstance(part, Sequence) else max(lengths, default=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bodies:
    """The bodies of a program by name, the entry as "".

    `runs` is who runs each how often in one call of the program, 0 where only an arm that is not taken does; `rows`
    are the places of its steps in their table, and `parts` the number of the part of the body that each is in.
    """

    runs: Mapping[str, Runs]
    rows: Mapping[str, IntArray]
    parts: Mapping[str, IntArray]

    @classmethod
    def of(cls, control: ControlTree, steps: Table) -> Bodies:
        """The bodies of a control tree whose steps are those of a table."""
        bodies = control.bodies
        place = {step: row for row, step in enumerate(steps["id"].tolist())}
        arms = Arms(control.functions, steps)
        found = {name: list(_placed(body)) for name, body in bodies.items()}
        return cls(
            runs=_runs({name: _calls(body, arms) for name, body in bodies.items()}),
            rows={name: np.array([place[step] for step, _ in each], np.int64) for name, each in found.items()},
            parts={name: np.array([part for _, part in each], np.int64) for name, each in found.items()},
        )

    def part_of_row(self, steps: int) -> IntArray:
        """The number of the part of its body by row of the table of steps."""
        found = np.zeros(steps, np.int64)
        for name, rows in self.rows.items():
            found[rows] = self.parts[name]
        return found


def _placed(body: Part) -> Iterator[tuple[int, int]]:
    """The steps of a body, each with the number of the part it is in: what stands in the body's sequence."""
    for number, part in enumerate(in_order(body)):
        for node in below(part):
            if isinstance(node, Step):
                yield node.id, number


_Calls = Mapping[str, Mapping[Caller, int]]
"""Of a body the functions it calls, for whom, and how often in one run of it. What a call leaves to the body around it
is that of `OWN`."""


def _calls(body: Part, arms: Arms) -> _Calls:
    # By the call without its micro-batch: of most there are many.
    counted: dict[tuple[str, str, str, str, str, tuple[str, ...]], int] = {}
    for call, times in _made(body, 1, arms):
        key = (call.function, call.direction, *call[6:])
        counted[key] = counted.get(key, 0) + times
    found: dict[str, dict[Caller, int]] = {}
    for (function, direction, layer, operator, layer_class, sources), times in counted.items():
        told = layer if layer or operator else None
        caller = Caller(told, operator, layer_class, sources, direction == "recompute")
        runs = found.setdefault(function, {})
        runs[caller] = runs.get(caller, 0) + times
    return found


def _made(part: Part, times: int, arms: Arms) -> list[tuple[Call, int]]:
    """The calls inside a body, each with how often one run of the body makes it, 0 in an arm that is not taken."""
    found: list[tuple[Call, int]] = []

    def visit(part: Part, times: int) -> None:
        if isinstance(part, Call):
            found.append((part, times))
        elif not isinstance(part, Step):
            turns = times * part.times if isinstance(part, Repeat) else times
            taken = arms.taken(part) if isinstance(part, If) else None
            for place, child in enumerate(children(part)):
                visit(child, turns if taken in (None, place) else 0)

    visit(part, times)
    return found


def _runs(calls: Mapping[str, _Calls]) -> Mapping[str, Runs]:
    """Who runs each body how often: from the entry down, every body behind all that call it."""
    found: dict[str, dict[Caller, int]] = {name: {} for name in calls}
    found[""] = {OWN: 1}
    for name in _callers_first(calls):
        for function, made in calls[name].items():
            runs = found[function]
            for call, times in made.items():
                for around, turns in found[name].items():
                    caller = around if call.layer is None else call._replace(again=around.again)
                    caller = caller._replace(again=True) if call.again else caller
                    runs[caller] = runs.get(caller, 0) + times * turns
    return found


def _callers_first(calls: Mapping[str, _Calls]) -> list[str]:
    done: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in done:
            for function in calls[name]:
                visit(function)
            done[name] = None

    for name in calls:
        visit(name)
    return list(reversed(done))
