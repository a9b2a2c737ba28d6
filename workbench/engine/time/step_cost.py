"""What one execution of a step costs: the formulas of compute, exchange, sync, host and link steps, in tile cycles."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeAlias

import numpy as np

from workbench.base.arrays import IntArray, narrow
from workbench.base.causes import Cause
from workbench.base.identity import ByIdentities
from workbench.engine import vertices
from workbench.engine.cost import Cost, Term, formula, term
from workbench.engine.program import (
    ComputeSet,
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
from workbench.engine.program.links import Topology, topology
from workbench.engine.remembered import remembered
from workbench.engine.target import Machine, Target
from workbench.engine.time.exchange_cost import exchange_cost
from workbench.engine.time.trace import StepCost

Work: TypeAlias = tuple[tuple[str, int, int], ...]
"""Vertices on one tile: (vertex class, cycles of one, count)."""

POPLIBS = "poplibs@7eac0f26"


def longest_slot_cycles(work: Work, slots: int) -> int:
    """Worker cycles of the fullest slot when vertices go, longest first, to the slot that is free first."""
    loads = [0] * slots
    for cycles, count in sorted(((cycles, count) for _, cycles, count in work), reverse=True):
        whole = count // slots if len(set(loads)) == 1 else 0
        loads = [load + whole * cycles for load in loads]
        for _ in range(count - whole * slots):
            heapq.heapreplace(loads, loads[0] + cycles)
    return max(loads)


@formula(
    "compute.tile",
    text="slowest tile: the multi and supervisor vertices one after another, then the worker vertices packed longest "
    "first onto the worker slots; a slot issues once in `slots` cycles, so slots x the cycles of the fullest slot",
    source="HC33: worker contexts issue in turn; poplibs@7eac0f26 lib/popops/PerformanceEstimation.cpp:19",
)
def tile_cycles(serial: Work, worker: Work, slots: int) -> int:
    """Cycles of one tile in a compute set."""
    return sum(cycles * count for _, cycles, count in serial) + slots * longest_slot_cycles(worker, slots)


@formula(
    "compute.launch",
    text="cycles to start a compute set on a tile and to return from it, beyond its vertices",
    source="80 is the middle of what two public figures come to, 45 cycles of counters taken off: an add of 10 "
    "elements "
    "measured as 329 cycles, 203 of them its vertex, 329 - 203 - 45 = 81 (graphcore-research/tessellate-ipu@3ab241f3 "
    "notebooks/01); elementwise 0.75 n + 290 for a vertex of 0.75 n + 167, 290 - 167 - 45 = 78 "
    "(platformxlab/elk@8c6e814 "
    "TensorExpression.py:427)",
    error_kind="launch",
)
def launch_cycles(launch: int) -> int:
    """A constant of the target."""
    return launch


@formula(
    "sync.internal",
    text="cycles of a barrier over the tiles of one IPU",
    source="IPU Model (Mk1), halo exchange of thorbenlouw/lbm-graphcore@df670f6b: 3,328 cycles over 40 supersteps",
    error_kind="sync",
)
def internal_sync_cycles(sync: int) -> int:
    """A constant of the target."""
    return sync


@formula(
    "sync.external",
    text="cycles of a barrier over all IPUs and the host",
    source="Target::getGlobalSyncCycles() as read by osmarks/ipu-stack@ce7c7e94",
    error_kind="sync",
)
def external_sync_cycles(sync: int) -> int:
    """A constant of the target."""
    return sync


@formula(
    "host.transfer",
    text="bytes / host bandwidth, in cycles of the IPU's clock, rounded up",
    source="tutorial 6 of graphcore/examples v3.4.1 on the IPU Model: 40 MB in 6,663,550 cycles at 1.33 GHz",
    error_kind="host",
)
def host_cycles(size_bytes: int, bytes_per_second: float, clock_hz: float) -> int:
    """Cycles of a copy between host and IPU."""
    return ceil(size_bytes * clock_hz / bytes_per_second)


@formula(
    "host.hidden",
    text="less the cycles of the copy, at most those of one iteration's compute, x (iterations - 1) / iterations: a "
    "copy to or from I/O tiles runs beside the compute of another iteration, but for one of them",
    source="I/O tiles in the documentation of IPU TensorFlow: input and output overlap with compute",
    error_kind="host",
)
def hidden_cycles(hidden: int) -> int:
    """What of a copy takes no time of its own, negative."""
    return -hidden


@formula(
    "remote.transfer",
    text="bytes / bandwidth of streaming memory, in cycles of the IPU's clock, rounded up",
    source="no published rate: a parameter of the target, bounded by PCIe Gen4 x8 (16 GB/s each way), so within a "
    "factor of two above it and an unknown one below",
    error_kind="remote",
)
def remote_cycles(size_bytes: int, bytes_per_second: float, clock_hz: float) -> int:
    """Cycles of a copy between streaming memory and IPU."""
    return ceil(size_bytes * clock_hz / bytes_per_second)


@formula(
    "host.fetch",
    text="bytes / rate at which the host copies in its own memory, in cycles of the IPU's clock, rounded up: what the "
    "IPU waits when nothing is fetched ahead",
    source="no published measurement; JEDEC JESD79-4: a channel of DDR4-3200 moves 25.6 GB/s, and a copy reads and "
    "writes every byte",
    error_kind="host_wait",
)
def fetch_cycles(size_bytes: int, bytes_per_second: float, clock_hz: float) -> int:
    """Cycles until a batch is in the buffer that the IPU copies from."""
    return ceil(size_bytes * clock_hz / bytes_per_second)


@formula(
    "link.transfer",
    text="bytes / (links x link bandwidth x efficiency), in cycles, rounded up; the hops of a path carry the stream "
    "at the same time, so distance adds no bytes",
    source=f"{POPLIBS} lib/poplibs_test/Util.cpp:360-430",
    error_kind="links",
)
def link_cycles(size_bytes: int, links: int, bytes_per_second: float, efficiency: float, clock_hz: float) -> int:
    """Cycles of a copy over IPU-Links."""
    return ceil(size_bytes * clock_hz / (links * bytes_per_second * efficiency))


@formula(
    "link.latency",
    text="seconds per hop x hops x messages that wait for each other, in cycles, rounded up",
    source=f"{POPLIBS} lib/poplibs_test/Util.cpp:432 (15 ns a hop)",
    error_kind="links",
)
def link_latency_cycles(hops: int, messages: int, hop_seconds: float, clock_hz: float) -> int:
    """Cycles until the first byte has arrived."""
    return ceil(hops * messages * hop_seconds * clock_hz)


_RING_PASSES = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}


@formula(
    "collective.ring",
    text="ring over g replicas: each sends (g - 1) / g of the bytes, twice for an all-reduce (reduce-scatter, then "
    "all-gather), at links x link bandwidth x efficiency shared by the streams on them, in cycles, rounded up",
    source="bandwidth-optimal ring (Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002); links "
    f"{POPLIBS} lib/poplibs_test/Util.cpp:360-430",
    error_kind="links",
)
def ring_cycles(
    size_bytes: int,
    passes: int,
    group_size: int,
    links: int,
    streams: int,
    bytes_per_second: float,
    efficiency: float,
    clock_hz: float,
) -> int:
    """Cycles of a collective."""
    sent_bytes = passes * (group_size - 1) * size_bytes / group_size
    return ceil(sent_bytes * streams * clock_hz / (links * bytes_per_second * efficiency))


@remembered(200_000)
def _vertex_flops(machine: Machine, name: str, arguments: tuple[tuple[str, object], ...]) -> int:
    codelet = vertices.find(name)
    return int(codelet.flops(**codelet.inputs(machine, dict(arguments))))


@dataclass(frozen=True, slots=True)
class _Vertices:
    """A group with the cycles of one of its vertices; `on_workers`: several run at once, in slots."""

    group: VertexGroup
    cycles: int
    on_workers: bool

    @classmethod
    def of(cls, group: VertexGroup, machine: Machine) -> _Vertices:
        on_workers = vertices.find(group.vertex).kind == "worker"
        return cls(group, vertices.cycles(machine, group.vertex, **dict(group.arguments)), on_workers)

    def one(self, machine: Machine) -> Term:
        """What one vertex costs, from its arguments."""
        group = self.group
        inputs = vertices.find(group.vertex).inputs(machine, dict(group.arguments))
        name = f"one of {group.count} {group.vertex}" if group.count > 1 else group.vertex
        return Term(name, self.cycles, f"vertex:{group.vertex}", tuple(inputs.items()))


def _work(groups: Iterable[_Vertices]) -> Work:
    return tuple((each.group.vertex, each.cycles, each.group.count) for each in groups)


def _balance(cycles_per_tile: IntArray) -> tuple[int, float]:
    active = int(np.count_nonzero(cycles_per_tile))
    slowest = int(cycles_per_tile.max(initial=0))
    return active, float(cycles_per_tile.sum()) / (active * slowest) if active else 1.0


class StepCosts:
    """Costs of the steps of one program; equal compute sets and per-tile arrays are kept once.

    Of those of an `earlier` program on the same target what is met again is taken over. Steps of bodies that are played
    again have the very vertices and per-tile bytes of before, so these are looked for by identity first.
    """

    def __init__(
        self, target: Target, placed: Topology | None = None, ipus: int = 1, earlier: StepCosts | None = None
    ) -> None:
        self.target, self.ipus = target, ipus
        self.topology = placed or topology("ZIGZAG", ipus)
        is_alike = earlier is not None and earlier.target == target
        self._earlier: Mapping[object, StepCost] = earlier._computed if earlier is not None and is_alike else {}
        self._computed: dict[object, StepCost] = {}
        before = earlier if earlier is not None and is_alike else self
        self._of_groups: dict[tuple[VertexGroup, ...], StepCost] = {}
        self._exchanged: dict[Exchange, StepCost] = {}
        self._by_bytes: ByIdentities[IntArray | None, StepCost] = ByIdentities()
        self._earlier_of_groups, self._earlier_exchanged = before._of_groups, before._exchanged
        if len(before._by_bytes) <= 2 * len(before._exchanged):  # else most of it is of programs long before
            self._by_bytes = before._by_bytes
        self._synced: dict[str, StepCost] = {}
        self._nothing = np.zeros(target.tiles_per_ipu, np.int64)
        self._launch = term("launch", "compute.launch", launch=target.launch_cycles)

    def are_of(self, program: TileProgram) -> bool:
        """Whether these are costs of the steps of a program."""
        return (self.target, self.topology, self.ipus) == (program.target, program.topology, program.ipus)

    def by_id(self, steps: Iterable[Leaf]) -> dict[int, StepCost]:
        """Costs of steps by their ids."""
        of_groups, exchanged = self._of_groups, self._exchanged
        found: dict[int, StepCost] = {}
        for step in steps:
            known: StepCost | None = None
            if isinstance(step, OnTileExecute):
                known = of_groups.get(step.compute_set.groups)
            elif isinstance(step, DoExchange):
                known = exchanged.get(step.exchange)
            elif isinstance(step, Sync):
                known = self._synced.get(step.scope)
            found[step.id] = known or self.cost(step)
        return found

    def cost(self, step: Leaf) -> StepCost:
        """Cost, cause and per-tile cycles of one execution."""
        if isinstance(step, OnTileExecute):
            return self._compute(step.compute_set)
        if isinstance(step, DoExchange):
            return self._exchange(step.exchange)
        if isinstance(step, StreamCopy):
            return self._stream(step)
        if isinstance(step, Sync):
            return self._sync(step.scope)
        return self._global(step)

    def _made(self, cause: Cause, cost: Cost, cycles_per_tile: IntArray, flops: int = 0) -> StepCost:
        active, balance = _balance(cycles_per_tile)
        return StepCost(
            cost=cost,
            cause=cause,
            narrow_cycles=narrow(cycles_per_tile),
            active_tiles=active,
            tile_balance=balance,
            flops=flops,
        )

    def _compute(self, compute_set: ComputeSet) -> StepCost:
        known = self._of_groups.get(compute_set.groups)
        if known is None:
            known = self._earlier_of_groups.get(compute_set.groups) or self._compute_equal(compute_set)
            self._of_groups[compute_set.groups] = known
        return known

    def _compute_equal(self, compute_set: ComputeSet) -> StepCost:
        key = tuple((group.vertex, group.arguments, group.tiles, group.count) for group in compute_set.groups)
        if key not in self._computed:
            self._computed[key] = self._earlier.get(key) or self._compute_new(compute_set)
        return self._computed[key]

    def _compute_new(self, compute_set: ComputeSet) -> StepCost:
        machine, slots = self.target.machine, self.target.workers_per_tile
        groups = [_Vertices.of(group, machine) for group in compute_set.groups]
        per_tile = np.zeros(self.target.tiles_per_ipu, np.int64)
        for each in groups:
            if not each.on_workers:
                per_tile[each.group.tiles.index] += each.cycles * each.group.count
        per_tile += slots * _slots_per_tile([each for each in groups if each.on_workers], self.target)
        slowest = int(per_tile.argmax())
        there = [each for each in groups if slowest in each.group.tiles]
        there.sort(key=lambda each: each.on_workers)
        tile = term(
            "slowest tile",
            "compute.tile",
            serial=_work(each for each in there if not each.on_workers),
            worker=_work(each for each in there if each.on_workers),
            slots=slots,
        )
        tile = Term(tile.name, tile.value, tile.formula, tile.inputs, tuple([each.one(machine) for each in there]))
        flops = sum(
            _vertex_flops(machine, group.vertex, group.arguments) * group.count * len(group.tiles)
            for group in compute_set.groups
        )
        return self._made("compute", Cost((tile, self._launch)), per_tile, flops)

    def _exchange(self, exchange: Exchange) -> StepCost:
        known = self._exchanged.get(exchange)
        if known is None:
            known = self._earlier_exchanged.get(exchange) or self._exchange_alike(exchange)
            self._exchanged[exchange] = known
        return known

    def _exchange_alike(self, exchange: Exchange) -> StepCost:
        arrays = (exchange.sent_bytes, exchange.received_bytes, exchange.fragments, exchange.shared_bytes)
        known: StepCost | None = self._by_bytes.get(arrays)
        if known is None:
            known = self._by_bytes[arrays] = self._made("exchange", *exchange_cost(exchange, self.target))
        return known

    def _stream(self, step: StreamCopy) -> StepCost:
        target = self.target
        rate = target.remote_buffer_bytes_per_second if step.remote else target.host_bytes_per_second
        host = term(
            "streaming memory" if step.remote else "host",
            "remote.transfer" if step.remote else "host.transfer",
            size_bytes=step.size_bytes,
            bytes_per_second=rate,
            clock_hz=target.clock_hz,
        )
        tiles = self._exchange(step.exchange)
        cost = Cost((host,)) + tiles.cost
        if not step.prefetched:
            fetch = {"size_bytes": step.size_bytes, "bytes_per_second": target.host_copy_bytes_per_second}
            cost = cost + Cost((term("fetch", "host.fetch", clock_hz=target.clock_hz, **fetch),))
        if step.hidden_cycles:
            cost = cost + Cost((term("beside compute", "host.hidden", hidden=step.hidden_cycles),))
        return self._made("host", cost, tiles.cycles_per_tile)

    def _sync(self, scope: Literal["internal", "external"]) -> StepCost:
        if scope not in self._synced:
            target = self.target
            cycles = {"internal": target.internal_sync_cycles, "external": target.global_sync_cycles}
            barrier = term("barrier", f"sync.{scope}", sync=cycles[scope])
            self._synced[scope] = self._made("sync", Cost((barrier,)), self._nothing)
        return self._synced[scope]

    def _global(self, step: GlobalExchange) -> StepCost:
        target, messages = self.target, 1
        on_link: dict[str, int] = {}
        if step.collective:
            way = self.topology.ring(step.group_size, self.ipus, target)
            passes = _RING_PASSES.get(step.collective, 1)
            messages = passes * (step.group_size - 1)
            on_link = {"passes": passes, "group_size": step.group_size, "streams": way.streams}
        else:
            way = self.topology.way(step.ipu, step.to_ipu, target)
        transfer = term(
            "ring" if step.collective else "links",
            "collective.ring" if step.collective else "link.transfer",
            size_bytes=step.size_bytes,
            links=way.links,
            bytes_per_second=target.link_bytes_per_second,
            efficiency=target.link_efficiency,
            clock_hz=target.clock_hz,
            **on_link,
        )
        latency = term(
            "latency",
            "link.latency",
            hops=way.hops,
            messages=messages,
            hop_seconds=target.link_hop_seconds,
            clock_hz=target.clock_hz,
        )
        cost, per_tile = Cost((transfer, latency)), self._nothing
        ends = [self._exchange(end) for end in (step.sent, step.received) if end is not None]
        if ends:
            cost += max(ends, key=lambda end: end.cycles).cost  # both ends move the same stream at the same time
            per_tile = np.maximum.reduce([end.cycles_per_tile for end in ends])
        return self._made("collective" if step.collective else "inter_ipu", cost, per_tile)


_FEW = 10  # groups, whose combinations are fewer than tiles


def _by_combination(groups: Sequence[_Vertices], work: Work, tiles: int, slots: int) -> IntArray:
    """The same of few groups, without sorting tiles: a combination is a number with a bit for each group."""
    combination = np.zeros(tiles, np.int64)
    for number, each in enumerate(groups):
        combination[each.group.tiles.index] += 1 << number
    longest = np.zeros(1 << len(groups), np.int64)
    for met in np.bincount(combination).nonzero()[0].tolist():
        here = tuple([each for number, each in enumerate(work) if met >> number & 1])
        longest[met] = longest_slot_cycles(here, slots)
    return longest[combination]


def _slots_per_tile(groups: Sequence[_Vertices], target: Target) -> IntArray:
    """Worker cycles of the fullest slot on each tile, one packing per class of tiles with equal vertices."""
    tiles, slots = target.tiles_per_ipu, target.workers_per_tile
    work = _work(groups)
    if len(groups) < 2:
        result = np.zeros(tiles, np.int64)
        for each in groups:
            result[each.group.tiles.index] = longest_slot_cycles(work, slots)
        return result
    if len(groups) <= _FEW:
        return _by_combination(groups, work, tiles, slots)
    member = np.zeros((len(groups), tiles), bool)
    for row, each in zip(member, groups, strict=True):
        row[each.group.tiles.index] = True
    packed = np.ascontiguousarray(np.packbits(member, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    longest = [
        longest_slot_cycles(tuple(work[index] for index in np.flatnonzero(member[:, tile])), slots) for tile in first
    ]
    return np.asarray(longest, np.int64)[inverse.reshape(-1)]
