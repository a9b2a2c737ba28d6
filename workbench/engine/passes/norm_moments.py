"""Statistics: unless they are to be stable, mean and variance of a norm come from one pass over its input.

PopLibs adds up the input and its squares at the same time and takes the square of the mean from the mean of the
squares; stable, it removes the mean first, which has to be there by then and leaves a tensor of the input's size
(poplibs@7eac0f26 lib/poplin/Norms.cpp:191-224). Frameworks trace the stable form, which the option keeps.
"""

from __future__ import annotations

from workbench.engine.graph import Graph, Node, Value
from workbench.engine.graph.primitives import names
from workbench.engine.graph.rewriting import Writer, rewrite
from workbench.engine.options import Options

NORMS = frozenset({"BatchNormalization", "LayerNormalization", "GroupNormalization", "InstanceNormalization"})
_SEEN_THROUGH = names(reshapes=True) | {"broadcast_in_dim"}


def norm_moments(graph: Graph, options: Options) -> Graph:
    """Variances of the layers of `NORMS` from sums of squares, unless `norms.use_stable_statistics`."""
    stable = options.get("norms.use_stable_statistics")
    return graph if stable else rewrite(graph, variance_of_squares, ops=("div",))


def variance_of_squares(node: Node, writer: Writer) -> list[Value] | None:
    """sum((x - mean)^2) / n is sum(x^2) / n - mean^2."""
    if node.op != "div" or node.origin.layer_class not in NORMS:
        return None
    total = _summed(node.operands[0], writer)
    centred = _made(total.operands[0], "sub", writer, through="square") if total is not None else None
    if total is None or centred is None:
        return None
    source, mean = centred.operands
    division = _made(mean, "div", writer)
    first = _summed(division.operands[0], writer) if division is not None else None
    if first is None or first.operands[0] is not source or first.attr("axes") != total.attr("axes"):
        return None
    if mean.shape != node.results[0].shape:
        return None
    squares = writer.insert(first, "reduce_square_sum", source, total.results[0].shape, axes=total.attr("axes"))
    seen = writer.reshape(squares, mean.shape)
    power = writer.write("div", [seen, node.operands[1]], mean.shape)
    # PopLibs computes the deviation in a compute set of its own, which no other use of the mean is fused with.
    apart = writer.write("optimization_barrier", [mean], mean.shape)
    return [writer.write("sub", [power, writer.write("square", [apart], mean.shape)], mean.shape)]


def _summed(value: Value, writer: Writer) -> Node | None:
    """The sum that a value is, seen through what only changes its shape."""
    made_by = writer.made_by.get(value)
    while made_by is not None and made_by.op in _SEEN_THROUGH and made_by.operands[0].elements == value.elements:
        made_by = writer.made_by.get(made_by.operands[0])
    return made_by if made_by is not None and made_by.op == "reduce_sum" else None


def _made(value: Value, op: str, writer: Writer, through: str = "") -> Node | None:
    made_by = writer.made_by.get(value)
    if through:
        if made_by is None or made_by.op != through:
            return None
        made_by = writer.made_by.get(made_by.operands[0])
    return made_by if made_by is not None and made_by.op == op else None
