"""One way to lay a problem out for the unit, the cuts it can take, and the sizes that follow from a cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.base.arrays import ceil_div
from workbench.engine.planner.candidates import Table, table
from workbench.engine.planner.estimate import Shares
from workbench.engine.planner.plan import ConvProblem, Method
from workbench.engine.vertices.sizes import Sizes, larger, smaller, where

ROLES = ("g", "c", "k", "p", "o")
"""Order of the roles in tile numbers, outermost first: tiles that need the same inputs are neighbours, and share
their exchange bus. `p`: positions, batch and field together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A method, which operand streams (`swapped`: the right one), and kernel axes laid out as input channels.

    `problem` is already swapped.
    """

    problem: ConvProblem
    method: Method
    swapped: bool = False
    expanded: tuple[int, ...] = ()

    def axes(self, role: str) -> tuple[str, ...]:
        """Names of the axes that a role cuts."""
        problem = self.problem
        fields = range(len(problem.field))
        if role == "p":
            return (*_named("b", problem.batch), *(f"f{index}" for index in fields))
        if role == "k":
            return tuple(f"k{index}" for index in fields if index not in self.expanded)
        if role == "c":
            return (*(f"k{index}" for index in self.expanded), *_named("c", problem.in_chans))
        return _named(role, problem.groups if role == "g" else problem.out_chans)

    def grain(self, axis: str) -> int:
        """Elements that are not cut apart: a block of channels, where one axis holds them or the innermost does."""
        if axis[0] not in "co":
            return self.method.group_block if axis[0] == "g" and len(self.axes("g")) == 1 else 1
        block = self.method.in_block if axis[0] == "c" else self.method.out_block
        axes = self.axes(axis[0])
        alone = len(axes) == 1
        return block if alone or (axis == axes[-1] and self.problem.sizes()[axis] % block == 0) else 1

    def all_axes(self) -> tuple[str, ...]:
        """Every axis in tile order, outermost first."""
        return tuple(axis for role in ROLES for axis in self.axes(role))


def _named(role: str, sizes: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{role}{index}" for index in range(len(sizes)))


@lru_cache(maxsize=4096)
def tables_of(variant: Variant) -> tuple[Table, ...]:
    """All cuts of each role, in the order of `ROLES`."""
    sizes = variant.problem.sizes()
    found = []
    for role in ROLES:
        axes = variant.axes(role)
        found.append(table(axes, tuple(sizes[axis] for axis in axes), tuple(variant.grain(axis) for axis in axes)))
    return tuple(found)


def swapped_problem(problem: ConvProblem) -> ConvProblem:
    """Rows and output channels with their roles exchanged; only for a problem without fields."""
    return replace(problem, batch=problem.out_chans, out_chans=problem.batch)


def shares_of(
    variant: Variant,
    share: Mapping[str, Sizes],
    parts: Mapping[str, Sizes],
    serial_in: Sizes = 1,
    serial_out: Sizes = 1,
) -> Shares:
    """Sizes on the fullest tile from the elements (`share`) of the largest part of every axis and its `parts`."""
    product = {role: _product(parts, variant.axes(role)) for role in ROLES}
    in_chans = _slice(_product(share, variant.axes("c")), variant.method.in_block, serial_in)
    out_chans = _slice(_product(share, variant.axes("o")), variant.method.out_block, serial_out)
    own_chans = _slice(_product(share, [axis for axis in variant.axes("c") if axis[0] == "c"]), 1, serial_in)
    groups = _product(share, variant.axes("g"))
    batch = _product(share, [axis for axis in variant.axes("p") if axis[0] == "b"])
    fields = range(len(variant.problem.field))
    positions = batch * _product(share, [f"f{index}" for index in fields])
    kernel = _product(share, variant.axes("k"))
    active = [ceil_div(share[f"f{i}"], variant.problem.field[i].active_step) for i in fields]
    width = active[-1] if active else positions
    rows = batch * _all(active[:-1]) if active else 1
    one_by_one = _one_by_one(variant, share, kernel)
    read = _all([_input_extent(variant, index, share) for index in fields])
    owned = _all([_owned_extent(variant, index, share, parts) for index in fields])
    whole_kernel = _product(share, [f"k{index}" for index in fields])
    at_once = serial_in * serial_out == 1
    filled_in = where(at_once, _in_blocks(variant, "c", own_chans), own_chans)
    filled_out = where(at_once, _in_blocks(variant, "o", out_chans), out_chans)

    def streamed(extent: Sizes, chans: Sizes) -> Sizes:
        return groups * (positions * in_chans if variant.expanded else batch * extent * chans)

    def held(chans: Sizes, outputs: Sizes) -> Sizes:
        return groups * outputs * (in_chans * kernel if variant.expanded else whole_kernel * chans)

    outer = share[variant.axes("k")[0]] if variant.axes("k") else 1
    return Shares(
        groups=groups,
        positions=positions,
        active=rows * width,
        row_width=width,
        rows=rows,
        kernel_outer=outer,
        kernel_inner=kernel // outer,
        kernel=kernel,
        in_chans=in_chans,
        out_chans=out_chans,
        inputs=streamed(read, filled_in),
        owned=streamed(owned, filled_in),
        weights=held(filled_in, filled_out),
        unfilled_owned=streamed(owned, own_chans),
        unfilled_weights=held(own_chans, out_chans),
        outputs=groups * positions * out_chans,
        out_parts=product["o"],
        kernel_parts=1 if variant.expanded else product["k"],
        position_parts=product["p"],
        depth=product["c"] * product["k"],
        tiles=_all(list(product.values())),
        one_by_one=one_by_one,
        serial_in=serial_in,
        serial_out=serial_out,
    )


def _slice(share: Sizes, block: int, serial: Sizes) -> Sizes:
    if isinstance(serial, int) and serial == 1:
        return share
    return smaller(share, ceil_div(ceil_div(share, block), serial) * block)


def _in_blocks(variant: Variant, role: str, chans: Sizes) -> Sizes:
    """Channels filled up to whole blocks: what is no multiple of them is rearranged (see `rules_of`)."""
    axes = variant.axes(role)
    return ceil_div(chans, variant.grain(axes[0])) * variant.grain(axes[0]) if len(axes) == 1 else chans


def _product(values: Mapping[str, Sizes], axes: tuple[str, ...] | list[str]) -> Sizes:
    return _all([values[axis] for axis in axes])


def _all(values: list[Sizes]) -> Sizes:
    result: Sizes = 1
    for value in values:
        result = result * value
    return result


def _input_extent(variant: Variant, index: int, share: Mapping[str, Sizes]) -> Sizes:
    """Input positions read along one field axis."""
    axis = variant.problem.field[index]
    outputs, kernels = share[f"f{index}"], share[f"k{index}"]
    span = ((outputs - 1) * axis.stride + (kernels - 1) * axis.kernel_dilation) // axis.in_dilation + 1
    return larger(smaller(smaller(span, outputs * kernels), axis.in_size), 1)


def _owned_extent(variant: Variant, index: int, share: Mapping[str, Sizes], parts: Mapping[str, Sizes]) -> Sizes:
    """Most input positions of one field axis that belong to one part of its outputs: those it reads first."""
    axis, count = variant.problem.field[index], parts[f"f{index}"]
    step = ceil_div(share[f"f{index}"] * axis.stride, axis.in_dilation)
    last = axis.in_size - ceil_div((count - 1) * share[f"f{index}"] * axis.stride - axis.pad_low, axis.in_dilation)
    return smaller(where(count > 1, larger(step, last), axis.in_size), axis.in_size)


def _one_by_one(variant: Variant, share: Mapping[str, Sizes], kernel: Sizes) -> Sizes | bool:
    """Whether the vertex for one kernel position can be used: rows follow each other and nothing is dilated.

    Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:49 (canUse1x1Vertex).
    """
    field = variant.problem.field
    if variant.method.filter_height > 1:
        return False
    if not field or len(variant.expanded) == len(field):
        return True
    if all(axis.kernel == axis.in_dilation == 1 for axis in field):
        # Only what is read is brought to the tile, so that positions lie together whatever the stride.
        return True
    if any(axis.stride != axis.in_dilation for axis in field):
        return False
    flat: Sizes = kernel == 1
    for index in range(len(field) - 1):
        flat = flat & (share[f"f{index}"] == 1)
    return flat


def chosen_columns(tables: tuple[Table, ...], rows: Sequence[Any]) -> tuple[dict[str, Sizes], dict[str, Sizes]]:
    """Shares and parts of chosen candidates: rows of each table, as arrays or as one number each."""
    share: dict[str, Sizes] = {}
    parts: dict[str, Sizes] = {}
    for cuts, row in zip(tables, rows, strict=True):
        for column, axis in enumerate(cuts.axes):
            taken = cuts.shares[row, column], cuts.parts[row, column]
            share[axis], parts[axis] = taken if isinstance(row, np.ndarray) else (int(taken[0]), int(taken[1]))
    return share, parts
