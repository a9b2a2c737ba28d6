"""Reductions: each tile reduces what it holds, the partials are exchanged, the tiles of the result reduce them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.engine.emit import vertex_groups
from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.mapping import (
    Grid,
    Mapping,
    Placement,
    demand,
    grid_of_cuts,
    linear,
    reshape,
    runs_of_elements,
)
from workbench.engine.mapping_grid import whole
from workbench.engine.ops import DTYPE_WORDS, Family, register
from workbench.engine.program import VertexGroup
from workbench.engine.tensor import Tensor
from workbench.engine.tileset import IntArray

OPERATIONS = {
    "reduce_sum": "ADD",
    "reduce_max": "MAX",
    "reduce_min": "MIN",
    "reduce_prod": "MUL",
    "reduce_and": "LOGICAL_AND",
    "reduce_or": "LOGICAL_OR",
    "argmax": "MAX",
    "argmin": "MIN",
}


class Reduce(Family):
    """Reduction of some axes to one element each."""

    name = "reduce"
    ops = frozenset(OPERATIONS)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """One per element reduced."""
        return node.operands[0].elements

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Reduce on each tile, then across tiles if the reduced axes lie on several."""
        lower_reduce(node, lowering, OPERATIONS[node.op], tuple(int(axis) for axis in node.attr("axes")))


def lower_reduce(node: Node, lowering: Lowering, op: str, axes: tuple[int, ...]) -> None:
    """Lower one reduction of operand 0 over `axes`."""
    source = lowering.get(node.operands[0])
    value = node.results[0]
    if not axes or source.elements == value.elements:
        lowering.bind(value, source.view(reshape(source.mapping, value.shape), value.shape))
        return
    label = lowering.label(node)
    kept = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
    parts = partials_of(source.mapping, axes, kept)
    inner = len(source.shape) - 1 in axes
    groups = tile_reduction(source, parts.held.elements_per_tile(lowering.tiles), op, inner=inner, tiles=lowering.tiles)
    if parts.depth == 1:
        result = lowering.result(node, 0, reshape(parts.result, value.shape))
        lowering.emit.compute(label, groups, source.variables, result.variables)
        return
    _across_tiles(node, lowering, op, source, parts, groups)


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
        axes = results.axes if isinstance(results, Grid) and results.dims == self.kept else None
        if axes is not None and isinstance(results, Grid):
            cuts: list[Any] = [whole(self.depth), *axes]
            return grid_of_cuts(self.held.shape, cuts, first_tile=results.first_tile, replicas=results.replicas)
        tile, lo, hi = results.intervals()
        row = np.arange(self.depth, dtype=np.int64) * results.size
        return demand(
            self.held.shape,
            np.repeat(tile, self.depth),
            (lo[:, None] + row).reshape(-1),
            (hi[:, None] + row).reshape(-1),
        )


def partials_of(mapping: Mapping, axes: tuple[int, ...], kept: tuple[int, ...]) -> Partials:
    """Where the partial results lie after each tile has reduced its own elements over `axes`."""
    if isinstance(mapping, Grid) and mapping.dims == mapping.shape and mapping.is_owner:
        return _partials_of_grid(mapping, axes, kept)
    return _partials_of_runs(mapping, axes, kept)


def _partials_of_grid(mapping: Grid, axes: tuple[int, ...], kept: tuple[int, ...]) -> Partials:
    outer = np.zeros(1, np.int64)
    for axis in axes:
        outer = (outer[:, None] + mapping.axes[axis].offset).reshape(-1)
    depth = len(outer)
    rest: list[Any] = [mapping.axes[axis] for axis in range(len(mapping.shape)) if axis not in axes]
    if depth == 1:
        first = mapping.first_tile + int(outer[0])
        result = grid_of_cuts(kept, rest, first_tile=first)
        return Partials(held=result, depth=1, kept=kept, result=result)
    row = np.arange(depth, dtype=np.int64)
    reduced = (row, row + 1, outer)
    held = grid_of_cuts((depth, *kept), [reduced, *rest], first_tile=mapping.first_tile)
    return Partials(held=held, depth=depth, kept=kept, result=held)


def _partials_of_runs(mapping: Mapping, axes: tuple[int, ...], kept: tuple[int, ...]) -> Partials:
    """List the distinct (result, tile) pairs, results first."""
    shape = mapping.shape
    result = np.zeros(shape, np.int64)
    step = 1
    for axis in reversed(range(len(shape))):
        if axis in axes:
            continue
        view = [1] * len(shape)
        view[axis] = shape[axis]
        result = result + (np.arange(shape[axis], dtype=np.int64) * step).reshape(view)
        step *= shape[axis]
    owners = mapping.tile_of_elements().astype(np.int64)
    tiles = int(owners.max(initial=0)) + 1
    pairs = np.unique(result.reshape(-1) * tiles + owners)
    first = np.searchsorted(pairs, np.arange(step + 1, dtype=np.int64) * tiles)
    depth = int(np.diff(first).max(initial=1))
    held = runs_of_elements((len(pairs),), pairs % tiles)
    if depth == 1:
        return Partials(held=held, depth=1, kept=kept, result=reshape(held, kept))
    return Partials(held=held, depth=depth, kept=kept, result=held, first_partial=first)


def tile_reduction(source: Tensor, results: IntArray, op: str, *, inner: bool, tiles: int) -> list[VertexGroup]:
    """Vertices that reduce each tile's elements to `results` partials (int64[tiles]) on its six workers."""
    elements = source.elements_per_tile(tiles)
    depth = np.where(results > 0, -(-elements // np.maximum(1, results)), 0)
    return reduction_groups(source.dtype, results, depth, op, inner=inner)


def reduction_groups(dtype: str, results: IntArray, depth: IntArray, op: str, *, inner: bool) -> list[VertexGroup]:
    """Reduce vertices: results cut over the workers; fewer than six results: their elements are, then once more."""
    fixed = {"type": DTYPE_WORDS[dtype], "op": op}
    many = np.where((results >= 6) & (depth > 1), -(-results // 6), 0)
    few = np.where((results > 0) & (results < 6) & (depth > 1), results, 0)
    groups: list[VertexGroup] = []
    if many.any():
        groups += _spread(_many(inner, many, depth, fixed), 6)
    if few.any():
        share = -(-depth // 6) * few
        scalar = {"specialisation": "SCALAR_OUTPUT_SINGLE_INPUT", "num_outputs": 1, **fixed}
        groups += _spread(vertex_groups("popops::Reduce", {"num_partials": share}, **scalar), 6)
        groups += vertex_groups("popops::Reduce", {"num_partials": np.where(few > 0, few * 6, 0)}, **scalar)
    return groups


def _many(inner: bool, share: IntArray, depth: IntArray, fixed: dict[str, str]) -> list[VertexGroup]:
    if inner:
        return vertex_groups(
            "popops::Reduce",
            {"num_outputs": share, "num_partials": depth},
            specialisation="ALL_REGIONS_CONTINUOUS",
            **fixed,
        )
    return vertex_groups(
        "popops::Reduce",
        {"num_outputs": share, "num_partials": depth, "stride": share},
        specialisation="STRIDED_REDUCE",
        num_outer_strides=1,
        **fixed,
    )


def _spread(groups: list[VertexGroup], count: int) -> list[VertexGroup]:
    return [VertexGroup(group.vertex, group.arguments, group.tiles, count) for group in groups]


def _across_tiles(
    node: Node, lowering: Lowering, op: str, source: Tensor, parts: Partials, groups: list[VertexGroup]
) -> None:
    value = node.results[0]
    label = lowering.label(node)
    emit = lowering.emit
    held = emit.tensor(f"{label}/partials", parts.held.shape, source.dtype, parts.held, "temporary")
    emit.compute(f"{label}/tile", groups, source.variables, held.variables)
    mapping = lowering.wish(value) or linear(value.shape, value.dtype, lowering.tiles)
    wanted = parts.needed(reshape(mapping, parts.kept))
    (landed,) = emit.rearrange(label, [(held, wanted)])
    result = lowering.result(node, 0, mapping)
    owned = mapping.elements_per_tile(lowering.tiles)
    depth = np.where(owned > 0, -(-wanted.elements_per_tile(lowering.tiles) // np.maximum(1, owned)), 0)
    final = reduction_groups(source.dtype, owned, depth, op, inner=False)
    emit.compute(f"{label}/final", final, landed.variables, result.variables)


register(Reduce())
