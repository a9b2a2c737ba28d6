"""Random small products and convolutions as nodes, and the answers a brute force gives about them."""

from __future__ import annotations

from itertools import product
from math import ceil

import numpy as np
from hypothesis import strategies as st

from workbench.engine.graph import Function, Graph, GraphBuilder, Input, Node, Output
from workbench.engine.graph.origin import Origin
from workbench.engine.planner.plan import ConvPlan
from workbench.engine.planner.problem import ConvProblem, FieldAxis
from workbench.engine.planner.variant import Variant

DTYPES = ("float32", "float16")


@st.composite
def windows(draw: st.DrawFn) -> FieldAxis:
    """An axis with strides or zeros between its elements, or a kernel that skips some, read over all it has."""
    stride, in_dilation = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (2, 2)]))
    size, kernel, skipped = draw(st.integers(4, 9)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    pad = draw(st.integers(0, 1))
    read = (size - 1) * in_dilation + 1 + 2 * pad - (kernel - 1) * skipped
    return FieldAxis(
        in_size=size,
        out_size=max(1, (read - 1) // stride + 1),
        kernel=kernel,
        stride=stride,
        in_dilation=in_dilation,
        kernel_dilation=skipped,
        pad_low=pad,
    )


def dot_node(
    left: tuple[int, ...],
    right: tuple[int, ...],
    contract: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    dtype: str = "float32",
    direction: str = "forward",
) -> Node:
    free_left = [size for axis, size in enumerate(left) if axis not in contract[0] + batch[0]]
    free_right = [size for axis, size in enumerate(right) if axis not in contract[1] + batch[1]]
    out = (*(left[axis] for axis in batch[0]), *free_left, *free_right)
    build = GraphBuilder("case")
    operands = (build.param(left, dtype), build.param(right, dtype))
    build.node(
        "dot_general",
        operands,
        ((out, dtype),),
        origin=Origin(layer="dense", direction=direction),  # type: ignore[arg-type]
        lhs_contract=contract[0],
        rhs_contract=contract[1],
        lhs_batch=batch[0],
        rhs_batch=batch[1],
    )
    return build.nodes[0]


def conv_node(
    batch: int,
    field: tuple[int, ...],
    kernel: tuple[int, ...],
    chans: tuple[int, int],
    *,
    strides: tuple[int, ...] | None = None,
    padding: tuple[tuple[int, int], ...] | None = None,
    lhs_dilation: tuple[int, ...] | None = None,
    rhs_dilation: tuple[int, ...] | None = None,
    groups: int = 1,
    batch_groups: int = 1,
    dtype: str = "float32",
    direction: str = "forward",
) -> Node:
    """Channels last; `chans` are those of the whole input and output."""
    ones = (1,) * len(field)
    strides, lhs_dilation, rhs_dilation = strides or ones, lhs_dilation or ones, rhs_dilation or ones
    padding = padding or ((0, 0),) * len(field)
    out = tuple(
        ((size - 1) * ld + 1 + low + high - ((k - 1) * rd + 1)) // stride + 1
        for size, k, stride, (low, high), ld, rd in zip(
            field, kernel, strides, padding, lhs_dilation, rhs_dilation, strict=True
        )
    )
    build = GraphBuilder("case")
    operands = (
        build.param((batch, *field, chans[0]), dtype),
        build.param((*kernel, chans[0] // groups, chans[1]), dtype),
    )
    rank = len(field)
    build.node(
        "conv_general_dilated",
        operands,
        (((batch // batch_groups, *out, chans[1]), dtype),),
        origin=Origin(layer="conv", direction=direction),  # type: ignore[arg-type]
        lhs_spec=(0, rank + 1, *range(1, rank + 1)),
        rhs_spec=(rank + 1, rank, *range(rank)),
        out_spec=(0, rank + 1, *range(1, rank + 1)),
        window_strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        feature_group_count=groups,
        batch_group_count=batch_groups,
    )
    return build.nodes[0]


def graph_of(node: Node) -> Graph:
    """A graph of one node between its parameters and its result."""
    function = Function("case", node.operands, node.results, (node,))
    inputs = tuple(Input(name=f"operand{number}", role="parameter") for number in range(2))
    return Graph(functions={"case": function}, entry="case", inputs=inputs, outputs=(Output(name="result"),))


def hand_plan(problem: ConvProblem, variant: Variant, **parts: int) -> ConvPlan:
    """A plan with the cuts it is given, and no cost."""
    return ConvPlan(
        problem=problem,
        method=variant.method,
        splits=tuple((axis, parts.get(axis, 1)) for axis in variant.all_axes()),
        grains=tuple((axis, variant.grain(axis)) for axis in variant.all_axes()),
        swapped=variant.swapped,
        expanded=variant.expanded,
    )


@st.composite
def dots(draw: st.DrawFn) -> Node:
    """Products with axes of every role in any order."""
    roles = draw(st.permutations(["g", "m", "k"]))
    extra = draw(st.sampled_from([(), ("m2",), ("k2",), ("g2",)]))
    left = [*roles, *extra]
    right = draw(st.permutations([name for name in left if name[0] in "gk"] + ["n"]))
    size = {name: draw(st.integers(1, 9)) for name in {*left, *right}}

    def where(names: list[str], other: list[str], role: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shared = [name for name in names if name[0] == role]
        return tuple(names.index(name) for name in shared), tuple(other.index(name) for name in shared)

    return dot_node(
        tuple(size[name] for name in left),
        tuple(size[name] for name in right),
        where(left, list(right), "k"),
        where(left, list(right), "g"),
        dtype=draw(st.sampled_from(DTYPES)),
        direction=draw(st.sampled_from(["forward", "backward"])),
    )


@st.composite
def convs(draw: st.DrawFn) -> Node:
    """Convolutions in one or two dimensions with strides, padding, dilations and groups."""
    rank = draw(st.integers(1, 2))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    field = tuple(draw(st.integers(k * 2, 8)) for k in kernel)
    which = draw(st.sampled_from(["plain", "groups", "batch_groups"]))
    groups = draw(st.integers(2, 3)) if which == "groups" else 1
    batch_groups = draw(st.integers(2, 3)) if which == "batch_groups" else 1
    inputs, outputs = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    return conv_node(
        draw(st.integers(1, 3)) * batch_groups,
        field,
        kernel,
        (inputs * groups, outputs * groups * batch_groups),
        strides=tuple(draw(st.integers(1, 2)) for _ in range(rank)),
        padding=tuple((draw(st.integers(-1, 2)), draw(st.integers(0, 2))) for _ in range(rank)),
        lhs_dilation=tuple(draw(st.integers(1, 2)) for _ in range(rank)),
        rhs_dilation=tuple(draw(st.integers(1, 2)) for _ in range(rank)),
        groups=groups,
        batch_groups=batch_groups,
        dtype=draw(st.sampled_from(DTYPES)),
        direction=draw(st.sampled_from(["forward", "backward"])),
    )


def products_of(node: Node) -> list[tuple[int, int, int]]:
    """Every multiply-accumulate as flat indices of (left, right, out), straight from the definition."""
    if node.op == "dot_general":
        return _products_of_dot(node)
    return _products_of_conv(node)


def _products_of_dot(node: Node) -> list[tuple[int, int, int]]:
    left, right = (value.shape for value in node.operands)
    batch, contract = node.attr("lhs_batch"), node.attr("lhs_contract")
    rbatch, rcontract = node.attr("rhs_batch"), node.attr("rhs_contract")
    free = [axis for axis in range(len(left)) if axis not in batch + contract]
    rfree = [axis for axis in range(len(right)) if axis not in rbatch + rcontract]
    found = []
    for at in product(*map(range, left)):
        for columns in product(*(range(right[axis]) for axis in rfree)):
            place = [0] * len(right)
            for mine, other in zip(batch + contract, rbatch + rcontract, strict=True):
                place[other] = at[mine]
            for axis, column in zip(rfree, columns, strict=True):
                place[axis] = column
            out = (*(at[axis] for axis in batch), *(at[axis] for axis in free), *columns)
            found.append((_flat(at, left), _flat(place, right), _flat(out, node.results[0].shape)))
    return found


def _flat(at: object, shape: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(at, shape)) if shape else 0  # type: ignore[call-overload]


def _products_of_conv(node: Node) -> list[tuple[int, int, int]]:
    left, right = (value.shape for value in node.operands)
    out = node.results[0].shape
    groups, batch_groups = node.attr("feature_group_count"), node.attr("batch_group_count")
    found = []
    for at in product(*map(range, out)):
        group = at[-1] // (out[-1] // (groups * batch_groups))
        sample = at[0] + (group * out[0] if batch_groups > 1 else 0)
        first = 0 if batch_groups > 1 else group * right[-2]
        for tap in product(*map(range, right[:-2])):
            place = [
                o * stride + k * rd - low
                for o, k, stride, rd, (low, _) in zip(
                    at[1:-1],
                    tap,
                    node.attr("window_strides"),
                    node.attr("rhs_dilation"),
                    node.attr("padding"),
                    strict=True,
                )
            ]
            dilation = node.attr("lhs_dilation")
            if any(p < 0 or p % d or p // d >= size for p, d, size in zip(place, dilation, left[1:-1], strict=True)):
                continue
            pixel = [p // d for p, d in zip(place, dilation, strict=True)]
            found += [
                (
                    _flat((sample, *pixel, first + chan), left),
                    _flat((*tap, chan, at[-1]), right),
                    _flat(at, out),
                )
                for chan in range(right[-2])
            ]
    return found


def slower_vectors(floats: ConvPlan) -> int:
    """Cycles that an outer product of one vector of four halves takes beyond one of two floats.

    Each of six workers takes 10 + 20 cycles an input for the halves, 11 + 14 for the floats: poplibs@7eac0f26
    lib/poplin/PerformanceEstimation.hpp:1516.
    """
    sizes = next(dict(part.inputs) for part in floats.cost.terms if part.name == "compute")
    if floats.method.vertex != "outer_product":
        return 0
    inputs = ceil(sizes["width"] / 6)
    return 6 * sizes["groups"] * ((10 + 20 * inputs) - (11 + 14 * inputs))
