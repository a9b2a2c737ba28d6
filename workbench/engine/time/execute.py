"""From a tile program to its trace: the cost of every step once, durations by recursion, causes by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeAlias

from workbench.base.causes import CAUSES, IDLE_BY_PHASE, Cause, idle_beside
from workbench.engine.program import Call, If, Overlap, Program, Repeat, Sequence, Step, TileProgram, children
from workbench.engine.time.host_waits import with_waits
from workbench.engine.time.step_cost import StepCosts
from workbench.engine.time.trace import StepCost, Trace, TraceNode
from workbench.errors import VerificationError

Spent: TypeAlias = "Counter[tuple[int, Cause]]"
_Runs: TypeAlias = "tuple[dict[int, int], Counter[str]]"


def execute(program: TileProgram, costs: StepCosts | None = None) -> Trace:
    """Cost every step, by `costs` if given, and the waiting between them."""
    costs = costs or costs_of(program)
    alone = {step.id: costs.cost(step) for step in program.steps}
    steps = with_waits(program, alone, Durations(program, alone).turn)
    durations = Durations(program, steps)
    entry = durations.node(program.entry)
    functions = {name: durations.function(name) for name in program.functions}
    counting = Counting(program, steps)
    scope = frozenset(range(program.ipus))
    spent = counting.spent(program.entry, scope)
    breakdown = tuple({cause: spent[ipu, cause] for cause in CAUSES} for ipu in range(program.ipus))
    executions = counting.executions()
    return Trace(
        program=program,
        steps=steps,
        entry=entry,
        functions=functions,
        cycle_breakdown=breakdown,
        executions={step: executions[step] for step in steps},
    )


def costs_of(program: TileProgram, earlier: StepCosts | None = None) -> StepCosts:
    """What costs the steps of a program; what it shares with an `earlier` one is taken over."""
    return StepCosts(program.target, program.topology, program.ipus, earlier)


class Durations:
    """The tree of durations: a sequence adds, a repeat multiplies, an overlap and a branch take the longest."""

    def __init__(self, program: TileProgram, steps: Mapping[int, StepCost]) -> None:
        self.program = program
        self.steps = steps
        self._functions: dict[str, TraceNode] = {}
        self._places: dict[tuple[int, ...], frozenset[int]] = {}

    def function(self, name: str) -> TraceNode:
        """The body of a function, once."""
        if name not in self._functions:
            self._functions[name] = self.node(self.program.functions[name])
        return self._functions[name]

    def turn(self, loop: Repeat) -> int:
        """Cycles of one turn of a loop."""
        return self.node(loop.body).cycles

    def node(self, program: Program) -> TraceNode:
        """The node with the cycles of one execution."""
        if isinstance(program, Step):
            cost = self.steps[program.id]
            ipus = self._places.setdefault(program.ipus, frozenset(program.ipus))
            return TraceNode(program=program, cycles=cost.cycles, ipus=ipus)
        if isinstance(program, Call):
            body = self.function(program.function)
            return TraceNode(program=program, cycles=body.cycles, ipus=body.ipus)
        parts = children(program)
        known = {place: self.node(part) for place, part in enumerate(parts) if not isinstance(part, Step)}
        durations = [
            self.steps[part.id].cycles if isinstance(part, Step) else known[place].cycles
            for place, part in enumerate(parts)
        ]
        ipus = frozenset([ipu for part in parts if isinstance(part, Step) for ipu in part.ipus])
        ipus = ipus.union(*{below.ipus for below in known.values()})
        if isinstance(program, Sequence):
            cycles = sum(durations)
        elif isinstance(program, Repeat):
            cycles = program.times * sum(durations)
        else:
            cycles = max(durations, default=0)
        found = TraceNode(program=program, cycles=cycles, ipus=ipus, inside=partial(self._inside, parts, known))
        if isinstance(program, Overlap) and sum(len(child.ipus) for child in found.children) != len(ipus):
            raise VerificationError(f"two branches of the overlap {program.name!r} use one IPU")
        return found

    def _inside(self, parts: Iterable[Program], known: Mapping[int, TraceNode]) -> tuple[TraceNode, ...]:
        return tuple([known.get(place) or self.node(part) for place, part in enumerate(parts)])


class Counting:
    """Cycles per IPU and cause by weighting each step with the number of its executions.

    Nothing is taken from the tree of durations: an idle stretch is what a column's longest branch has more than the
    branch of this IPU, both found by adding the causes of one of their own IPUs. A stage makes the same calls column
    by column: what is asked of calls in turn is found once for all that call the same functions.
    """

    def __init__(self, program: TileProgram, steps: Mapping[int, StepCost]) -> None:
        self.program = program
        self.steps = steps
        self._calls: dict[tuple[tuple[str, ...], frozenset[int]], Spent] = {}
        self._ipus: dict[tuple[str, ...], frozenset[int]] = {}
        self._lengths: dict[tuple[str, ...], int] = {}
        self._dearest: dict[If, int] = {}  # asked once to choose and once to count: twice as often a level, unless kept

    def ipus(self, program: Program) -> frozenset[int]:
        """The IPUs a node occupies, calls followed."""
        called = _called(program)
        if called in self._ipus:
            return self._ipus[called]
        if isinstance(program, Step):
            return frozenset(program.ipus)
        below = (self.program.functions[program.function],) if isinstance(program, Call) else children(program)
        of_steps = {part.ipus for part in below if isinstance(part, Step)}
        found = frozenset[int]().union(*of_steps, *(self.ipus(part) for part in below if not isinstance(part, Step)))
        if called:
            self._ipus[called] = found
        return found

    def spent(self, program: Program, scope: frozenset[int]) -> Spent:
        """Cycles by (IPU, cause) of one execution, for the IPUs of `scope` only; not to be changed."""
        called = _called(program)
        if not called:
            return self._spent(program, scope)
        if (called, scope) not in self._calls:
            self._calls[called, scope] = self._spent(program, scope)
        return self._calls[called, scope]

    def _spent(self, program: Program, scope: frozenset[int]) -> Spent:
        if isinstance(program, Step):
            return self.of_steps((program,), scope)
        if isinstance(program, Call):
            return self.spent(self.program.functions[program.function], scope)
        if isinstance(program, Overlap):
            return self._overlap(program, scope)
        if isinstance(program, If):
            return self.spent(program.arms[self.dearest(program)], scope) if program.arms else Counter()
        parts = children(program)
        result = self.of_steps([part for part in parts if isinstance(part, Step)], scope)
        for part in parts:
            if not isinstance(part, Step):
                for spent_by, cycles in self.spent(part, scope).items():
                    result[spent_by] += cycles
        if isinstance(program, Repeat):
            return Counter({key: cycles * program.times for key, cycles in result.items()})
        return result

    def of_steps(self, steps: Iterable[Step], scope: frozenset[int]) -> Spent:
        """Cycles by (IPU, cause) of steps: the cause of each where it works, waiting elsewhere."""
        together: dict[tuple[Cause, tuple[int, ...]], int] = {}
        for step in steps:
            cost = self.steps[step.id]
            key = (cost.cause, step.ipus)
            together[key] = together.get(key, 0) + cost.cycles
        result: Spent = Counter()
        for (cause, ipus), cycles in together.items():
            waiting = idle_beside(cause)
            for ipu in scope:
                result[ipu, cause if ipu in ipus else waiting] += cycles
        return result

    def length(self, program: Program) -> int:
        """Cycles of one execution: everything one of its IPUs does and waits for."""
        called = _called(program)
        if called in self._lengths:
            return self._lengths[called]
        some = next(iter(self.ipus(program)), None)
        found = 0 if some is None else self.spent(program, frozenset((some,))).total()
        if called:
            self._lengths[called] = found
        return found

    def dearest(self, program: If) -> int:
        """The arm that costs most, the first of equals."""
        if program not in self._dearest:
            lengths = [self.length(arm) for arm in program.arms]
            self._dearest[program] = lengths.index(max(lengths))
        return self._dearest[program]

    def _overlap(self, program: Overlap, scope: frozenset[int]) -> Spent:
        lengths = [self.length(branch) for branch in program.branches]
        column = max(lengths, default=0)
        idle = IDLE_BY_PHASE[program.phase]
        result: Spent = Counter()
        resting = scope
        for branch, length in zip(program.branches, lengths, strict=True):
            inside = self.ipus(branch) & scope
            if inside:
                result.update(self.spent(branch, inside))
                result.update({(ipu, idle): column - length for ipu in inside})
            resting -= inside
        result.update({(ipu, idle): column for ipu in resting})
        return result

    def executions(self) -> Counter[int]:
        """How often each step runs in one run of the program; steps of an arm not taken never do."""
        found: dict[int, int] = {}
        bodies = {name: self._once(body) for name, body in self.program.functions.items()}
        bodies[""] = self._once(self.program.entry)
        runs = Counter({"": 1})
        for name in _callers_first(bodies):
            steps, calls = bodies[name]
            mine = runs[name]
            for step, times in steps.items():
                found[step] = found.get(step, 0) + times * mine
            for function, times in calls.items():
                runs[function] += times * mine
        return Counter(found)

    def _once(self, body: Program) -> _Runs:
        """How often one execution of a body runs its own steps, and calls each function."""
        steps: dict[int, int] = {}
        calls: Counter[str] = Counter()
        waiting = [(body, 1)]
        while waiting:
            node, times = waiting.pop()
            if isinstance(node, Step):
                steps[node.id] = steps.get(node.id, 0) + times
            elif isinstance(node, Call):
                calls[node.function] += times
            elif isinstance(node, If):
                waiting += [(node.arms[self.dearest(node)], times)] if node.arms else []
            else:
                inside = times * node.times if isinstance(node, Repeat) else times
                waiting += [(child, inside) for child in children(node)]
        return steps, calls


def _called(program: Program) -> tuple[str, ...]:
    """The functions that a node calls, if it is nothing but calls in turn; else none."""
    if isinstance(program, Call):
        return (program.function,)
    below = program.children if isinstance(program, Sequence) else ()
    if not below or not isinstance(below[0], Call):  # as of most bodies, which have thousands of steps
        return ()
    names = tuple([child.function for child in below if isinstance(child, Call)])
    return names if len(names) == len(below) else ()


def _callers_first(bodies: Mapping[str, _Runs]) -> list[str]:
    """The entry, "", and the functions it calls, each behind everything that calls it."""
    done: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in done:
            for function in bodies[name][1]:
                visit(function)
            done[name] = None

    visit("")
    return list(reversed(done))
