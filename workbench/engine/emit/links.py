"""Steps between replicas, and with streaming memory: what `Emitter` makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from workbench.base.arrays import IntArray, ceil_div, shared
from workbench.base.categories import VariableKind
from workbench.engine.emit.emitter import Emitter
from workbench.engine.program import Exchange, GlobalExchange, StreamCopy, Variable


def part(amounts: IntArray, members: int, of: int) -> IntArray:
    """`members / of` of the amounts, rounded up, int64[tiles]."""
    return shared(ceil_div(amounts * members, of))


def held_bytes(
    emit: Emitter,
    name: str,
    dtype: str,
    bytes_per_tile: IntArray,
    kind: VariableKind = "temporary",
    *,
    shape: tuple[int, ...] = (),
    always_live: bool = False,
    text: str = "",
) -> int:
    """Declare a variable of so many bytes on each tile, int64[tiles]; returns its id."""
    emit.variables.append(
        Variable(
            id=len(emit.variables),
            name=name,
            kind=kind,
            dtype=dtype,
            shape=shape,
            bytes_per_tile=shared(bytes_per_tile),
            always_live=always_live,
            ipu=emit.ipu,
            origin=emit.origin,
            mapped=text,
            function="" if always_live else emit.function,
        )
    )
    return len(emit.variables) - 1


def collective(
    emit: Emitter,
    name: str,
    kind: str,
    group_size: int,
    size_bytes: int,
    moved: IntArray,
    reads: Iterable[int],
    writes: Iterable[int],
) -> None:
    """Synchronise with the other replicas, then a collective of `size_bytes` in a ring of `group_size` of them.

    `moved` is what each tile sends and receives in all, int64[tiles], in a piece to and from each of the others.
    """
    emit.sync("external")
    nothing, pieces = shared(np.zeros_like(moved)), shared((moved > 0) * (group_size - 1))
    emit.add(
        GlobalExchange(
            **emit.stamp(name),
            reads=tuple(dict.fromkeys(reads)),
            writes=tuple(dict.fromkeys(writes)),
            to_ipu=emit.ipu,
            size_bytes=size_bytes,
            collective=kind,
            group_size=group_size,
            sent=Exchange(name=name, sent_bytes=moved, received_bytes=nothing, fragments=pieces),
            received=Exchange(name=name, sent_bytes=nothing, received_bytes=moved, fragments=pieces),
        )
    )


def remote_copy(
    emit: Emitter,
    name: str,
    moved: IntArray,
    direction: Literal["to_device", "to_host"],
    variables: Iterable[int],
    buffer: int,
) -> None:
    """Synchronise with streaming memory, then copy `moved` bytes of each tile, int64[tiles], to or from a buffer."""
    emit.sync("external")
    incoming, names = direction == "to_device", tuple(dict.fromkeys(variables))
    nothing = shared(np.zeros_like(moved))
    exchange = Exchange(
        name=name,
        sent_bytes=nothing if incoming else moved,
        received_bytes=moved if incoming else nothing,
        fragments=shared(moved > 0),
    )
    emit.add(
        StreamCopy(
            **emit.stamp(name),
            reads=() if incoming else names,
            writes=names if incoming else (),
            exchange=exchange,
            direction=direction,
            size_bytes=int(moved.sum()),
            remote=True,
            buffer=buffer,
        )
    )
