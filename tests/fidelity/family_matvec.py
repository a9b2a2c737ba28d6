"""A matrix times a vector, dot products over segments of the columns and a reduction of their partial sums.

Source: graphcore/examples tutorials/tutorials/poplar/tut6_matrix_vector_opt: stated worker cycles 5 + ceil(n / 2). On
hardware the vertices are compiled loops over single elements: loads, a multiplication, an addition, one a cycle; and
the program runs once, so that it waits while the host prepares what it is asked for (its README, StreamCopyBegin).
Its IPU Model is made with `minIPUSyncDelay` 0 and `NO_DELAY`: tiles wait for each other, but a barrier takes no time.
The earlier report, of sums over the tiles, has the host copies' exchange with the host: its sum of exchange is a tenth
of the matrix' words, which all arrive.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from tests.fidelity.outcome import Case, NotRun, said
from tests.fidelity.tile_times import Times, ipu_model, issued, run_times
from workbench import api
from workbench.engine.program import OnTileExecute
from workbench.engine.target import Target, target
from workbench.engine.time.exchange_cost import transfer_cycles
from workbench.engine.time.step_cost import tile_cycles
from workbench.tiles import ComputeSet, Graph, Step

FLOAT_BYTES = 4
START = 5  # cycles of a worker before its loop, as stated
PRODUCT_LOOP, REDUCE_LOOP = 4, 2  # instructions for an element
NAMES = {"dot products": "DotProductVertex", "reduce": "ReduceVertex"}


def matvec(case: Case) -> Any:
    """One number of the profile, the chosen split, the dearest split's cost, or the vertices."""
    name, what = case["id"].split("-", 2)[1:]
    found = re.search(r"\[(\d+),(\d+)\]", said(case))
    rows, columns = (int(found[1]), int(found[2])) if found else (10_000, 1_000)
    kind = "ipu1" if name == "MK1" else "ipu2"
    machine = target("ipu2") if what.startswith("HW") else ipu_model(kind, internal_sync_cycles=0)
    costs = [split_cycles(rows, columns, split, machine) for split in range(1, columns)]
    best = int(np.argmin(costs)) + 1
    if what in ("split", "worst", "best"):
        return {"split": best, "worst": max(costs), "best": min(costs)}[what]
    if what == "vertex":
        return _vertices(rows, columns, best, machine)
    times = _times(rows, columns, best, machine)
    if what == "prof":
        return _sums(times, machine)
    numbers = _numbers(times)
    word = what.split("-", 1)[1]
    return numbers.get(word, NotRun(f"no number called {word!r}"))


def split_cycles(rows: int, columns: int, split: int, machine: Target) -> int:
    """Compute and exchange of both phases with this many segments, by the formulas of compute sets and exchanges."""
    tiles, slots = machine.tiles_per_ipu, machine.workers_per_tile
    vertices = max(1, -(-rows * split // tiles))
    segment = -(-columns // split)
    reduces = max(1, -(-rows // tiles))
    return (
        tile_cycles((), (("stub", _worker(segment), vertices),), slots)
        + tile_cycles((), (("stub", _worker(split), reduces),), slots)
        + _received(-(-vertices // rows) * segment, machine)
        + _received(reduces * split, machine)
    )


def _worker(elements: int) -> int:
    """Worker cycles as the program states them to the IPU Model."""
    return START + (elements + 1) // 2


def _looped(elements: int, instructions: int, machine: Target) -> int:
    """Worker cycles of the vertex on this machine: as stated, or those of its loop where it really runs."""
    return START + instructions * elements if machine.launch_cycles else _worker(elements)


def _received(elements: int, machine: Target) -> int:
    rate = machine.exchange_bytes_per_cycle
    return transfer_cycles(0, elements * FLOAT_BYTES, 0, 0, rate, 1, 0, 0, 1)


@cache
def _times(rows: int, columns: int, split: int, machine: Target) -> Times:
    return run_times(_program(rows, columns, split, machine), prefetched=not machine.launch_cycles)


def _program(rows: int, columns: int, split: int, machine: Target) -> Step:
    """Stream in vector and matrix, dot products, reduction, stream out."""
    graph = Graph(machine)
    tiles = machine.tiles_per_ipu
    cuts = [part * columns // split for part in range(split + 1)]
    at = np.arange(rows * split) * tiles // (rows * split)  # the tile of each vertex, segments one after the other
    vector = graph.variable("vector", columns).map(_pieces(np.arange(columns) * tiles // columns))
    sizes = np.repeat(np.diff(cuts), rows)
    matrix = graph.variable("matrix", rows * columns).map(_blocks(at, sizes))
    partials = graph.variable("partials", (split, rows)).map(_pieces(at))
    out_at = np.arange(rows) * tiles // rows
    out = graph.variable("out", rows).map(_pieces(out_at))
    products = graph.compute_set("dot products")
    for tile, part, count in _groups(at, rows):
        segment = vector[cuts[part] : cuts[part + 1]]
        cycles = _looped(segment.elements, PRODUCT_LOOP, machine)
        products.vertex("stub", tile=tile, cycles=cycles, reads=(segment,))
        _more(products, tile, cycles, count - 1)
    reduce = graph.compute_set("reduce")
    for row in range(rows):
        cycles = _looped(split, REDUCE_LOOP, machine)
        reduce.vertex("stub", tile=int(out_at[row]), cycles=cycles, reads=(partials[:, row],))
    return graph.sequence(
        graph.host_copy(vector), graph.host_copy(matrix), products, reduce, graph.host_copy(out, "to_host")
    )


def _more(steps: ComputeSet, tile: int, cycles: int, count: int) -> None:
    for _ in range(count):
        steps.vertex("stub", tile=tile, cycles=cycles)


def _pieces(owners: np.ndarray) -> dict[int, slice]:
    """Elements in runs of one tile each, tiles ascending."""
    starts = np.searchsorted(owners, np.unique(owners), "left")
    ends = np.append(starts[1:], len(owners))
    return {int(owners[a]): slice(int(a), int(b)) for a, b in zip(starts, ends, strict=True)}


def _blocks(at: np.ndarray, sizes: np.ndarray) -> dict[int, slice]:
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    return {tile: slice(int(bounds[part.start]), int(bounds[part.stop])) for tile, part in _pieces(at).items()}


def _groups(at: np.ndarray, rows: int) -> list[tuple[int, int, int]]:
    """(tile, segment, vertices) of all tiles."""
    keys, counts = np.unique(np.stack([at, np.arange(len(at)) // rows]), axis=1, return_counts=True)
    return [(int(tile), int(part), int(count)) for (tile, part), count in zip(keys.T, counts, strict=True)]


def _numbers(times: Times) -> dict[str, float]:
    return {
        "total": times.total,
        "compute_incl": round(times.idle_included, 1),
        "compute_excl": round(times.idle_excluded, 1),
        "exchange": round(times.exchange, 1),
        "host": times.host,
        "sync": round(times.sync, 1),
    }


def _sums(times: Times, machine: Target) -> dict[str, float]:
    tiles = machine.tiles_per_ipu
    return {
        "total": times.total,
        "us": round(times.total / machine.clock_hz * 1e6, 1),
        "compute_incl_idle_sum": round(times.idle_included * tiles),
        "compute_excl_idle_sum": round(times.idle_excluded * tiles),
        "exchange_sum": round(times.between * tiles),
        "sync_sum": round(times.sync * tiles),
    }


def _vertices(rows: int, columns: int, split: int, machine: Target) -> dict[str, dict[str, int]]:
    program = api.compile(_program(rows, columns, split, machine)).program
    found = {}
    for step in program.steps:
        if isinstance(step, OnTileExecute):
            ((_, instances, cycles),) = issued(step)
            found[NAMES[step.name]] = {"instances": instances, "cycles": cycles, "each": cycles // instances}
    return found
