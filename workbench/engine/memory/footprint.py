"""Always-live bytes of a tile program that are not variables: code, vertex state, headers and stacks per tile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from workbench.base.arrays import IntArray, NarrowArray, ceil_div, frozen, narrow
from workbench.base.categories import CODE_CATEGORIES, FOOTPRINT_CATEGORIES
from workbench.base.identity import ByIdentities
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
    Sync,
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
    variants = counts.add_program(program)
    inputs = counts.inputs(tuple(_FORMULAS))
    shape = (program.ipus, program.target.tiles_per_ipu)
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
        found = frozen(_kept(counts, categories) - _without_steps(sizes.target, categories))
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
Groups: TypeAlias = tuple[VertexGroup, ...]
_TOLD = (OnTileExecute, DoExchange, Sync)
K = TypeVar("K")


class _Size(NamedTuple):
    """What the vertices of a group take: which code, and on each of their tiles in the order of `_VERTICES`."""

    variant: Variant
    counts: tuple[int, int, int, int]


_VERTICES = ("copied", "state", "entries", "runs")  # bytes of copies and of others, those others, runs
_SUMS = (*_VERTICES, "instructions")


class _Sizes(NamedTuple):
    """What vertices take, group by group, and which code they need."""

    sizes: Sequence[_Size]
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Moved:
    """What bytes exchanged take: instructions of each tile, and which tiles take part."""

    instructions: NarrowArray
    busy: Flags


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Together:
    """What vertices and exchanges on one IPU take together: `sums` by name, integers[tiles] each; `places`, how often
    a variant is met on which tiles; and of each variant all its tiles."""

    sets: Counter[Groups] = field(default_factory=Counter)
    exchanges: Counter[Exchange] = field(default_factory=Counter)
    sums: Mapping[str, NarrowArray] = field(default_factory=dict)
    places: Mapping[tuple[Variant, TileSet], int] = field(default_factory=dict)
    variants: Mapping[Variant, Flags] = field(default_factory=dict)

    def differing(self, other: _Together) -> int:
        """How much is not met as often as there."""
        return len(self.sets.items() ^ other.sets.items()) + len(self.exchanges.items() ^ other.exchanges.items())


def _beyond(here: Counter[K], there: Counter[K]) -> list[tuple[K, int]]:
    """What is not met as often as elsewhere, and how much more often."""
    return [(key, here[key] - there[key]) for key in {key for key, _ in here.items() ^ there.items()}]


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
    have in common. What an `earlier` program had is taken over: of an IPU, only what differs is counted.
    """

    def __init__(self, target: Target, earlier: StepSizes | None = None) -> None:
        self.target = target
        self._groups: dict[Groups, _Sizes] = {}
        self._exchanges: dict[Exchange, _Moved] = {}
        self._by_bytes: ByIdentities[IntArray, _Moved] = ByIdentities()
        self._ipus: dict[int, _Together] = {}
        self._kept: dict[tuple[StepsAlike, tuple[str, ...]], IntArray] = {}
        before = self if earlier is None or earlier.target != target else earlier
        self._earlier = (before._groups, before._exchanges, before._ipus, before._kept)
        if len(before._by_bytes) <= 2 * len(before._exchanges):  # else most of it is of programs long before
            self._by_bytes = before._by_bytes

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

    def of_ipu(self, ipu: int, met: _Together) -> _Together:
        """All that is met on an IPU, with what it takes, by what was met there earlier or on the IPU before."""
        before = [self._earlier[2].get(ipu), self._ipus.get(ipu - 1), _Together()]
        nearest = min([each for each in before if each is not None], key=met.differing)
        found = self._ipus[ipu] = self.together(met, nearest)
        return found

    def together(self, met: _Together, before: _Together) -> _Together:
        """What is met, with what it takes, by what takes much the same."""
        self._take_over(met)
        changes, moved = _beyond(met.sets, before.sets), Counter[_Moved]()
        for exchange, more in _beyond(met.exchanges, before.exchanges):
            moved[self._moved(exchange)] += more
        sums = dict(zip(_SUMS, self._of_vertices(changes), strict=True))
        for name, amounts in before.sums.items():
            sums[name] += amounts
        for each, more in moved.items():
            sums["instructions"] += np.multiply(each.instructions, more, dtype=np.int64)
            sums["runs"] += more * each.busy
        places = self._places(changes, before)
        return replace(
            met,
            sums={name: narrow(amounts) for name, amounts in sums.items()},
            places=places,
            variants=_tiles_of(places, before, self.target.tiles_per_ipu),
        )

    def _take_over(self, met: _Together) -> None:
        """Have what is met known to a later program too."""
        groups, exchanges, *_ = self._earlier
        self._groups |= {each: groups[each] for each in met.sets if each in groups}
        self._exchanges |= {each: exchanges[each] for each in met.exchanges if each in exchanges}

    def _of_vertices(self, changes: Sequence[tuple[Groups, int]]) -> IntArray:
        """What sets of vertices take, each so often, int64[of `_SUMS`, tiles]."""
        result = np.zeros((len(_SUMS), self.target.tiles_per_ipu), np.int64)
        rows: dict[TileSet, int] = {}
        taken = [
            (rows.setdefault(group.tiles, len(rows)), more, *size.counts)
            for groups, more in changes
            for group, size in zip(groups, self.of_groups(groups), strict=True)
        ]
        if not taken:
            return result
        row, times, *counts = np.array(taken, np.int64).T
        lengths = [len(each) for each in rows]
        tiles = np.concatenate([each.tiles for each in rows])
        for total, each in zip(result[:-1], counts, strict=True):
            if each.any():  # doubles hold the sums, which are below 2^53
                amounts = np.repeat(np.bincount(row, times * each, len(rows)), lengths)
                total += np.bincount(tiles, amounts, len(total)).astype(np.int64)
        return result

    def _places(
        self, changes: Sequence[tuple[Groups, int]], before: _Together
    ) -> Mapping[tuple[Variant, TileSet], int]:
        """How often each variant is met on which tiles; those of before where nothing comes or goes."""
        found = dict(before.places)
        for groups, more in changes:
            for group, size in zip(groups, self.of_groups(groups), strict=True):
                place = (size.variant, group.tiles)
                found[place] = found.get(place, 0) + more
        return {place: count for place, count in found.items() if count} if changes else before.places

    def of_groups(self, groups: Groups) -> Sequence[_Size]:
        """What each of some groups takes."""
        return self.of_set(groups).sizes

    def of_set(self, groups: Groups) -> _Sizes:
        """The same, and the code they need."""
        found = self._groups.get(groups) or self._earlier[0].get(groups)
        if found is None:
            machine = self.target.machine
            sizes = [_size_of(machine, group.vertex, group.arguments, group.count) for group in groups]
            found = self._groups[groups] = _Sizes(sizes, tuple(dict.fromkeys([size.variant for size in sizes])))
        return found

    def of_exchange(self, exchange: Exchange) -> tuple[NarrowArray, Flags]:
        """Instructions of each tile, and which tiles take part."""
        moved = self._moved(exchange)
        return moved.instructions, moved.busy

    def _moved(self, exchange: Exchange) -> _Moved:
        """What an exchange takes, or another of the same bytes."""
        found = self._exchanges.get(exchange) or self._earlier[1].get(exchange)
        if found is None:
            arrays = (exchange.sent_bytes, exchange.received_bytes, exchange.fragments)
            found = self._by_bytes.get(arrays) or _moved_by(exchange, self.target)
            self._by_bytes[arrays] = self._exchanges[exchange] = found
        return found


def _moved_by(exchange: Exchange, target: Target) -> _Moved:
    busy = (exchange.sent_bytes > 0) | (exchange.received_bytes > 0)
    return _Moved(instructions=narrow(exchange_instructions(exchange, target)), busy=busy)


def _tiles_of(places: Mapping[tuple[Variant, TileSet], int], before: _Together, tiles: int) -> Mapping[Variant, Flags]:
    """The tiles that hold each variant; only what came to other tiles or left some is looked at again."""
    moved = {variant for variant, _ in places.keys() ^ before.places.keys()}
    found = {variant: held for variant, held in before.variants.items() if variant not in moved}
    for variant, where in places if moved else ():
        if variant in moved:
            if variant not in found:
                found[variant] = np.zeros(tiles, bool)
            found[variant][where.index] = True
    return found


class _Counts:
    """What the formulas need, summed over the static steps: int64[ipus, tiles] each.

    Vertices and exchanges are counted together on each IPU. `group_of` and `merged` are of host copies.
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
        names = (*_SUMS, "global_instructions", "packets")
        self.sums = {name: np.zeros(self.shape, np.int64) for name in names}
        self.exchanges = {name: np.zeros((len(ipus), 1), np.int64) for name in ("", "global_")}
        self.copies, self.syncs = np.zeros((2, len(ipus), 1), np.int64)
        self._copied: set[tuple[str, int | None]] = set()
        self._group_of, self._merged = group_of or {}, merged

    def add_program(self, program: TileProgram) -> tuple[CodeVariant, ...]:
        """Count all steps of a program; returns the instantiations met, in the order of the steps."""
        found = {ipu: self.sizes.of_ipu(ipu, met) for ipu, met in self._met(program.steps).items()}
        for ipu, together in found.items():
            self._take(ipu - self.ipus.start, together)
        for steps in program.leaves_of_bodies:
            for step in sorted([step for step in steps if not isinstance(step, _TOLD)], key=lambda step: step.id):
                self._add(step)
        sets = [step.compute_set.groups for step in program.steps if isinstance(step, OnTileExecute)]
        variants = [self.sizes.of_set(groups).variants for groups in dict.fromkeys(sets)]
        order = dict.fromkeys(chain.from_iterable(variants))
        return tuple(self._variant(variant, found) for variant in order)

    def _variant(self, variant: Variant, found: Mapping[int, _Together]) -> CodeVariant:
        vertex, template, size = variant
        tiles = np.zeros(self.shape, bool)
        for ipu, together in found.items():
            tiles[ipu - self.ipus.start] = together.variants.get(variant, False)
        return CodeVariant(vertex=vertex, template=template, code_bytes=size, tiles=tiles)

    def add(self, steps: Sequence[Leaf]) -> None:
        """Count steps of one IPU."""
        for met in self._met(steps).values():
            self._take(0, self.sizes.together(met, _Together()))
        for step in steps:
            self._add(step)

    def _met(self, steps: Iterable[Leaf]) -> dict[int, _Together]:
        """What is met on each IPU; barriers are counted."""
        sets: dict[int, list[Groups]] = {ipu: [] for ipu in self.ipus}
        exchanges: dict[int, list[Exchange]] = {ipu: [] for ipu in self.ipus}
        barriers = dict.fromkeys(self.ipus, 0)
        for step in steps:
            if isinstance(step, OnTileExecute):
                sets[step.ipu].append(step.compute_set.groups)
            elif isinstance(step, DoExchange):
                exchanges[step.ipu].append(step.exchange)
            elif isinstance(step, Sync):
                barriers[step.ipu] += 1
        self.syncs += np.array([*barriers.values()])[:, None]
        return {ipu: _Together(sets=Counter(sets[ipu]), exchanges=Counter(exchanges[ipu])) for ipu in self.ipus}

    def _take(self, row: int, together: _Together) -> None:
        for name, amounts in together.sums.items():
            self.sums[name][row] += amounts
        self.exchanges[""][row] += together.exchanges.total()

    def _add(self, step: Leaf) -> None:
        """Count a copy from or to another place than the tiles of its IPU."""
        row = step.ipu - self.ipus.start
        if isinstance(step, StreamCopy):
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
                    self._add_moves(ipu - self.ipus.start, exchange)

    def _add_moves(self, row: int, exchange: Exchange) -> None:
        """Count one end of a copy between IPUs."""
        instructions, busy = self.sizes.of_exchange(exchange)
        self.sums["global_instructions"][row] += instructions
        self.exchanges["global_"][row] += 1
        self.sums["runs"][row] += busy

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
