"""From a tile program to its trace: the cost of every step once, durations by recursion, causes by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeAlias

from workbench.base.causes import CAUSES, IDLE_BY_PHASE, Cause, idle_beside
from workbench.engine.program import Call, If, Overlap, Program, Repeat, Sequence, Step, TileProgram, children
from workbench.engine.program.tree import Below
from workbench.engine.time.host_waits import with_waits
from workbench.engine.time.step_cost import StepCosts
from workbench.engine.time.trace import StepCost, Trace, TraceNode
from workbench.errors import VerificationError

Spent: TypeAlias = "Counter[tuple[int, Cause]]"
_Runs: TypeAlias = "tuple[list[tuple[Program, int]], Counter[str]]"


def execute(program: TileProgram, costs: StepCosts | None = None) -> Trace:
    """Cost every step, by `costs` if given, and the waiting between them."""
    costs = costs or costs_of(program)
    below = Below()
    alone = costs.by_id(program.steps)
    durations = Durations(program, alone, below)
    steps = with_waits(program, alone, durations.turn, below)
    if steps is not alone:
        durations = Durations(program, steps, below)
    entry = durations.node(program.entry)
    functions = {name: durations.function(name) for name in program.functions}
    counting = Counting(program, steps, below)
    scope = frozenset(range(program.ipus))
    spent = counting.spent(program.entry, scope)
    breakdown = tuple({cause: spent[ipu, cause] for cause in CAUSES} for ipu in range(program.ipus))
    return Trace(
        program=program,
        steps=steps,
        entry=entry,
        functions=functions,
        cycle_breakdown=breakdown,
        executions=counting.executions(),
    )


def costs_of(program: TileProgram, earlier: StepCosts | None = None) -> StepCosts:
    """What costs the steps of a program; what it shares with an `earlier` one is taken over."""
    return StepCosts(program.target, program.topology, program.ipus, earlier)


class Durations:
    """The tree of durations: a sequence adds, a repeat multiplies, an overlap and a branch take the longest."""

    def __init__(self, program: TileProgram, steps: Mapping[int, StepCost], below: Below) -> None:
        self.program = program
        self.steps = steps
        self.below = below
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
        own = self.below.steps(program)
        nodes = [self.node(part) for part in self.below.nodes(program)]
        durations = [*[self.steps[step.id].cycles for step in own], *[node.cycles for node in nodes]]
        ipus = frozenset[int]().union(*{step.ipus for step in own}, *{node.ipus for node in nodes})
        if isinstance(program, Sequence):
            cycles = sum(durations)
        elif isinstance(program, Repeat):
            cycles = program.times * sum(durations)
        else:
            cycles = max(durations, default=0)
        found = TraceNode(program=program, cycles=cycles, ipus=ipus, inside=partial(self._inside, program, nodes))
        if isinstance(program, Overlap) and sum(len(child.ipus) for child in found.children) != len(ipus):
            raise VerificationError(f"two branches of the overlap {program.name!r} use one IPU")
        return found

    def _inside(self, program: Program, nodes: Iterable[TraceNode]) -> tuple[TraceNode, ...]:
        made = iter(nodes)
        return tuple([self.node(part) if isinstance(part, Step) else next(made) for part in children(program)])


class Counting:
    """Cycles per IPU and cause by weighting each step with the number of its executions.

    Nothing is taken from the tree of durations: an idle stretch is what a column's longest branch has more than the
    branch of this IPU, both found by adding the causes of one of their own IPUs. A stage makes the same calls column
    by column: what is asked of calls in turn is found once for all that call the same functions.
    """

    def __init__(self, program: TileProgram, steps: Mapping[int, StepCost], below: Below) -> None:
        self.program = program
        self.steps = steps
        self.below = below
        self._by_cause: dict[Program, dict[tuple[Cause, tuple[int, ...]], int]] = {}
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
        if isinstance(program, Call):
            found = self.ipus(self.program.functions[program.function])
        else:
            of_steps = {ipus for _, ipus in self.by_cause(program)}
            found = frozenset[int]().union(*of_steps, *map(self.ipus, self.below.nodes(program)))
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
            return self.of_steps(program, scope)
        if isinstance(program, Call):
            return self.spent(self.program.functions[program.function], scope)
        if isinstance(program, Overlap):
            return self._overlap(program, scope)
        if isinstance(program, If):
            return self.spent(program.arms[self.dearest(program)], scope) if program.arms else Counter()
        result = self.of_steps(program, scope)
        for part in self.below.nodes(program):
            for spent_by, cycles in self.spent(part, scope).items():
                result[spent_by] += cycles
        if isinstance(program, Repeat):
            return Counter({key: cycles * program.times for key, cycles in result.items()})
        return result

    def by_cause(self, program: Program) -> Mapping[tuple[Cause, tuple[int, ...]], int]:
        """Cycles of a step, or of those right below a node, by cause and the IPUs that work."""
        if program not in self._by_cause:
            together: dict[tuple[Cause, tuple[int, ...]], int] = {}
            for step in [program] if isinstance(program, Step) else self.below.steps(program):
                cost = self.steps[step.id]
                key = (cost.cause, step.ipus)
                together[key] = together.get(key, 0) + cost.cycles
            self._by_cause[program] = together
        return self._by_cause[program]

    def of_steps(self, program: Program, scope: frozenset[int]) -> Spent:
        """Cycles by (IPU, cause) of the same: the cause of each where it works, waiting elsewhere."""
        result: Spent = Counter()
        for (cause, ipus), cycles in self.by_cause(program).items():
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

    def executions(self) -> dict[int, int]:
        """How often each step runs in one run of the program; steps of an arm not taken never do."""
        found = dict.fromkeys(self.steps, 0)
        bodies = {name: self._once(body) for name, body in self.program.functions.items()}
        bodies[""] = self._once(self.program.entry)
        runs = Counter({"": 1})
        for name in _callers_first(bodies):
            steps, calls = bodies[name]
            mine = runs[name]
            for node, times in steps:
                for step in [node] if isinstance(node, Step) else self.below.steps(node):
                    found[step.id] += times * mine
            for function, times in calls.items():
                runs[function] += times * mine
        return found

    def _once(self, body: Program) -> _Runs:
        """How often one execution of a body runs its nodes with steps, and calls each function."""
        steps: list[tuple[Program, int]] = []
        calls: Counter[str] = Counter()
        waiting = [(body, 1)]
        while waiting:
            node, times = waiting.pop()
            if isinstance(node, Call):
                calls[node.function] += times
            elif isinstance(node, If):
                waiting += [(node.arms[self.dearest(node)], times)] if node.arms else []
            else:
                inside = times * node.times if isinstance(node, Repeat) else times
                steps.append((node, inside))
                waiting += [(child, inside) for child in self.below.nodes(node)]
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
