"""Always-live bytes of a tile program that are not variables: code, vertex state, headers and stacks per tile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, NarrowArray, ceil_div, frozen, narrow
from workbench.base.categories import CODE_CATEGORIES, FOOTPRINT_CATEGORIES
from workbench.base.identity import ByIdentities, ByIdentity
from workbench.engine import vertices
from workbench.engine.cost import Cost, Inputs, formula, term
from workbench.engine.mapping.tileset import TileSet
from workbench.engine.memory.host_copies import followers
from workbench.engine.program import (
    DoExchange,
    Exchange,
    GlobalExchange,
    Leaf,
    OnTileExecute,
    StreamCopy,
    TileProgram,
    VertexGroup,
)
from workbench.engine.program.alike import StepsAlike
from workbench.engine.remembered import remembered
from workbench.engine.target import Machine, Target
from workbench.engine.time.exchange_cost import exchange_instructions, piece_instructions

COMPILED_CATEGORIES = (*CODE_CATEGORIES, "stack")
"""What there is only of a compiled program: code, and the stack, whose size the compiled codelets state.

Source: poplibs@7eac0f26 lib/poplin/codelets/asm, stack usage is a section of each codelet's code; totals published of
the IPU Model without code are below one stack of 3,168 B: 772 B (graphcore/tensorflow, host_embedding_lookup_test.py).
"""

TFDOC = "memory report samples in graphcore/tensorflow r1.15/sdk-release-1.4, plugin/poplar/docs/logging.rst"


@formula(
    "memory.vertex_code",
    text="the code of each vertex class, once per tile and instantiation: (class, template arguments, bytes)",
    source="code sizes: instruction lines of the poplibs@7eac0f26 assembly x 4 B, +-50 %",
    unit="bytes",
    error_kind="vertex_code",
)
def _vertex_code(classes: tuple[tuple[str, str, int], ...]) -> int:
    return sum(size for _, _, size in classes)


@formula(
    "memory.vertex_state",
    text="state of the vertices, pointers included, + bytes of the counter a profiled program keeps x vertices",
    source=f"field sizes of the codelets; {TFDOC}: instrumentation results, 4,876 B for 1,219 vertices",
    unit="bytes",
    error_kind="vertex_instance_state",
)
def _vertex_state(state_bytes: Any, count: Any, counter_bytes: int) -> Any:
    return state_bytes + counter_bytes * count


@formula(
    "memory.copy_descriptor",
    text="state of the vertices that copy inside a tile",
    source="field sizes of the codelets",
    unit="bytes",
    error_kind="copy_descriptor",
)
def _copy_descriptor(state_bytes: Any) -> Any:
    return state_bytes


@formula(
    "memory.exchange_code",
    text="bytes per instruction x instructions (sent directly: 3/2 per piece of a tile and a further send per 64 words "
    "sent; or staged by copies: a send per 64 words, two per source, six for the copies; the fewer) + bytes every tile "
    "needs to stay in step x exchanges; with the piece each tile takes as a run begins, the number of its program",
    source="osmarks/ipu-stack@ce7c7e94: instructions of 4 B, sends of at most 64 words, three events a fragment; "
    f"bytes per exchange derived from {TFDOC}: 50 B a tile for four exchanges",
    unit="bytes",
    error_kind="internal_exchange_code",
)
def _exchange_code(instructions: Any, exchanges: Any, instruction_bytes: int, exchange_bytes: int) -> Any:
    return instruction_bytes * instructions + exchange_bytes * exchanges


@formula(
    "memory.host_exchange_code",
    text="bytes per host copy x host copies, on every tile of the IPU: two with which a run begins, and those of the "
    "program, of which some of one direction that follow each other are one",
    source=f"derived from {TFDOC}: 289 B a tile for the five copies of an adder (two of control, seed, inputs, "
    "results); merging: graphcore/tensorflow@b2127bba driver/visitors/deferred_visitor.cc:1402 groups copies for it",
    unit="bytes",
    error_kind="host_exchange_code",
)
def _host_exchange_code(copies: Any, copy_bytes: int) -> Any:
    return copies * copy_bytes


@formula(
    "memory.packet_headers",
    text="bytes of a header x packets; every host copy of a tile is cut in packets, rounded up",
    source="not sourced; a parameter of the target",
    unit="bytes",
    error_kind="host_exchange_packet_headers",
)
def _packet_headers(packets: Any, header_bytes: int) -> Any:
    return packets * header_bytes


@formula(
    "memory.control_code",
    text="a base + bytes per run x runs (vertices started by the supervisor, sets of worker vertices, exchanges and "
    "copies this tile takes part in) + bytes per barrier x barriers",
    source=f"derived: instructions of 4 B; base from {TFDOC}: 700 B a tile for an adder",
    unit="bytes",
    error_kind="control_code",
)
def _control_code(runs: Any, syncs: Any, base_bytes: int, run_bytes: int, sync_bytes: int) -> Any:
    return base_bytes + run_bytes * runs + sync_bytes * syncs


@formula(
    "memory.stack",
    text="the supervisor's and the workers' stacks",
    source=TFDOC,
    unit="bytes",
    error_kind="stack",
)
def _stack(stack_bytes: Any) -> Any:
    return stack_bytes


_FORMULAS = {
    "internal_exchange_code": ("memory.exchange_code", _exchange_code),
    "host_exchange_code": ("memory.host_exchange_code", _host_exchange_code),
    "global_exchange_code": ("memory.exchange_code", _exchange_code),
    "control_code": ("memory.control_code", _control_code),
    "vertex_instance_state": ("memory.vertex_state", _vertex_state),
    "copy_descriptor": ("memory.copy_descriptor", _copy_descriptor),
    "host_exchange_packet_headers": ("memory.packet_headers", _packet_headers),
    "stack": ("memory.stack", _stack),
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CodeVariant:
    """One instantiation of a vertex class: its code, and the tiles that hold it (bool[ipus, tiles])."""

    vertex: str
    template: str
    code_bytes: int
    tiles: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Footprint:
    """Bytes per category: `categories[name]` is int64[ipus, tiles], one entry per name of `FOOTPRINT_CATEGORIES`.

    `variants` are the codelets behind "vertex_code", `inputs[category]` the per-tile inputs of the other formulas.
    `sizes` is kept for a later program that has steps in common with this one.
    """

    categories: Mapping[str, IntArray]
    variants: tuple[CodeVariant, ...] = ()
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sizes: StepSizes | None = field(default=None, repr=False)

    def bytes_per_tile(self, ipu: int) -> IntArray:
        """All categories of one IPU together, int64[tiles]."""
        return np.asarray(sum(array[ipu] for array in self.categories.values()), dtype=np.int64)

    def cost(self, category: str, ipu: int, tile: int) -> Cost:
        """One category on one tile, in bytes, as a term of its formula; no terms when there are none of it."""
        if not self.categories[category][ipu, tile]:
            return Cost()
        if category == "vertex_code":
            held = [variant for variant in self.variants if variant.tiles[ipu, tile]]
            listed = tuple((variant.vertex, variant.template, variant.code_bytes) for variant in held)
            return Cost((term(category, "memory.vertex_code", classes=listed),))
        values = self.inputs[category].items()
        here = {name: value[ipu, tile] if isinstance(value, np.ndarray) else value for name, value in values}
        return Cost((term(category, _FORMULAS[category][0], **here),))


def footprint(
    program: TileProgram,
    *,
    compile_ipu_code: bool = True,
    earlier: Footprint | None = None,
    sizes: StepSizes | None = None,
) -> Footprint:
    """The footprint of a program; without IPU code there is no code and no stack. Bodies stored once count once.

    What an `earlier` program has in common with it is taken over, and what is known of its own steps (`sizes`).
    """
    groups = {buffer.variable: buffer.group for buffer in program.remote_buffers}
    if sizes is None or sizes.target != program.target:
        sizes = StepSizes(program.target, earlier.sizes if earlier is not None else None)
    counts = _Counts(sizes, range(program.ipus), groups, followers(program))
    for steps in program.leaves_of_bodies:
        counts.add_body(steps)
    counts.spread()
    inputs = counts.inputs(tuple(_FORMULAS))
    shape = (program.ipus, program.target.tiles_per_ipu)
    variants = counts.variants()
    code = np.zeros(shape, np.int64)
    for variant in variants:
        code += variant.code_bytes * variant.tiles
    categories = {"vertex_code": code}
    for category, (_, evaluate) in _FORMULAS.items():
        categories[category] = np.broadcast_to(np.asarray(evaluate(**inputs[category]), np.int64), shape)
    if not compile_ipu_code:
        categories.update({name: np.zeros(shape, np.int64) for name in COMPILED_CATEGORIES})
    ordered = {name: frozen(categories[name]) for name in FOOTPRINT_CATEGORIES}
    return Footprint(categories=ordered, variants=variants, inputs=inputs, sizes=sizes)


def kept_by(steps: Iterable[Leaf], sizes: StepSizes, ipu: int, categories: tuple[str, ...]) -> IntArray:
    """Bytes of some categories, none of them "vertex_code", that a program for one IPU has for these steps of it,
    int64[tiles]; each host copy for itself, as which of them follow each other is the program's to say.
    """
    alike = StepsAlike(steps)
    found = sizes.kept(alike, categories)
    if found is None:
        counts = _Counts(sizes, range(ipu, ipu + 1))
        counts.add(alike.steps)
        found = frozen(_kept(counts.spread(), categories) - _without_steps(sizes.target, categories))
        sizes.keep(alike, categories, found)
    return found


@lru_cache(maxsize=8)
def _without_steps(target: Target, categories: tuple[str, ...]) -> IntArray:
    return frozen(_kept(_Counts(StepSizes(target), range(1)), categories))


def _kept(counts: _Counts, categories: tuple[str, ...]) -> IntArray:
    total = np.zeros(counts.shape, np.int64)
    for category, inputs in counts.inputs(categories).items():
        total += np.asarray(_FORMULAS[category][1](**inputs), np.int64)
    return np.asarray(total[0])


def _template(arguments: Inputs) -> str:
    """The arguments that select code: names of types and operations, and flags; sizes do not."""
    chosen = [(name, value) for name, value in arguments if isinstance(value, (str, bool)) or _has_text(value)]
    return ", ".join(f"{name}={value}" for name, value in chosen)


def _has_text(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, str) or _has_text(item) for item in value)


Variant: TypeAlias = tuple[str, str, int]
"""A vertex class, the arguments that select code, and its bytes."""
Flags: TypeAlias = npt.NDArray[np.bool_]


class _Size(NamedTuple):
    """What the vertices of a group take: which code, and on each of their tiles in the order of `_VERTICES`."""

    variant: Variant
    counts: tuple[int, int, int, int]


_VERTICES = ("copied", "state", "entries", "runs")  # bytes of copies and of others, those others, runs
LEAST_STEPS = 64  # of a body whose sums are kept: those of a few steps are made as soon as found again


class _Instances(NamedTuple):
    """The step that runs a variant first and the place of its group there, and which tiles hold its code."""

    first: tuple[int, int]
    tiles: Flags


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _BodySizes:
    """What the steps of a body take together on the tiles of its IPU: `sums` by name, integers[tiles] each, and how
    many exchanges and barriers there are. The steps of `variants` are places in the body."""

    sums: Mapping[str, NarrowArray]
    exchanges: int
    syncs: int
    variants: Mapping[Variant, _Instances]


@remembered(50_000)
def _size_of(machine: Machine, vertex: str, arguments: Inputs, count: int) -> _Size:
    codelet = vertices.find(vertex)
    given = codelet.inputs(machine, dict(arguments))
    variant = (vertex, _template(arguments), int(codelet.code_bytes(**given)))
    state_bytes = int(codelet.state_bytes(**given)) * count
    runs = 1 if codelet.kind == "worker" else count
    copies = "Memcpy" in vertex
    return _Size(variant, (state_bytes, 0, 0, runs) if copies else (0, state_bytes, count, runs))


class StepSizes:
    """What steps take of code and state, told by their vertices and per-tile bytes, which bodies that are played again
    have in common. What an `earlier` program had is taken over.
    """

    def __init__(self, target: Target, earlier: StepSizes | None = None) -> None:
        self.target = target
        self._groups: ByIdentity[tuple[VertexGroup, ...], list[_Size]] = ByIdentity()
        self._exchanges: ByIdentities[IntArray, tuple[NarrowArray, npt.NDArray[np.bool_]]] = ByIdentities()
        self._bodies: dict[StepsAlike, _BodySizes] = {}
        self._kept: dict[tuple[StepsAlike, tuple[str, ...]], IntArray] = {}
        before = self if earlier is None or earlier.target != target else earlier
        self._earlier = (before._groups, before._exchanges, before._bodies, before._kept)

    def kept(self, steps: StepsAlike, categories: tuple[str, ...]) -> IntArray | None:
        """What was found that these steps keep, or others that do the same."""
        name, (*_, earlier) = (steps, categories), self._earlier
        found = self._kept.get(name)
        if found is None and name in earlier:
            found = self._kept[name] = earlier[name]
        return found

    def keep(self, steps: StepsAlike, categories: tuple[str, ...], kept_bytes: IntArray) -> None:
        """What these steps keep, and all that do the same."""
        if steps.are_told:
            self._kept[steps, categories] = kept_bytes

    def of_body(self, steps: StepsAlike) -> _BodySizes:
        """What told steps of one IPU take together."""
        found = self._bodies.get(steps) or self._earlier[2].get(steps)
        if found is None:
            counts = _Counts(self, range(steps.steps[0].ipu, steps.steps[0].ipu + 1))
            counts.add(steps.steps)
            found = counts.spread().of_body(steps.steps)
        self._bodies[steps] = found
        return found

    def of_groups(self, groups: tuple[VertexGroup, ...]) -> list[_Size]:
        """What each of some groups takes."""
        found: list[_Size] | None = self._groups.get(groups)
        if found is None:
            machine = self.target.machine
            found = self._earlier[0].get(groups) or [
                _size_of(machine, group.vertex, group.arguments, group.count) for group in groups
            ]
            self._groups[groups] = found
        return found

    def of_exchange(self, exchange: Exchange) -> tuple[NarrowArray, npt.NDArray[np.bool_]]:
        """Instructions of each tile, and which tiles take part."""
        arrays = (exchange.sent_bytes, exchange.received_bytes, exchange.fragments)
        found: tuple[NarrowArray, npt.NDArray[np.bool_]] | None = self._exchanges.get(arrays)
        if found is None:
            found = self._earlier[1].get(arrays) or (
                narrow(exchange_instructions(exchange, self.target)),
                (exchange.sent_bytes > 0) | (exchange.received_bytes > 0),
            )
            self._exchanges[arrays] = found
        return found


class _Counts:
    """What the formulas need, summed over the static steps: int64[ipus, tiles] each.

    Vertices are counted per set of tiles, exchanges per distinct exchange; both are spread over the tiles when the
    steps that were added are all there are. `group_of` and `merged` are of host copies.
    """

    def __init__(
        self,
        sizes: StepSizes,
        ipus: range,
        group_of: Mapping[int, int] | None = None,
        merged: frozenset[int] = frozenset(),
    ) -> None:
        self.target, self.sizes, self.ipus = sizes.target, sizes, ipus
        self.shape = (len(ipus), sizes.target.tiles_per_ipu)
        self._of_vertices = np.zeros((len(_VERTICES), *self.shape), np.int64)
        self.sums = dict(zip(_VERTICES, self._of_vertices, strict=True))
        names = ("instructions", "global_instructions", "packets")
        self.sums |= {name: np.zeros(self.shape, np.int64) for name in names}
        self.exchanges = {name: np.zeros((len(ipus), 1), np.int64) for name in ("", "global_")}
        self.copies, self.syncs = np.zeros((2, len(ipus), 1), np.int64)
        self._variants: dict[Variant, _Instances] = {}
        self._groups: dict[tuple[int, TileSet], Sequence[int]] = {}
        self._met: dict[tuple[Variant, int, TileSet], tuple[int, int]] = {}
        self._moved: dict[tuple[int, str], ByIdentities[IntArray, list[Exchange]]] = {}
        self._copied: set[tuple[str, int | None]] = set()
        self._group_of, self._merged = group_of or {}, merged

    def add_body(self, steps: Sequence[Leaf]) -> None:
        """Count the steps of a body, at once if they are those of a body that was counted before."""
        ordered = sorted(steps, key=lambda step: step.id)
        alike = StepsAlike(ordered) if len(steps) >= LEAST_STEPS else None
        if alike is None or not alike.are_told or len({step.ipu for step in steps}) > 1:
            self.add(ordered)
            return
        found, row = self.sizes.of_body(alike), steps[0].ipu - self.ipus.start
        for name, amounts in found.sums.items():
            self.sums[name][row] += amounts
        self.exchanges[""][row] += found.exchanges
        self.syncs[row] += found.syncs
        for variant, ((place, group), tiles) in found.variants.items():
            self._instances(variant, (ordered[place].id, group))[row] |= tiles

    def of_body(self, steps: Sequence[Leaf]) -> _BodySizes:
        """What was counted of the told steps of a body on one IPU."""
        place_of = {step.id: place for place, step in enumerate(steps)}
        return _BodySizes(
            sums={name: narrow(amounts[0]) for name, amounts in self.sums.items() if amounts.any()},
            exchanges=int(self.exchanges[""][0, 0]),
            syncs=int(self.syncs[0, 0]),
            variants={
                variant: _Instances((place_of[step], group), found.tiles[0])
                for variant, found in self._variants.items()
                for step, group in (found.first,)
            },
        )

    def add(self, steps: Iterable[Leaf]) -> None:
        """Count steps one by one, which come in order of their ids; `spread` is to follow."""
        for step in steps:
            self._add(step)

    def _add(self, step: Leaf) -> None:
        """Count one step."""
        row = step.ipu - self.ipus.start
        if isinstance(step, OnTileExecute):
            groups = step.compute_set.groups
            for place, (group, size) in enumerate(zip(groups, self.sizes.of_groups(groups), strict=True)):
                self._group(group, size, row, (step.id, place))
        elif isinstance(step, DoExchange):
            self._moves(step.exchange, row, "")
        elif isinstance(step, StreamCopy):
            copy = (step.direction, self._group_of.get(step.buffer))
            known = step.id in self._merged if copy[1] is None else copy in self._copied
            if not known:  # rows of one remote buffer are copied by the same code
                self._copied.add(copy)
                self.copies[row] += 1
            moved = step.exchange.sent_bytes + step.exchange.received_bytes
            self.sums["packets"][row] += ceil_div(moved, self.target.code.host_packet_payload_bytes)
            self.sums["runs"][row] += moved > 0
        elif isinstance(step, GlobalExchange):
            for exchange, ipu in ((step.sent, step.ipu), (step.received, step.to_ipu)):
                if exchange is not None and ipu in self.ipus:
                    self._moves(exchange, ipu - self.ipus.start, "global_")
        else:
            self.syncs[row] += 1

    def _moves(self, exchange: Exchange, row: int, prefix: str) -> None:
        arrays = (exchange.sent_bytes, exchange.received_bytes, exchange.fragments)
        self._moved.setdefault((row, prefix), ByIdentities()).setdefault(arrays, []).append(exchange)

    def _group(self, group: VertexGroup, size: _Size, row: int, first: tuple[int, int]) -> None:
        where = (row, group.tiles)
        met = (size.variant, row, group.tiles)
        if met not in self._met or first < self._met[met]:
            self._met[met] = first
        known = self._groups.get(where)
        self._groups[where] = size.counts if known is None else [*map(add, known, size.counts)]

    def _instances(self, variant: Variant, first: tuple[int, int]) -> Flags:
        """The tiles of a variant, to be added to, which is met at a step and there in a group."""
        found = self._variants.get(variant)
        tiles = np.zeros(self.shape, bool) if found is None else found.tiles
        if found is None or first < found.first:
            self._variants[variant] = _Instances(first, tiles)
        return tiles

    def spread(self) -> _Counts:
        """With all that was counted by tiles."""
        if self._groups:
            self._spread_vertices()
        for (variant, row, tiles), first in self._met.items():
            self._instances(variant, first)[row, tiles.index] = True
        for (row, prefix), moved in self._moved.items():
            for _, (exchange, *more) in moved.items():
                self._add_moves(row, prefix, exchange, 1 + len(more))
        self._groups, self._met, self._moved = {}, {}, {}
        return self

    def _spread_vertices(self) -> None:
        """Counts of all groups, added up over their tiles at once; doubles hold the sums, which are below 2^53."""
        tiles = [tiles.tiles for _, tiles in self._groups]
        lengths = np.array([len(each) for each in tiles])
        first = np.array([row * self.shape[1] for row, _ in self._groups])
        place = np.concatenate(tiles) + np.repeat(first, lengths)
        for total, counts in zip(self._of_vertices, np.array(list(self._groups.values())).T, strict=True):
            if counts.any():
                found = np.bincount(place, weights=np.repeat(counts, lengths), minlength=total.size)
                total += found.astype(np.int64).reshape(self.shape)

    def _add_moves(self, row: int, prefix: str, exchange: Exchange, count: int) -> None:
        instructions, busy = self.sizes.of_exchange(exchange)
        self.sums[prefix + "instructions"][row] += np.multiply(instructions, count, dtype=np.int64)
        self.exchanges[prefix][row] += count
        self.sums["runs"][row] += busy if count == 1 else count * busy

    def variants(self) -> tuple[CodeVariant, ...]:
        """The instantiations met, in the order of the steps."""
        return tuple(
            CodeVariant(vertex=vertex, template=template, code_bytes=size, tiles=found.tiles)
            for (vertex, template, size), found in sorted(self._variants.items(), key=lambda each: each[1].first)
        )

    def inputs(self, categories: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The inputs of some categories' formulas."""
        return {category: self._inputs(category) for category in categories}

    def _everywhere(self, counts: int | IntArray) -> IntArray:
        """A number, or one of each IPU, on every tile."""
        return np.full(self.shape, counts, np.int64)

    def _inputs(self, category: str) -> dict[str, Any]:
        sums, target, code = self.sums, self.target, self.target.code
        match category:
            case "internal_exchange_code" | "global_exchange_code":
                inside = category == "internal_exchange_code"
                prefix, begun = ("", code.control_exchanges) if inside else ("global_", 0)
                return {
                    "instructions": sums[prefix + "instructions"] + begun * piece_instructions(target),
                    "exchanges": self._everywhere(self.exchanges[prefix] + begun),
                    "instruction_bytes": target.exchange_instruction_bytes,
                    "exchange_bytes": code.exchange_bytes_per_exchange,
                }
            case "host_exchange_code":
                copies = self._everywhere(self.copies + code.control_copies)
                return {"copies": copies, "copy_bytes": code.host_exchange_bytes_per_copy}
            case "control_code":
                return {
                    "runs": sums["runs"],
                    "syncs": self._everywhere(self.syncs),
                    "base_bytes": code.control_base_bytes,
                    "run_bytes": code.control_bytes_per_run,
                    "sync_bytes": code.control_bytes_per_sync,
                }
            case "vertex_instance_state":
                counted = {"state_bytes": sums["state"], "count": sums["entries"]}
                return {**counted, "counter_bytes": code.vertex_counter_bytes}
            case "copy_descriptor":
                return {"state_bytes": sums["copied"]}
            case "host_exchange_packet_headers":
                return {"packets": sums["packets"], "header_bytes": code.host_packet_header_bytes}
            case _:
                return {"stack_bytes": self._everywhere(target.stack_bytes)}
