"""The vertices of a plan: one per computing tile, as classes of equal sizes."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray, ceil_div
from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.estimate import vmac_arguments
from workbench.engine.planner.plan import ConvPlan, Method
from workbench.engine.planner.tiles import cutting_of
from workbench.engine.planner.variant import Variant, shares_of
from workbench.engine.program import VertexGroup
from workbench.engine.target import Target


@lru_cache(maxsize=2048)
def vertices_of(plan: ConvPlan, target: Target) -> tuple[VertexGroup, ...]:
    """The vertices that compute the partials, by tile; in one serial step if the plan has several."""
    cutting = cutting_of(plan)
    variant = Variant(problem=cutting.problem, method=plan.method, swapped=plan.swapped, expanded=plan.expanded)
    lengths = cutting.lengths()
    parts = {axis: cutting.parts(axis) for axis in cutting.order}
    ones = np.ones(cutting.tiles, np.int64)
    # Empty parts have no vertex; 1 in place of 0 keeps the sizes of the others computable.
    active = np.minimum.reduce([ones, *lengths.values()])
    filled = {axis: np.maximum(length, 1) for axis, length in lengths.items()}
    sizes = shares_of(variant, filled, parts, plan.serial_in, plan.serial_out)
    fullest = {axis: int(length.max()) for axis, length in lengths.items()}
    flat = bool(np.all(shares_of(variant, fullest, parts).one_by_one))
    groups: list[VertexGroup] = []
    outer, inner = np.broadcast_arrays(sizes.kernel_outer, sizes.kernel_inner, ones)[:2]
    for kernel in np.unique(np.stack([outer, inner]), axis=1).T.tolist():
        here = active * (outer == kernel[0]) * (inner == kernel[1])
        groups += _groups(plan, sizes, here, (kernel[0], kernel[1]), target, flat=flat)
    return tuple(groups)


def _groups(
    plan: ConvPlan,
    sizes: Any,
    here: IntArray,
    kernel: tuple[int, int],
    target: Target,
    *,
    flat: bool,
) -> list[VertexGroup]:
    method, in_type = plan.method, plan.problem.in_type
    if method.vertex == "outer_product":
        return _outer_products(method, sizes, here, in_type, target)
    if method.vertex == "vmac":
        arguments = vmac_arguments(method, sizes)
        fixed = {name: arguments.pop(name) for name in ("conv_groups_per_group", "partials_type")}
        return vertex_groups("poplin::ConvPartialVerticalMac", _columns(here, arguments), **fixed)
    if method.vertex == "hmac":
        return _macs(method, sizes, here, in_type, kernel)
    fixed = {
        "in_type": in_type,
        "partials_type": method.partials_type,
        "conv_units": method.units,
        "weight_load_bytes_per_cycle": target.conv_weight_load_bytes_per_cycle * (1 + plan.wide_load),
    }
    blocks = {
        "in_groups": ceil_div(sizes.in_chans, method.in_block),
        "out_groups": ceil_div(sizes.out_chans, method.out_block),
        "conv_groups": sizes.groups,
    }
    if flat:
        columns = _columns(here, {"positions": sizes.positions, **blocks})
        return vertex_groups("poplin::ConvPartial1x1Out", columns, out_chans_per_group=method.out_block, **fixed)
    columns = _columns(here, {"positions": sizes.active, "row_width": sizes.row_width, **blocks})
    return vertex_groups(
        "poplin::ConvPartialnx1",
        columns,
        kernel=kernel,
        filter_height=method.filter_height,
        chans_per_group=method.out_block,
        in_chans_per_group=method.in_block,
        **fixed,
    )


def _columns(here: IntArray, values: dict[str, Any]) -> dict[str, IntArray]:
    """Per-tile arguments, all 0 where no vertex runs."""
    return {name: np.asarray(value) * here for name, value in values.items()}


def _macs(method: Method, sizes: Any, here: IntArray, in_type: str, kernel: tuple[int, int]) -> list[VertexGroup]:
    in_chans = ceil_div(sizes.in_chans, method.in_block) * method.in_block
    out_chans = ceil_div(sizes.out_chans, method.out_block) * method.out_block
    values = {"rows": sizes.rows, "row_width": sizes.row_width, "in_chans": in_chans, "out_chans": out_chans}
    columns = _columns(here, {**values, "conv_groups": sizes.groups})
    return vertex_groups(
        "poplin::ConvPartialHorizontalMac",
        columns,
        kernel=prod(kernel),
        in_type=in_type,
        partials_type=method.partials_type,
    )


def _outer_products(method: Method, sizes: Any, here: IntArray, in_type: str, target: Target) -> list[VertexGroup]:
    workers = target.workers_per_tile
    chans = ceil_div(sizes.out_chans, method.out_block) * method.out_block
    columns = _columns(here, {"width": ceil_div(sizes.positions, workers), "chans": chans})
    columns["chans_per_group"] = np.where(columns["chans"] > 0, method.out_block, 0)
    columns["count"] = _columns(here, {"count": sizes.groups * workers})["count"]
    counts = columns.pop("count")
    found: list[VertexGroup] = []
    for count in np.unique(counts[counts > 0]).tolist():
        chosen = {name: column * (counts == count) for name, column in columns.items()}
        for group in vertex_groups("poplin::OuterProduct", chosen, type=in_type):
            found.append(VertexGroup(group.vertex, group.arguments, group.tiles, count))
    return found


def strided_copies(elements: IntArray, item_type: str, run: int = 1) -> list[VertexGroup]:
    """Copies on tiles that move `run` elements at a time."""
    size_bytes = TYPE_BYTES[item_type]
    return vertex_groups(
        "poplar::StridedMemcpy", {"bytes": np.asarray(elements) * size_bytes}, run_bytes=run * size_bytes
    )
