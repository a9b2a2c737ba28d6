"""The generic rule: a primitive without a model of its own still compiles, is listed as unmodelled and warned about."""

from __future__ import annotations

import numpy as np

from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import Placement
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register


class Generic(Family):
    """Any primitive: operands are brought, spread evenly, to the tiles of the first result; cycles by elements."""

    name = "generic"
    modelled = False

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Results linearly mapped; each operand spread over the same tiles; a plain loop over all elements."""
        label = lowering.label(node)
        sources: list[tuple[Tensor, Placement]] = [
            (tensor, lowering.default_mapping(value))
            for value, tensor in zip(node.operands, lowering.operands(node), strict=True)
            if value.elements
        ]
        arranged = lowering.emit.rearrange(label, sources)
        work = np.zeros(lowering.tiles, np.int64)
        for tensor, (_, wanted) in zip(arranged, sources, strict=True):
            work = work + wanted.elements_per_tile(lowering.tiles)
            del tensor
        results = []
        for number, value in enumerate(node.results):
            mapping = lowering.wish(value) or lowering.default_mapping(value)
            results.append(lowering.result(node, number, mapping))
            work = work + mapping.elements_per_tile(lowering.tiles)
        groups = vertex_groups("generic", {"elements": work})
        lowering.emit.compute(
            label,
            groups,
            [name for tensor in arranged for name in tensor.variables],
            [name for tensor in results for name in tensor.variables],
        )


register(Generic())
