"""Recipes: how a value can be made again elementwise, for the passes that rather compute than keep."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from workbench.engine.graph import Function, Node, Value
from workbench.engine.ops.pointwise import is_free, is_pointwise
from workbench.engine.passes.clusters import Flow

SMALL_SHARE = 16  # an operand this many times smaller than the value may live on for it
MAX_DEPTH = 12  # operations done again for one value; a GELU and its slope take ten


def find_recipe(
    value: Value, flow: Flow, kept: Collection[Value], missed: set[Value] | None = None
) -> list[Node] | None:
    """The operations that make the value from what is kept (by identity) anyway, in order; None if there are none.

    Constants, counters and broadcasts cost nothing and are always made again. Where there are none, there may be once
    one of the values is kept that are added to `missed`.
    """
    recipe = _Recipe(value=value, flow=flow, kept=kept, missed=set() if missed is None else missed)
    return recipe.nodes if recipe.make(value) else None


@dataclass(slots=True, eq=False, kw_only=True)
class _Recipe:
    """How `value` is made, so far: the `nodes`, what they make, and how many of them are operations.

    `missed` are other values that are not kept, of what has been looked for.
    """

    value: Value
    flow: Flow
    kept: Collection[Value]
    missed: set[Value]
    nodes: list[Node] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)
    operations: int = 0

    def make(self, wanted: Value, above: int = 0) -> bool:
        """Add what makes a value unless it is there; whether it can be. `above` are operations that wait for it."""
        if wanted in self.made:
            return True
        if wanted is not self.value:
            if wanted in self.kept:
                return True
            self.missed.add(wanted)
        node = self.flow.producer.get(wanted)
        free = node is not None and is_free(node)
        if wanted is not self.value and not free and wanted.elements <= self.value.elements // SMALL_SHARE:
            return True
        if node is None or not (free or is_pointwise(node)):
            return False
        above += not free
        if self.operations + above > MAX_DEPTH:
            return False
        for operand in node.operands:
            if not self.make(operand, above):
                return False
        self.made.add(wanted)
        self.nodes.append(node)
        self.operations += not free
        return True


def without_dead(function: Function, suspects: set[Node]) -> Function:
    """The function without those of the suspects (by identity) that nobody reads any more."""
    read = set(function.results)
    nodes: list[Node] = []
    for node in reversed(function.nodes):
        if node in suspects and not any(value in read for value in node.results):
            continue
        read.update(node.operands)
        nodes.append(node)
    return replace(function, nodes=tuple(reversed(nodes)))
