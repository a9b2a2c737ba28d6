"""For whom a program does what, by the plainest way: every call of the tile program followed, every turn multiplied.

It knows the engine's tree and the costs of its steps, and nothing of profiles. `operators` of a shared body with parts
are told to it, by the operator that its call names; `made` are the lines of layers, to which steps without one belong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.engine.compile import Compiled
from workbench.engine.program import Call, If, Overlap, Program, Repeat, Step, children
from workbench.engine.program import Sequence as ProgramSequence


class Around(NamedTuple):
    """What the calls above a step say; `origin` None leaves it its own."""

    call: Call | None = None
    again: bool = False
    part: int = -1


@dataclass(slots=True)
class Truth:
    """Cycles of a whole call of the program, each step once for all IPUs it occupies."""

    layers: Counter[tuple[str, str]] = field(default_factory=Counter)  # (layer, direction)
    operators: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    positions: dict[int, list[str]] = field(default_factory=dict)  # IPU → layers along its program
    total: int = 0


def truth_of(
    compiled: Compiled, operators: Mapping[str, Sequence[str]] | None = None, made: Mapping[str, str] | None = None
) -> Truth:
    """The truth of a compiled program."""
    walk = _Walk(compiled, operators or {}, made or {})
    walk.node(compiled.program.entry, Around(), 1)
    walk.found.positions = {ipu: [] for ipu in range(compiled.program.ipus)}
    walk.place(compiled.program.entry, Around())
    return walk.found


class _Walk:
    def __init__(self, compiled: Compiled, operators: Mapping[str, Sequence[str]], made: Mapping[str, str]) -> None:
        self.program, self.costs = compiled.program, compiled.trace.steps
        self.operators, self.made = operators, made
        self.found = Truth()

    def node(self, node: Program, around: Around, times: int) -> None:
        if isinstance(node, Step):
            self.step(node, around, times * self.costs[node.id].cycles)
        elif isinstance(node, Call):
            body, inside = self.program.functions[node.function], self.inside(node, around)
            for number, part in enumerate(body.children if isinstance(body, ProgramSequence) else (body,)):
                self.node(part, inside._replace(part=number) if node.operator else inside, times)
        elif isinstance(node, If):
            if node.arms:
                self.node(max(node.arms, key=self.length), around, times)
        else:
            for child in children(node):
                self.node(child, around, times * (node.times if isinstance(node, Repeat) else 1))

    def inside(self, call: Call, around: Around) -> Around:
        again = call.direction == "recompute" or (not call.direction and around.again)
        named = call.operator or call.origin.layer
        return Around(call if named else around.call, again, around.part)

    def step(self, step: Step, around: Around, cycles: int) -> None:
        own, call = step.origin, around.call
        layer = own.layer if call is None else call.origin.layer
        again = around.again and own.direction == "forward"
        source, operator = own.source, step.operator
        if call is not None and call.operator:
            told = call.sources or (call.origin.source,)
            source = told[around.part if len(told) > 1 else 0]
            named = self.operators.get(call.operator, (call.operator,))
            operator = named[around.part if len(named) > 1 else 0]
        if again and operator:
            operator = operator.replace(":forward", ":recompute")
        self.found.layers[layer, "recompute" if again else own.direction] += cycles
        self.found.operators[operator] += cycles
        self.found.sources[source or self.made.get(layer, "")] += cycles * len(step.ipus)
        self.found.total += cycles

    def length(self, node: Program) -> int:
        if isinstance(node, Step):
            return self.costs[node.id].cycles
        if isinstance(node, Call):
            return self.length(self.program.functions[node.function])
        below = [self.length(child) for child in children(node)]
        if isinstance(node, Repeat):
            return node.times * below[0]
        return max(below, default=0) if isinstance(node, If | Overlap) else sum(below)

    def place(self, node: Program, around: Around) -> None:
        """The layer of every step along each IPU's program: calls expanded, all arms, loops once."""
        if isinstance(node, Step):
            layer = node.origin.layer if around.call is None else around.call.origin.layer
            for ipu in node.ipus:
                self.found.positions[ipu].append(layer)
        elif isinstance(node, Call):
            self.place(self.program.functions[node.function], self.inside(node, around))
        else:
            for child in children(node):
                self.place(child, around)
