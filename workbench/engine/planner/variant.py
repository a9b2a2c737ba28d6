"""The ways to compute a problem: methods with layouts, the cuts each can take, and the sizes that follow from a cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from workbench.base.arrays import IntArray, ceil_div, frozen
from workbench.engine.planner.method import Layout, Method, Rules, Shares, layouts_of
from workbench.engine.planner.methods import load
from workbench.engine.planner.problem import ConvProblem
from workbench.engine.remembered import remembered
from workbench.engine.target import Target
from workbench.engine.vertices.sizes import Sizes, larger, smaller, where

ROLES = ("g", "c", "k", "p", "o")
"""Order of the roles in tile numbers, outermost first: tiles that need the same inputs are neighbours, and share
their exchange bus. `p`: positions, batch and field together."""

MOST_PARTS = 2048  # more than the tiles of any IPU, and the same for all, so that more tiles only add candidates
COARSE_RATIO = 1.4  # where several axes of one role multiply, parts whose size differs by less are not both tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant(Layout):
    """A layout and the method that computes it."""

    method: Method

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


@remembered(2048)
def variants_of(problem: ConvProblem, target: Target) -> tuple[Variant, ...]:
    """Every method with every layout it can take, in order of precedence: of equal costs the first is chosen."""
    found: list[Variant] = []
    for layout in layouts_of(problem):
        oriented, swapped, expanded = layout.problem, layout.swapped, layout.expanded
        for method in load().values():
            for made in method.variants(layout, target):
                found.append(Variant(problem=oriented, method=made, swapped=swapped, expanded=expanded))
    return tuple(sorted(found, key=lambda variant: variant.method.precedence))


@remembered(4096)
def parts_of_axis(size: int, grain: int, ratio: float = 1.0) -> tuple[int, ...]:
    """Numbers of parts worth trying: the least for each size of the largest part, sizes at least `ratio` apart.

    PopLibs tries them all: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:3276-3409 (ceildivConstrainDivisor). One part and,
    up to 2048, a part per grain are always among them. Nothing here depends on the target.
    """
    grains = ceil_div(size, grain)
    chosen = [1]
    share = grains
    for parts in range(2, min(grains, MOST_PARTS) + 1):
        new = ceil_div(grains, parts)
        if new < share and (share >= ratio * new or new == 1):
            chosen.append(parts)
            share = new
    return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Every combination of parts of some axes, one per row.

    `parts` and `shares` (elements of the largest part) are int64[rows, axes]; `product` the parts multiplied.
    """

    axes: tuple[str, ...]
    parts: IntArray
    shares: IntArray
    product: IntArray

    def __len__(self) -> int:
        return len(self.product)

    def share(self, axis: str) -> IntArray:
        """Elements of the largest part of one axis, per row."""
        return self.shares[:, self.axes.index(axis)]

    def elements(self) -> IntArray:
        """Elements of all axes of the largest part, per row."""
        elements: IntArray = np.prod(self.shares, axis=1, dtype=np.int64)
        return elements


@remembered(4096)
def table(axes: tuple[str, ...], sizes: tuple[int, ...], grains: tuple[int, ...]) -> Table:
    """All combinations of parts that stay within 2048 together."""
    ratio = 1.0 if len(axes) < 2 else COARSE_RATIO
    rows = np.zeros((1, 0), np.int64)
    for size, grain in zip(sizes, grains, strict=True):
        choices = np.asarray(parts_of_axis(size, grain, ratio), np.int64)
        rows = np.concatenate([np.repeat(rows, len(choices), 0), np.tile(choices, len(rows))[:, None]], axis=1)
        rows = rows[np.prod(rows, axis=1) <= MOST_PARTS]
    return Table(
        axes=axes,
        parts=frozen(rows),
        shares=frozen(_largest_shares(rows, sizes, grains)),
        product=frozen(np.prod(rows, axis=1, dtype=np.int64)),
    )


def _largest_shares(rows: IntArray, sizes: Sequence[int], grains: Sequence[int]) -> IntArray:
    """Elements of the largest part for each row of parts."""
    if not len(sizes):
        return np.ones((len(rows), 0), np.int64)
    whole = np.asarray([ceil_div(size, grain) for size, grain in zip(sizes, grains, strict=True)])
    shares: IntArray = np.minimum(ceil_div(whole, rows) * np.asarray(grains), np.asarray(sizes))
    return shares


@remembered(4096)
def tables_of(variant: Variant) -> tuple[Table, ...]:
    """All cuts of each role, in the order of `ROLES`."""
    sizes = variant.problem.sizes()
    found = []
    for role in ROLES:
        axes = variant.axes(role)
        found.append(table(axes, tuple(sizes[axis] for axis in axes), tuple(variant.grain(axis) for axis in axes)))
    return tuple(found)


def macs_of(problem: ConvProblem, cuts: Table) -> IntArray:
    """Of each row what it contributes to the multiply-accumulates of the fullest tile: elements of the largest part,
    of a field's axis those that a kernel position reaches. The product over all tables is that tile's.
    """
    steps = [problem.field[int(axis[1:])].active_step if axis[0] == "f" else 1 for axis in cuts.axes]
    found: IntArray = ceil_div(cuts.shares, np.array(steps, np.int64)).prod(axis=1, dtype=np.int64)
    return found


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
    at_once = serial_in * serial_out == 1
    filled_in = where(at_once, _in_blocks(variant, "c", own_chans), own_chans)
    filled_out = where(at_once, _in_blocks(variant, "o", out_chans), out_chans)
    groups = _product(share, variant.axes("g"))
    fields = range(len(variant.problem.field))
    read = _all([_input_extent(variant, index, share) for index in fields])
    owned = _all([_owned_extent(variant, index, share, parts) for index in fields])
    batch = _product(share, [axis for axis in variant.axes("p") if axis[0] == "b"])
    positions = batch * _product(share, [f"f{index}" for index in fields])
    kernel = _product(share, variant.axes("k"))
    whole_kernel = _product(share, [f"k{index}" for index in fields])

    def streamed(extent: Sizes, chans: Sizes) -> Sizes:
        return groups * (positions * in_chans if variant.expanded else batch * extent * chans)

    def held(chans: Sizes, outputs: Sizes) -> Sizes:
        return groups * outputs * (in_chans * kernel if variant.expanded else whole_kernel * chans)

    return Shares(
        **_rows_of(variant, share, batch, positions),
        **_kernel_of(variant, share, kernel),
        groups=groups,
        batch=batch,
        positions=positions,
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
        serial_in=serial_in,
        serial_out=serial_out,
    )


def _rows_of(variant: Variant, share: Mapping[str, Sizes], batch: Sizes, positions: Sizes) -> dict[str, Sizes]:
    """Positions that a kernel position reaches, in rows along the last axis of the field."""
    active = [ceil_div(share[f"f{index}"], axis.active_step) for index, axis in enumerate(variant.problem.field)]
    width = active[-1] if active else positions
    rows = batch * _all(active[:-1]) if active else 1
    return {"active": rows * width, "row_width": width, "rows": rows}


def _kernel_of(variant: Variant, share: Mapping[str, Sizes], kernel: Sizes) -> dict[str, Sizes]:
    axes = variant.axes("k")
    outer = share[axes[0]] if axes else 1
    inner = kernel // outer
    one_by_one = _one_by_one(variant, share, kernel)
    return {
        "kernel": kernel,
        "kernel_outer": outer,
        "kernel_inner": inner,
        "kernel_width": share[axes[-1]] if axes else 1,
        "one_by_one": one_by_one,
    }


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
        result = value if isinstance(result, int) and result == 1 else result * value
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
    """Whether a vertex for one kernel position could be used: rows follow each other and nothing is dilated.

    Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:49 (canUse1x1Vertex).
    """
    field = variant.problem.field
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
    """Shares and parts of chosen candidates: rows of each table, as arrays or as one number each; one number too of a
    table of one row.
    """
    share: dict[str, Sizes] = {}
    parts: dict[str, Sizes] = {}
    for cuts, row in zip(tables, rows, strict=True):
        several = isinstance(row, np.ndarray) and len(cuts) > 1
        for column, axis in enumerate(cuts.axes):
            if several:
                share[axis], parts[axis] = cuts.shares[row, column], cuts.parts[row, column]
            else:
                only = 0 if isinstance(row, np.ndarray) else row
                share[axis], parts[axis] = int(cuts.shares[only, column]), int(cuts.parts[only, column])
    return share, parts


def rules_of(variant: Variant, target: Target, *, multi_stage: bool, wide_load: bool) -> Rules:
    """What the layout of a variant rearranges.

    A matmul's operands arrive as the swapped layout wants them, a convolution's as the plain one does; the other
    layout rearranges all three. A weight gradient rearranges its operands, as the sum runs over what is the batch
    elsewhere; an input gradient its weights, whose blocks are transposed; kernels as channels both; channels that fill
    no whole group of 16 (without the unit: no whole block) are padded. Outputs that fill no block fill weights up, and
    the results are a view; [D] PopLibs plans as if both were rearranged element by element, which its steps are not.
    Source: poplibs@7eac0f26 lib/poplin/ConvModel.cpp:1345-1410; Convolution.cpp:2570-2625, 1177-1187.
    """
    problem, method = variant.problem, variant.method
    foreign = problem.is_foreign(variant.swapped)
    gradient = problem.direction == "weight_update"
    chans = prod(problem.in_chans) * prod(problem.field[index].kernel for index in variant.expanded)
    pad_in, pad_out = chans % method.grouping != 0, prod(problem.out_chans) % method.out_block != 0
    pad_groups = len(problem.groups) == 1 and prod(problem.groups) % method.group_block != 0
    convolution_gradient = gradient and problem.kind == "convolution"
    laid_out = bool(variant.expanded) or convolution_gradient or foreign or pad_in or pad_groups
    transposed = problem.direction == "backward" and problem.kind == "convolution"
    pads = laid_out and not (bool(variant.expanded) or gradient or foreign or transposed)
    return Rules(
        rearrange_inputs=laid_out or gradient,
        rearrange_weights=laid_out or transposed or pad_out,
        rearrange_outputs=foreign or pad_out,
        pads_operands=pads,
        operand_run=max(method.in_block, method.group_block) if pads else 1,
        fills_weights=pad_out and not (laid_out or transposed),
        trims_outputs=pad_out and not foreign,
        brings_operands=foreign or bool(variant.expanded) or problem.direction != "forward",
        output_elements=_positions(problem) * prod(problem.out_chans),
        multi_stage=multi_stage,
        wide_load=wide_load,
        target=target,
    )


def _positions(problem: ConvProblem) -> int:
    return prod(problem.groups) * prod(problem.batch) * prod(axis.out_size for axis in problem.field)
