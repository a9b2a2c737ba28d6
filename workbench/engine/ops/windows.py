"""Windows that slide over a tensor: which inputs the outputs of a tile read, and how PopLibs' planner cuts the outputs.

The plan sweeps the cuts of every axis and the channels of a group, and takes the least of vertex cycles plus the
exchange of every input byte a tile reads (poplibs@7eac0f26 lib/popnn/PoolPlan.cpp:182-333).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.engine.graph import Node
from workbench.engine.mapping import Grid, Mapping, even_cuts, grid_of_cuts
from workbench.engine.mapping.axes import axes_of_shape
from workbench.engine.mapping.grid import Cuts
from workbench.engine.remembered import remembered
from workbench.engine.target import Rates
from workbench.engine.vertices.pooling import Mode, pool_cycles

Shape = tuple[int, ...]
GRAINS_PER_GROUP = 8  # the same place, getPlan: no more grains of channels in a group


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Output position o of axis a reads inputs (o stride + k window_dilation - low) / base_dilation, k below `window`.

    All per axis; `inputs` and `outputs` are the sizes.
    """

    inputs: Shape
    outputs: Shape
    window: Shape
    stride: Shape
    low: Shape
    base_dilation: Shape
    window_dilation: Shape

    @property
    def elements(self) -> int:
        """Positions of one window."""
        return prod(self.window)

    @property
    def channels(self) -> int | None:
        """The last axis that no window slides over, whose elements lie together."""
        plain = [
            axis
            for axis, (size, step, low) in enumerate(zip(self.window, self.stride, self.low, strict=True))
            if size == 1 and step == 1 and low == 0 and self.inputs[axis] == self.outputs[axis]
        ]
        return plain[-1] if plain else None

    def read(self, axis: int, lo: IntArray, hi: IntArray) -> tuple[IntArray, IntArray]:
        """First and last + 1 input that outputs [lo, hi) of an axis read."""
        base = self.base_dilation[axis]
        first = lo * self.stride[axis] - self.low[axis]
        last = (hi - 1) * self.stride[axis] - self.low[axis] + (self.window[axis] - 1) * self.window_dilation[axis]
        size = self.inputs[axis]
        return np.clip(ceil_div(first, base), 0, size), np.clip(last // base + 1, 0, size)

    def readers(self, axis: int, lo: IntArray, hi: IntArray) -> tuple[IntArray, IntArray]:
        """First and last + 1 output that reads any of inputs [lo, hi) of an axis."""
        base, step = self.base_dilation[axis], self.stride[axis]
        reach = (self.window[axis] - 1) * self.window_dilation[axis]
        first = ceil_div(lo * base + self.low[axis] - reach, step)
        last = ((hi - 1) * base + self.low[axis]) // step + 1
        first = np.clip(first, 0, self.outputs[axis])
        return first, np.maximum(np.clip(last, 0, self.outputs[axis]), first)


def windows_of(node: Node, inputs: Shape, outputs: Shape) -> Windows:
    """The windows of a reduce_window or select_and_scatter node."""
    ones = (1,) * len(inputs)
    padding = node.attr("padding") or tuple((0, 0) for _ in inputs)
    return Windows(
        inputs=inputs,
        outputs=outputs,
        window=tuple(node.attr("window_dimensions")),
        stride=tuple(node.attr("window_strides") or ones),
        low=tuple(int(low) for low, _ in padding),
        base_dilation=tuple(node.attr("base_dilation") or ones),
        window_dilation=tuple(node.attr("window_dilation") or ones),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """Parts of each axis of what is computed, and channels of one group; the cycles that are estimated for it."""

    splits: Shape
    chans_per_group: int
    cycles: int = 0

    def __str__(self) -> str:
        return f"cut {'x'.join(map(str, self.splits))}, {self.chans_per_group} channels a group"


@remembered(1024)
def plan_pool(windows: Windows, mode: Mode, itemsize_bytes: int, tiles: int, rates: Rates) -> PoolPlan:
    """The cheapest cut of the outputs (of the inputs, for `max_grad`) over `tiles`."""
    shape = windows.inputs if mode == "max_grad" else windows.outputs
    grain = max(1, rates.machine.data_path_bytes // max(2, itemsize_bytes))
    channels = windows.channels
    best: tuple[int, PoolPlan] | None = None
    groups_of = shape[channels] if channels is not None else 1
    for chans in sorted({grain * k for k in range(1, min(GRAINS_PER_GROUP, ceil_div(groups_of, grain)) + 1)}):
        splits = _all_splits(shape, channels, chans, tiles)
        cycles = _cycles(windows, mode, itemsize_bytes, shape, channels, chans, splits, rates)
        found = int(np.argmin(cycles))
        if best is None or cycles[found] < best[0]:
            least = int(cycles[found])
            plan = PoolPlan(splits=tuple(int(part) for part in splits[found]), chans_per_group=chans, cycles=least)
            best = (least, plan)
    assert best is not None
    return best[1]


def distinct_parts(size: int, limit: int) -> list[int]:
    """Numbers of parts up to `limit` that give different sizes of the largest part."""
    found: dict[int, int] = {}
    for parts in range(1, min(size, limit) + 1):
        found.setdefault(ceil_div(size, parts), parts)
    return list(found.values())


def _all_splits(shape: Shape, channels: int | None, chans: int, tiles: int) -> IntArray:
    choices = [
        distinct_parts(ceil_div(size, chans) if axis == channels else size, tiles) for axis, size in enumerate(shape)
    ]
    rows = np.ones((1, 0), np.int64)
    for parts in choices:
        rows = np.concatenate([np.repeat(rows, len(parts), 0), np.tile(parts, len(rows))[:, None]], axis=1)
        rows = rows[rows.prod(axis=1) <= tiles]
    return rows


def _cycles(
    windows: Windows,
    mode: Mode,
    itemsize: int,
    shape: Shape,
    channels: int | None,
    chans: int,
    splits: IntArray,
    rates: Rates,
) -> IntArray:
    """Vertex cycles plus exchange cycles of the largest part, one per row of `splits`."""
    field = [axis for axis in range(len(shape)) if axis != channels]
    part = {axis: ceil_div(shape[axis], splits[:, axis]) for axis in field}
    width = part[field[-1]] if field else np.ones(len(splits), np.int64)
    if mode == "max_grad" and field:
        width = ceil_div(width, windows.stride[field[-1]])
    rows = np.ones(len(splits), np.int64)
    for axis in field[:-1]:
        rows = rows * part[axis]
    groups = np.ones(len(splits), np.int64)
    if channels is not None:
        all_groups = ceil_div(shape[channels], chans)
        groups = ceil_div(all_groups, splits[:, channels])
    compute = np.asarray(
        pool_cycles(
            mode=mode,
            type="half" if itemsize == 2 else "float",
            positions=rows * width,
            row_width=width,
            kernel_elements=windows.elements,
            chans_per_group=chans,
            chan_groups=groups,
            **rates.machine._asdict(),
        )
    )
    read = groups * chans * itemsize
    for axis in field:
        step, window = windows.stride[axis], windows.window[axis]
        read = read * (part[axis] * step + window - step if mode != "max_grad" else part[axis])
    return np.asarray(compute + read // rates.exchange_bytes_per_cycle, dtype=np.int64)


def planned_grid(shape: Shape, plan: PoolPlan, channels: int | None, *, channels_first: bool = False) -> Grid:
    """The owner mapping of what the plan computes: parts in the order of the axes, or those of channels outermost.

    PopLibs' order by itself is the latter (poplibs@7eac0f26 lib/popnn/PoolVertices.cpp:669-681).
    """
    stride = prod(plan.splits)
    strides = {}
    for axis in sorted(range(len(shape)), key=lambda axis: channels_first and axis != channels):
        stride //= plan.splits[axis]
        strides[axis] = stride
    bounds = [_bounds(shape, plan, channels, axis) for axis in range(len(shape))]
    return grid_of_cuts(
        shape,
        [
            (cut[:-1], cut[1:], np.arange(len(cut) - 1, dtype=np.int64) * strides[axis])
            for axis, cut in enumerate(bounds)
        ],
    )


def _bounds(shape: Shape, plan: PoolPlan, channels: int | None, axis: int) -> IntArray:
    return even_cuts(shape[axis], plan.splits[axis], plan.chans_per_group if axis == channels else 1, ceil=True)


def following_grid(windows: Windows, plan: PoolPlan, source: Mapping) -> Grid | None:
    """Every part on the tile that holds the middle of its input, where the operand is cut at least as finely."""
    groups = axes_of_shape(source) if isinstance(source, Grid) and source.is_owner else None
    if not isinstance(source, Grid) or groups is None or any(len(group) != 1 for group in groups):
        return None
    axes: list[Any] = []
    for axis, (held,) in enumerate(groups):
        cut = _bounds(windows.outputs, plan, windows.channels, axis)
        lo, hi = windows.read(axis, cut[:-1], cut[1:])
        by_place = np.argsort(held.lo)
        found = np.searchsorted(held.lo[by_place], (lo + hi) // 2, side="right") - 1
        if len(np.unique(found)) < len(found):
            return None
        axes.append((cut[:-1], cut[1:], held.offset[by_place][found]))
    return grid_of_cuts(windows.outputs, axes, first_tile=source.first_tile)


def reading_grid(windows: Windows, results: Grid) -> Grid:
    """What the tiles that own `results` (over the outputs) read of the inputs."""
    axes = [(*windows.read(axis, cut.lo, cut.hi), cut.offset) for axis, cut in enumerate(results.axes)]
    return grid_of_cuts(windows.inputs, axes, first_tile=results.first_tile)


def readers_grid(windows: Windows, owned: Grid) -> tuple[Grid, list[Cuts]]:
    """The outputs that read what tiles own of the inputs, as a demand and as cuts per axis in the order of `owned`."""
    axes = []
    cuts = []
    for axis, cut in enumerate(owned.axes):
        lo, hi = windows.readers(axis, cut.lo, cut.hi)
        axes.append((lo, hi, cut.offset))
        cuts.append(Cuts(size=windows.outputs[axis], lo=lo, hi=hi, offset=cut.offset))
    return grid_of_cuts(windows.outputs, axes, first_tile=owned.first_tile), cuts
