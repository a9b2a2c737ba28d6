"""Copies from one IPU of a replica to another, over the IPU-Links."""

from __future__ import annotations

import numpy as np

from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.ops import Family, register
from workbench.engine.program import Exchange, GlobalExchange
from workbench.engine.tileset import frozen


class InterIpuCopy(Family):
    """The same tensor on another IPU, tile by tile where it was."""

    name = "inter_ipu_copy"
    ops = frozenset({"inter_ipu_copy"})

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The two IPUs."""
        return f"IPU {node.attr('source')} to IPU {node.attr('to')}"

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Every tile sends what it holds to its like."""
        emit, operand = lowering.emit, lowering.get(node.operands[0])
        label = f"{lowering.label(node)}_to_{emit.ipu}"
        result = emit.tensor(label, operand.shape, operand.dtype, operand.mapping, emit.result_kind())
        lowering.bind(node.results[0], result)
        moved = operand.mapping.bytes_per_tile(operand.itemsize_bytes, lowering.tiles)
        nothing = frozen(np.zeros_like(moved))
        if operand.ipu == emit.ipu:
            emit.compute(label, emit.copy_groups(moved), operand.variables, result.variables)
            return
        emit.sync("external")
        stamped = {**emit.stamp(label), "ipu": operand.ipu}
        emit.add(
            GlobalExchange(
                **stamped,
                to_ipu=emit.ipu,
                reads=operand.variables,
                writes=result.variables,
                size_bytes=int(moved.sum()),
                sent=Exchange(name=label, sent_bytes=moved, received_bytes=nothing, fragments=frozen(moved > 0)),
                received=Exchange(name=label, sent_bytes=nothing, received_bytes=moved, fragments=frozen(moved > 0)),
            )
        )


register(InterIpuCopy())
