"""Pooling: windows reduced to one element, and the gradient that goes back to the largest of each window.

The input a tile's windows cover (with its halo) is brought to it, then one PopNN vertex does all of them. A minimum
costs what a maximum does. The graph's gradient of a maximum is given no maxima, so each tile finds them anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.emit import vertex_groups
from workbench.engine.emit.context import Lowering
from workbench.engine.graph import Node, Value, attrs
from workbench.engine.mapping import Grid, Placement, grid_of_cuts, transfer
from workbench.engine.mapping.tensor import Tensor
from workbench.engine.ops import Family, register
from workbench.engine.ops.free import fill_groups
from workbench.engine.ops.windows import (
    PoolPlan,
    Windows,
    following_grid,
    plan_pool,
    planned_grid,
    readers_grid,
    reading_grid,
    windows_of,
)
from workbench.engine.planner.family import lower_node, planned_cycles, planned_text, wished_layouts
from workbench.engine.program import VertexGroup
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
        found = faster_convolution(node, lowering)
        return planned_text(found, lowering) if found is not None else str(_plan(node, lowering))

    def plan_cycles(self, node: Node, lowering: Lowering) -> int:
        """What the plan was estimated to take."""
        found = faster_convolution(node, lowering)
        return planned_cycles(found, lowering) if found is not None else _plan(node, lowering).cycles

    def lower(self, node: Node, lowering: Lowering) -> None:
        """Bring the windows' inputs, reduce them where the results lie; or convolve, if asked for and faster."""
        convolution = faster_convolution(node, lowering)
        if convolution is not None:
            _lower_convolution(convolution, lowering)
            return
        windows, plan = _windows(node), _plan(node, lowering)
        mapping = _mapping(windows, plan, lowering.get(node.operands[0]), lowering)
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

    def plan_cycles(self, node: Node, lowering: Lowering) -> int:
        """What the plan was estimated to take."""
        return _plan(node, lowering).cycles

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
        plan = plan_pool(windows, "max", node.results[0].itemsize_bytes, lowering.tiles, lowering.target.rates)
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
    return plan_pool(_windows(node), mode, node.results[0].itemsize_bytes, lowering.tiles, lowering.target.rates)


def faster_convolution(node: Node, lowering: Lowering) -> Node | None:
    """With `optimizeForSpeed`, the convolution by ones that a sum of windows is, if its plan takes fewer cycles.

    As PopNN chooses (poplibs@7eac0f26 lib/popnn/Pooling.cpp:594-640); every channel is a group of its own.
    """
    if not lowering.options.get("pooling.poplar_options.optimizeForSpeed") or MODES[node.op] != "sum":
        return None
    known = lowering.plans.get(node)
    if isinstance(known, _Chosen):
        return known.convolution
    convolution = _as_convolution(node)
    if convolution is not None:
        cycles = planned_cycles(convolution, lowering)
        convolution = convolution if cycles < _plan(node, lowering).cycles else None
    lowering.plans[node] = _Chosen(convolution)
    return convolution


@dataclass(frozen=True, slots=True)
class _Chosen:
    convolution: Node | None


def _as_convolution(node: Node) -> Node | None:
    """The sum of windows over the axes between the first and the channels, without dilation."""
    windows, source, result = _windows(node), node.operands[0], node.results[0]
    channels, rank = windows.channels, len(source.shape)
    if channels != rank - 1 or rank < 3 or windows.window[0] * windows.stride[0] != 1 or len(node.results) > 1:
        return None
    dilated = any(size != 1 for size in (*windows.base_dilation, *windows.window_dilation))
    if dilated or source.dtype not in ("float32", "float16"):
        return None
    field = tuple(range(1, rank - 1))
    ones = Value(-1, (*(windows.window[axis] for axis in field), 1, source.shape[channels]), source.dtype)
    padding = node.attr("padding") or ((0, 0),) * rank
    spec = (0, channels, *field)
    given = attrs(
        lhs_spec=spec,
        rhs_spec=(len(field) + 1, len(field), *range(len(field))),
        out_spec=spec,
        window_strides=[windows.stride[axis] for axis in field],
        padding=[padding[axis] for axis in field],
        lhs_dilation=(1,) * len(field),
        rhs_dilation=(1,) * len(field),
        feature_group_count=source.shape[channels],
        batch_group_count=1,
    )
    return Node("conv_general_dilated", (source, ones), (result,), given, node.origin)


def _lower_convolution(node: Node, lowering: Lowering) -> None:
    """Fill the kernel where the plan wants it, and convolve."""
    ones, label = node.operands[1], lowering.label(node)
    mapping = wished_layouts(node, lowering).get(1) or lowering.default_mapping(ones)
    tensor = lowering.emit.tensor(f"{label}/ones", ones.shape, ones.dtype, mapping, "temporary")
    filled = fill_groups(mapping.elements_per_tile(lowering.tiles), ones.dtype, lowering.target.workers_per_tile)
    lowering.emit.compute(f"{label}/ones", filled, (), tensor.variables)
    lowering.bind(ones, tensor)
    lower_node(node, lowering)


def _mapping(windows: Windows, plan: PoolPlan, source: Tensor, lowering: Lowering) -> Grid:
    """Where the parts of a pooling are computed.

    With `poolUseIntrospectiveMapping`, the order of tiles under which least of the operand has to move; PopLibs takes
    the best tile part by part (poplibs@7eac0f26 lib/popnn/PoolVertices.cpp:754-787). Else, its linear order.
    """
    linear = planned_grid(windows.outputs, plan, windows.channels, channels_first=True)
    if not lowering.options.get("pooling.poplar_options.poolUseIntrospectiveMapping"):
        return linear
    plain = planned_grid(windows.outputs, plan, windows.channels)
    following = following_grid(windows, plan, source.mapping)
    candidates = [plain, linear] if following is None else [plain, linear, following]

    def moved_bytes(mapping: Grid) -> int:
        moved = transfer(source.mapping, reading_grid(windows, mapping), source.itemsize_bytes, lowering.tiles)
        return int(moved.received_bytes.sum())

    return min(candidates, key=moved_bytes)


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
        width = np.multiply.outer(width, ceil_div(size, steps) if axis == last else ones).reshape(-1)
        share = ceil_div(size, plan.chans_per_group) if axis == channels else ones
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
