"""From steps written by hand to a tile program, with the exchanges that bring data to vertices and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as Listed
from dataclasses import replace
from itertools import groupby
from math import prod

import numpy as np

from workbench.base.arrays import IntArray
from workbench.base.dtypes import ITEMSIZE_BYTES
from workbench.engine.by_hand import by_hand as hand
from workbench.engine.by_hand.copies import Moved, is_plain, moved, waves
from workbench.engine.by_hand.tensor import HandVariable, Tensor
from workbench.engine.by_hand.vertex import Vertex
from workbench.engine.emit import Emitter
from workbench.engine.graph.origin import Origin
from workbench.engine.mapping import Mapping, demand, runs_of_elements, transfer
from workbench.engine.mapping.tensor import Tensor as Placed
from workbench.engine.mapping.tileset import tile_set
from workbench.engine.memory.lifetimes import lifetimes
from workbench.engine.program import (
    Call,
    Exchange,
    If,
    Move,
    Program,
    Repeat,
    Sequence,
    TileProgram,
    Variable,
    VertexGroup,
    verify_program,
)
from workbench.engine.target import Target
from workbench.errors import InputError

_RESIDENT = ("parameter", "optimizer", "state", "constant")


def lower_by_hand(
    name: str, target: Target, variables: Listed[HandVariable], program: hand.Step, *, prefetched: bool = True
) -> TileProgram:
    """The tile program of a step over these variables.

    A step that stands several times becomes a function; a variable that is read before anything writes it, or that
    no step uses, keeps its memory (it is always live). `prefetched`: the host has what it sends ready.
    """
    lowering = _Lowering(target, variables, program, prefetched=prefetched)
    lowering.step(program)
    emit = lowering.emit
    result = TileProgram(
        name=name,
        target=target,
        ipus=1,
        variables=tuple(emit.variables),
        functions=emit.functions,
        entry=emit.finish(program.name or "entry"),
    )
    return verify_program(replace(result, variables=_with_lives(result, lowering.arriving)))


def _with_lives(program: TileProgram, arriving: set[int]) -> tuple[Variable, ...]:
    found = lifetimes(program)
    result = []
    for variable in program.variables:
        unused = not found.intervals[variable.id] and not variable.function
        always = variable.id in found.exposed or unused or variable.kind in _RESIDENT
        kind = variable.kind
        if kind == "temporary" and not variable.function and variable.id in arriving:
            kind = "input"
        elif kind == "temporary" and always:
            kind = "state"
        result.append(replace(variable, always_live=always, kind=kind))
    return tuple(result)


class _Lowering:
    def __init__(
        self, target: Target, variables: Listed[HandVariable], program: hand.Step, *, prefetched: bool
    ) -> None:
        self.emit = Emitter(target=target, prefetched=prefetched)
        self.uses = hand.uses(program)
        self.arriving: set[int] = set()
        self.streaming = ""  # the direction of the host copy just before
        self.ids: dict[HandVariable, int] = {}
        self._called: dict[hand.Step, str] = {}
        for variable in variables:
            self.ids[variable] = self.emit.new(
                variable.name,
                variable.shape,
                variable.dtype,
                variable.placed(),
                variable.kind or "temporary",
                interleaved=variable.interleaved,
            )

    # -- control -----------------------------------------------------------------------------------------

    def step(self, step: hand.Step) -> None:
        """Emit a step; one that stands several times is emitted once and called."""
        if isinstance(step, hand.Function) or self.uses[step] > 1:
            self._call(step)
        else:
            self._emit(step)

    def _call(self, step: hand.Step) -> None:
        if step not in self._called:
            name = step.name or type(step).__name__.lower()
            if name in self.emit.functions:
                name = f"{name} {len(self.emit.functions)}"
            self._called[step] = name
            caller, self.emit.function = self.emit.function, name
            body = self._body(step.body) if isinstance(step, hand.Function) else self._body(step, emit_only=True)
            self.emit.function = caller
            self.emit.functions[name] = body
        self.streaming = ""
        self.emit.add(Call(function=self._called[step], name=step.name))

    def _body(self, step: hand.Step, *, emit_only: bool = False) -> Program:
        self.streaming = ""
        with self.emit.body() as collected:
            if emit_only:
                self._emit(step)
            else:
                self.step(step)
        self.streaming = ""
        return collected[0] if len(collected) == 1 else Sequence(children=tuple(collected), name=step.name)

    def _emit(self, step: hand.Step) -> None:
        if isinstance(step, hand.Sequence):
            self._parts(step.parts)
        elif isinstance(step, hand.Repeat):
            self.emit.add(Repeat(times=step.times, body=self._body(step.body), name=step.name))
        elif isinstance(step, hand.If):
            before, self.emit.origin = self.emit.origin, Origin(source=step.line)
            self._condition(step)
            self.emit.origin = before
            self.emit.add(If(arms=tuple(self._body(arm) for arm in step.arms), name=step.name))
        else:
            self._leaf(step)

    def _parts(self, parts: Listed[hand.Step]) -> None:
        """Steps one after the other; consecutive copies that do not touch each other at the same time."""
        joined = [isinstance(part, hand.Copy) and self.uses[part] == 1 for part in parts]
        for together, members in groupby(zip(joined, parts, strict=True), key=lambda pair: pair[0]):
            if together:
                for wave in waves(part for _, part in members if isinstance(part, hand.Copy)):
                    self._leaf(wave[0]) if len(wave) == 1 else self._wave(wave)
            else:
                for _, part in members:
                    self.step(part)

    def _leaf(self, step: hand.Step) -> None:
        before, self.emit.origin = self.emit.origin, Origin(layer=step.name, source=step.line)
        if not isinstance(step, hand.HostCopy):
            self.streaming = ""
        if isinstance(step, hand.ComputeSet):
            self._compute(step)
        elif isinstance(step, hand.Copy):
            self._copy([step])
        elif isinstance(step, hand.HostCopy):
            if self.streaming != step.direction:  # adjacent copies of one direction are one, as a model's inputs
                self.emit.sync("external")
            self.streaming = step.direction
            self.emit.stream(step.name, self._placed(step.tensor), step.direction)
            if step.direction == "to_device":
                self.arriving.add(self.ids[step.tensor.variable])
        self.emit.origin = before

    def _wave(self, wave: Listed[hand.Copy]) -> None:
        """Several copies at the same time, named by the first and at its line."""
        before, self.emit.origin = self.emit.origin, Origin(source=wave[0].line)
        self._copy(wave)
        self.emit.origin = before

    def _copy(self, wave: Listed[hand.Copy]) -> None:
        """Copies at the same time: one exchange, then a set of copies inside tiles."""
        self.streaming = ""
        name = wave[0].name
        plain = [copy for copy in wave if is_plain(copy)]
        if len(plain) == len(wave):
            pairs = [(self._placed(copy.source), self._placed(copy.destination)) for copy in wave]
            self.emit.move_all(name, pairs)
            return
        found = [moved(copy, self.emit.tiles) for copy in wave]
        sources = [self.ids[copy.source.variable] for copy in wave]
        targets = [self.ids[copy.destination.variable] for copy in wave]
        staging = [
            self._temporary(f"{name}/staged", move.staged_bytes, copy.source.dtype)
            for copy, move in zip(wave, found, strict=True)
            if move.staged_bytes.any()
        ]
        direct = [target for target, move in zip(targets, found, strict=True) if not _all_staged(move)]
        self.emit.exchange(f"{name}/exchange", [move.exchange for move in found], sources, [*staging, *direct])
        local = [source for source, move in zip(sources, found, strict=True) if move.local]
        groups = [group for move in found for group in move.groups]
        self.emit.compute(f"{name}/copy", groups, [*staging, *local], targets)

    # -- data --------------------------------------------------------------------------------------------

    def _placed(self, tensor: Tensor) -> Placed:
        mapping: Mapping = tensor.variable.placed()
        if not tensor.whole:
            mapping = runs_of_elements(tensor.shape, mapping.tile_of_elements()[tensor.flat()])
        return Placed(variables=(self.ids[tensor.variable],), mapping=mapping, shape=tensor.shape, dtype=tensor.dtype)

    def _condition(self, step: hand.If) -> None:
        """Every tile decides for itself, so the one element goes to all of them."""
        placed = self._placed(step.condition)
        tiles = np.arange(self.emit.tiles)
        wanted = demand((1,), tiles, np.zeros_like(tiles), np.ones_like(tiles))
        moved = transfer(placed.mapping, wanted, placed.itemsize_bytes, self.emit.tiles)
        copies = self._temporary(f"{step.name}/condition", moved.received_bytes, placed.dtype)
        exchange = Exchange(
            name="",
            sent_bytes=moved.sent_bytes,
            received_bytes=moved.received_bytes,
            fragments=moved.fragments,
            moves=(Move(placed.mapping, wanted, placed.itemsize_bytes),),
        )
        if not self.emit.exchange(f"{step.name}/condition", [exchange], placed.variables, [copies]):
            self.emit.sync()

    def _temporary(self, name: str, bytes_per_tile: IntArray, dtype: str = "float32") -> int:
        number = len(self.emit.variables)
        self.emit.variables.append(
            Variable(
                id=number,
                name=name,
                kind="temporary",
                dtype=dtype,
                shape=(int(bytes_per_tile.sum()) // ITEMSIZE_BYTES[dtype],),
                bytes_per_tile=bytes_per_tile,
                always_live=False,
                origin=self.emit.origin,
                function=self.emit.function,
            )
        )
        return number

    def _compute(self, step: hand.ComputeSet) -> None:
        """Fetch what vertices read from other tiles, run them, and return what they wrote of other tiles."""
        _check_races(step)
        reads, writes = _by_variable(step.vertices, "reads"), _by_variable(step.vertices, "writes")
        fetched = [self._fetch(variable, pieces) for variable, pieces in reads.items()]
        returned = [self._return(variable, pieces) for variable, pieces in writes.items()]
        moves = [(move, self.ids[variable], copy) for (move, copy, _), variable in zip(fetched, reads, strict=True)]
        self._exchange(f"{step.name}/ExchangePre", moves)
        read = [self.ids[variable] for (_, _, local), variable in zip(fetched, reads, strict=True) if local]
        read += [copy for _, copy, _ in fetched if copy is not None]
        written = [self.ids[variable] for (_, _, local), variable in zip(returned, writes, strict=True) if local]
        written += [copy for _, copy, _ in returned if copy is not None]
        self.emit.compute(step.name, _groups(step.vertices), read, written)
        back = [(move, copy, self.ids[variable]) for (move, copy, _), variable in zip(returned, writes, strict=True)]
        self._exchange(f"{step.name}/ExchangePost", back)

    def _exchange(self, name: str, moves: Iterable[tuple[Exchange, int | None, int | None]]) -> None:
        kept = [(move, source, target) for move, source, target in moves if source is not None and target is not None]
        self.emit.exchange(
            name, [move for move, _, _ in kept], [source for _, source, _ in kept], [target for _, _, target in kept]
        )

    def _fetch(self, variable: HandVariable, pieces: Listed[tuple[int, Tensor]]) -> tuple[Exchange, int | None, bool]:
        """What readers need: the exchange, the variable for what comes from other tiles, whether some is local."""
        mapping = variable.placed()
        tiles, first, last = _intervals(pieces)
        wanted = demand(variable.shape, tiles, first, last)
        itemsize = ITEMSIZE_BYTES[variable.dtype]
        moved = transfer(mapping, wanted, itemsize, self.emit.tiles)
        exchange = Exchange(
            name=variable.name,
            sent_bytes=moved.sent_bytes,
            received_bytes=moved.received_bytes,
            fragments=moved.fragments,
            moves=(Move(mapping, wanted, itemsize),),
        )
        copy = None
        if not moved.empty:
            copy = self._temporary(f"{variable.name}/ExchangePre", moved.received_bytes, variable.dtype)
        return exchange, copy, bool(moved.local_bytes.any())

    def _return(self, variable: HandVariable, pieces: Listed[tuple[int, Tensor]]) -> tuple[Exchange, int | None, bool]:
        """What writers made of other tiles' elements: the exchange back, the variable they write, if some is local."""
        mapping = variable.placed()
        owners = mapping.tile_of_elements()
        made = owners.copy()
        for tile, tensor in pieces:
            made[tensor.flat()] = tile
        away = made != owners
        written_at, itemsize = runs_of_elements(variable.shape, made), ITEMSIZE_BYTES[variable.dtype]
        moved = transfer(written_at, mapping, itemsize, self.emit.tiles)
        exchange = Exchange(
            name=variable.name,
            sent_bytes=moved.sent_bytes,
            received_bytes=moved.received_bytes,
            fragments=moved.fragments,
            moves=(Move(written_at, mapping, itemsize),),
        )
        copy = None
        if away.any():
            copy = self._temporary(f"{variable.name}/ExchangePost", moved.sent_bytes, variable.dtype)
        written = sum(tensor.elements for _, tensor in pieces)
        return exchange, copy, written > int(away.sum())


def _all_staged(move: Moved) -> bool:
    return bool((move.staged_bytes == move.exchange.received_bytes).all())


def _by_variable(vertices: Iterable[Vertex], edges: str) -> dict[HandVariable, list[tuple[int, Tensor]]]:
    found: dict[HandVariable, list[tuple[int, Tensor]]] = {}
    for vertex in vertices:
        for _, tensor in vertex.reads if edges == "reads" else vertex.writes:
            found.setdefault(tensor.variable, []).append((vertex.tile, tensor))
    return found


def _intervals(pieces: Listed[tuple[int, Tensor]]) -> tuple[IntArray, IntArray, IntArray]:
    runs = [tensor.runs() for _, tensor in pieces]
    tiles = [np.full(len(first), tile) for (tile, _), (first, _) in zip(pieces, runs, strict=True)]
    return (
        np.concatenate(tiles),
        np.concatenate([first for first, _ in runs]),
        np.concatenate([last for _, last in runs]),
    )


def _groups(vertices: Iterable[Vertex]) -> list[VertexGroup]:
    """Vertices as classes of equal class, arguments and number on a tile."""
    counts = Counter((vertex.vertex, vertex.arguments, vertex.tile) for vertex in vertices)
    tiles: dict[tuple[str, object, int], list[int]] = {}
    for (name, arguments, tile), count in counts.items():
        tiles.setdefault((name, arguments, count), []).append(tile)
    return [
        VertexGroup(name, arguments, tile_set(found), count)  # type: ignore[arg-type]
        for (name, arguments, count), found in tiles.items()
    ]


def _check_races(step: hand.ComputeSet) -> None:
    """Vertices of one compute set run at the same time, so none may write what another reads or writes."""
    writers: dict[HandVariable, np.ndarray] = {}
    for number, vertex in enumerate(step.vertices, 1):
        for _, tensor in vertex.writes:
            by = writers.setdefault(tensor.variable, np.zeros(prod(tensor.variable.shape), np.int64))
            _refuse(step, tensor, by, number, "write")
            by[tensor.flat()] = number
    for number, vertex in enumerate(step.vertices, 1):
        for _, tensor in vertex.reads:
            if tensor.variable in writers:
                _refuse(step, tensor, writers[tensor.variable], number, "read and write")


def _refuse(step: hand.ComputeSet, tensor: Tensor, by: np.ndarray, number: int, what: str) -> None:
    indices = tensor.flat()
    other = (by[indices] != 0) & (by[indices] != number)
    if other.any():
        raise InputError(
            f"two vertices of compute set {step.name!r} {what} element {int(indices[other][0])} of "
            f"{tensor.variable.name!r}",
            expected="vertices that run at the same time and touch different elements",
            todo="put them in two compute sets",
        )
