"""Tile programs of a few steps, short to write in a test: four tiles, stub vertices, exchanges by lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Listed
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from workbench.base.arrays import frozen
from workbench.engine.mapping.tileset import tile_set
from workbench.engine.program import (
    ComputeSet,
    DoExchange,
    Exchange,
    GlobalExchange,
    OnTileExecute,
    Program,
    Sequence,
    StreamCopy,
    Sync,
    TileProgram,
    Variable,
    VertexGroup,
    verify_program,
)
from workbench.engine.target import MemoryMap, Target, target

TILES = 4


def small_target(tiles: int = TILES, *, non_interleaved_bytes: int = 8192, interleaved_bytes: int = 8192) -> Target:
    """An ipu2 with few tiles and little memory; every cost constant is that of ipu2."""
    memory = MemoryMap(
        non_interleaved_bytes=non_interleaved_bytes,
        interleaved_bytes=interleaved_bytes,
        executable_bytes=non_interleaved_bytes,
    )
    return replace(target("ipu2", tiles_per_ipu=tiles), memory=memory)


class Builder:
    """Numbers variables and steps."""

    def __init__(self, machine: Target | None = None, ipus: int = 1) -> None:
        self.target = machine or small_target()
        self.ipus = ipus
        self.variables: list[Variable] = []
        self.functions: dict[str, Program] = {}
        self._ids = count()

    @property
    def tiles(self) -> int:
        return self.target.tiles_per_ipu

    def row(self, values: Listed[int] | int) -> Any:
        """Bytes per tile: a list from tile 0 on, or one number for all."""
        if isinstance(values, int):
            return frozen(np.full(self.tiles, values))
        return frozen(list(values) + [0] * (self.tiles - len(values)))

    def variable(self, bytes_per_tile: Listed[int] | int, name: str = "", **fields: Any) -> int:
        number = len(self.variables)
        row = self.row(bytes_per_tile)
        chosen: dict[str, Any] = {"kind": "activation", "always_live": False, "dtype": "float32", **fields}
        shape = (int(row.sum()) // 4,)
        self.variables.append(Variable(id=number, name=name or f"v{number}", shape=shape, bytes_per_tile=row, **chosen))
        return number

    def exchanged(
        self, sent: Listed[int] | int, received: Listed[int] | int, fragments: Listed[int] | int = 0, **fields: Any
    ) -> Exchange:
        return Exchange(
            name="move",
            sent_bytes=self.row(sent),
            received_bytes=self.row(received),
            fragments=self.row(fragments),
            **fields,
        )

    def _fields(self, name: str, reads: Iterable[int], writes: Iterable[int], fields: Mapping[str, Any]) -> Any:
        return {"id": next(self._ids), "name": name, "reads": tuple(reads), "writes": tuple(writes), **fields}

    def compute(
        self, cycles: Mapping[int, int] | int = 10, reads: Iterable[int] = (), writes: Iterable[int] = (), **fields: Any
    ) -> OnTileExecute:
        """One stub per tile of `cycles`; a number: on tile 0."""
        stubs = {0: cycles} if isinstance(cycles, int) else cycles
        groups = tuple(VertexGroup("stub", (("cycles", value),), tile_set([tile])) for tile, value in stubs.items())
        return OnTileExecute(
            **self._fields("compute", reads, writes, fields), compute_set=ComputeSet("compute", groups)
        )

    def groups(self, *groups: VertexGroup) -> OnTileExecute:
        return OnTileExecute(**self._fields("compute", (), (), {}), compute_set=ComputeSet("compute", groups))

    def exchange(
        self, exchange: Exchange, reads: Iterable[int] = (), writes: Iterable[int] = (), **fields: Any
    ) -> DoExchange:
        return DoExchange(**self._fields("exchange", reads, writes, fields), exchange=exchange)

    def sync(self, scope: Any = "internal", **fields: Any) -> Sync:
        return Sync(**self._fields("sync", (), (), fields), scope=scope)

    def stream(
        self,
        size_bytes: int,
        direction: Any = "to_device",
        reads: Iterable[int] = (),
        writes: Iterable[int] = (),
        **fields: Any,
    ) -> StreamCopy:
        share = self.row([size_bytes])
        nothing = self.row(0)
        incoming = direction == "to_device"
        exchange = Exchange(
            name="host",
            sent_bytes=nothing if incoming else share,
            received_bytes=share if incoming else nothing,
            fragments=self.row([1]),
        )
        return StreamCopy(
            **self._fields("stream", reads, writes, fields),
            exchange=exchange,
            direction=direction,
            size_bytes=size_bytes,
        )

    def link(self, size_bytes: int, ipu: int, to_ipu: int, **fields: Any) -> GlobalExchange:
        reads, writes = fields.pop("reads", ()), fields.pop("writes", ())
        return GlobalExchange(
            **self._fields("link", reads, writes, fields), ipu=ipu, to_ipu=to_ipu, size_bytes=size_bytes
        )

    def program(self, *steps: Program) -> TileProgram:
        return verify_program(
            TileProgram(
                name="small",
                target=self.target,
                ipus=self.ipus,
                variables=tuple(self.variables),
                functions=self.functions,
                entry=Sequence(children=steps, name="entry"),
            )
        )


def sequence(*steps: Program) -> Sequence:
    return Sequence(children=steps)
