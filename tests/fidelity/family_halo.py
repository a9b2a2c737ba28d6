"""Halo exchange on a grid of tiles, two columns wide: implicit reads of neighbours, or explicit copies of borders.

Source: thorbenlouw/lbm-graphcore@df670f6b main/HaloRegionApproaches.cpp and experiments/halo-exchange-approaches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.fidelity.outcome import Case, NotRun, said
from tests.fidelity.tile_times import Times, ipu_model, run_times
from workbench.tiles import ComputeSet, Graph, Step, Tensor

BLOCK, ITERATIONS, COLUMNS, STUB, WORKERS = 100, 10, 2, 100, 6
DIRECTIONS = tuple((row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if row or column)
Copies = list[Step]


def halo(case: Case) -> Any:
    """Cycles of a variant: its total and exchange, its parts, or its vertices."""
    kind = case["id"].removeprefix("HALO-")
    if kind.startswith("vertex"):
        return _vertices()
    name = kind.removesuffix("-parts").removesuffix("-total")
    if name not in VARIANTS:
        return NotRun(f"no halo exchange called {name!r}")
    iterations = re.search(r"(\d+) iterations", said(case))
    times = run_times(VARIANTS[name](int(iterations[1]) if iterations else ITERATIONS))
    return _parts(times) if kind.endswith("-parts") else {"total": times.total, "exchange": round(times.exchange, 1)}


def total_cycles(name: str) -> int:
    """Cycles of a variant."""
    return int(run_times(VARIANTS[name](ITERATIONS)).total)


def _parts(times: Times) -> dict[str, float]:
    return {
        "compute_incl_idle": round(times.idle_included, 1),
        "compute_excl_idle": round(times.idle_excluded, 1),
        "exchange": round(times.exchange, 1),
        "sync": round(times.sync, 1),
    }


def _vertices() -> dict[str, dict[str, int]]:
    """Both blocks with their borders set to zero, rows shared by the workers, and the stubs that fill the blocks.

    A row of zeros takes 20 cycles and one for two floats: poplibs release-1.2, whose SDK this was run on, in
    lib/popops/popopsCycleEstimators.cpp:1041; later ones have other vertices.
    """
    tiles = ipu_model("ipu1").tiles_per_ipu
    side = BLOCK + 2
    fills, zeros = 2 * tiles, 2 * WORKERS * tiles
    zero = side // WORKERS * (20 + side // 2)
    return {
        "popops::Zero2d": {"instances": zeros, "cycles": zeros * zero, "each": zero},
        "Fill<100 cost>": {"instances": fills, "cycles": fills * STUB, "each": STUB},
    }


# -- programs ---------------------------------------------------------------------------------------------


def _graph() -> tuple[Graph, int]:
    graph = Graph(ipu_model("ipu1"))
    return graph, graph.target.tiles_per_ipu


def _blocks(graph: Graph, tiles: int, size: int) -> tuple[Tensor, Tensor]:
    area = size * size
    pieces = {tile: slice(tile * area, (tile + 1) * area) for tile in range(tiles)}
    one, other = (graph.variable(name, (tiles, size, size)).map(pieces) for name in ("in", "out"))
    return one, other


def _started(graph: Graph, loop: Step) -> Step:
    """An engine's run begins with the host saying which program to run."""
    selector = graph.variable("program", 1, "int32").map({0: slice(0, 1)})
    return graph.sequence(graph.host_copy(selector), loop)


def _neighbours(tile: int, tiles: int) -> Iterator[tuple[int, int, int]]:
    row, column = divmod(tile, COLUMNS)
    for down, right in DIRECTIONS:
        if 0 <= row + down < tiles // COLUMNS and 0 <= column + right < COLUMNS:
            yield down, right, tile + down * COLUMNS + right


def implicit(iterations: int) -> Step:
    """Vertices read their neighbours' borders; the exchange follows from that."""
    graph, tiles = _graph()
    one, other = _blocks(graph, tiles, BLOCK)
    border = {-1: slice(BLOCK - 1, BLOCK), 0: slice(0, BLOCK), 1: slice(0, 1)}

    def stencil(name: str, source: Tensor, result: Tensor) -> ComputeSet:
        found = graph.compute_set(name)
        for tile in range(tiles):
            halos = [source[near, border[down], border[right]] for down, right, near in _neighbours(tile, tiles)]
            found.vertex("stub", tile=tile, cycles=STUB, reads=(source[tile], *halos), writes=(result[tile],))
        return found

    return _started(graph, graph.repeat(iterations, stencil("first", one, other), stencil("second", other, one)))


def _explicit(iterations: int, exchange: Callable[[Graph, Tensor, int], Copies]) -> Step:
    """Blocks with room for the borders; copies fill them, vertices read only their own tile."""
    graph, tiles = _graph()
    one, other = _blocks(graph, tiles, BLOCK + 2)

    def stencil(name: str, source: Tensor, result: Tensor) -> ComputeSet:
        found = graph.compute_set(name)
        for tile in range(tiles):
            found.vertex("stub", tile=tile, cycles=STUB, reads=(source[tile],), writes=(result[tile],))
        return found

    halves = [
        step
        for number, (source, result) in enumerate(((one, other), (other, one)))
        for step in (*exchange(graph, source, tiles), stencil(f"stencil {number}", source, result))
    ]
    return _started(graph, graph.repeat(iterations, *halves))


def _spans(offset: int, *, corners: bool = False) -> tuple[slice, slice]:
    """Along one axis: what a neighbour at this offset gives, and where it goes in a block with borders."""
    last = BLOCK + 1
    if offset == 0:
        whole = slice(0, last + 1) if corners else slice(1, last)
        return whole, whole
    return (slice(last - 1, last), slice(0, 1)) if offset < 0 else (slice(1, 2), slice(last, last + 1))


def _copy(graph: Graph, block: Tensor, to: slice, down: int, right: int, *, corners: bool = False) -> Step:
    """The borders at one offset of all tiles in `to`."""
    shift = down * COLUMNS + right
    near = slice(to.start + shift, to.stop + shift, to.step)
    (give_rows, take_rows), (give_columns, take_columns) = _spans(down), _spans(right)
    if corners:
        give_rows, take_rows = _spans(down, corners=True)
    return graph.copy(block[near, give_rows, give_columns], block[to, take_rows, take_columns])


def _receivers(down: int, right: int, tiles: int, column: int) -> slice | None:
    """Tiles of a column that have a neighbour at this offset."""
    if not 0 <= column + right < COLUMNS:
        return None
    rows = tiles // COLUMNS
    first, last = max(0, -down), rows - max(0, down)
    return slice(first * COLUMNS + column, (last - 1) * COLUMNS + column + 1, COLUMNS)


def _columns(iterations: int) -> Step:
    """A tensor for each tile. One variable for those of a column: nothing tells copies between them apart.

    Tiles alternate columns in the program, and a tile of the second column reads what one of the first has written.
    """
    graph, tiles = _graph()
    rows, side = tiles // COLUMNS, BLOCK + 2

    def column(name: str, at: int) -> Tensor:
        pieces = {COLUMNS * row + at: slice(row * side * side, (row + 1) * side * side) for row in range(rows)}
        return graph.variable(f"{name} {at}", (rows, side, side)).map(pieces)

    one, other = ([column(name, at) for at in range(COLUMNS)] for name in ("in", "out"))

    def stencil(name: str, source: list[Tensor], result: list[Tensor]) -> ComputeSet:
        found = graph.compute_set(name)
        for tile in range(tiles):
            row, at = divmod(tile, COLUMNS)
            found.vertex("stub", tile=tile, cycles=STUB, reads=(source[at][row],), writes=(result[at][row],))
        return found

    halves = [
        step
        for number, (source, result) in enumerate(((one, other), (other, one)))
        for step in (*_per_column(graph, source, rows), stencil(f"stencil {number}", source, result))
    ]
    return _started(graph, graph.repeat(iterations, *halves))


def _per_column(graph: Graph, blocks: list[Tensor], rows: int) -> Copies:
    """A copy for every column and direction."""
    found: Copies = []
    for column in range(COLUMNS):
        for down, right in DIRECTIONS:
            if 0 <= column + right < COLUMNS:
                (give_rows, take_rows), (give_columns, take_columns) = _spans(down), _spans(right)
                to = slice(max(0, -down), rows - max(0, down))
                near = slice(to.start + down, to.stop + down)
                given = blocks[column + right][near, give_rows, give_columns]
                found.append(graph.copy(given, blocks[column][to, take_rows, take_columns]))
    return found


def _grouped(graph: Graph, block: Tensor, tiles: int) -> Copies:
    """One copy for each of the eight directions over all tiles."""
    found: Copies = []
    for down, right in DIRECTIONS:
        if right:
            to = _receivers(down, right, tiles, 0 if right > 0 else 1)
        else:
            to = slice(max(0, -down) * COLUMNS, tiles - max(0, down) * COLUMNS, 1)
        if to is not None:
            found.append(_copy(graph, block, to, down, right))
    return found


def _waves(graph: Graph, block: Tensor, tiles: int) -> Copies:
    """Rows from north and south, then columns with their corners from east and west."""
    rows = [
        _copy(graph, block, slice(max(0, -down) * COLUMNS, tiles - max(0, down) * COLUMNS, 1), down, 0)
        for down in (-1, 1)
    ]
    sides = [
        _copy(graph, block, to, 0, right, corners=True)
        for right in (-1, 1)
        if (to := _receivers(0, right, tiles, 0 if right > 0 else 1)) is not None
    ]
    return [*rows, *sides]


def _one_by_one(graph: Graph, block: Tensor, tiles: int) -> Copies:
    """Every copy of every tile by itself: those of one tile inside, as often as there are tiles inside.

    None joins another, whatever it touches: a sync and an exchange each are what the measured 1,335 cycles a copy are.
    """

    def of(tile: int) -> Copies:
        return [
            _copy(graph, block, slice(tile, tile + 1, 1), down, right) for down, right, _ in _neighbours(tile, tiles)
        ]

    edges = [step for tile in (0, 1, tiles - 2, tiles - 1) for step in of(tile)]
    inside = [step for tile in (COLUMNS, COLUMNS + 1) for step in of(tile)]
    return [*(graph.repeat(tiles // COLUMNS - 2, step) for step in inside), *(graph.repeat(1, step) for step in edges)]


VARIANTS: dict[str, Callable[[int], Step]] = {
    "implicit": implicit,
    "explicitManyTensors": _columns,
    "explicitOneTensor": lambda iterations: _explicit(iterations, _one_by_one),
    "explicitOneTensorGroupedDirs": lambda iterations: _explicit(iterations, _grouped),
    "explicitOneTensor2Wave": lambda iterations: _explicit(iterations, _waves),
}
