"""Lower one planned node and read what came out: its steps, cycles and live temporaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.engine.planner.cases import graph_of
from workbench.engine.graph import Node
from workbench.engine.lower import Lowered, lower
from workbench.engine.lower.in_place import find_in_place
from workbench.engine.options import options
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.program import DoExchange, Leaf, OnTileExecute, Program, Repeat, children, leaves, verify_program
from workbench.engine.target import Target
from workbench.engine.time.step_cost import StepCosts


@dataclass(frozen=True, kw_only=True)
class Case:
    node: Node
    lowered: Lowered
    plan: ConvPlan
    target: Target

    def steps(self) -> list[Leaf]:
        """The steps of the operator, in order."""
        return [step for step in leaves(self.lowered.program.entry) if step.operator]

    def exchanges(self) -> list[DoExchange]:
        return [step for step in self.steps() if isinstance(step, DoExchange)]

    def computes(self, name: str = "") -> list[OnTileExecute]:
        return [step for step in self.steps() if isinstance(step, OnTileExecute) and step.name.endswith(name)]

    def vertices(self) -> set[str]:
        return {group.vertex for step in self.computes() for group in step.compute_set.groups}

    def cycles(self) -> int:
        """Modelled cycles of the operator's steps as emitted."""
        costs = StepCosts(self.target)
        return sum(times * costs.cost(step).cost.value for step, times in _repeated(self.lowered.program.entry))

    def temporary_bytes(self, during: Leaf | None = None) -> int:
        """Most bytes of temporaries live at once on any tile, from each one's first step to its last; `during` one."""
        steps = self.steps()
        program = self.lowered.program
        live = np.zeros((len(steps), self.target.tiles_per_ipu), np.int64)
        for variable in program.variables:
            touched = [at for at, step in enumerate(steps) if variable.id in (*step.reads, *step.writes)]
            if variable.kind == "temporary" and touched:
                live[touched[0] : touched[-1] + 1] += variable.bytes_per_tile
        return int((live if during is None else live[steps.index(during)]).max(initial=0))


def _repeated(program: Program, times: int = 1) -> Iterator[tuple[Leaf, int]]:
    if isinstance(program, Repeat):
        yield from _repeated(program.body, times * program.times)
        return
    below = children(program)
    for child in below:
        yield from _repeated(child, times)
    if not below and getattr(program, "operator", ""):
        yield program, times  # type: ignore[misc]


def lowered(node: Node, target: Target, **changed: object) -> Case:
    """The node alone between its parameters and its result; `changed` options are those of matmuls and convolutions."""
    values = {
        f"{group}.poplar_options.{name}": value
        for group in ("matmuls", "convolutions")
        for name, value in changed.items()
    }
    graph = graph_of(node)
    found = lower(graph, target, options(values), find_in_place(graph))
    verify_program(found.program)
    (plan,) = set(found.plans.values())
    assert isinstance(plan, ConvPlan)
    return Case(node=node, lowered=found, plan=plan, target=target)
