"""Loads and stores of variables that do not live whole on the chip.

In streaming memory a replica keeps all of a variable, or its share; a share is gathered from all replicas before use,
and cut out again afterwards, which every replica does with its own values.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.emit.context import Lowering
from workbench.engine.emit.links import collective, held_bytes, part, remote_copy
from workbench.engine.emit.loaded import home_bytes, home_of, settle
from workbench.engine.graph import Node, Value
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.program.remote_buffers import LOAD, STORE


class Load(Family):
    """Bring a variable onto the chip; its value is there from now on."""

    name = "remote_load"
    ops = frozenset({LOAD})
    shareable = True

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """Where it comes from."""
        place = "streaming memory" if node.attr("remote") else "the chip"
        return f"from {place}, one of {node.attr('shards')} shares" if node.attr("shards") > 1 else f"from {place}"

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Copy it, or its share, from streaming memory, and gather the other shares."""
        emit, (value,) = lowering.emit, node.operands
        name, shards = str(node.attr("name")), int(node.attr("shards"))
        home = home_of(node, lowering)
        settle(node, home, lowering)
        kind = emit.variables[home.variables[0]].kind
        loaded = emit.tensor(f"{name}/loaded", home.shape, home.dtype, home.mapping, kind)
        whole = home_bytes(home, lowering)
        source = home.variables
        if node.attr("remote"):
            share = part(whole, 1, shards)
            if shards > 1:
                source = (held_bytes(emit, f"{name}/share", home.dtype, share),)
            arriving = source if shards > 1 else loaded.variables
            remote_copy(emit, f"{name}/from_remote", share, "to_device", arriving, home.variables[0])
        if shards > 1:
            size_bytes, moved = home.elements * home.itemsize_bytes, part(whole, shards - 1, shards)
            collective(emit, f"{name}/all_gather", "all_gather", shards, size_bytes, moved, source, loaded.variables)
        _stand_in(value, loaded, home, lowering)
        lowering.homes[str(node.attr("key"))] = (value, home)


def _stand_in(value: Value, loaded: Tensor, home: Tensor, lowering: Lowering) -> None:
    """Whoever reads or overwrites the variable finds what was loaded."""
    lowering.bind(value, loaded)
    for number, tensor in lowering.destinations.items():
        if tensor.variables == home.variables:
            lowering.destinations[number] = replace(tensor, variables=loaded.variables)


class Store(Family):
    """Take the next value of a loaded variable to where the variable lives."""

    name = "remote_store"
    ops = frozenset({STORE})
    shareable = True

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring it into the variable's layout if it lies elsewhere, then copy it, or the own share of it."""
        emit, (new,) = lowering.emit, node.operands
        value, home = lowering.homes[str(node.attr("key"))]
        name, shards = str(node.attr("name")), int(node.attr("shards"))
        tensor = lowering.get(new)
        if tensor.mapping != home.mapping:
            (tensor,) = emit.rearrange(f"{name}/back", [(tensor, home.mapping)])
        share = part(home_bytes(home, lowering), 1, shards)
        if node.attr("remote"):
            remote_copy(emit, f"{name}/to_remote", share, "to_host", tensor.variables, home.variables[0])
        else:
            emit.compute(f"{name}/own_share", emit.copy_groups(share), tensor.variables, home.variables)
        lowering.bind(value, home)
        lowering.bind(new, home)


register(Load())
register(Store())
