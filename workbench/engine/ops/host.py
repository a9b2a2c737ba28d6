"""Work on the host in the middle of a program: infeeds, outfeeds, and functions the IPU leaves to the host.

What goes to the host is copied there, what comes back is copied from there, behind a synchronisation with it each; the
host's own time is not modelled, since it depends on the host.
"""

from __future__ import annotations

from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import linear
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register

# Attributes of a call that serves a feed.
PREFETCH_DEPTH, IN_PACKETS = "prefetch_depth", "in_packets"


class Host(Family):
    """A call of the host: copies there, copies back.

    A feed in packets is laid out in whole host packets on its way, as graphcore/tensorflow@0062ad12 does by
    popops::createHostTransferableTensor (compiler/plugin/poplar/driver/ops/feed_ops.cc:40-90): fewer packets, and a
    copy to or from where the tensor lies.
    """

    name = "host"
    ops = frozenset({"io_callback", "pure_callback", "host_call"})

    def word(self, node: Node) -> str:
        """A feed is called so; what else the host does is the host's."""
        return "feed" if node.op == "io_callback" else "host"

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Synchronise with the host and stream every operand to it; then every result from it."""
        label, emit = lowering.label(node), lowering.emit
        leaving = [lowering.get(value) for value in node.operands if value.elements]
        if node.attr(IN_PACKETS) and leaving:
            packed = [in_packets(f"{label}/packets", tensor, lowering) for tensor in leaving]
            emit.move_all(f"{label}/packets", list(zip(leaving, packed, strict=True)))
            leaving = packed
        if leaving:
            emit.sync("external")
        for tensor in leaving:
            emit.stream(f"{label}/to_host", tensor, "to_host", ahead=node.attr(PREFETCH_DEPTH) or 0)
        if node.results:
            self._arrive(node, label, lowering)

    def _arrive(self, node: Node, label: str, lowering: Lowering) -> None:
        emit, ahead = lowering.emit, node.attr(PREFETCH_DEPTH) or 0
        results = [
            lowering.result(node, number, lowering.wish(value) or lowering.default_mapping(value))
            for number, value in enumerate(node.results)
        ]
        packets = bool(node.attr(IN_PACKETS))
        arriving = [in_packets(f"{label}/packets", each, lowering) for each in results] if packets else results
        emit.sync("external")
        for tensor in arriving:
            emit.stream(f"{label}/from_host", tensor, "to_device", ahead=ahead)
        if packets:
            emit.move_all(f"{label}/packets", list(zip(arriving, results, strict=True)))


def in_packets(name: str, tensor: Tensor, lowering: Lowering) -> Tensor:
    """A temporary like the tensor, a whole host packet or more on each of its tiles."""
    packet_bytes = lowering.target.code.host_packet_payload_bytes
    grain = packet_bytes // tensor.itemsize_bytes
    mapping = linear(
        tensor.shape,
        tensor.dtype,
        lowering.tiles,
        packet_bytes,
        grain=grain,
        vector_bytes=lowering.target.data_path_bytes,
    )
    return lowering.emit.tensor(name, tensor.shape, tensor.dtype, mapping, "temporary")


register(Host())
