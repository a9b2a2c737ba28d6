"""Copies from one IPU of a replica to another, over the IPU-Links."""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import frozen
from workbench.engine.emit import total_of
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.ops import Family, register
from workbench.engine.program import Exchange, GlobalExchange


class InterIpuCopy(Family):
    """The same tensor on another IPU, tile by tile where it was."""

    name = "inter_ipu_copy"
    ops = frozenset({"inter_ipu_copy"})

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The two IPUs."""
        return f"IPU {node.attr('source')} to IPU {node.attr('to')}"

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Every tile sends what it holds to its like."""
        emit, operands = lowering.emit, lowering.operands(node)
        label = f"{lowering.label(node)}_to_{emit.ipu}"
        results = []
        for value, operand in zip(node.results, operands, strict=True):
            result = emit.tensor(label, operand.shape, operand.dtype, operand.mapping, emit.result_kind())
            lowering.bind(value, result)
            results.append(result)
        reads = [name for tensor in operands for name in tensor.variables]
        writes = [name for tensor in results for name in tensor.variables]
        each = [tensor.mapping.bytes_per_tile(tensor.itemsize_bytes, lowering.tiles) for tensor in operands]
        moved, pieces = total_of(each), total_of([frozen((part > 0).astype(np.int64)) for part in each])
        source, nothing = operands[0].ipu, frozen(np.zeros_like(moved))
        if source == emit.ipu:
            emit.compute(label, emit.copy_groups(moved), reads, writes)
            return
        emit.sync("external")
        stamped = {**emit.stamp(label), "ipu": source}
        emit.add(
            GlobalExchange(
                **stamped,
                to_ipu=emit.ipu,
                reads=tuple(reads),
                writes=tuple(writes),
                size_bytes=int(moved.sum()),
                sent=Exchange(name=label, sent_bytes=moved, received_bytes=nothing, fragments=pieces),
                received=Exchange(name=label, sent_bytes=nothing, received_bytes=moved, fragments=pieces),
            )
        )


register(InterIpuCopy())
