"""Constants, broadcasts and counters that stand alone: made in memory because something not elementwise reads them."""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import DTYPE_WORDS
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import needed_by, on_tile
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.program import VertexGroup


def fill_groups(elements: IntArray, dtype: str, workers: int) -> list[VertexGroup]:
    """Fill vertices: one worker each, so every tile's part is cut over its workers."""
    share = np.asarray(ceil_div(elements, workers), dtype=np.int64)
    busy = np.minimum(workers, elements)
    groups = vertex_groups("popops::Fill", {"n": share}, type=DTYPE_WORDS[dtype])
    return [
        VertexGroup(group.vertex, group.arguments, group.tiles, int(busy[group.tiles.tiles[0]])) for group in groups
    ]


class Constants(Family):
    """A scalar constant in memory, on tile 0."""

    name = "constants"
    ops = frozenset({"constant"})
    pure_view = True
    shareable = True

    def lower(self, node: Node, lowering: Lowering) -> None:
        """A variable of kind constant, always live."""
        value = node.results[0]
        mapping = on_tile(value.shape, 0) if value.elements <= 1 else lowering.default_mapping(value)
        name = f"{node.origin.layer or 'graph'}/constant"
        lowering.bind(
            value, lowering.emit.tensor(name, value.shape, value.dtype, mapping, "constant", always_live=True)
        )


class Broadcast(Family):
    """A broadcast that must exist in memory: a fill from a scalar, else copies of the operand."""

    name = "broadcast"
    ops = frozenset({"broadcast_in_dim"})
    shareable = True

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Fill, or bring the operand to every tile that repeats it and copy it out."""
        value = node.results[0]
        source = lowering.get(node.operands[0])
        there = lowering.destinations.get(value)
        mapping = there.mapping if there else lowering.wish(value) or lowering.default_mapping(value)
        label = lowering.label(node)
        if source.elements == value.elements:
            from workbench.engine.mapping import reshape

            lowering.bind(value, source.view(reshape(source.mapping, value.shape), value.shape))
            return
        arranged = source
        if not _is_constant(source, lowering):  # a fill has its value in its state
            wanted = needed_by(mapping, source.shape, node.attr("broadcast_dimensions"))
            (arranged,) = lowering.emit.rearrange(label, [(source, wanted)])
        result = lowering.result(node, 0, mapping)
        elements = mapping.elements_per_tile(lowering.tiles)
        if source.elements == 1:
            groups = fill_groups(elements, value.dtype, lowering.target.workers_per_tile)
        else:
            groups = lowering.emit.copy_groups(elements * value.itemsize_bytes)
        lowering.emit.compute(label, groups, arranged.variables, result.variables)


def _is_constant(source: Tensor, lowering: Lowering) -> bool:
    kinds = {lowering.emit.variables[name].kind for name in source.variables}
    return source.elements == 1 and kinds == {"constant"}


class Counter(Family):
    """A counter along an axis."""

    name = "iota"
    ops = frozenset({"iota"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Iota vertices on the tiles of the result."""
        value = node.results[0]
        mapping = lowering.wish(value) or lowering.default_mapping(value)
        result = lowering.result(node, 0, mapping)
        groups = vertex_groups(
            "popops::Iota", {"n": mapping.elements_per_tile(lowering.tiles)}, type=DTYPE_WORDS[value.dtype]
        )
        lowering.emit.compute(lowering.label(node), groups, (), result.variables)


register(Constants())
register(Broadcast())
register(Counter())
