"""Reductions: each tile reduces what it holds, the partials are exchanged, the tiles of the result reduce them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node
from workbench.engine.mapping import (
    Grid,
    Mapping,
    Placement,
    demand,
    even_cuts,
    grid_of_cuts,
    needed_by,
    reshape,
    runs_of_elements,
)
from workbench.engine.mapping.axes import folded_axes
from workbench.engine.mapping.grid import whole
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.reduce_tile import SUMS, TileReduction, emit_reductions, tile_reduction
from workbench.engine.planner.reduction import stages
from workbench.engine.remembered import remembered
from workbench.engine.target import Target

OPERATIONS = {
    "reduce_sum": "ADD",
    "reduce_square_sum": "SQUARE_ADD",
    "reduce_max": "MAX",
    "reduce_min": "MIN",
    "reduce_prod": "MUL",
    "reduce_and": "LOGICAL_AND",
    "reduce_or": "LOGICAL_OR",
}
MARKS_AT_MOST = 1 << 26
MOST_STAGES = 3
VECTORS_OF_RESULTS = 4  # whose results one tile makes at least
LEAST_RESULTS = 32  # results of one intermediate tile: 128 bytes of float, as tensors are spread


class Reduce(Family):
    """Reduction of some axes to one element each."""

    name = "reduce"
    ops = frozenset(OPERATIONS)
    shareable = True

    def flops(self, node: Node, lowering: Lowering) -> int:
        """One per element reduced."""
        return node.operands[0].elements

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Reduce on each tile, then across tiles if the reduced axes lie on several."""
        lower_reductions([node], lowering)


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """One reduction on its way: what it reads, where its partials are and the vertices that make them."""

    node: Node
    op: str
    source: Tensor
    parts: Partials
    groups: TileReduction | None

    @property
    def between(self) -> str:
        """Type of the partials: half sums are float until the last (poplibs@7eac0f26 reduction/Reduction.cpp:448)."""
        dtype = self.node.results[0].dtype
        return "float32" if dtype == "float16" and self.op in SUMS else dtype


def lower_reductions(nodes: list[Node], lowering: Lowering) -> None:
    """Lower reductions that do not wait for each other, in the same compute sets and exchange."""
    started = [found for node in nodes if (found := _start(node, lowering)) is not None]
    here = [one for one in started if one.parts.depth == 1]
    across = [one for one in started if one.parts.depth > 1]
    label = lowering.label(nodes[0])
    emit = lowering.emit
    results = [lowering.result(one.node, 0, reshape(one.parts.result, one.node.results[0].shape)) for one in here]
    held = [_held(one, label, lowering) for one in across]
    made = [tensor for one, tensor in zip(across, held, strict=True) if one.groups]
    emit_reductions(
        emit,
        f"{label}/tile" if across else label,
        [one.groups for one in started if one.groups],
        [name for one in started if one.groups for name in one.source.variables],
        [name for tensor in (*results, *made) for name in tensor.variables],
    )
    if across:
        _across_tiles(across, held, lowering, label)


def _held(one: Reduction, label: str, lowering: Lowering) -> Tensor:
    """The partials: what the tiles reduce to, or the operand itself where no tile holds two elements of a result."""
    shape = one.parts.held.shape
    if not one.groups:
        return one.source.view(one.parts.held, shape)
    return lowering.emit.tensor(f"{label}/partials", shape, one.between, one.parts.held, "temporary")


def _start(node: Node, lowering: Lowering) -> Reduction | None:
    """The first half of a reduction; None if it reduces nothing and its result is a view."""
    source = lowering.get(node.operands[0])
    value = node.results[0]
    axes = tuple(int(axis) for axis in node.attr("axes"))
    if not axes or source.elements == value.elements:
        lowering.bind(value, source.view(reshape(source.mapping, value.shape), value.shape))
        return None
    kept = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
    parts = partials_of(source.mapping, axes, kept)
    inner = len(source.shape) - 1 in axes
    started = Reduction(node=node, op=OPERATIONS[node.op], source=source, parts=parts, groups=None)
    dtypes = (source.dtype, started.between if parts.depth > 1 else value.dtype)
    groups = arrived_reduction(source.mapping, parts.held, dtypes, started.op, lowering.target, inner=inner)
    started = replace(started, groups=groups)
    return _once_reduced(started) if groups and parts.depth > 1 else started


def _once_reduced(one: Reduction) -> Reduction:
    """What is left to do with partial results: squares are taken once."""
    return replace(one, op="ADD") if one.op == "SQUARE_ADD" else one


@dataclass(frozen=True, slots=True, eq=False)
class Partials:
    """Partial results of a reduction: where they are, and for a mapping of the results what each owner needs.

    `depth` is the most partials of one result; with 1 the partials are the results, placed by `result`.
    """

    held: Mapping
    depth: int
    kept: tuple[int, ...]
    result: Mapping
    first_partial: IntArray | None = None  # of each result, when held is over a list of (result, tile) pairs

    def needed(self, results: Mapping) -> Placement:
        """All partials of the results that each tile owns."""
        if self.first_partial is not None:
            tile, lo, hi = results.intervals()
            return demand(self.held.shape, tile, self.first_partial[lo], self.first_partial[hi])
        if isinstance(results, Grid):
            cuts: list[Any] = [whole(self.depth), *results.axes]
            sizes = (self.depth, *results.dims)
            return grid_of_cuts(self.held.shape, cuts, dims=sizes, first_tile=results.first_tile)
        tile, lo, hi = results.intervals()
        row = np.arange(self.depth, dtype=np.int64) * results.size
        return demand(
            self.held.shape,
            np.repeat(tile, self.depth),
            (lo[:, None] + row).reshape(-1),
            (hi[:, None] + row).reshape(-1),
        )


@remembered(4096)
def partials_of(mapping: Mapping, axes: tuple[int, ...], kept: tuple[int, ...]) -> Partials:
    """Where the partial results lie after each tile has reduced its own elements over `axes`."""
    if isinstance(mapping, Grid) and mapping.is_owner:
        folded = folded_axes(mapping)
        if folded is not None and all(set(axes).issuperset(dim) or set(axes).isdisjoint(dim) for dim in folded):
            reduced = tuple(bool(dim) and set(axes).issuperset(dim) for dim in folded)
            return _partials_of_grid(mapping, reduced, kept)
    return _partials_of_runs(mapping, axes, kept)


def _partials_of_grid(mapping: Grid, reduced: tuple[bool, ...], kept: tuple[int, ...]) -> Partials:
    """Partials of a grid whose dims are reduced whole or not at all."""
    outer = np.zeros(1, np.int64)
    rest: list[Any] = []
    for cut, gone in zip(mapping.axes, reduced, strict=True):
        if gone:
            outer = (outer[:, None] + cut.offset).reshape(-1)
        else:
            rest.append(cut)
    depth = len(outer)
    sizes = [cut.size for cut in rest]
    if depth == 1:
        first = mapping.first_tile + int(outer[0])
        result = grid_of_cuts(kept, rest, dims=sizes, first_tile=first)
        return Partials(held=result, depth=1, kept=kept, result=result)
    row = np.arange(depth, dtype=np.int64)
    held = grid_of_cuts(
        (depth, *kept), [(row, row + 1, outer), *rest], dims=(depth, *sizes), first_tile=mapping.first_tile
    )
    return Partials(held=held, depth=depth, kept=kept, result=held)


def _partials_of_runs(mapping: Mapping, axes: tuple[int, ...], kept: tuple[int, ...]) -> Partials:
    """List the distinct (result, tile) pairs, results first: a tile has a part of a result that, spread out to the
    operand, would be needed there.
    """
    results = prod(kept)
    if results == 1:
        return _partials_of_one(mapping, kept)
    others = tuple(axis for axis in range(len(mapping.shape)) if axis not in axes)
    tile, result = _each_of(*needed_by(mapping, kept, others).intervals())
    tiles = int(tile.max(initial=0)) + 1
    pairs = _distinct(result * tiles + tile, results * tiles)
    first = np.searchsorted(pairs, np.arange(results + 1, dtype=np.int64) * tiles)
    depth = int(np.diff(first).max(initial=1))
    return _listed(pairs % tiles, first, depth, kept)


def _each_of(tile: IntArray, lo: IntArray, hi: IntArray) -> tuple[IntArray, IntArray]:
    """Every number of the intervals [lo, hi), with their tile."""
    count = hi - lo
    before = np.cumsum(count) - count
    return np.repeat(tile, count), np.arange(int(count.sum()), dtype=np.int64) + np.repeat(lo - before, count)


def _partials_of_one(mapping: Mapping, kept: tuple[int, ...]) -> Partials:
    """Each tile that holds something has a partial of the one result."""
    tiles = np.flatnonzero(mapping.elements_per_tile(mapping.last_tile + 1))
    return _listed(tiles, np.array([0, len(tiles)], dtype=np.int64), max(1, len(tiles)), kept)


def _listed(tiles: IntArray, first: IntArray, depth: int, kept: tuple[int, ...]) -> Partials:
    """Partials on these tiles, those of result r from first[r]."""
    held = runs_of_elements((len(tiles),), tiles)
    if depth == 1:
        return Partials(held=held, depth=1, kept=kept, result=reshape(held, kept))
    return Partials(held=held, depth=depth, kept=kept, result=held, first_partial=first)


def _distinct(numbers: IntArray, limit: int) -> IntArray:
    """Sorted distinct numbers below `limit`; marking is many times faster than sorting while the marks fit memory."""
    if limit > MARKS_AT_MOST:  # numpy's unique hashes integers, which takes several times as long as sorting them
        ordered = np.sort(numbers, axis=None)
        return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])], dtype=np.int64)
    marks = np.zeros(limit, bool)
    marks[numbers] = True
    return np.flatnonzero(marks).astype(np.int64)


@remembered(4096)
def arrived_reduction(
    arrived: Placement, results: Mapping, dtypes: tuple[str, str], op: str, target: Target, *, inner: bool = False
) -> TileReduction:
    """Vertices that reduce what lies on each tile to the results it owns, on its workers.

    `dtypes` are those of what is read and what is written.
    """
    owned = results.elements_per_tile(target.tiles_per_ipu)
    held = arrived.elements_per_tile(target.tiles_per_ipu)
    depth = np.where(owned > 0, ceil_div(held, np.maximum(1, owned)), 0)
    return tile_reduction(dtypes, owned, depth, op, target.machine, inner=inner)


def _across_tiles(across: list[Reduction], held: list[Tensor], lowering: Lowering, label: str) -> None:
    """Bring the partials of every result together and reduce them, deep ones over intermediate tiles."""
    parts = [one.parts for one in across]
    for stage in range(MOST_STAGES):
        starts = [_start_of(one, number, stage) for number, one in enumerate(across)]
        nexts = [_fold(part, lowering.tiles, start) for part, start in zip(parts, starts, strict=True)]
        if all(found is None for found in nexts):
            break
        held = _intermediate(f"{label}/stage{stage}", across, held, nexts, lowering)
        parts = [part if found is None else found[0] for part, found in zip(parts, nexts, strict=True)]
        across = [one if found is None else _once_reduced(one) for one, found in zip(across, nexts, strict=True)]
    mappings = [_home(one, lowering) for one in across]
    wanted = [_needed(part, reshape(mapping, part.kept)) for part, mapping in zip(parts, mappings, strict=True)]
    landed = lowering.emit.rearrange(label, list(zip(held, wanted, strict=True)))
    results = [lowering.result(one.node, 0, mapping) for one, mapping in zip(across, mappings, strict=True)]
    _reduce_arrived(f"{label}/final", across, landed, wanted, results, lowering)


@remembered(2048)
def _needed(parts: Partials, results: Mapping) -> Placement:
    """`Partials.needed`, once for what is alike in all layers; `partials_of` gives them the same partials."""
    return parts.needed(results)


def _home(one: Reduction, lowering: Lowering) -> Mapping:
    """Where its readers want the result, else spread: a tile makes at least four vectors of the type of its sums.

    Source: poplibs@7eac0f26 lib/popops/reduction/ReductionStages.cpp:827-857, there of the type that is read.
    """
    value = one.node.results[0]
    least_bytes = VECTORS_OF_RESULTS * lowering.target.data_path_bytes
    return lowering.wish(value) or lowering.default_mapping(value, dtype=one.between, least_bytes=least_bytes)


def _intermediate(
    label: str,
    across: list[Reduction],
    held: list[Tensor],
    nexts: list[tuple[Partials, Placement] | None],
    lowering: Lowering,
) -> list[Tensor]:
    """One stage: every reduction that is still deep brings its partials to fewer tiles and reduces them there."""
    chosen = [index for index, found in enumerate(nexts) if found is not None]
    wanted = [found[1] for found in nexts if found is not None]
    folded = [found[0] for found in nexts if found is not None]
    ones = [across[index] for index in chosen]
    landed = lowering.emit.rearrange(label, [(held[i], need) for i, need in zip(chosen, wanted, strict=True)])
    results = [
        lowering.emit.tensor(f"{label}/partials", part.held.shape, one.between, part.held, "temporary")
        for one, part in zip(ones, folded, strict=True)
    ]
    _reduce_arrived(label, ones, landed, wanted, results, lowering)
    replaced = dict(zip(chosen, results, strict=True))
    return [replaced.get(index, tensor) for index, tensor in enumerate(held)]


def _reduce_arrived(
    label: str,
    ones: list[Reduction],
    landed: list[Tensor],
    wanted: list[Placement],
    results: list[Tensor],
    lowering: Lowering,
) -> None:
    """Vertices that reduce what arrived on each tile to the results it owns."""
    found = [
        arrived_reduction(needed, result.mapping, (arrived.dtype, result.dtype), one.op, lowering.target)
        for one, arrived, needed, result in zip(ones, landed, wanted, results, strict=True)
    ]
    emit_reductions(
        lowering.emit,
        label,
        found,
        [name for tensor in landed for name in tensor.variables],
        [name for tensor in results for name in tensor.variables],
    )


def _start_of(one: Reduction, number: int, stage: int) -> int:
    """A number that differs from reduction to reduction and is the same for equal ones: their stages begin at tiles as
    if chosen at random, which balances what whole models leave on a tile (poplibs@7eac0f26 lib/popops/reduction/
    Reduction.cpp:90-112).
    """
    return crc32(repr((one.source.shape, one.node.results[0].shape, one.op, number, stage)).encode())


@remembered(2048)
def _fold(parts: Partials, tiles: int, start: int) -> tuple[Partials, Placement] | None:
    """The next stage of a deep reduction: partials of the partials, on tiles of their own, and what these need."""
    ahead = stages(parts.depth, True)
    if not ahead:
        return None
    held, columns = _intermediate_tiles(parts.kept, ahead[0], tiles, start)
    if parts.first_partial is not None:
        wanted = _needed_of_list(parts.held.shape, parts.first_partial, held, columns)
    else:
        wanted = _needed_of_grid(parts.held.shape, parts.depth, held, columns)
    return None if wanted is None else (Partials(held=held, depth=ahead[0], kept=parts.kept, result=held), wanted)


@remembered(1024)
def _intermediate_tiles(kept: tuple[int, ...], left: int, tiles: int, start: int) -> tuple[Grid, IntArray]:
    """Where `left` partials of each result are made, and the bounds of the results that one tile has; `start` chooses
    among the tiles at which they can begin.
    """
    results = int(np.prod(kept, dtype=np.int64))
    pieces = max(1, min(ceil_div(results, LEAST_RESULTS), tiles // left))
    bounds = even_cuts(results, pieces, LEAST_RESULTS)
    columns = (bounds[:-1], bounds[1:], np.arange(pieces, dtype=np.int64))
    row = np.arange(left, dtype=np.int64)
    first = start % (tiles - left * pieces + 1)
    cuts: list[Any] = [(row, row + 1, row * pieces), columns]
    return grid_of_cuts((left, *kept), cuts, dims=(left, results), first_tile=first), bounds


def _needed_of_grid(shape: tuple[int, ...], depth: int, held: Grid, bounds: IntArray) -> Placement:
    """What making the partials of `held` takes of `depth` partials of each result."""
    left, pieces = held.shape[0], len(bounds) - 1
    cut = even_cuts(depth, left)
    rows = (cut[:-1], cut[1:], np.arange(left, dtype=np.int64) * pieces)
    columns = (bounds[:-1], bounds[1:], np.arange(pieces, dtype=np.int64))
    return grid_of_cuts(shape, [rows, columns], dims=(depth, int(bounds[-1])), first_tile=held.first_tile)


def _needed_of_list(shape: tuple[int, ...], first: IntArray, held: Grid, bounds: IntArray) -> Placement | None:
    """The same for partials in a list, those of result r from first[r]; None if one has fewer than are to be left."""
    left, pieces = held.shape[0], len(bounds) - 1
    counts = np.diff(first)
    if int(counts.min(initial=left)) < left:
        return None
    cut = first[:-1, None] + counts[:, None] * np.arange(left + 1, dtype=np.int64) // left
    column = np.searchsorted(bounds, np.arange(len(counts)), side="right") - 1
    tile = np.arange(left, dtype=np.int64) * pieces + column[:, None] + held.first_tile
    return demand(shape, tile.reshape(-1), cut[:, :-1].reshape(-1), cut[:, 1:].reshape(-1))


register(Reduce())
