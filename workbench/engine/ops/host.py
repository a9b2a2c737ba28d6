"""Work on the host in the middle of a program: infeeds, outfeeds, and functions the IPU leaves to the host.

What goes to the host is copied there, what comes back is copied from there, behind a synchronisation with it each; the
host's own time is not modelled, since it depends on the host.
"""

from __future__ import annotations

from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.ops import Family, register

PREFETCH_DEPTH = "prefetch_depth"  # attribute of a call that takes an element of a feed


class Host(Family):
    """A call of the host: copies there, copies back."""

    name = "host"
    ops = frozenset({"io_callback", "pure_callback", "host_call"})

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Synchronise with the host and stream every operand to it; then every result from it."""
        label = lowering.label(node)
        leaving = [lowering.get(value) for value in node.operands if value.elements]
        if leaving:
            lowering.emit.sync("external")
        for tensor in leaving:
            lowering.emit.stream(f"{label}/to_host", tensor, "to_host")
        if not node.results:
            return
        lowering.emit.sync("external")
        for number, value in enumerate(node.results):
            mapping = lowering.wish(value) or lowering.default_mapping(value)
            result = lowering.result(node, number, mapping)
            lowering.emit.stream(f"{label}/from_host", result, "to_device", ahead=node.attr(PREFETCH_DEPTH) or 0)


register(Host())
