"""I/O tiles: the last tiles of every IPU are kept for what comes from and goes to the host.

The program is lowered for the others and widened afterwards. With operations placed on the I/O tiles, a copy from the
host ends there and an exchange takes the data on to where it is used, and the other way round. In a loop the copy runs
beside the compute of another iteration: what does not show is subtracted, for all iterations but the first of inputs
and the last of outputs, evenly over all.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray, ceil_div, frozen
from workbench.base.identity import ByIdentity
from workbench.engine.options import Options
from workbench.engine.program import (
    Call,
    DoExchange,
    Exchange,
    GlobalExchange,
    Leaf,
    OnTileExecute,
    Program,
    Repeat,
    Sequence,
    Step,
    StreamCopy,
    Sync,
    TileProgram,
    Variable,
    rewritten,
)
from workbench.engine.program.moves import in_order
from workbench.engine.target import Target
from workbench.engine.time.execute import execute
from workbench.engine.time.trace import Trace, TraceNode
from workbench.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class IoTiles:
    """How many tiles of each IPU are set apart, and whether host copies end on them."""

    count: int = 0
    placed: bool = False
    proportion: float = 0.9


def io_tiles_of(options: Options, target: Target) -> IoTiles:
    """What the options say; an `InputError` when no tile is left to compute on."""
    count = int(options.get("io_tiles.num_io_tiles"))
    if count >= target.tiles_per_ipu:
        raise InputError(
            f"io_tiles.num_io_tiles is {count}, and an IPU of {target.name} has {target.tiles_per_ipu} tiles",
            expected=f"at most {target.tiles_per_ipu - 1}",
        )
    return IoTiles(
        count=count,
        placed=count > 0 and bool(options.get("io_tiles.place_ops_on_io_tiles")),
        proportion=float(options.get("io_tiles.available_memory_proportion")),
    )


def compute_target(target: Target, io: IoTiles) -> Target:
    """The target without the tiles that are set apart."""
    return dataclasses.replace(target, tiles_per_ipu=target.tiles_per_ipu - io.count) if io.count else target


def check_overlap(io: IoTiles, schedule: str, ipus: int, *, pipelined: bool) -> None:
    """Copies overlap with compute on one IPU and under the Grouped schedule; elsewhere that is an `InputError`."""
    if not io.placed or ipus == 1 or (pipelined and schedule == "Grouped"):
        return
    what = f"a pipeline under the {schedule} schedule" if pipelined else f"a model over {ipus} shards"
    raise InputError(
        f"io_tiles.place_ops_on_io_tiles is set for {what}",
        expected="a single IPU, or the Grouped schedule",
        todo="set io_tiles.place_ops_on_io_tiles = False" + (', or pipeline_schedule="Grouped"' if pipelined else ""),
    )


def apart(program: TileProgram, target: Target, io: IoTiles) -> TileProgram:
    """The program on all tiles of the target, host copies on the I/O tiles where they are to be and fit."""
    if not io.count:
        return program
    widened = _Widening(io.count).run(program, target)
    return _copies_placed(widened, io) if io.placed else widened


def apart_by_hand(program: TileProgram, options: Options) -> TileProgram:
    """A program that says itself where everything lies, host copies on the I/O tiles where they are to be and fit.

    Errors: `InputError` for what it has on a tile that is set apart, and for overlapping copies over several IPUs.
    """
    io = io_tiles_of(options, program.target)
    if not io.count:
        return program
    first = program.target.tiles_per_ipu - io.count
    held = [f"variable {each.name!r} lies" for each in program.variables if each.bytes_per_tile[first:].any()]
    computes = [step for step in program.steps if isinstance(step, OnTileExecute)]
    done = [f"compute set {step.name!r} runs" for step in computes if _last_tile(step) >= first]
    for what in (*held, *done):
        raise InputError(
            f"{what} on a tile from {first} on, and io_tiles.num_io_tiles = {io.count} sets these apart",
            expected=f"a program on tiles 0 to {first - 1}",
            todo=f"map it there, as map_linearly(tiles={first}) does, or set io_tiles.num_io_tiles = 0",
        )
    check_overlap(io, "", program.ipus, pipelined=False)
    return _copies_placed(program, io) if io.placed else program


def _last_tile(step: OnTileExecute) -> int:
    return max((int(group.tiles.tiles.max()) for group in step.compute_set.groups), default=-1)


def _copies_placed(widened: TileProgram, io: IoTiles) -> TileProgram:
    """The program with its host copies on the I/O tiles, if they fit there."""
    moved = [step for step in widened.steps if isinstance(step, StreamCopy) and not step.remote]
    for ipu in range(widened.ipus):
        size_bytes = sum(step.size_bytes for step in moved if step.ipu == ipu)
        room_bytes = int(io.count * widened.target.bytes_per_tile * io.proportion)
        if size_bytes > room_bytes:
            warnings.warn(
                f"{size_bytes} bytes of input and output on IPU {ipu} do not fit in {room_bytes} bytes of "
                f"{io.count} I/O tiles (io_tiles.available_memory_proportion {io.proportion:g}): they stay off them",
                RuntimeWarning,
                stacklevel=3,
            )
            return widened
    placed = _Placing(widened, io.count).run()
    return _Hiding(execute(placed)).run(placed)


# -- all tiles


class _Widening:
    """Adds tiles that hold and do nothing; equal arrays stay one array."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._known: ByIdentity[IntArray, IntArray] = ByIdentity()

    def run(self, program: TileProgram, target: Target) -> TileProgram:
        variables = [dataclasses.replace(one, bytes_per_tile=self.row(one.bytes_per_tile)) for one in program.variables]
        return dataclasses.replace(
            program,
            target=target,
            variables=tuple(variables),
            functions={name: rewritten(body, self.step) for name, body in program.functions.items()},
            entry=rewritten(program.entry, self.step),
        )

    def row(self, array: IntArray) -> IntArray:
        if array not in self._known:
            self._known[array] = frozen(np.concatenate([array, np.zeros(self.count, np.int64)]))
        return self._known[array]

    def exchange(self, exchange: Exchange) -> Exchange:
        found = {each.name: getattr(exchange, each.name) for each in dataclasses.fields(exchange)}
        arrays: dict[str, Any] = {
            name: self.row(value) for name, value in found.items() if isinstance(value, np.ndarray)
        }
        return dataclasses.replace(exchange, **arrays)

    def step(self, step: Leaf) -> Program:
        if isinstance(step, DoExchange | StreamCopy):
            return dataclasses.replace(step, exchange=self.exchange(step.exchange))
        if isinstance(step, GlobalExchange):
            ends = [end and self.exchange(end) for end in (step.sent, step.received)]
            return dataclasses.replace(step, sent=ends[0], received=ends[1])
        return step


# -- on the I/O tiles


@dataclass(slots=True)
class _Placing:
    """Host copies that end on the last `count` tiles, in a buffer that is there all the time."""

    program: TileProgram
    count: int
    variables: list[Variable] = field(default_factory=list)
    next_step: int = 0

    def run(self) -> TileProgram:
        program = self.program
        self.variables = list(program.variables)
        self.next_step = 1 + max((step.id for step in program.steps), default=-1)
        functions = {name: rewritten(body, self._step) for name, body in program.functions.items()}
        entry = rewritten(program.entry, self._step)
        return dataclasses.replace(program, functions=functions, entry=entry, variables=tuple(self.variables))

    def _step(self, step: Leaf) -> Program:
        if not isinstance(step, StreamCopy) or step.remote:
            return step
        incoming = step.direction == "to_device"
        inside = step.exchange.received_bytes if incoming else step.exchange.sent_bytes
        outside = self._spread(step.size_bytes)
        buffer = self._buffer(step, outside)
        stream = dataclasses.replace(
            step,
            reads=() if incoming else (buffer,),
            writes=(buffer,) if incoming else (),
            exchange=self._exchange(step.name, outside, incoming=incoming),
        )
        onward: tuple[Program, ...] = (
            Sync(**self._stamp(step, "sync")),
            DoExchange(
                **self._stamp(step, f"{step.name}/io"),
                reads=(buffer,) if incoming else step.reads,
                writes=step.writes if incoming else (buffer,),
                exchange=Exchange(
                    name=f"{step.name}/io",
                    sent_bytes=outside if incoming else inside,
                    received_bytes=inside if incoming else outside,
                    fragments=self._pieces(inside, outside),
                    moves=(in_order(outside, inside) if incoming else in_order(inside, outside),),
                ),
            ),
        )
        return Sequence(children=(stream, *onward) if incoming else (*onward, stream), name=step.name)

    def _stamp(self, step: Leaf, name: str) -> dict[str, Any]:
        self.next_step += 1
        return {
            "id": self.next_step - 1,
            "name": name,
            "origin": step.origin,
            "ipu": step.ipu,
            "stage": step.stage,
            "operator": step.operator,
        }

    def _spread(self, size_bytes: int) -> IntArray:
        """So many bytes over the I/O tiles, evenly."""
        tiles = self.program.target.tiles_per_ipu
        parts = (np.arange(1, self.count + 1) * size_bytes) // self.count
        return frozen(np.concatenate([np.zeros(tiles - self.count, np.int64), np.diff(parts, prepend=0)]))

    def _buffer(self, step: StreamCopy, share: IntArray) -> int:
        held = self.program.variables[(*step.reads, *step.writes)[0]]
        self.variables.append(
            dataclasses.replace(
                held,
                id=len(self.variables),
                name=f"{step.name}/buffer",
                kind="stream",
                bytes_per_tile=share,
                always_live=True,
                function="",
                mapped=f"on {self.count} I/O tiles",
            )
        )
        return len(self.variables) - 1

    def _exchange(self, name: str, share: IntArray, *, incoming: bool) -> Exchange:
        nothing = frozen(np.zeros_like(share))
        sent, received = (nothing, share) if incoming else (share, nothing)
        return Exchange(name=name, sent_bytes=sent, received_bytes=received, fragments=frozen(share > 0))

    def _pieces(self, inside: IntArray, outside: IntArray) -> IntArray:
        """Pieces at each tile when both sides hold the data in one order: a cut of either side ends a piece."""
        holders, io = int(np.count_nonzero(inside)), int(np.count_nonzero(outside))
        many = max(1, holders + io - 1)
        per_holder, per_io = ceil_div(many, max(1, holders)), ceil_div(many, max(1, io))
        return frozen(np.where(inside > 0, per_holder, np.where(outside > 0, per_io, 0)))


# -- beside compute


class _Hiding:
    """Copies in bodies that run many times, each with the cycles that other iterations' compute covers."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.hidden: dict[int, int] = {}
        for node in (*trace.functions.values(), trace.entry):
            self._body(node)

    def run(self, program: TileProgram) -> TileProgram:
        functions = {name: rewritten(body, self._step) for name, body in program.functions.items()}
        return dataclasses.replace(program, functions=functions, entry=rewritten(program.entry, self._step))

    def _step(self, step: Leaf) -> Program:
        hidden = self.hidden.get(step.id, 0)
        return dataclasses.replace(step, hidden_cycles=hidden) if hidden and isinstance(step, StreamCopy) else step

    def _body(self, node: TraceNode) -> None:
        """The copies of one iteration share the cycles of everything else in it."""
        copies = [leaf for leaf in self._leaves(node) if isinstance(leaf.program, StreamCopy)]
        room = node.cycles - sum(leaf.cycles for leaf in copies)
        for leaf in copies:
            step = leaf.program
            assert isinstance(step, StreamCopy)
            times = self.trace.executions[step.id]
            covered = 0 if step.remote or not times else min(leaf.cycles, room)
            room -= covered
            self.hidden[step.id] = covered * (times - 1) // max(1, times)

    def _leaves(self, node: TraceNode) -> Iterator[TraceNode]:
        """The steps of one iteration; a loop inside is a body of its own."""
        if isinstance(node.program, Step):
            yield node
        elif isinstance(node.program, Repeat):
            self._body(node.children[0])
        elif not isinstance(node.program, Call):
            for child in node.children:
                yield from self._leaves(child)
