"""Halves: what a norm of halves makes of all its elements is in half too, as PopLibs has it; statistics stay float.

PopLibs' norms give every tensor of the activations' size the type of the activations: the whitened ones, their product
with the gradient, the gradient of the input (poplibs@7eac0f26 lib/poplin/Norms.cpp `normWhiten`, `normParamGradients`,
`normStatisticsGradientsImpl`); only sums have partials in float. Frameworks trace norms of halves in float throughout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.engine.graph import Function, Graph, Node, Value, attrs
from workbench.engine.graph.primitives import names
from workbench.engine.graph.rewriting import Writer, read_nodes
from workbench.engine.ops.pointwise import is_pointwise
from workbench.engine.passes.norm_moments import NORMS

# A norm shows and repeats what it reads so; because other views are none of its steps, they stay as they are.
SHOWN = names(reshapes=True) | {"broadcast_in_dim", "transpose"}
# Because PopLibs' sums of halves have partials in float, and its other reductions have them in half.
SUMMED_IN_FLOAT = frozenset({"reduce_sum", "reduce_square_sum"})

Call = tuple[str, int]


def norms_in_half(graph: Graph) -> Graph:
    """Narrow the norms of every function that read halves."""
    return replace(graph, functions={name: _narrowed(function) for name, function in graph.functions.items()})


def _narrowed(function: Function) -> Function:
    wide = _wide(function)
    return _Narrowing(function, wide).function() if wide else function


def _call(node: Node) -> Call | None:
    origin = node.origin
    return (origin.layer, origin.call) if origin.layer_class in NORMS and origin.direction != "update" else None


def _wide(function: Function) -> set[Value]:
    """Values that are float for no other reason than that halves were cast: as large as those."""
    sizes: dict[Call, int] = {}
    for node in function.nodes:
        key = _call(node)
        if key is not None and node.op == "convert_element_type" and node.operands[0].dtype == "float16":
            sizes[key] = max(sizes.get(key, 0), node.operands[0].elements)
    found: set[Value] = set()
    for node in function.nodes:
        key = _call(node)
        if key not in sizes or not (is_pointwise(node) or node.op in SHOWN):
            continue
        found.update(v for v in node.results if v.dtype == "float32" and v.elements == sizes[key] > 1)
    return found


class _Narrowing:
    """Writes a function anew; `narrow` maps values of before to their halves."""

    def __init__(self, old: Function, wide: set[Value]) -> None:
        self.old, self.wide = old, wide
        self.writer = Writer(old)
        self.narrow: dict[Value, Value] = {}
        self.stands_for: dict[Value, Value] = {}
        self.cast: dict[Any, Value] = {}

    def function(self) -> Function:
        """The function with halves."""
        for node in self.old.nodes:
            self.writer.begin(node)
            self._write(node)
        results = tuple(self._as_before(value) for value in self.old.results)
        return Function(self.old.name, self.old.params, results, tuple(read_nodes(self.writer.nodes, results)))

    def _write(self, node: Node) -> None:
        halved = any(value in self.narrow for value in node.operands)
        if node.results[0] in self.wide if node.results else False:
            self._half(node)
        elif not halved:
            self.writer.add(replace(node, operands=tuple(map(self._as_before, node.operands))))
        elif node.op == "convert_element_type" and node.results[0].dtype == "float16":
            self.stands_for[node.results[0]] = self.narrow[node.operands[0]]
        elif _call(node) is not None and (node.op in SUMMED_IN_FLOAT or is_pointwise(node)):
            self.writer.add(replace(node, operands=tuple(map(self._as_half, node.operands))))
        else:
            self.writer.add(replace(node, operands=tuple(map(self._as_before, node.operands))))

    def _half(self, node: Node) -> None:
        """A node with a wide result, in half."""
        wide = node.results[0]
        operands = tuple(map(self._as_half, node.operands))
        if node.op == "convert_element_type" and operands[0].dtype == "float16":
            self.narrow[wide] = operands[0]
            return
        result = self.writer.value(wide.shape, "float16")
        given = dict(node.attrs)
        if "new_dtype" in given:
            given["new_dtype"] = "float16"
        self.writer.add(replace(node, operands=operands, results=(result,), attrs=attrs(**given)))
        self.narrow[wide] = result

    def _as_half(self, value: Value) -> Value:
        if value in self.narrow:
            return self.narrow[value]
        value = self.stands_for.get(value, value)
        if value.dtype != "float32":
            return value
        made_by = self.writer.made_by.get(value)
        if made_by is not None and made_by.op == "convert_element_type" and made_by.operands[0].dtype == "float16":
            return made_by.operands[0]
        key = (value, self.writer.now.origin)
        if key not in self.cast:
            if made_by is not None and made_by.op == "constant":
                self.cast[key] = self.writer.write("constant", (), value.shape, "float16", **dict(made_by.attrs))
            else:
                self.cast[key] = self.writer.cast(value, "float16")
        return self.cast[key]

    def _as_before(self, value: Value) -> Value:
        if value in self.narrow:
            return self.writer.cast(self.narrow[value], "float32")
        return self.stands_for.get(value, value)
