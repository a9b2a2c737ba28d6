"""How often the calls of a control tree run: who calls a body, and of a branch the arm that is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from workbench.profiler.schema import Table
from workbench.profiler.timeline.tree import Call, ControlTree, If, Part, Repeat, Sequence, Step, children


class Arms:
    """The arms that the branches of a control tree take: the dearest, of equals the first."""

    def __init__(self, functions: Mapping[str, Part], steps: Table) -> None:
        self._functions = functions
        self._cycles = dict(zip(steps["id"].tolist(), steps["cycles"].tolist(), strict=True))
        self._known: dict[str, int] = {}

    def running(self, part: Part) -> tuple[Part, ...]:
        """What runs of the parts below one: of a branch the arm that is taken, else all."""
        if isinstance(part, If):
            return (max(part.arms, key=self._length),) if part.arms else ()
        return children(part)

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


def operator_runs(control: ControlTree, steps: Table) -> Counter[tuple[str, str]]:
    """(body, operator) → how often the operator runs the body in one call of the program, 0 in an arm not taken."""
    functions = control.functions
    arms = Arms(functions, steps)
    found: Counter[tuple[str, str]] = Counter()
    for root in (control.entry, *functions.values()):
        for call, _ in _calls(root, 1, None):
            if call.operator:
                found[call.function, call.operator] = 0
    entry = list(_calls(control.entry, 1, arms))
    calls = {name: list(_calls(body, 1, arms)) for name, body in functions.items()}
    runs = _function_runs(calls, entry)
    for times, inside in [(1, entry), *((runs[name], calls[name]) for name in calls)]:
        for call, turns in inside:
            if call.operator:
                found[call.function, call.operator] += times * turns
    return found


def _calls(part: Part, times: int, arms: Arms | None) -> Iterator[tuple[Call, int]]:
    """The calls inside a body, each with how often one run of the body makes it; with `arms` those that are taken."""
    if isinstance(part, Call):
        yield part, times
        return
    turns = times * part.times if isinstance(part, Repeat) else times
    for child in arms.running(part) if arms else children(part):
        yield from _calls(child, turns, arms)


def _function_runs(calls: Mapping[str, list[tuple[Call, int]]], entry: list[tuple[Call, int]]) -> Counter[str]:
    """How often each function runs in one call of the program."""
    callers: dict[str, Counter[str]] = {name: Counter() for name in calls}
    for name, inside in [("", entry), *calls.items()]:
        for call, times in inside:
            callers[call.function][name] += times
    runs = Counter({"": 1})

    def of(name: str) -> int:
        if name not in runs:
            runs[name] = sum(times * of(caller) for caller, times in callers[name].items())
        return runs[name]

    for name in calls:
        of(name)
    return runs
