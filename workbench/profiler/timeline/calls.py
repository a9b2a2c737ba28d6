"""How often the calls of a control tree run: who calls a body, and of a branch the arm that is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.profiler.schema import Table

LAYER, OPERATOR = 7, 8
"""Where a call says which layer and which operator it is made for; absent where it does not."""


class Arms:
    """The arms that the branches of a control tree take: the dearest, of equals the first."""

    def __init__(self, functions: Mapping[str, Any], steps: Table) -> None:
        self._functions = functions
        self._cycles = dict(zip(steps["id"].tolist(), steps["cycles"].tolist(), strict=True))
        self._known: dict[str, int] = {}

    def taken(self, arms: list[Any]) -> list[Any]:
        """The arm of a branch that runs, alone in a list; empty when the branch has none."""
        return [max(arms, key=self._length)] if arms else []

    def _length(self, node: Any) -> int:
        if node[0] == "step":
            return int(self._cycles[node[1]])
        if node[0] == "call":
            if node[1] not in self._known:
                self._known[node[1]] = self._length(self._functions[node[1]])
            return self._known[node[1]]
        if node[0] == "repeat":
            return int(node[2]) * self._length(node[3])
        lengths = [self._length(child) for child in node[-1]]
        return sum(lengths) if node[0] == "sequence" else max(lengths, default=0)


def operator_runs(trace: Mapping[str, Any], steps: Table) -> Counter[tuple[str, str]]:
    """(body, operator) → how often the operator runs the body in one call of the program, 0 in an arm not taken."""
    functions = trace["functions"]
    arms = Arms(functions, steps)
    found: Counter[tuple[str, str]] = Counter()
    for tree in (trace["entry"], *functions.values()):
        for call, _ in _calls(tree, 1, None):
            if len(call) > OPERATOR:
                found[call[1], call[OPERATOR]] = 0
    calls = {name: list(_calls(body, 1, arms)) for name, body in functions.items()}
    runs = _function_runs(calls, list(_calls(trace["entry"], 1, arms)))
    for times, inside in [(1, list(_calls(trace["entry"], 1, arms))), *((runs[name], calls[name]) for name in calls)]:
        for call, turns in inside:
            if len(call) > OPERATOR:
                found[call[1], call[OPERATOR]] += times * turns
    return found


def _calls(node: Any, times: int, arms: Arms | None) -> Iterator[tuple[list[Any], int]]:
    """The calls inside a body, each with how often one run of the body makes it; with `arms` those that are taken."""
    if node[0] == "call":
        yield node, times
    elif node[0] == "repeat":
        yield from _calls(node[3], times * node[2], arms)
    elif node[0] != "step":
        for child in arms.taken(node[-1]) if arms and node[0] == "if" else node[-1]:
            yield from _calls(child, times, arms)


def _function_runs(
    calls: Mapping[str, list[tuple[list[Any], int]]], entry: list[tuple[list[Any], int]]
) -> Counter[str]:
    """How often each function runs in one call of the program."""
    callers: dict[str, Counter[str]] = {name: Counter() for name in calls}
    for name, inside in [("", entry), *calls.items()]:
        for call, times in inside:
            callers[call[1]][name] += times
    runs = Counter({"": 1})

    def of(name: str) -> int:
        if name not in runs:
            runs[name] = sum(times * of(caller) for caller, times in callers[name].items())
        return runs[name]

    for name in calls:
        of(name)
    return runs
