"""PopNN vertices, transposes and norms: numbers worked out by hand from the stated arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.vertices.machine import MACHINE
from workbench.engine.vertices import cycles, find
from workbench.engine.vertices.pooling import pool_cycles
from workbench.errors import InputError


@pytest.mark.parametrize(
    ("op", "type", "n", "worker"),
    [
        # 20 to split the work, three ops per loop start and end, 3 (float) or 4 (half) for the remainders
        ("TANH", "float", 12, 20 + 3 + 2 * 5 + 3),  # six vectors, one each
        ("TANH", "float", 25, 20 + 3 + 2 * 5 + 10 + 3 + 2 + 5),  # two vectors and one left over
        ("SIGMOID", "half", 24, 20 + 3 + 2 * 2 + 4),
        ("RELU", "half", 27, 20 + 3 + 2 * 1 + 4 + (2 + 1) + (3 + 1)),  # three left over: a pair and one
        ("GELU", "half", 48, 20 + 3 + 2 * 5 + 5 + 4),
        ("SWISH", "float", 1, 20 + 3 + 2 + 6),  # no vector at all
        ("GELU_ERF", "float", 2, 20 + 3 + 2 * 30 + 3),
    ],
)
def test_non_linearity_1d(op, type, n, worker):
    assert cycles(MACHINE, "popnn::NonLinearity1D", op=op, type=type, n=n) == 9 + 6 * worker


def test_only_swish_pays_for_being_in_place():
    arguments = {"type": "half", "n": 100}
    for op, more in (("SWISH", 6), ("GELU", 0)):
        out_of_place = cycles(MACHINE, "popnn::NonLinearity1D", op=op, **arguments)
        assert cycles(MACHINE, "popnn::NonLinearity1DInPlace", op=op, **arguments) == out_of_place + more


@pytest.mark.parametrize(
    ("op", "type", "n", "worker"),
    [
        ("RELU", "float", 13, 20 + 5 + 4 + (3 + 1)),
        ("TANH", "half", 48, 20 + 5 + 3 + 6),
        ("SWISH", "half", 27, 20 + 5 + 6 + (7 + 2) + (7 + 4)),
        ("GELU_ERF", "float", 24, 20 + 5 + 30 + 4),
    ],
)
def test_non_linearity_gradient_1d(op, type, n, worker):
    assert cycles(MACHINE, "popnn::NonLinearityGrad1D", op=op, type=type, n=n) == 9 + 6 * worker


def test_non_linearity_2d():
    """Two rows of 5 floats: two vectors and one over; 9 to enter, 2 to test, 1 to loop."""
    row = 9 + 3 + 2 * 5 + 10 + 2 + (2 + 5) + 1
    assert cycles(MACHINE, "popnn::NonLinearity2D", op="TANH", type="float", rows=[5, 5]) == 14 + 2 * row
    row = 12 + 3 + 2 * 3 + 4 + 1
    assert cycles(MACHINE, "popnn::NonLinearity2DInPlace", op="SWISH", type="half", rows=[4]) == 6 + row


def test_non_linearity_gradient_2d():
    assert cycles(MACHINE, "popnn::NonLinearityGrad2D", op="SIGMOID", type="half", rows=[8]) == 17 + 9 + 5 + 3 + 4 + 1


def test_unknown_non_linearity_names_the_known():
    with pytest.raises(InputError, match=r"unknown non-linearity 'SINE'. Expected: one of: RELU, SIGMOID"):
        cycles(MACHINE, "popnn::NonLinearity1D", op="SINE", type="float", n=4)


def test_non_linearity_flops():
    assert find("popnn::NonLinearity1D").flops(op="GELU", type="half", n=10) == 80
    assert find("popnn::NonLinearityGrad2D").flops(op="SWISH", type="half", rows=[3, 4]) == 35


def test_max_pooling_by_hand():
    """Six positions in one row, 2x2 window, one group of one vector.

    Each worker: 24, zeroes one vector (4 + 1), 1 + 8 + 2*5 to enter, one run of 15 + 4 * (23 + 2 + 3 + 4).
    """
    worker = 24 + 5 + 19 + 15 + 4 * 32
    arguments = {"type": "half", "positions": 6, "row_width": 6, "kernel_elements": 4, "chans_per_group": 4}
    assert cycles(MACHINE, "popnn::MaxPooling", **arguments) == 13 + 6 * worker


def test_sum_pooling_by_hand():
    """As the maximum, one more to enter and one more per vector loop."""
    arguments = {"type": "float", "positions": 6, "row_width": 6, "kernel_elements": 4, "chans_per_group": 2}
    longer = cycles(MACHINE, "popnn::SumPooling", **arguments) - cycles(MACHINE, "popnn::MaxPooling", **arguments)
    assert longer == 6 * (1 + 4)


def test_max_pooling_gradient_by_hand():
    """12 positions, rows of two: 7 + 5 * 1 per vector, two groups cost 6 to move on."""
    run = 15 + 1 * (23 + 2 * (2 + 3 + 7 + 5) + 6)
    worker = 24 + 2 * (4 + 2) + 25 + run
    arguments = {
        "type": "half",
        "positions": 12,
        "row_width": 2,
        "kernel_elements": 1,
        "chans_per_group": 4,
        "chan_groups": 2,
    }
    assert cycles(MACHINE, "popnn::MaxPoolingGrad", **arguments) == 13 + 6 * worker


@given(
    positions=st.lists(st.integers(0, 300), min_size=3, max_size=3),
    width=st.lists(st.integers(1, 30), min_size=3, max_size=3),
    kernel=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    mode=st.sampled_from(["max", "sum", "max_grad"]),
)
def test_pooling_of_arrays_is_pooling_of_each(positions, width, kernel, mode):
    fixed = {"mode": mode, "type": "half", "chans_per_group": 8, "chan_groups": 2}
    together = pool_cycles(
        **MACHINE._asdict(),
        positions=np.array(positions),
        row_width=np.array(width),
        kernel_elements=np.array(kernel),
        **fixed,
    )
    alone = [
        pool_cycles(**MACHINE._asdict(), positions=p, row_width=w, kernel_elements=k, **fixed)
        for p, w, k in zip(positions, width, kernel, strict=True)
    ]
    assert list(together) == alone


@pytest.mark.parametrize(
    ("vertex", "type", "size", "expected"),
    [
        ("popnn::LossCrossEntropyTransform", "float", 10, 20 + 90),
        ("popnn::LossCrossEntropyTransform", "half", 11, 23 + 9 * 5 + 11),
        ("popnn::LossSumSquaredTransform", "float", 10, 19 + 40),
        ("popnn::LossSumSquaredTransform", "half", 10, 22 + 20),
    ],
)
def test_loss_transforms(vertex, type, size, expected):
    assert cycles(MACHINE, vertex, type=type, size=size) == expected


def test_class_reductions():
    assert cycles(MACHINE, "popnn::ReduceMaxClassGather", type="half", size=60) == 9 + 6 * (30 + 3 * 9)
    assert cycles(MACHINE, "popnn::ReduceMinClassGather", type="int", size=60) == 9 + 6 * (22 + 6 * (60 + 25))
    assert cycles(MACHINE, "popnn::ReduceMaxClassSparse", type="float", size=6) == 24 + 18
    assert cycles(MACHINE, "popnn::ReduceMinClassSparse", type="int", size=6) == 23 + 36
    assert cycles(MACHINE, "popnn::CalcAccuracy", batch=5) == 34


def test_top_one_is_a_scan():
    """k = 1: no logarithm counts, 35 + 9 * 13 + 8; sorting pops one for 10."""
    assert cycles(MACHINE, "popnn::ReduceMaxNClassSparse", size=10, k=1) == 35 + 9 * 13 + 8
    assert cycles(MACHINE, "popnn::ReduceMaxNClassSparse", size=10, k=1, sorted=True) == 35 + 9 * 13 + 8 + 10
    assert cycles(MACHINE, "popnn::ReduceMaxNClassGather", size=12, k=1) == 12 + 6 * (23 + 11 * 13 + 8)


def test_inverse_std_deviation():
    assert cycles(MACHINE, "poplin::InverseStdDeviation", rows=[1, 4]) == 6 + (4 + 5) + (4 + 10)


def test_transposes():
    """Blocks of 4x4: one pair 17+20, a column of blocks 35 + 4*(r-2), a grid 18 + r*(12 + 4*(c-2))."""
    fixed = {"type": "half"}
    single = "poplar_rt::Transpose1DSingleWorker"
    assert cycles(MACHINE, single, rows=4, cols=4, matrices=1, **fixed) == 29
    assert cycles(MACHINE, single, rows=4, cols=4, matrices=3, **fixed) == 41
    assert cycles(MACHINE, "poplar_rt::Transpose1D", rows=16, cols=4, matrices=12, **fixed) == 7 + 6 * (27 + 2 * 43)
    assert cycles(MACHINE, "poplar_rt::Transpose1D", rows=8, cols=16, matrices=6, **fixed) == 7 + 6 * (29 + 18 + 2 * 20)


def test_split_transpose_shares_one_matrix():
    """16x16 by six workers: rows in four shares of one block, no column split: one row of four blocks."""
    assert cycles(MACHINE, "poplar_rt::SplitTranspose1D", type="half", rows=16, cols=16, matrices=1) == 7 + 6 * (
        29 + 18 + 20
    )


def test_transpose_2d_paths():
    name = "poplar_rt::Transpose2D"
    assert cycles(MACHINE, name, type="float", rows=4, cols=4, matrices=2) == 27 + 2 * (11 + 2 * 9)
    assert cycles(MACHINE, name, type="float", rows=3, cols=5, matrices=1) == 13 + 8 + 5 * (5 + 6)
    assert cycles(MACHINE, name, type="half", rows=6, cols=2, matrices=1) == 15 + 8 + 2 * (5 + 15)
    assert cycles(MACHINE, name, type="half", rows=8, cols=8, matrices=1) == 37 + 12 + 2 * 15


EXAMPLES = {
    "poplin::ConvPartialVerticalMac": {"rows": 9, "kernel_height": 3, "kernel_width": 3, "out_elements": 36},
    "poplin::ConvPartial1xNSLIC": {"positions": 12, "row_width": 4, "conv_groups": 2, "sub_kernels": 3},
    "poplin::ConvPartialHorizontalMac1x1": {"rows": 2, "row_width": 6, "in_chans": 8, "out_chans": 4},
    "poplin::ConvPartialHorizontalMac": {"rows": 2, "row_width": 6, "kernel": 9, "in_chans": 8, "out_chans": 4},
    "poplin::ConvPartialnx1": {"kernel": (3, 3), "positions": 36, "row_width": 6},
    "popnn::MaxPooling": {
        "type": "half",
        "positions": 12,
        "row_width": 4,
        "kernel_elements": 4,
        "chans_per_group": 4,
    },
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_quantity_of_a_vertex_takes_the_same_arguments(name):
    vertex = find(name)
    arguments = EXAMPLES[name]
    found = vertex.inputs(MACHINE, arguments)
    assert cycles(MACHINE, name, **arguments) > 0
    assert vertex.state_bytes(**found) % 2 == 0
    assert vertex.state_bytes(**found) > 32
    assert vertex.code_bytes(**found) > 400
    assert vertex.flops(**found) > 0


def test_flops_of_a_convolution_are_two_per_product():
    """9 taps, 36 positions, 16 channels in, 32 out."""
    flops = find("poplin::ConvPartialnx1").flops(
        workers=6, kernel=(3, 3), positions=36, row_width=6, chans_per_group=32, in_chans_per_group=16
    )
    assert flops == 2 * 9 * 36 * 16 * 32
