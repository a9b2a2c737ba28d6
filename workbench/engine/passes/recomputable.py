"""Recipes: how a value can be made again elementwise, for the passes that rather compute than keep."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from workbench.engine.graph import Function, Node, Value
from workbench.engine.ops.pointwise import is_free, is_pointwise
from workbench.engine.passes.clusters import Flow

SMALL_SHARE = 16  # an operand this many times smaller than the value may live on for it
MAX_DEPTH = 12  # operations done again for one value; a GELU and its slope take ten


def find_recipe(value: Value, flow: Flow, kept: Collection[Value]) -> list[Node] | None:
    """The operations that make the value from what is kept (by identity) anyway, in order; None if there are none.

    Constants, counters and broadcasts cost nothing and are always made again.
    """
    recipe: list[Node] = []
    seen: set[Value] = set()
    small_elements = value.elements // SMALL_SHARE
    done = 0  # operations so far

    def make(wanted: Value) -> bool:
        nonlocal done
        if wanted in seen:
            return True
        if wanted is not value and wanted in kept:
            return True
        node = flow.producer.get(wanted)
        free = node is not None and is_free(node)
        if wanted is not value and not free and wanted.elements <= small_elements:
            return True
        if node is None or not (free or is_pointwise(node)):
            return False
        for operand in node.operands:
            if not make(operand):
                return False
        seen.add(wanted)
        recipe.append(node)
        done += not free
        return done <= MAX_DEPTH

    return recipe if make(value) else None


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
