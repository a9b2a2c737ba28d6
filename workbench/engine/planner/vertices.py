"""The vertices of a plan: one per computing tile, as classes of equal sizes."""

from __future__ import annotations

import numpy as np

from workbench.base.arrays import IntArray, frozen
from workbench.base.dtypes import TYPE_BYTES
from workbench.engine.emit import vertex_groups
from workbench.engine.planner.method import OnTiles, Shares
from workbench.engine.planner.plan import ConvPlan, cutting_of, variant_of
from workbench.engine.planner.variant import shares_of
from workbench.engine.program import VertexGroup
from workbench.engine.remembered import remembered
from workbench.engine.target import Target


@remembered(2048)
def vertices_of(plan: ConvPlan, target: Target) -> tuple[VertexGroup, ...]:
    """The vertices that compute the partials, by tile; in one serial step if the plan has several."""
    cutting = cutting_of(plan)
    sizes, active = _sizes_of(plan)
    fullest = {axis: int(length.max()) for axis, length in cutting.lengths().items()}
    parts = {axis: cutting.parts(axis) for axis in cutting.order}
    one_by_one = bool(np.all(shares_of(variant_of(plan), fullest, parts).one_by_one))
    groups: list[VertexGroup] = []
    outer, inner = np.broadcast_arrays(sizes.kernel_outer, sizes.kernel_inner, active)[:2]
    for kernel in sorted(set(zip(outer.tolist(), inner.tolist(), strict=True))):
        groups += plan.method.groups(
            OnTiles(
                in_type=plan.problem.in_type,
                sizes=sizes,
                here=active * (outer == kernel[0]) * (inner == kernel[1]),
                kernel=kernel,
                one_by_one=one_by_one,
                target=target,
                wide_load=plan.wide_load,
            )
        )
    return tuple(groups)


def _sizes_of(plan: ConvPlan) -> tuple[Shares, IntArray]:
    """Sizes on every computing tile, and 1 where there is something to compute."""
    cutting = cutting_of(plan)
    lengths = cutting.lengths()
    parts = {axis: cutting.parts(axis) for axis in cutting.order}
    # Empty parts have no vertex; 1 in place of 0 keeps the sizes of the others computable.
    active = np.minimum.reduce([np.ones(cutting.tiles, np.int64), *lengths.values()])
    filled = {axis: np.maximum(length, 1) for axis, length in lengths.items()}
    return shares_of(variant_of(plan), filled, parts, plan.serial_in, plan.serial_out), active


@remembered(2048)
def beside(plan: ConvPlan) -> tuple[IntArray, IntArray]:
    """Elements of zero beside the operands of every computing tile, and spare bytes that its vertex needs."""
    sizes, active = _sizes_of(plan)
    problem = variant_of(plan).problem
    zeros, spare = plan.method.zeros(problem, sizes), plan.method.spare_bytes(problem, sizes)
    return frozen(np.asarray(zeros) * active), frozen(np.asarray(spare) * active)


def strided_copies(elements: IntArray, item_type: str, run: int = 1) -> list[VertexGroup]:
    """Copies on tiles that move `run` elements at a time."""
    size_bytes = TYPE_BYTES[item_type]
    return vertex_groups(
        "poplar::StridedMemcpy", {"bytes": np.asarray(elements) * size_bytes}, run_bytes=run * size_bytes
    )
