"""Convolutions and their gradients become programs that agree with their plan."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.ops.planned import lowered
from tests.engine.planner.cases import conv_node, convs, products_of
from workbench.engine.emit.context import LEAST_BYTES, MOST_OF_MEAN
from workbench.engine.graph import Node
from workbench.engine.planner.problem import problem_of
from workbench.engine.target import target

EIGHT = target("ipu2", tiles_per_ipu=8)
WHOLE = target("ipu2")


def resnet(size: int, chans: int, outputs: int, kernel: int, stride: int = 1, dtype: str = "float32") -> Node:
    low = (kernel - 1) // 2 if stride == 1 else max(0, kernel - stride) // 2
    high = max(0, kernel - stride - low)
    return conv_node(
        4,
        (size, size),
        (kernel, kernel),
        (chans, outputs),
        strides=(stride, stride),
        padding=((low, high),) * 2,
        dtype=dtype,
    )


def test_flops_leave_the_padding_out() -> None:
    node = conv_node(1, (4,), (3,), (2, 5), padding=((1, 1),))
    case = lowered(node, EIGHT)
    # 4 outputs read 3 inputs each, but the first and the last one meet a zero: 10 taps, 2 channels in, 5 out.
    (row,) = case.lowered.operators
    assert row.flops == 2 * 10 * 2 * 5 == 2 * len(products_of(node))


@given(convs(), st.integers(1, 16))
def test_any_convolution_lowers_to_a_valid_program(node: Node, tiles: int) -> None:
    case = lowered(node, target("ipu2", tiles_per_ipu=tiles))
    assert case.lowered.unmodelled == ()
    assert case.computes("/compute")


def test_pointwise_convolution_is_a_product_of_positions_and_channels() -> None:
    planned = problem_of(resnet(7, 512, 2048, 1), "float")
    assert planned.problem.field == ()
    assert planned.problem.batch == (4, 7, 7)
    assert planned.operands.left == ("b0", "b1", "b2", "c0")


def test_a_weight_gradient_sums_over_batch_and_field() -> None:
    # As autodiff writes it: the batch is the input channels, channels are the batch, the output's field is the kernel.
    node = conv_node(64, (58, 58), (56, 56), (4, 64), direction="backward")
    planned = problem_of(node, "float")
    assert planned.problem.direction == "backward"
    assert [axis.out_size for axis in planned.problem.field] == [3, 3]
    assert planned.problem.in_chans == (4,)


def test_strided_pointwise_convolution_fetches_only_what_it_reads() -> None:
    case = lowered(conv_node(1, (8,), (1,), (16, 16), strides=(2,)), target("ipu2", tiles_per_ipu=2))
    arrived = [v for v in case.lowered.program.variables if v.name.endswith("/inputs")]
    # 4 of 8 positions are read: at most 4 x 16 floats on a tile.
    assert all(variable.bytes_per_tile.max() <= 4 * 16 * 4 for variable in arrived)


def test_the_gradient_of_a_strided_pointwise_convolution_puts_zeros_between() -> None:
    # 4 positions of a gradient belong at 0, 2, 4 and 6 of 8; the others are zero and nothing is multiplied for them.
    node = conv_node(1, (4,), (1,), (16, 16), lhs_dilation=(2,), padding=((0, 1),), direction="backward")
    planned = problem_of(node, "float")
    assert planned.spread == ((0, 0, 0), (0, 1, 1), (0, 0, 0))
    assert planned.problem.field == ()
    assert planned.problem.macs() == len(products_of(node)) == 4 * 16 * 16
    case = lowered(node, target("ipu2", tiles_per_ipu=2))
    assert {"popops::Fill", "poplar::Memcpy"} <= case.vertices()
    assert case.steps()[-1].name.endswith("/spread")


@settings(max_examples=25)
@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(2, 20),
    st.integers(0, 19),
    st.sampled_from([(4, 8), (16, 16), (40, 8)]),
    st.sampled_from(["float16", "float32"]),
)
def test_zeros_of_a_gradient_crowd_on_no_tile(
    batch: int, size: int, stride: int, behind: int, chans: tuple[int, int], dtype: str
) -> None:
    node = conv_node(
        batch,
        (size, size),
        (1, 1),
        chans,
        lhs_dilation=(stride, stride),
        padding=((0, behind % stride),) * 2,
        dtype=dtype,
        direction="backward",
    )
    case = lowered(node, target("ipu2", tiles_per_ipu=64))
    for step in case.steps():
        if step.name.endswith("/zeros"):
            for name in step.writes:
                one = case.lowered.program.variables[name]
                assert max(one.bytes_per_tile) <= MOST_OF_MEAN * one.size_bytes / 64 + LEAST_BYTES


@pytest.mark.parametrize(
    ("dilation", "vertex"), [(1, "poplin::ConvPartial1xNSLIC"), (2, "poplin::ConvPartialVerticalMac")]
)
def test_depthwise_convolution_in_half_uses_windows_or_where_dilated_the_vertical_mac(
    dilation: int, vertex: str
) -> None:
    around = ((dilation, dilation),) * 2
    node = conv_node(
        8, (28, 28), (3, 3), (192, 192), groups=192, padding=around, dtype="float16", rhs_dilation=(dilation, dilation)
    )
    assert vertex in lowered(node, WHOLE).vertices()


def test_little_memory_makes_convolutions_serial_and_small() -> None:
    node = resnet(14, 256, 256, 3)
    at_once, in_steps = lowered(node, WHOLE), lowered(node, WHOLE, availableMemoryProportion=0.02)
    assert in_steps.plan.serial_in * in_steps.plan.serial_out > 1
    assert in_steps.temporary_bytes() < at_once.temporary_bytes()
    assert 0.6 < in_steps.cycles() / in_steps.plan.total_cycles < 1.6


LAYERS = [
    (224, 3, 64, 7, 2),
    (56, 64, 64, 3, 1),
    (56, 64, 256, 1, 1),
    (56, 256, 128, 1, 2),
    (28, 128, 128, 3, 1),
    (14, 256, 256, 3, 1),
    (7, 512, 512, 3, 1),
    (7, 512, 2048, 1, 1),
]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_steps_cost_and_hold_what_was_planned(layer: tuple[int, int, int, int, int], dtype: str) -> None:
    case = lowered(resnet(*layer, dtype=dtype), WHOLE)
    assert 0.75 < case.cycles() / case.plan.total_cycles < 1.5
    assert 0.5 < case.temporary_bytes() / case.plan.temporary_bytes < 1.5
