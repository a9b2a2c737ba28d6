"""Pooling: windows reduced to one element, and the gradient that goes back to the largest of each window.

The input a tile's windows cover (with its halo) is brought to it, then one PopNN vertex does all of them. A minimum
costs what a maximum does. The graph's gradient of a maximum is given no maxima, so each tile finds them anew.
"""

from __future__ import annotations

import numpy as np

from workbench.engine.emit import vertex_groups
from workbench.engine.graph import Node
from workbench.engine.lowering import Lowering
from workbench.engine.mapping import Grid, Placement, grid_of_cuts
from workbench.engine.ops import Family, register
from workbench.engine.ops.windows import (
    PoolPlan,
    Windows,
    plan_pool,
    planned_grid,
    readers_grid,
    reading_grid,
    windows_of,
)
from workbench.engine.program import VertexGroup
from workbench.engine.tensor import Tensor
from workbench.engine.tileset import IntArray
from workbench.engine.vertices.pooling import Mode

MODES: dict[str, Mode] = {
    "reduce_window_max": "max",
    "reduce_window_min": "max",
    "reduce_window_sum": "sum",
    "reduce_window": "max",
}
VERTICES = {"max": "popnn::MaxPooling", "sum": "popnn::SumPooling", "max_grad": "popnn::MaxPoolingGrad"}


class Pooling(Family):
    """Reductions of windows."""

    name = "pooling"
    ops = frozenset(MODES)

    def flops(self, node: Node, lowering: Lowering) -> int:
        """One per element of every window, per result."""
        return sum(value.elements for value in node.results) * _windows(node).elements

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The cuts and the channel group."""
        return str(_plan(node, lowering))

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring the windows' inputs, reduce them where the results lie."""
        windows, plan = _windows(node), _plan(node, lowering)
        mapping = planned_grid(windows.outputs, plan, windows.channels)
        wanted = reading_grid(windows, mapping)
        label = lowering.label(node)
        sources: list[tuple[Tensor, Placement]] = [
            (lowering.get(value), wanted) for value in node.operands[: len(node.results)]
        ]
        arranged = lowering.emit.rearrange(label, sources)
        results = [lowering.result(node, number, mapping) for number in range(len(node.results))]
        groups = [
            group
            for value in node.results
            for group in pool_groups(MODES[node.op], windows, mapping, plan, value.itemsize_bytes, lowering.tiles)
        ]
        lowering.emit.compute(label, groups, _names(arranged), _names(results))


class SelectAndScatter(Family):
    """The gradient of a maximum: each window's value is added where its largest element was."""

    name = "select_and_scatter"
    ops = frozenset({"select_and_scatter_add"})

    def flops(self, node: Node, lowering: Lowering) -> int:
        """A comparison and an addition per element of every window."""
        return 2 * node.operands[0].elements * _windows(node).elements

    def plan_text(self, node: Node, lowering: Lowering) -> str:
        """The cuts and the channel group."""
        return str(_plan(node, lowering))

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring gradients and inputs of the windows that reach a tile's elements; find the maxima; scatter."""
        windows, plan = _windows(node), _plan(node, lowering)
        gradient, source = lowering.operands(node)
        mapping = planned_grid(windows.inputs, plan, windows.channels)
        reached, cuts = readers_grid(windows, mapping)
        covered = [(*windows.read(axis, cut.lo, cut.hi), cut.offset) for axis, cut in enumerate(cuts)]
        wanted = grid_of_cuts(windows.inputs, covered, first_tile=mapping.first_tile)
        label = lowering.label(node)
        arranged = lowering.emit.rearrange(label, [(gradient, reached), (source, wanted)])
        maxima = lowering.emit.new(f"{label}/maxima", windows.outputs, source.dtype, reached, "temporary")
        itemsize, tiles = source.itemsize_bytes, lowering.tiles
        lowering.emit.compute(
            f"{label}/maxima",
            _groups("max", windows, [cut.lengths for cut in cuts], mapping, plan, itemsize, tiles),
            arranged[1].variables,
            (maxima,),
        )
        result = lowering.result(node, 0, mapping)
        lowering.emit.compute(
            label,
            pool_groups("max_grad", windows, mapping, plan, itemsize, tiles),
            (*_names(arranged), maxima),
            result.variables,
        )


class SelectAndGather(Family):
    """Of each window the element of one tensor at the place of another's largest: both are pooled."""

    name = "select_and_gather"
    ops = frozenset({"select_and_gather_add"})

    def flops(self, node: Node, lowering: Lowering) -> int:
        """A comparison per element of every window."""
        return node.results[0].elements * _windows(node).elements

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring both tensors' windows; one pass finds the places, one takes what is there."""
        windows = _windows(node)
        plan = plan_pool(windows, "max", node.results[0].itemsize_bytes, lowering.tiles)
        mapping = planned_grid(windows.outputs, plan, windows.channels)
        wanted = reading_grid(windows, mapping)
        label = lowering.label(node)
        arranged = lowering.emit.rearrange(label, [(tensor, wanted) for tensor in lowering.operands(node)])
        result = lowering.result(node, 0, mapping)
        groups = pool_groups("max", windows, mapping, plan, result.itemsize_bytes, lowering.tiles)
        for step in ("places", "values"):
            lowering.emit.compute(f"{label}/{step}", groups, _names(arranged), result.variables)


def _windows(node: Node) -> Windows:
    if node.op == "select_and_scatter_add":
        return windows_of(node, node.results[0].shape, node.operands[0].shape)
    return windows_of(node, node.operands[0].shape, node.results[0].shape)


def _plan(node: Node, lowering: Lowering) -> PoolPlan:
    mode: Mode = MODES.get(node.op, "max_grad")
    return plan_pool(_windows(node), mode, node.results[0].itemsize_bytes, lowering.tiles)


def _names(tensors: list[Tensor]) -> list[int]:
    return [name for tensor in tensors for name in tensor.variables]


def pool_groups(
    mode: Mode, windows: Windows, mapping: Grid, plan: PoolPlan, itemsize_bytes: int, tiles: int
) -> list[VertexGroup]:
    """The pooling vertices of the tiles that own parts of `mapping`."""
    lengths = [cut.lengths for cut in mapping.axes]
    return _groups(mode, windows, lengths, mapping, plan, itemsize_bytes, tiles)


def _groups(
    mode: Mode, windows: Windows, lengths: list[IntArray], where: Grid, plan: PoolPlan, itemsize: int, tiles: int
) -> list[VertexGroup]:
    """Vertices over the product of `lengths` per axis, on the tiles of the parts of `where`."""
    channels = windows.channels
    part = {axis: size for axis, size in enumerate(lengths) if axis != channels}
    last = max(part, default=-1)
    steps = windows.stride[last] if mode == "max_grad" and part else 1
    rows, width, groups = (np.ones(1, np.int64) for _ in range(3))
    for axis, size in enumerate(lengths):
        ones = np.ones_like(size)
        rows = np.multiply.outer(rows, size if axis in part and axis != last else ones).reshape(-1)
        width = np.multiply.outer(width, -(-size // steps) if axis == last else ones).reshape(-1)
        share = -(-size // plan.chans_per_group) if axis == channels else ones
        groups = np.multiply.outer(groups, share).reshape(-1)
    columns = [np.zeros(tiles, np.int64) for _ in range(3)]
    for column, values in zip(columns, (rows * width, width, groups), strict=True):
        column[where.part_tiles()] = values
    return vertex_groups(
        VERTICES[mode],
        {"positions": columns[0], "row_width": columns[1], "chan_groups": columns[2]},
        type="half" if itemsize == 2 else "float",
        kernel_elements=windows.elements,
        chans_per_group=plan.chans_per_group,
    )


register(Pooling())
register(SelectAndScatter())
register(SelectAndGather())
