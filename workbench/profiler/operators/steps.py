"""The steps of an operator: its own, and its part of those of a body that it shares with its equals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workbench.profiler.schema import Table
from workbench.profiler.timeline.calls import operator_runs
from workbench.profiler.timeline.tree import Controlled, ControlTree


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSteps:
    """Rows of the step table. Of the `runs` that the operators which share the `shared` ones give their body,
    `own_runs` are this operator's; both 0 where there are none, or where none of them runs."""

    own: tuple[int, ...]
    shared: tuple[int, ...]
    own_runs: int
    runs: int

    def shared_part(self, total: int) -> int:
        """The operator's part of a number that a shared step has over all its runs."""
        return total * self.own_runs // self.runs if self.runs else 0

    def part_of(self, totals: Sequence[int]) -> int:
        """The operator's part of a number that each step has over all its runs."""
        own = sum(totals[row] for row in self.own)
        return own + sum(self.shared_part(totals[row]) for row in self.shared)


class StepsByOperator:
    """Rows of a step table by operator; `operators` are pairs of a name and the body it calls, `""` for none. The calls
    of the control tree name the operators they are made for."""

    def __init__(self, operators: Iterable[tuple[str, str]], steps: Table, control: ControlTree) -> None:
        self._body = dict(operators)
        self._runs = _runs_of_sharers(self._body, control, steps)
        bodies = set(self._body.values()) - {""}
        self._own: dict[str, list[int]] = {}
        for row, name in enumerate(steps["operator"].tolist()):
            if name:
                self._own.setdefault(name, []).append(row)
        self._of_body: dict[str, list[int]] = {}
        for row, parent in enumerate(steps["parent"].tolist()):
            while parent and parent not in bodies:  # a loop inside a body has a name of its own
                parent = parent.rpartition("/")[0]
            if parent:
                self._of_body.setdefault(parent, []).append(row)

    @classmethod
    def of_profile(cls, profile: Controlled) -> StepsByOperator:
        """Of a profile's own tables."""
        operators, steps = profile.tables["operators"], profile.tables["steps"]
        bodies = zip(operators["name"].tolist(), operators["body"].tolist(), strict=True)
        return cls(bodies, steps, profile.control)

    def of(self, name: str) -> OperatorSteps:
        """The steps of an operator."""
        body = self._body.get(name, "")
        own, shared = self._own.get(name, ()), self._of_body.get(body, ())
        runs = self._runs.get(body, {})
        return OperatorSteps(own=tuple(own), shared=tuple(shared), own_runs=runs.get(name, 0), runs=sum(runs.values()))


def _runs_of_sharers(bodies: Mapping[str, str], control: ControlTree, steps: Table) -> Mapping[str, Mapping[str, int]]:
    """Body → how often each operator that shares it runs it, in the order of the operators.

    A run of several operators calls its body once, for the first of them: the others, which share another part of the
    body, are matched by their order. Where the calls name no operator, as in files written before they did, all count
    alike.
    """
    known = operator_runs(control, steps) if any(bodies.values()) else {}
    sharers: dict[str, list[str]] = {}
    for name, body in bodies.items():
        if body:
            sharers.setdefault(body, []).append(name)
    callers: dict[str, list[str]] = {}
    for name, body in bodies.items():
        function = body.partition("/")[0]
        if (function, name) in known:
            callers.setdefault(function, []).append(name)
    found = {}
    for body, names in sharers.items():
        function = body.partition("/")[0]
        first = names if all((function, name) in known for name in names) else callers.get(function, [])
        matched = len(first) == len(names)
        runs = [known[function, name] for name in first] if matched else [1] * len(names)
        found[body] = dict(zip(names, runs, strict=True))
    return found
