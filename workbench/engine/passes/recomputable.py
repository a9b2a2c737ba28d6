"""Recipes: how a value can be made again elementwise, for the passes that rather compute than keep."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import count

from workbench.engine.graph import Function, Node, Value
from workbench.engine.ops.pointwise import is_free, is_pointwise
from workbench.engine.passes.clusters import Flow

SMALL_SHARE = 16  # an operand this many times smaller than the value may live on for it
MAX_DEPTH = 12  # operations done again for one value; a GELU and its slope take ten


class FreshIds:
    """Makes new values of a function, as it was when it was given."""

    def __init__(self, function: Function) -> None:
        self._function = function

    @cached_property
    def _numbers(self) -> Iterator[int]:
        """The numbers of values that are free; few rewrites of a function ask for any."""
        used = [value.id for value in self._function.params]
        used += [value.id for node in self._function.nodes for value in node.results]
        return count(1 + max(used, default=-1))

    def new(self, shape: tuple[int, ...], dtype: str) -> Value:
        """A value of this type."""
        return Value(next(self._numbers), shape, dtype)

    def like(self, value: Value) -> Value:
        """A value of its own with the type of another."""
        return self.new(value.shape, value.dtype)


def find_recipe(value: Value, flow: Flow, kept: Collection[int]) -> list[Node] | None:
    """The operations that make the value from what is kept (by identity) anyway, in order; None if there are none.

    Constants, counters and broadcasts cost nothing and are always made again.
    """
    recipe: list[Node] = []
    seen: set[int] = set()
    small_elements = value.elements // SMALL_SHARE
    done = 0  # operations so far

    def make(wanted: Value) -> bool:
        nonlocal done
        if id(wanted) in seen:
            return True
        if wanted is not value and id(wanted) in kept:
            return True
        node = flow.producer.get(id(wanted))
        free = node is not None and is_free(node)
        if wanted is not value and not free and wanted.elements <= small_elements:
            return True
        if node is None or not (free or is_pointwise(node)):
            return False
        for operand in node.operands:
            if not make(operand):
                return False
        seen.add(id(wanted))
        recipe.append(node)
        done += not free
        return done <= MAX_DEPTH

    return recipe if make(value) else None


def without_dead(function: Function, suspects: set[int]) -> Function:
    """The function without those of the suspects (by identity) that nobody reads any more."""
    read = {id(value) for value in function.results}
    nodes: list[Node] = []
    for node in reversed(function.nodes):
        if id(node) in suspects and not any(id(value) in read for value in node.results):
            continue
        read.update(id(value) for value in node.operands)
        nodes.append(node)
    return replace(function, nodes=tuple(reversed(nodes)))
