"""Homes: where variables that do not live whole on the chip are between their loads and stores.

A body of equal runs that load and store variables serves them all: rows of a merged remote buffer are copied by the
same code (graphcore/tensorflow@b2127bba tensorflow/compiler/plugin/poplar/driver/passes/remote_buffer_merger.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.base.arrays import IntArray
from workbench.engine.emit.context import Lowering
from workbench.engine.emit.links import part
from workbench.engine.graph import Node
from workbench.engine.mapping import Mapping
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.program.remote_buffers import RemoteBuffer


def home_bytes(home: Tensor, lowering: Lowering) -> IntArray:
    """Bytes of the whole variable on each tile, int64[tiles]."""
    return home.mapping.bytes_per_tile(home.itemsize_bytes, lowering.tiles)


def home_of(load: Node, lowering: Lowering) -> Tensor:
    """The variable a load brings onto the chip, as it lies when it is whole."""
    key = str(load.attr("key"))
    return lowering.homes[key][1] if key in lowering.homes else lowering.get(load.operands[0])


def settle(load: Node, home: Tensor, lowering: Lowering) -> None:
    """Leave on the chip only what stays there, and keep the rest in a remote buffer."""
    (number,) = home.variables
    emit, shards = lowering.emit, int(load.attr("shards"))
    if number in emit.settled:
        return
    share = part(home_bytes(home, lowering), 1, shards)
    remote = bool(load.attr("remote"))
    emit.settled[number] = RemoteBuffer(
        variable=number,
        name=str(load.attr("name")),
        ipu=emit.ipu,
        dtype=home.dtype,
        shape=home.shape,
        size_bytes=int(share.sum()) if remote else 0,
        shards=shards,
    )
    left = part(share, 0, 1) if remote else share
    emit.variables[number] = replace(emit.variables[number], bytes_per_tile=left, mapped=home.mapping)


def may_lie(load: Node, mapping: Mapping, lowering: Lowering) -> bool:
    """Whether the variable can be loaded with this mapping: it has it, or nothing of it has been stored yet."""
    home = home_of(load, lowering)
    return home.mapping == mapping or home.variables[0] not in lowering.emit.settled


def leave(loads: Sequence[Node], stores: Sequence[Node], mappings: Sequence[Mapping], lowering: Lowering) -> None:
    """What lowering the loads and stores would leave behind, when a body has done their work."""
    for load, mapping in zip(loads, mappings, strict=True):
        home = replace(home_of(load, lowering), mapping=mapping)
        settle(load, home, lowering)
        lowering.homes[str(load.attr("key"))] = (load.operands[0], home)
        lowering.bind(load.operands[0], home)
    for store in stores:
        lowering.bind(store.operands[0], lowering.homes[str(store.attr("key"))][1])
