"""Simplify: dot products with a vector become products and sums, dynamic slices look-ups, dear arithmetic cheaper.

The rules and their conditions are those of the driver: graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/
driver/, there passes/poplar_algebraic_simplifier.cc:1140-2440, passes/poplar_algebraic_simplifier/
poplar_algebraic_simplifier_dot.cc:592-680, passes/dynamic_slice_replacer.cc and tools/slice_util.cc:262-275.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from workbench.engine.graph import Graph, Node, Value
from workbench.engine.graph.rewriting import Rule, Writer, rewrite
from workbench.engine.options import Options
from workbench.engine.passes import cast_lookups, parts_of_joins

FLOATS = frozenset({"float32", "float16", "bfloat16"})
# Because the rules below look at these, and a function without them is left as it is.
OPS = (
    cast_lookups.OPS
    | parts_of_joins.OPS
    | {"mul", "dot_general", "pow", "div", "dynamic_slice", "dynamic_update_slice"}
)


def simplify(graph: Graph, options: Options) -> Graph:
    """Apply the rules of embeddings and of joins, and those that options allow: `optimizations.math` and
    `optimizations.enable_dynamic_slice_replacement`.
    """
    rules: list[Rule] = [cast_lookups.rows_cast, cast_lookups.rows_added_wide, parts_of_joins.seen_by_parts]
    if options.get("optimizations.math.fast"):
        rules += [product_with_zero, power_of_a_half, division_by_repeated]
    if options.get("optimizations.math.dot_strength"):
        partials = options.get("matmuls.poplar_options.partialsType")
        rules.append(partial(weaker_dot, partials=str(partials)))
    if options.get("optimizations.enable_dynamic_slice_replacement"):
        rules += [looked_up_slice, updated_slice]
    return rewrite(graph, partial(_first, rules), OPS)


def told_of_vectors(graph: Graph, options: Options) -> tuple[str, ...]:
    """A sentence on the products with a vector that become sums: with them one sample may take longer than two."""
    if not options.get("optimizations.math.dot_strength"):
        return ()
    weak = {node for function in graph.functions.values() for node in function.nodes if is_weak(node)}
    if not weak:
        return ()
    made = (
        "1 product with a vector is made an element-wise product"
        if len(weak) == 1
        else (f"{len(weak)} products with a vector are made element-wise products")
    )
    return (f"{made} and a sum, as the driver does by default; as matmuls: optimizations.math.dot_strength = False",)


def _first(rules: Sequence[Rule], node: Node, writer: Writer) -> Sequence[Value] | None:
    for rule in rules:
        found = rule(node, writer)
        if found is not None:
            return found
    return None


def is_weak(node: Node) -> bool:
    """Whether a node is a dot product of which one operand has only batch and contracted axes."""
    if node.op != "dot_general" or not node.results[0].elements or not all(value.elements for value in node.operands):
        return False
    return not all(_Side(node, number).outer for number in (0, 1))


def weaker_dot(node: Node, writer: Writer, *, partials: str) -> list[Value] | None:
    """A weak dot product is a product and a sum.

    The sum is float32, as the driver's. Where `partials` ask for half it is of the products' type: its vertices and
    partials are float all the same, only the two casts around it go. Axes of size 1 count for nothing, as the driver
    drops them first.
    """
    if not is_weak(node):
        return None
    sides = [_Side(node, number) for number in (0, 1)]
    result = node.results[0]
    full, vector = sorted(sides, key=lambda side: -len(side.outer))
    terms = full.turned(writer, result.dtype)
    factors = vector.turned(writer, result.dtype)
    if full.outer:
        batch = tuple(range(len(full.batch)))
        along = (*batch, *range(len(full.batch) + len(full.outer), len(terms.shape)))
        factors = writer.write(
            "broadcast_in_dim", [factors], terms.shape, shape=terms.shape, broadcast_dimensions=along
        )
    product = writer.write("mul", [terms, factors], terms.shape)
    halves = product.dtype == "float16" and partials == "half"
    narrow = halves or product.dtype not in FLOATS
    if halves or product.elements != result.elements:  # a sum over one term is a view: halves are laid out as for a sum
        terms = product if narrow else writer.cast(product, "float32")
        kept = len(terms.shape) - len(full.contract)
        axes = tuple(range(kept, len(terms.shape)))
        product = writer.cast(writer.write("reduce_sum", [terms], terms.shape[:kept], axes=axes), result.dtype)
    return [writer.reshape(product, result.shape)]


class _Side:
    """One operand of a dot product: its batch axes, those of more than one element it has alone, those summed over."""

    def __init__(self, node: Node, number: int) -> None:
        name = ("lhs", "rhs")[number]
        self.value = node.operands[number]
        self.batch = tuple(node.attr(f"{name}_batch"))
        self.contract = tuple(node.attr(f"{name}_contract"))
        taken = (*self.batch, *self.contract)
        self.alone = tuple(axis for axis in range(len(self.value.shape)) if axis not in taken)
        self.outer = tuple(axis for axis in self.alone if self.value.shape[axis] != 1)

    def turned(self, writer: Writer, dtype: str) -> Value:
        """The operand as [batch, outer, contracted] in the result's type."""
        order = (*self.batch, *self.alone, *self.contract)
        value = self.value
        if order != tuple(range(len(order))):
            value = writer.write("transpose", [value], [value.shape[axis] for axis in order], permutation=order)
        kept = [self.value.shape[axis] for axis in (*self.batch, *self.outer, *self.contract)]
        return writer.cast(writer.reshape(value, kept), dtype)


def constant_of(value: Value, writer: Writer) -> float | None:
    """The number a value has everywhere, if it is made so."""
    made_by = writer.made_by.get(value)
    while made_by is not None and made_by.op == "broadcast_in_dim":
        made_by = writer.made_by.get(made_by.operands[0])
    known = made_by.attr("value") if made_by is not None and made_by.op == "constant" else None
    return float(known) if isinstance(known, int | float) else None


def product_with_zero(node: Node, writer: Writer) -> list[Value] | None:
    """A product with zero is zero, whatever IEEE says of infinities and NaN."""
    result = node.results[0] if node.results else None
    # Because these are what the driver's rule is of.
    if node.op not in ("mul", "dot_general") or result is None or result.dtype not in FLOATS:
        return None
    if not any(constant_of(value, writer) == 0 for value in node.operands):
        return None
    return [writer.filled(0.0, result.shape, result.dtype)]


def power_of_a_half(node: Node, writer: Writer) -> list[Value] | None:
    """x to the power of 0.5 is a root, to that of -0.5 the inverse of one."""
    if node.op != "pow" or node.results[0].dtype not in FLOATS:
        return None
    op = {0.5: "sqrt", -0.5: "rsqrt"}.get(constant_of(node.operands[1], writer) or 0.0)
    return None if op is None else [writer.write(op, node.operands[:1], node.results[0].shape)]


def division_by_repeated(node: Node, writer: Writer) -> list[Value] | None:
    """A quotient whose divisor is repeated along an axis: the inverse of the few divisors, then a product."""
    if node.op != "div" or node.results[0].dtype not in FLOATS or constant_of(node.operands[0], writer) is not None:
        return None
    above, below = node.operands
    result = node.results[0]
    repeated = writer.made_by.get(below)
    if below.elements < result.elements:  # axes of size 1 are repeated without saying so
        return [writer.write("mul", [above, _inverse(below, writer)], result.shape)]
    if repeated is None or repeated.op != "broadcast_in_dim" or repeated.operands[0].elements == below.elements:
        return None
    few = _inverse(repeated.operands[0], writer)
    many = writer.write("broadcast_in_dim", [few], below.shape, **dict(repeated.attrs))
    return [writer.write("mul", [above, many], result.shape)]


def _inverse(value: Value, writer: Writer) -> Value:
    known = constant_of(value, writer)
    if known:
        return writer.filled(1 / known, value.shape, value.dtype)
    return writer.write("div", [writer.filled(1.0, value.shape, value.dtype), value], value.shape)


def _row_axis(whole: Value, sizes: Sequence[int]) -> int | None:
    """The axis along which one entry of several is chosen, if all others are whole."""
    partly = [axis for axis, size in enumerate(whole.shape) if sizes[axis] != size]
    return partly[0] if len(partly) == 1 and sizes[partly[0]] == 1 else None


def looked_up_slice(node: Node, writer: Writer) -> list[Value] | None:
    """A dynamic slice of one entry along one axis is a look-up of one row, which can be planned."""
    if node.op != "dynamic_slice" or not node.results[0].elements:
        return None
    source, *starts = node.operands
    sizes = tuple(node.attr("slice_sizes"))
    axis = _row_axis(source, sizes)
    if axis is None or constant_of(starts[axis], writer) is not None:
        return None
    return [
        writer.write(
            "gather",
            [source, writer.reshape(starts[axis], (1,))],
            sizes,
            offset_dims=tuple(range(len(sizes))),
            collapsed_slice_dims=(),
            start_index_map=(axis,),
            slice_sizes=sizes,
            operand_batching_dims=(),
            start_indices_batching_dims=(),
            mode="clip",
        )
    ]


def updated_slice(node: Node, writer: Writer) -> list[Value] | None:
    """A dynamic update of one entry along one axis is an update of one row, which can be planned."""
    if node.op != "dynamic_update_slice" or not node.operands[1].elements:
        return None
    whole, update, *starts = node.operands
    axis = _row_axis(whole, update.shape)
    if axis is None or constant_of(starts[axis], writer) is not None:
        return None
    return [
        writer.write(
            "scatter",
            [whole, writer.reshape(starts[axis], (1,)), update],
            whole.shape,
            update_window_dims=tuple(range(len(whole.shape))),
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=(axis,),
            operand_batching_dims=(),
            scatter_indices_batching_dims=(),
            mode="clip",
            indices_are_sorted=True,
            unique_indices=True,
        )
    ]
