"""Vertices measured on Mk2 hardware between two readings of a tile's cycle counter.

Source: graphcore-research/tessellate-ipu@3ab241f3; the scale-add of its tests is PopLibs' scaled add without memory
constraints (tessellate_ipu/lax/tile_lax_binary.py:168).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.fidelity.outcome import Case, NotRun, said
from tests.fidelity.tile_times import counted, run_times
from workbench.tiles import ComputeSet, Graph, Tensor

FIELDS = {"add": ("a", "b", "out"), "copy": ("a", "out"), "scaled add": ("a", "b")}
WORKER_START = 20  # cycles of a worker before its loop, as in PopLibs' elementwise estimators
# Loads and stores of 64 bits a loop makes for two elements; one issues in a cycle, arithmetic beside it.
QR_PRODUCT, QR_UPDATE, JACOBI_UPDATE = 2, 3, 4
JACOBI_ROTATION = 2 * WORKER_START  # a two by two rotation before the loop
# A two by two Schur decomposition by itself, an instruction each: 4 fields, 5 elements, 9 of arithmetic and 4 of
# comparing up to the quotient, 4 more with one inverse root, the results and the end
# (tessellate_ipu/core/vertex/tile_jacobi_vertex.cpp:11).
SCHUR_INSTRUCTIONS = 29


def counted_vertex(case: Case) -> Any:
    """Cycles of one vertex a tile, launch and counters included; `{"tiles": [...]}` for several tiles."""
    text = said(case)
    if found := re.search(r"elementwise add of (\d+) elements.* on (\d+) tiles", text):
        return {"tiles": _elementwise(int(found[1]), int(found[2]))}
    if case["id"].startswith("TS-scaleadd"):
        size = int(re.findall(r"N=(\d+)", text)[-1])
        return _scaled_add(size)
    found = re.search(r"N ?= ?(\d+)|of (\d+) elements", text)
    size = int(found[1] or found[2]) if found else 0
    for words, cycles in LINEAR_ALGEBRA.items():
        if re.search(words, text, re.IGNORECASE) and (size or cycles is _schur):
            return cycles(size)
    return NotRun("the cost of this custom vertex is not published")


def _graph(tiles: int) -> tuple[Graph, ComputeSet]:
    graph = Graph("bow", tiles=max(tiles, 2))
    return graph, graph.compute_set("measured")


def _elementwise(size: int, tiles: int) -> list[int]:
    graph, steps = _graph(tiles)
    a, b, out = (graph.variable(name, tiles * size).map_linearly(tiles=tiles, grain=size) for name in "abo")
    for tile in range(tiles):
        part = slice(tile * size, (tile + 1) * size)
        steps.vertex("popops::BinaryOp1D", tile=tile, op="ADD", in1=a[part], in2=b[part], out=out[part])
    return counted(steps)


def _scaled_add(size: int) -> int:
    graph, steps = _graph(1)
    a, b = (graph.variable(name, size).map({0: slice(0, size)}) for name in "ab")
    steps.vertex(
        "popops::ScaledAddSupervisor",
        tile=0,
        a=a,
        b=b,
        a_type="float",
        b_type="float",
        scale_type="float",
        memory_constraints=False,
        n=size,
        layout="OnePtr",
    )
    return counted(steps)[0]


def _copy(size: int) -> int:
    graph, steps = _graph(1)
    a, out = (graph.variable(name, size).map({0: slice(0, size)}) for name in "ao")
    steps.vertex("poplar::Memcpy", tile=0, src=a, dst=out)
    return counted(steps)[0]


def _loop(accesses: int, size: int) -> int:
    """Cycles of one of six workers over its share of so many elements."""
    return WORKER_START + accesses * -(-size // 12)


def _workers(cycles: int) -> int:
    """A vertex on all six workers, as many cycles on each."""
    _, steps = _graph(1)
    for _ in range(6):
        steps.vertex("stub", tile=0, cycles=cycles)
    return counted(steps)[0]


def _schur(_size: int) -> int:
    """The decomposition of a two by two matrix by one worker; what columns it is taken out of does not matter."""
    _, steps = _graph(1)
    steps.vertex("stub", tile=0, cycles=SCHUR_INSTRUCTIONS)
    return counted(steps)[0]


def _hessenberg(size: int) -> int:
    """Steps as QR's of whole columns on the matrix turned and on Q, then turned back and on the matrix."""
    graph = Graph("bow", tiles=2 * size)
    along = range(size)
    rows = {size + row: slice(row * size, (row + 1) * size) for row in along}
    columns = {
        size + column: [slice(row * size + column, row * size + column + 1) for row in along] for column in along
    }
    matrix, turned = (graph.variable(name, (size, size)).map(pieces) for name, pieces in (("R", rows), ("RT", columns)))
    both = graph.variable("R and Q", (2 * size, size)).map_linearly(tiles=2 * size, grain=size)
    vector = graph.variable("v", (1, size)).map({0: slice(0, size)})
    partials = graph.variable("w", (2 * size, 12)).map_linearly(tiles=2 * size, grain=12)
    step = _qr_step(graph, size, columns=both, vector=vector, partials=partials)
    there, back = graph.copy(matrix, turned), graph.copy(turned, matrix)
    return int(run_times(graph.sequence(graph.repeat(size - 2, step[0], there, *step[1:4], back, *step[4:]))).total)


def _qr(size: int) -> int:
    """Householder steps of QR, one column fewer each: equal numbers of vectors a worker are one repeat."""
    graph = Graph("bow", tiles=2 * size)
    variables = {
        "columns": graph.variable("RT", (2 * size, size)).map_linearly(tiles=2 * size, grain=size),
        "vector": graph.variable("v", (1, size)).map({0: slice(0, size)}),
        "partials": graph.variable("w", (2 * size, 12)).map_linearly(tiles=2 * size, grain=12),
    }
    left = Counter(-(-(size - column // 2 * 2) // 12) for column in range(size - 1))
    steps = [graph.repeat(times, *_qr_step(graph, 12 * share, **variables)) for share, times in left.items()]
    return int(run_times(graph.sequence(*steps)).total)


def _qr_step(graph: Graph, size: int, *, columns: Tensor, vector: Tensor, partials: Tensor) -> list[ComputeSet]:
    """A correction vector on one tile, then on a tile per column its product with the column and the update."""
    correction = graph.compute_set(f"correction {size}")
    for _ in range(6):
        correction.vertex("stub", tile=0, cycles=2 * _loop(QR_UPDATE, size))
    product, reduce, update = (graph.compute_set(f"{name} {size}") for name in ("product", "reduce", "update"))
    for tile in range(columns.shape[0]):
        for first in (True, *[False] * 5):
            read = (vector,) if first else ()
            product.vertex("stub", tile=tile, cycles=_loop(QR_PRODUCT, size), reads=read)
            written = (columns[tile],) if first else ()
            update.vertex("stub", tile=tile, cycles=_loop(QR_UPDATE, size), reads=read, writes=written)
        reduce.vertex("stub", tile=tile, cycles=_loop(1, 24), reads=(partials[tile],))
    return [correction, *[product, reduce, update] * 2]


def _correction(size: int) -> int:
    return _workers(2 * _loop(QR_UPDATE, size))


# Words of a description -> its cycles for a size; the first that is found.
LINEAR_ALGEBRA: dict[str, Callable[[int], int]] = {
    r"tile copy": _copy,
    r"hessenberg": _hessenberg,
    r"correction": _correction,
    r"house ?holder|row update": lambda size: _workers(_loop(QR_UPDATE, size)),
    r"full QR|\bQR\b.*(?:iteration|decomposition|benchmark)": _qr,
    r"dot.?product": lambda size: _workers(_loop(QR_PRODUCT, size)),
    r"schur": _schur,
    r"jacobi update.*eigen|eigenvector|rotation ?2d|2d rotation": lambda size: _workers(_loop(JACOBI_UPDATE, size)),
    r"jacobi update": lambda size: _workers(JACOBI_ROTATION + _loop(JACOBI_UPDATE, size)),
}
