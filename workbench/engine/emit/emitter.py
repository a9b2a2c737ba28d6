"""Collects variables and steps of a tile program: the only maker of steps for `lower` and its operator families."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.base.arrays import IntArray, shared
from workbench.base.categories import VariableKind
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.base.identity import Selves
from workbench.engine import cost
from workbench.engine.emit.variables import LAST, NumberedVariables, renumbered
from workbench.engine.graph.origin import NOWHERE, Origin
from workbench.engine.mapping import Mapping, Placement, transfer
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.mapping.tileset import TileSet, sorted_tile_set
from workbench.engine.program import (
    Call,
    ComputeSet,
    DoExchange,
    Exchange,
    Leaf,
    OnTileExecute,
    Program,
    Repeat,
    StreamCopy,
    Sync,
    Variable,
    VertexGroup,
    rewritten,
)
from workbench.engine.program import (
    Sequence as ProgramSequence,
)
from workbench.engine.program.moves import Move
from workbench.engine.program.remote_buffers import RemoteBuffer
from workbench.engine.remembered import remembered
from workbench.engine.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator


def vertex_groups(vertex: str, per_tile: dict[str, IntArray], **constant: Any) -> list[VertexGroup]:
    """One vertex on every tile where the first per-tile argument is positive, as classes of equal arguments.

    `per_tile` maps argument names to int64[tiles].
    """
    columns, names, fixed = tuple(per_tile.values()), tuple(per_tile), cost.inputs_of(constant)
    if any(column.flags.writeable for column in columns):
        return list(_groups_of(vertex, names, fixed, _classes_of(columns)))
    return list(_known_groups_of(vertex, names, fixed, Selves(columns)))


Classes = tuple[tuple[tuple[int, ...], TileSet], ...]


def total_of(arrays: Sequence[IntArray]) -> IntArray:
    """Sum per tile of int64[tiles] arrays, read-only; for the same read-only arrays the same object."""
    if len(arrays) == 1:
        return arrays[0]
    if any(array.flags.writeable for array in arrays):
        return shared(reduce(np.add, arrays))
    return _sum_of(Selves(arrays))


@remembered(4096)
def _sum_of(arrays: Selves[IntArray]) -> IntArray:
    """Of read-only arrays."""
    return shared(reduce(np.add, arrays))


def _classes_of(columns: tuple[IntArray, ...]) -> Classes:
    active = (columns[0] > 0).nonzero()[0]
    if not len(active):
        return ()
    values = [column[active] for column in columns]
    if not any((column[1:] != column[:-1]).any() for column in values):
        return ((tuple(int(column[0]) for column in values), sorted_tile_set(active)),)
    order = np.lexsort(values[::-1]) if len(values) > 1 else values[0].argsort(kind="stable")
    active, values = active[order], [column[order] for column in values]
    changes = np.zeros(len(active), bool)
    changes[0] = True
    for column in values:
        changes[1:] |= column[1:] != column[:-1]
    firsts = changes.nonzero()[0]
    rows = zip(*(column[firsts].tolist() for column in values), strict=True)
    ends = [*firsts[1:].tolist(), len(active)]
    return tuple(
        (row, sorted_tile_set(active[first:end]))  # sorts are stable, so the tiles of each are in order
        for row, first, end in zip(rows, firsts.tolist(), ends, strict=True)
    )


_known_classes_of = remembered(4096)(_classes_of)  # of read-only arrays


def _groups_of(vertex: str, names: tuple[str, ...], fixed: cost.Inputs, classes: Classes) -> Iterator[VertexGroup]:
    for row, tiles in classes:
        yield VertexGroup(vertex, (*fixed, *zip(names, row, strict=True)), tiles)


@remembered(4096)
def _known_groups_of(
    vertex: str, names: tuple[str, ...], fixed: cost.Inputs, columns: Selves[IntArray]
) -> tuple[VertexGroup, ...]:
    """Of read-only arrays: the very groups of before, by which steps that have them are known again."""
    return tuple(_groups_of(vertex, names, fixed, _known_classes_of(columns)))


@remembered(4096)
def _together(groups: Selves[VertexGroup]) -> tuple[VertexGroup, ...]:
    """One tuple of the same groups."""
    return tuple(groups)


@dataclass(slots=True)
class Emitter:
    """Builds one tile program step by step. Operator families call `new`, `rearrange`, `exchange` and `compute`.

    The context fields (`origin`, `operator`, `ipu`, `stage`, `function`) are stamped on what is emitted.
    """

    target: Target
    variables: NumberedVariables = field(default_factory=NumberedVariables)
    functions: dict[str, Program] = field(default_factory=dict)
    origin: Origin = NOWHERE
    operator: str = ""
    ipu: int = 0
    stage: int | None = None
    function: str = ""
    next_step: int = 0
    settled: dict[int, RemoteBuffer] = field(default_factory=dict)  # variables that do not live whole on the chip
    repeated: dict[int, int] = field(default_factory=dict)  # step: runs in one run of its operator, where not 1
    prefetched: bool = True  # whether the host has fetched what it streams before it is asked
    _stack: list[list[Program]] = field(default_factory=lambda: [[]])

    @property
    def tiles(self) -> int:
        """Tiles of one IPU."""
        return self.target.tiles_per_ipu

    # -- variables ---------------------------------------------------------------------------------------

    def new(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        mapping: Placement,
        kind: VariableKind,
        *,
        always_live: bool = False,
        copies: int = 1,
        interleaved: bool = False,
        behind: bool = False,
    ) -> int:
        """Declare a variable that holds what `mapping` places (a demand: every tile's own copy); returns its id.

        `copies` multiplies the bytes (the slots of a FIFO). `behind`: it is numbered behind all others.
        """
        per_tile = mapping.bytes_per_tile(ITEMSIZE_BYTES[dtype] * copies, self.tiles)
        variables = self.variables.behind if behind else self.variables
        number = LAST - len(variables) if behind else len(variables)
        variables.append(
            Variable(
                id=number,
                name=name,
                kind=kind,
                dtype=dtype,
                shape=tuple(shape),
                bytes_per_tile=per_tile,
                always_live=always_live,
                ipu=self.ipu,
                origin=self.origin,
                interleaved=interleaved,
                mapped=mapping,
                function="" if always_live else self.function,
            )
        )
        return number

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        mapping: Mapping,
        kind: VariableKind,
        *,
        always_live: bool = False,
        behind: bool = False,
    ) -> Tensor:
        """Declare a variable and return it as a tensor."""
        variable = self.new(name, shape, dtype, mapping, kind, always_live=always_live, behind=behind)
        return Tensor(variables=(variable,), mapping=mapping, shape=tuple(shape), dtype=dtype, ipu=self.ipu)

    def result_kind(self) -> VariableKind:
        """What a result made here is: an activation going forward, a gradient going backward."""
        if self.origin.direction in ("forward", "recompute"):
            return "activation"
        return "gradient" if self.origin.direction == "backward" else "temporary"

    # -- control -----------------------------------------------------------------------------------------

    def _push(self, program: Program) -> None:
        self._stack[-1].append(program)

    def add(self, program: Program) -> None:
        """Append a control node made elsewhere. A call is made for the operator that is being lowered when it is first
        appended; what was collected and is appended again keeps it."""
        if isinstance(program, Call) and not program.operator:
            program = replace(program, operator=self.operator)
        self._push(program)

    @contextmanager
    def body(self) -> Iterator[list[Program]]:
        """Collect what is emitted inside instead of appending it."""
        collected: list[Program] = []
        self._stack.append(collected)
        try:
            yield collected
        finally:
            self._stack.pop()

    @contextmanager
    def repeat(self, times: int, name: str = "", *, unknown_times: bool = False) -> Iterator[None]:
        """What is emitted inside runs `times` times."""
        first = self.next_step
        with self.body() as collected:
            yield
        self.repeated |= {step: times * self.repeated.get(step, 1) for step in range(first, self.next_step)}
        body = ProgramSequence(children=tuple(collected), name=name)
        self._push(Repeat(times=times, body=body, name=name, unknown_times=unknown_times))

    def finish(self, name: str = "entry") -> ProgramSequence:
        """Everything emitted at the outermost level, once variables that are behind all others have their numbers."""
        numbers = self.variables.in_order()
        if numbers:
            self._renumber(numbers)
        return ProgramSequence(children=tuple(self._stack[0]), name=name)

    def _renumber(self, numbers: dict[int, int]) -> None:
        def change(step: Leaf) -> Leaf:
            return renumbered(step, numbers)

        self.functions = {name: rewritten(body, change) for name, body in self.functions.items()}
        self._stack[0] = [rewritten(each, change) for each in self._stack[0]]
        settled = {numbers.get(number, number): buffer for number, buffer in self.settled.items()}
        self.settled = {number: replace(buffer, variable=number) for number, buffer in settled.items()}

    def inside(
        self,
        *,
        ipu: int | None = None,
        stage: int | None = None,
        function: str | None = None,
        origin: Origin | None = None,
        operator: str | None = None,
    ) -> AbstractContextManager[None]:
        """What is emitted inside is stamped so; what is not given stays as it is."""
        return _Inside(self, (ipu, stage, function, origin, operator))

    # -- steps -------------------------------------------------------------------------------------------

    def stamp(self, name: str) -> dict[str, Any]:
        """The fields of a new step of this name."""
        self.next_step += 1
        return {
            "id": self.next_step - 1,
            "name": name,
            "origin": self.origin,
            "ipu": self.ipu,
            "stage": self.stage,
            "operator": self.operator,
        }

    def sync(self, scope: Any = "internal", name: str = "sync") -> None:
        """All tiles wait for each other."""
        self._push(Sync(**self.stamp(name), scope=scope))

    def compute(self, name: str, groups: Iterable[VertexGroup], reads: Iterable[int], writes: Iterable[int]) -> None:
        """Execute vertices; nothing is emitted when there are none."""
        found = _together(Selves(groups))
        if not found:
            return
        self._push(
            OnTileExecute(
                **self.stamp(name),
                reads=_ids(reads),
                writes=_ids(writes),
                compute_set=ComputeSet(name, found),
            )
        )

    def exchange(self, name: str, moves: Sequence[Exchange], reads: Iterable[int], writes: Iterable[int]) -> bool:
        """Synchronise, then exchange the sum of `moves`; nothing (False) is emitted when no byte crosses."""
        moving = [move for move in moves if move.received_bytes.any()]
        if moving:
            self._exchange(name, moving, reads, writes)
        return bool(moving)

    def _exchange(self, name: str, moving: Sequence[Exchange], reads: Iterable[int], writes: Iterable[int]) -> None:
        self.sync()
        self._push(
            DoExchange(**self.stamp(name), reads=_ids(reads), writes=_ids(writes), exchange=merged(name, moving))
        )

    def stream(self, name: str, tensor: Tensor, direction: Any, *, remote: bool = False, ahead: int = 0) -> None:
        """Copy a whole tensor from or to the host (or streaming memory); `ahead`: elements a feed holds ready."""
        per_tile = tensor.mapping.bytes_per_tile(tensor.itemsize_bytes, self.tiles)
        nothing = shared(np.zeros(self.tiles, np.int64))
        incoming = direction == "to_device"
        exchange = Exchange(
            name=name,
            sent_bytes=nothing if incoming else per_tile,
            received_bytes=per_tile if incoming else nothing,
            fragments=shared(per_tile > 0),
        )
        self._push(
            StreamCopy(
                **self.stamp(name),
                reads=() if incoming else tensor.variables,
                writes=tensor.variables if incoming else (),
                exchange=exchange,
                direction=direction,
                size_bytes=int(per_tile.sum()),
                remote=remote,
                prefetched=self.prefetched or remote or not incoming,
                ahead=ahead,
            )
        )

    # -- movement ----------------------------------------------------------------------------------------

    def move(self, source: Tensor, wanted: Placement) -> tuple[Exchange, IntArray]:
        """What it takes to give every tile the elements `wanted` asks of it: the exchange, and bytes already there."""
        moved = transfer(source.mapping, wanted, source.itemsize_bytes, self.tiles)
        exchange = Exchange(
            name="",
            sent_bytes=moved.sent_bytes,
            received_bytes=moved.received_bytes,
            fragments=moved.fragments,
            moves=(Move(source.mapping, wanted, source.itemsize_bytes),),
        )
        return exchange, moved.local_bytes

    def copy_groups(self, local_bytes: IntArray) -> list[VertexGroup]:
        """Copies inside each tile of this many bytes."""
        return vertex_groups("poplar::Memcpy", {"bytes": local_bytes})

    def rearrange(
        self,
        name: str,
        sources: Sequence[tuple[Tensor, Placement]],
        *,
        kind: VariableKind = "temporary",
        dtype: str | None = None,
    ) -> list[Tensor]:
        """Bring several tensors into the placements their readers need, in one exchange.

        Returns a tensor per source: the source itself where every tile already has just what it needs, otherwise a
        new temporary filled by the exchange and, for what was already on the tile, a copy inside it.
        """
        results: list[Tensor] = []
        moves: list[Exchange] = []
        copies: list[IntArray] = []
        reads: list[int] = []
        writes: list[int] = []
        for source, wanted in sources:
            if wanted == source.mapping:
                results.append(source)
                continue
            exchange, local_bytes = self.move(source, wanted)
            if not exchange.received_bytes.any():
                results.append(source)
                continue
            variable = self.new(f"{name}/{'arranged'}", source.shape, source.dtype, wanted, kind)
            results.append(_placed(source, variable, wanted))
            moves.append(exchange)
            copies.append(local_bytes)
            reads += source.variables
            writes.append(variable)
        if moves:
            self._exchange(f"{name}/exchange", moves, reads, writes)
            self.compute(f"{name}/copy", self.copy_groups(total_of(copies)), reads, writes)
        return results

    def move_all(self, name: str, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Overwrite every second tensor with the first, in one exchange and one set of copies inside tiles."""
        moved = [self.move(source, destination.mapping) for source, destination in pairs]
        reads = [variable for source, _ in pairs for variable in source.variables]
        writes = [variable for _, destination in pairs for variable in destination.variables]
        self.exchange(f"{name}/exchange", [exchange for exchange, _ in moved], reads, writes)
        local_bytes = total_of([local for _, local in moved])
        self.compute(f"{name}/copy", self.copy_groups(local_bytes), reads, writes)

    def move_into(self, name: str, source: Tensor, destination: Tensor) -> None:
        """Overwrite `destination` with `source` (same shape), by exchange and copies inside tiles."""
        self.move_all(name, [(source, destination)])


class _Inside(AbstractContextManager[None]):
    """Stamps of an emitter for a while: a class, as there are thousands and a generator takes twice the time."""

    __slots__ = ("before", "emit", "given")

    def __init__(self, emit: Emitter, given: tuple[Any, ...]) -> None:
        self.emit, self.given = emit, given

    def __enter__(self) -> None:
        emit, (ipu, stage, function, origin, operator) = self.emit, self.given
        self.before = (emit.ipu, emit.stage, emit.function, emit.origin, emit.operator)
        if ipu is not None:
            emit.ipu = ipu
        if stage is not None:
            emit.stage = stage
        if function is not None:
            emit.function = function
        if origin is not None:
            emit.origin = origin
        if operator is not None:
            emit.operator = operator

    def __exit__(self, *_: object) -> None:
        emit = self.emit
        emit.ipu, emit.stage, emit.function, emit.origin, emit.operator = self.before


def _placed(source: Tensor, variable: int, wanted: Placement) -> Tensor:
    mapping = wanted if isinstance(wanted, Mapping) else source.mapping
    return Tensor(variables=(variable,), mapping=mapping, shape=source.shape, dtype=source.dtype, ipu=source.ipu)


def _ids(names: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(names))


def merged(name: str, moves: Sequence[Exchange]) -> Exchange:
    """Several movements in one exchange: bytes and fragments add per tile."""
    shared = [move.shared_bytes for move in moves if move.shared_bytes is not None]
    return Exchange(
        name=name,
        sent_bytes=total_of([move.sent_bytes for move in moves]),
        received_bytes=total_of([move.received_bytes for move in moves]),
        fragments=total_of([move.fragments for move in moves]),
        shared_bytes=total_of(shared) if shared else None,
        moves=tuple(chain.from_iterable(move.moves for move in moves)),
    )
