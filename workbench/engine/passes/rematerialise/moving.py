"""Residuals moved to where they are read, in rounds: each looks only at what the one before it has changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from math import inf

from workbench.engine.graph import Function, Node, Value
from workbench.engine.graph.rewriting import FreshIds
from workbench.engine.ops.pointwise import is_free, is_pointwise
from workbench.engine.passes.clusters import flow_of, read_through
from workbench.engine.passes.recomputable import find_recipe
from workbench.engine.passes.rematerialise.residual_roots import AHEAD


def all_moved(function: Function) -> Function:
    """Move until nothing moves: what only a moved operation still read moves next."""
    moving = _Moving(function)
    pending: Iterable[Node] = function.nodes
    while pending:
        pending = moving.round(pending)
    return moving.function()


class _Moving:
    """A function while residuals leave its forward pass; what stays keeps its place.

    `before` are nodes written right before another, each of which is `anchored` there by that one and its number. A
    value that is `kept`, since the backward pass reads it, stays so. `waiting` are nodes that could move if a value
    were kept, by that value.
    """

    def __init__(self, function: Function) -> None:
        flow = flow_of(function)
        self.producer = dict(flow.producer)
        self.flow, self.ids = replace(flow, producer=self.producer), FreshIds(function)
        self.given = function
        self.returned = set(function.results)
        self.readers: dict[Value, dict[Node, None]] = {
            value: dict.fromkeys(function.nodes[place] for place in places) for value, places in flow.uses.items()
        }
        self.kept = {value for value, readers in self.readers.items() if any(map(_is_back, readers))}
        self.reads = Counter(value for node in function.nodes for value in node.operands)
        self.gone: set[Node] = set()
        self.before: dict[Node, list[Node]] = {}
        self.anchored: dict[Node, tuple[Node, int]] = {}
        self.waiting: defaultdict[Value, list[Node]] = defaultdict(list)
        self.changed: set[Node] = set()  # in this round, so that they may move in the next

    def function(self) -> Function:
        """The function as it is now; the one that was given where nothing has moved."""
        if not self.gone:
            return self.given
        backwards: list[Node] = []
        pending = list(self.given.nodes)
        while pending:
            node = pending.pop()
            if node not in self.gone:
                backwards.append(node)
            pending += self.before.get(node, ())
        return replace(self.given, nodes=tuple(reversed(backwards)))

    def round(self, nodes: Iterable[Node]) -> list[Node]:
        """Move those of these nodes that can be; the nodes of which that may have changed, in order."""
        self.changed = set()
        found = [(node, recipe) for node in nodes if (recipe := self._recipe(node)) is not None]
        for node, recipe in found:
            self._move(node, recipe)
        repeated = {node for _, recipe in found for node in recipe} - self.gone
        for node in sorted(repeated, key=self.flow.place_of.__getitem__, reverse=True):
            if not any(self.reads[value] or value in self.returned for value in node.results):
                self._remove(node)
        return sorted(self.changed - self.gone, key=self.flow.place_of.__getitem__)

    def _recipe(self, node: Node) -> list[Node] | None:
        """How a residual is made again; None for what is none, or has to be kept."""
        if not self._is_residual(node):
            return None
        missed = set[Value]()
        recipe = find_recipe(node.results[0], self.flow, self.kept, missed)
        if recipe is None:
            for value in missed:
                self.waiting[value].append(node)
        return recipe

    def _is_residual(self, node: Node) -> bool:
        """Made elementwise going forward, for the first time or again, read only going backward."""
        if node.origin.direction not in AHEAD or len(node.results) != 1 or not is_pointwise(node):
            return False
        value = node.results[0]
        readers = self.readers.get(value)
        return value not in self.returned and value.elements > 1 and bool(readers) and all(map(_is_back, readers or ()))

    def _move(self, node: Node, recipe: list[Node]) -> None:
        """Write the recipe as new nodes before the first reader; the last of them makes the value itself."""
        value = node.results[0]
        reader = self._first(self.readers[value])
        written = self.before.setdefault(reader, [])
        renamed: dict[Value, Value] = {}
        for each in recipe:
            results = tuple(made if made is value else self.ids.like(made) for made in each.results)
            renamed.update(zip(each.results, results, strict=True))
            operands = tuple(renamed.get(operand, operand) for operand in each.operands)
            again = replace(each, operands=operands, results=results, origin=replace(each.origin, direction="backward"))
            self.anchored[again] = (reader, len(written))
            written.append(again)
            self._add(again)
        self._remove(node)

    def _first(self, readers: Iterable[Node]) -> Node:
        several = list(readers)
        return several[0] if len(several) == 1 else min(several, key=self._path)

    def _path(self, node: Node) -> list[float]:
        """Where a node stands: by the place of a given one, then by numbers of those right before that, and so on."""
        path = [inf]
        while node in self.anchored:
            node, number = self.anchored[node]
            path.append(number)
        return [self.flow.place_of[node], *reversed(path)]

    def _add(self, node: Node) -> None:
        self.producer.update((value, node) for value in node.results)
        self.reads.update(node.operands)
        for value in () if is_free(node) else read_through(node, self.producer):
            self.readers.setdefault(value, {})[node] = None
            if value not in self.kept:
                self.kept.add(value)
                self.changed.update(self.waiting.pop(value, ()))

    def _remove(self, node: Node) -> None:
        self.gone.add(node)
        self.reads.subtract(node.operands)
        for value in self.flow.read.get(node, ()):
            self.readers[value].pop(node, None)
            if value in self.producer:
                self.changed.add(self.producer[value])


def _is_back(node: Node) -> bool:
    return node.origin.direction == "backward"
