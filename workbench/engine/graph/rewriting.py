"""Rewriting a function node by node: a rule answers with the values that stand for a node's results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

from workbench.engine.graph.graph import Function, Graph, Node, Value, attrs


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


class Writer:
    """The new nodes of one function; what it makes has the origin of the node that is being rewritten."""

    def __init__(self, function: Function) -> None:
        self._ids = FreshIds(function)
        self.nodes: list[Node] = []
        self.made_by: dict[Value, Node] = {}
        self.now = Node("", (), ())  # what is being rewritten

    def begin(self, node: Node) -> None:
        """What follows is written for this node."""
        self.now = node

    def insert(self, after: Node, op: str, operand: Value, shape: Sequence[int], **attributes: Any) -> Value:
        """A node of one operand right behind one written already, with that one's origin."""
        result = self.value(shape, operand.dtype)
        node = Node(op, (operand,), (result,), attrs(**attributes), after.origin)
        self.nodes.insert(self.nodes.index(after) + 1, node)
        self.made_by[result] = node
        return result

    def add(self, node: Node) -> None:
        """Append a finished node."""
        self.nodes.append(node)
        for value in node.results:
            self.made_by[value] = node

    def value(self, shape: Sequence[int], dtype: str) -> Value:
        """A fresh value."""
        return self._ids.new(tuple(int(size) for size in shape), dtype)

    def write(
        self, op: str, operands: Sequence[Value], shape: Sequence[int], dtype: str = "", /, **attributes: Any
    ) -> Value:
        """Append a node of one result, of its first operand's type unless `dtype` says otherwise."""
        result = self.value(shape, dtype or operands[0].dtype)
        self.add(Node(op, tuple(operands), (result,), attrs(**attributes), self.now.origin))
        return result

    def slice(self, source: Value, axis: int, low: int, high: int) -> Value:
        """Entries [low, high) along an axis, which may count from the end."""
        axis %= len(source.shape)
        begin = [low if at == axis else 0 for at in range(len(source.shape))]
        end = [high if at == axis else size for at, size in enumerate(source.shape)]
        shape = [last - first for first, last in zip(begin, end, strict=True)]
        steps = (1,) * len(shape)
        return self.write("slice", [source], shape, start_indices=begin, limit_indices=end, strides=steps)

    def join(self, parts: Sequence[Value], axis: int) -> Value:
        """Parts behind each other along an axis, which may count from the end."""
        axis %= len(parts[0].shape)
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return parts[0] if len(parts) == 1 else self.write("concatenate", parts, shape, dimension=axis)

    def reshape(self, source: Value, shape: Sequence[int]) -> Value:
        """The same elements under another shape."""
        return source if source.shape == tuple(shape) else self.write("reshape", [source], shape, new_sizes=shape)

    def cast(self, source: Value, dtype: str) -> Value:
        """The elements in another type."""
        if source.dtype == dtype:
            return source
        return self.write("convert_element_type", [source], source.shape, dtype, new_dtype=dtype)

    def filled(self, number: float, shape: Sequence[int], dtype: str) -> Value:
        """One number everywhere."""
        scalar = self.write("constant", (), (), dtype, value=number)
        return (
            scalar
            if not shape
            else self.write("broadcast_in_dim", [scalar], shape, shape=shape, broadcast_dimensions=())
        )


Rule = Callable[[Node, Writer], Sequence[Value] | None]


def rewrite(graph: Graph, rule: Rule, ops: Collection[str]) -> Graph:
    """Apply a rule to every node of every function that does one of `ops`; where it answers None the node stays.

    Before recognition and fusion, whose bodies share the values of their callers.
    """
    functions = {name: rewrite_function(each, rule, ops) for name, each in graph.functions.items()}
    return replace(graph, functions=functions)


def rewrite_function(function: Function, rule: Rule, ops: Collection[str]) -> Function:
    """Apply a rule to the nodes of a function that do one of `ops`, their operands rewritten already."""
    if not any(node.op in ops for node in function.nodes):
        return function
    writer = Writer(function)
    stands_for: dict[Value, Value] = {}
    for old in function.nodes:
        node = old.with_read(stands_for)
        found = None
        if node.op in ops:
            writer.begin(node)
            found = rule(node, writer)
        if found is None:
            writer.add(node)
        else:
            stands_for.update(zip(node.results, found, strict=True))
    if tuple(writer.nodes) == function.nodes:
        return function
    results = tuple(stands_for.get(value, value) for value in function.results)
    nodes = writer.nodes if not stands_for else read_nodes(writer.nodes, results)
    return Function(function.name, function.params, results, tuple(nodes))


def read_nodes(nodes: Sequence[Node], results: Sequence[Value]) -> list[Node]:
    """The nodes somebody reads; those without results or with bodies stay, as they may do more than compute."""
    wanted = set(results)
    kept = []
    for node in reversed(nodes):
        if node.results and not node.calls and not any(value in wanted for value in node.results):
            continue
        wanted.update(node.operands)
        kept.append(node)
    return kept[::-1]
