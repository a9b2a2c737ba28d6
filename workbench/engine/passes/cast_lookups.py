"""Look-ups of cast tables: rules by which an embedding's rows are cast, and never its table.

Keras 3 casts what a layer's variable holds before the layer reads it, a table as a kernel. The SDK's Keras does so for
all layers but this one: its look-up reads the variable and casts the rows, so that gradients are added up in the
variable's type (graphcore/tensorflow@b2127bba tensorflow/python/keras/layers/embeddings.py:191-196, "Instead of casting
the variable as in most layers, cast the output").
"""

from __future__ import annotations

from workbench.engine.graph import Node, Value
from workbench.engine.graph.rewriting import Writer

EMBEDDING = "Embedding"  # Keras' class of the layer
CAST = "convert_element_type"
HALVES = ("float16", "bfloat16")
OPS = frozenset({"gather", CAST})


def rows_cast(node: Node, writer: Writer) -> list[Value] | None:
    """Rows of a cast table are rows of the table, cast."""
    table = writer.made_by.get(node.operands[0]) if node.operands else None
    # Because this is what a look-up of rows is traced to.
    if node.op != "gather" or node.origin.layer_class != EMBEDDING or table is None or table.op != CAST:
        return None
    rows = writer.write("gather", [table.operands[0], *node.operands[1:]], node.results[0].shape, **dict(node.attrs))
    return [writer.cast(rows, node.results[0].dtype)]


def rows_added_wide(node: Node, writer: Writer) -> list[Value] | None:
    """Halves added to rows of zeros and then cast are cast, then added."""
    if node.op != CAST or node.origin.layer_class != EMBEDDING or node.results[0].dtype != "float32":
        return None
    added = writer.made_by.get(node.operands[0])
    # Because this is the gradient of a look-up.
    if added is None or added.op != "scatter-add" or added.results[0].dtype not in HALVES:
        return None
    whole, places, updates = added.operands
    zeros = writer.made_by.get(whole)
    if zeros is None or zeros.op != "broadcast_in_dim":
        return None
    number = writer.made_by.get(zeros.operands[0])
    if number is None or number.attr("value") != 0:
        return None
    wide = [writer.filled(0.0, whole.shape, "float32"), places, writer.cast(updates, "float32")]
    return [writer.write("scatter-add", wide, whole.shape, **dict(added.attrs))]
