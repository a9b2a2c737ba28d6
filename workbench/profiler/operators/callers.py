"""The steps of a program by caller: what a shared body does belongs to the layer and operator that it is called for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray
from workbench.profiler.schema import Column, Table
from workbench.profiler.timeline.calls import OWN, Bodies, Caller, Runs
from workbench.profiler.timeline.timeline import recomputed, renamed
from workbench.profiler.timeline.tree import Controlled, ControlTree


@dataclass(frozen=True, kw_only=True, eq=False)
class StepsByCaller:
    """A row for each step and each of its callers, in order of the steps: `row` of the table of steps, how often it
    runs for the caller (`times`), how many `callers` the step has, and the text columns as the caller says them.

    Callers are told apart by layer, operator and direction. What runs again to compute something anew has that
    direction, and an operator that is named so.
    """

    steps: Table
    row: IntArray
    times: IntArray
    callers: IntArray
    operator: Column
    _known: tuple[Caller, ...]
    _caller: IntArray  # place among the known ones
    _part: IntArray  # of the body that the step stands in, by row of the table of steps

    @classmethod
    def of_profile(cls, profile: Controlled) -> StepsByCaller:
        """Of a profile's own tables; operators that run again have rows of their own there."""
        operators = profile.tables["operators"]
        bodies = dict(zip(operators["name"].tolist(), operators["body"].tolist(), strict=True))
        again = {recomputing(name) for name in bodies} & set(bodies)
        lowered = [(name, body) for name, body in bodies.items() if name not in again]
        return cls.of(lowered, profile.tables["steps"], profile.control, again)

    @classmethod
    def of(
        cls,
        operators: Iterable[tuple[str, str]],
        steps: Table,
        control: ControlTree,
        again: set[str],
    ) -> StepsByCaller:
        """`operators` are pairs of a name and the body it calls, `""` for none. Of operators that run again only those
        `again` are named so."""
        bodies = Bodies.of(control, steps)
        rows = _Rows(bodies, steps, _Matching(operators, bodies))
        row = np.concatenate(rows.row)
        order = np.argsort(row, kind="stable")
        row = row[order]
        caller = np.concatenate(rows.caller)[order]
        operator = np.concatenate(rows.operator)[order]
        known = tuple(rows.known)
        anew = np.array([each.again for each in known], bool)[caller] & (steps["direction"][row] == "forward")
        operator[anew] = [_named(name, again) for name in operator[anew].tolist()]
        return cls(
            steps=steps,
            row=row,
            times=np.concatenate(rows.times)[order],
            callers=np.bincount(row, minlength=1)[row],
            operator=operator,
            _known=known,
            _caller=caller,
            _part=bodies.part_of_row(len(steps["id"])),
        )

    @cached_property
    def _by_operator(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, name in enumerate(self.operator.tolist()):
            found.setdefault(name, []).append(place)
        return found

    def of_operator(self, name: str) -> list[int]:
        """The rows of an operator."""
        return self._by_operator.get(name, [])

    @property
    def columns(self) -> Mapping[str, Column]:
        """What callers tell, by the names of the table of steps; and how many they are."""
        names = ("name", "layer", "layer_class", "direction", "operator", "source", "times", "total_cycles", "callers")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def total_cycles(self) -> IntArray:
        """Cycles of all executions for the caller."""
        found: IntArray = self.times * self.steps["cycles"][self.row]
        return found

    @cached_property
    def layer(self) -> Column:
        """The layer that the step is run for."""
        return self._told([caller.layer for caller in self._known], self.steps["layer"])

    @cached_property
    def layer_class(self) -> Column:
        """The class of that layer."""
        told = [caller.layer_class if self._names_lines and caller.operator else None for caller in self._known]
        return self._told(told, self.steps["layer_class"])

    @cached_property
    def direction(self) -> Column:
        """The direction in which it runs."""
        found = self.steps["direction"][self.row]
        again = self._of_caller([caller.again for caller in self._known])
        found[again] = [recomputed(name) for name in found[again].tolist()]
        return found

    @cached_property
    def source(self) -> Column:
        """The line it is run for."""
        found = self.steps["source"][self.row]
        named = self._of_caller([self._names_lines and bool(caller.operator) for caller in self._known])
        for place in np.flatnonzero(named).tolist():
            sources = self._known[self._caller[place]].sources or ("",)
            part = int(self._part[self.row[place]]) if len(sources) > 1 else 0
            found[place] = sources[part] if part < len(sources) else ""
        return found

    @property
    def _names_lines(self) -> bool:
        """Whether calls name classes and lines; in files of versions before they do not."""
        return any(caller.sources for caller in self._known)

    @cached_property
    def name(self) -> Column:
        """Its name, in the layer that it is run for."""
        found, own = self.steps["name"][self.row], self.steps["layer"][self.row]
        for place in np.flatnonzero(own != self.layer).tolist():
            found[place] = renamed(found[place], own[place], self.layer[place])
        return found

    def _of_caller(self, values: Sequence[Any], dtype: Any = bool) -> Column:
        return np.array(values, dtype)[self._caller]

    def _told(self, told: Sequence[str | None], own: Column) -> Column:
        """What callers tell, and of those that tell nothing the steps' own."""
        texts = self._of_caller(told, object)
        silent = self._of_caller([each is None for each in told])
        texts[silent] = own[self.row[silent]]
        return texts


def recomputing(operator: str) -> str:
    """The name of an operator where it runs again to compute something anew."""
    label, forward, number = operator.rpartition(":forward")
    return f"{label}:recompute{number}" if forward else f"{operator} again"


def _named(operator: str, again: set[str]) -> str:
    name = recomputing(operator) if operator else ""
    return name if name in again else operator


class _Rows:
    """Collects columns, body by body."""

    def __init__(self, bodies: Bodies, steps: Table, matching: _Matching) -> None:
        self.steps, self.matching = steps, matching
        self.known: dict[Caller, int] = {}
        self.row: list[IntArray] = []
        self.times: list[IntArray] = []
        self.caller: list[IntArray] = []
        self.operator: list[Column] = []
        # Steps of bodies that nobody shares are as they stand, and those of a profile that keeps no control tree.
        alone = np.ones(len(steps["id"]), bool)
        for name, rows in bodies.rows.items():
            runs = bodies.runs[name]
            if len(rows) and any(caller != OWN for caller in runs):
                alone[rows] = False
                forward = steps["direction"][rows] == "forward"
                self._body(name, rows[forward], runs)
                self._body(name, rows[~forward], _whether_again_or_not(runs))
        left = np.flatnonzero(alone)
        self._add(left, steps["times"][left], OWN, steps["operator"][left])

    def _body(self, name: str, rows: IntArray, runs: Runs) -> None:
        """The steps of a body, each once for each caller; of a step in a loop every turn."""
        turns = self.steps["times"][rows] // max(1, sum(runs.values()))
        own, parents = self.steps["operator"][rows], dict[str, int]()
        parent = [parents.setdefault(path, len(parents)) for path in self.steps["parent"][rows].tolist()]
        for caller, times in runs.items():
            operator = own
            if caller.operator:
                named = [self.matching.operator(name, path, caller.operator) for path in parents]
                operator = np.array(named, object)[parent]
            self._add(rows, turns * times, caller, operator)

    def _add(self, rows: IntArray, times: IntArray, caller: Caller, operator: Column) -> None:
        place = self.known.setdefault(caller, len(self.known))
        self.row.append(rows)
        self.times.append(times)
        self.caller.append(np.full(len(rows), place))
        self.operator.append(operator)


def _whether_again_or_not(runs: Runs) -> Runs:
    """Callers of what is the same whether it is run again or not."""
    found: dict[Caller, int] = {}
    for caller, times in runs.items():
        first = caller._replace(again=False)
        found[first] = found.get(first, 0) + times
    return found


class _Matching:
    """Which operator the part of a body is run for. A run of several operators calls its body once, for the first of
    them: the others, which share another part of the body, are matched by their order."""

    def __init__(self, operators: Iterable[tuple[str, str]], bodies: Bodies) -> None:
        self._sharers: dict[str, dict[str, None]] = {}
        order: dict[str, int] = {}
        for name, body in operators:
            order[name] = len(order)
            if body:
                self._sharers.setdefault(body, {})[name] = None
        self._callers: dict[str, dict[str, int]] = {}
        for name, runs in bodies.runs.items():
            named = sorted({caller.operator for caller in runs} & set(order), key=lambda each: order[each])
            self._callers[name] = {each: place for place, each in enumerate(named)}

    def operator(self, body: str, path: str, called_for: str) -> str:
        """The operator of what stands at a path in a body, when it is `called_for` one."""
        while path and path not in self._sharers:  # a loop inside a part has a name of its own
            path = path.rpartition("/")[0]
        sharers, callers = self._sharers.get(path, {}), self._callers[body]
        if called_for in sharers or len(sharers) != len(callers) or called_for not in callers:
            return called_for
        return list(sharers)[callers[called_for]]
