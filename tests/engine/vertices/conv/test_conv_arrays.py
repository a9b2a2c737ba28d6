"""The convolution vertices for arrays of sizes give what the single vertex gives, and the formulas by hand."""

from functools import partial
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.vertices.machine import MACHINE
from workbench.engine.vertices import conv, find
from workbench.engine.vertices.sizes import least_row_sum, worker_row_sums

KINDS = [
    *[("half", "half", 16), ("half", "float", 16), ("half", "float", 8), ("half", "half", 8), ("float", "float", 8)],
    ("quarter", "half", 16),
]
sizes = st.lists(st.integers(1, 500), min_size=3, max_size=3)
few = st.lists(st.integers(1, 5), min_size=3, max_size=3)


def _told(function):
    """The function on the machine that exists, where it asks for its numbers."""
    named = signature(function).parameters
    return partial(function, **{name: value for name, value in MACHINE._asdict().items() if name in named})


def _agree(function, arrays, **scalars):
    function = _told(function)
    together = function(**{name: np.array(values) for name, values in arrays.items()}, **scalars)
    alone = [
        function(**{name: values[i] for name, values in arrays.items()}, **scalars)
        for i in range(len(next(iter(arrays.values()))))
    ]
    assert list(together) == alone
    assert all(isinstance(value, int) for value in alone)


@settings(max_examples=40, deadline=None)
@given(positions=sizes, in_groups=few, out_groups=few, conv_groups=few, kind=st.sampled_from(KINDS))
def test_amp_1x1(positions, in_groups, out_groups, conv_groups, kind):
    _agree(
        conv.amp_1x1_cycles,
        {"positions": positions, "in_groups": in_groups, "out_groups": out_groups, "conv_groups": conv_groups},
        in_type=kind[0],
        partials_type=kind[1],
        conv_units=kind[2],
    )


@settings(max_examples=40, deadline=None)
@given(positions=sizes, width=few, outer=few, inner=few, in_groups=few, kind=st.sampled_from(KINDS))
def test_nx1(positions, width, outer, inner, in_groups, kind):
    _agree(
        conv.nx1_cycles,
        {
            "positions": positions,
            "row_width": width,
            "kernel_outer": outer,
            "kernel_inner": inner,
            "in_groups": in_groups,
        },
        in_type=kind[0],
        partials_type=kind[1],
        conv_units=kind[2],
    )


@settings(max_examples=300, deadline=None)
@given(
    positions=st.integers(0, 500),
    width=st.integers(1, 40),
    inner=st.integers(1, 4),
    in_groups=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
)
def test_one_worker_takes_no_longer_than_all(positions, width, inner, in_groups, kind):
    kinds = {"in_type": kind[0], "partials_type": kind[1], "conv_units": kind[2]}
    nx1 = partial(_told(conv.nx1_cycles), positions=positions, row_width=width, kernel_inner=inner, **kinds)
    one_by_one = partial(_told(conv.amp_1x1_cycles), positions=positions, out_groups=inner, **kinds)
    for cycles in (nx1, one_by_one):
        assert cycles(in_groups=in_groups, at_least=True) <= cycles(in_groups=in_groups)


@settings(max_examples=300, deadline=None)
@given(
    positions=st.integers(0, 500),
    width=st.integers(1, 40),
    workers=st.integers(1, 6),
    start=st.integers(0, 50),
    step=st.integers(0, 9),
)
def test_the_largest_share_has_at_most_one_piece_more_than_it_needs(positions, width, workers, start, step):
    """A share of s positions lies in at least ceil(s / width) rows, and where it begins inside one in one row more."""

    def run(length):
        return start + step * length

    exact = max(worker_row_sums(positions, width, workers, run))
    least = least_row_sum(positions, width, workers, run)
    assert least <= exact <= least + start


@settings(max_examples=40, deadline=None)
@given(
    rows=sizes,
    width=few,
    chans=few,
    types=st.sampled_from([("half", "float", True), ("half", "half", False), ("float", "float", False)]),
)
def test_hmac(rows, width, chans, types):
    _agree(
        conv.hmac_cycles,
        {"rows": rows, "row_width": width, "in_chans": chans, "out_chans": chans},
        in_type=types[0],
        partials_type=types[1],
        one_by_one=types[2],
    )


@settings(max_examples=40, deadline=None)
@given(rows=sizes, height=few, width=few, groups=st.sampled_from([4, 8, 16]), part=st.sampled_from(["half", "float"]))
def test_vmac(rows, height, width, groups, part):
    _agree(
        conv.vmac_cycles,
        {"rows": rows, "kernel_height": height, "kernel_width": width, "out_elements": rows},
        conv_groups_per_group=groups,
        partials_type=part,
    )


@settings(max_examples=40, deadline=None)
@given(
    positions=sizes,
    width=few,
    kernels=few,
    kind=st.sampled_from([("half", 2, 4), ("float", 2, 4), ("half", 4, 16)]),
    stride=st.sampled_from([1, 2]),
    in_type=st.sampled_from(["half", "quarter"]),
)
def test_slic(positions, width, kernels, kind, stride, in_type):
    _agree(
        conv.slic_cycles,
        {"positions": positions, "row_width": width, "sub_kernels": kernels, "conv_groups": kernels},
        partials_type=kind[0],
        conv_chains=kind[1],
        conv_groups_per_group=kind[2],
        in_type=in_type,
        stride=stride,
    )


@settings(max_examples=40, deadline=None)
@given(width=sizes, groups=few, per_group=sizes, kind=st.sampled_from(["half", "float"]))
def test_outer_product(width, groups, per_group, kind):
    chans = [group * each for group, each in zip(groups, per_group, strict=True)]
    _agree(conv.outer_product_cycles, {"width": width, "chans": chans, "chans_per_group": per_group}, type=kind)


@settings(max_examples=40, deadline=None)
@given(
    out_size=sizes,
    partials=sizes,
    single=st.lists(st.booleans(), min_size=3, max_size=3),
    parts=st.sampled_from(["half", "float"]),
)
def test_reduce_add(out_size, partials, single, parts):
    _agree(
        conv.reduce_add_cycles,
        {"out_size": out_size, "partials": partials, "single_input": single},
        partials_type=parts,
    )


@settings(max_examples=60, deadline=None)
@given(positions=st.integers(0, 200), width=st.integers(1, 40))
def test_worker_rows_cover_every_position_once(positions, width):
    assert sum(worker_row_sums(positions, width, 6, lambda length: length)) == positions


def test_worker_rows_by_hand():
    """14 positions in rows of 5: shares 2,2,3,2,2,3 start at 0,2,4,7,9,11; rows end at 5 and 10."""
    runs = worker_row_sums(14, 5, 6, lambda length: 100 + length)
    assert runs == [102, 102, 203, 102, 202, 103]


def test_nx1_by_hand():
    """One position per worker, 1x1, half/float 16 units: calls 6*(17 + 3+29-9) + 9, load 64+15+3."""
    calls = 6 * 40 + 9
    inner = 14 + 12 + 64 + 15 + 3 + calls
    zeroing = 6 * (8 + 5)  # 6*16 floats: 16 per worker, two per cycle
    expected = 109 + 54 + 54 + 18 + 1 + 16 + 14 + 14 + inner + zeroing
    assert _told(conv.nx1_cycles)(positions=6, row_width=6, partials_type="float") == expected


def test_vmac_by_hand():
    """Six rows of 3 taps, height 1, four groups, float: worker 19 + 7+5+3+2*2 = 38; reduce 9 + 19*1//4."""
    expected = 101 + (4 + 3) + 32 + 24 + 6 * 38 + 9 + 19 // 4
    assert _told(conv.vmac_cycles)(rows=6, kernel_height=1, kernel_width=3, out_elements=6) == expected


def test_slic_by_hand():
    """One run of 5 per worker, one window, one block of four groups, half on four chains.

    Zeroing pass: 6 * (17 + 10 + 1 + 15); weights 21 + 60 + 16; supervisor 28 + 15 + 1 + (97 + 20) + 1.
    """
    expected = 28 + 15 + 1 + 97 + 20 + 1 + 6 * (17 + 11 + 15)
    assert _told(conv.slic_cycles)(positions=30, row_width=5, conv_groups=1, sub_kernels=1) == expected


def test_outer_product_by_hand():
    """Groups of 4 floats are too short to unroll: 25 + 2 * (11 + 3 * (10 + 8))."""
    assert _told(conv.outer_product_cycles)(type="float", width=3, chans=8, chans_per_group=4) == 25 + 2 * 65


def test_amp_1x1_state_counts_pointers_and_worklists():
    """32 B of fields, pointers 2*(3 in + 12 weights + 4 out) words, three shorts for each of six workers."""
    state = find("poplin::ConvPartial1x1Out").state_bytes(
        workers=6, positions=10, in_groups=3, out_groups=4, conv_groups=2
    )
    assert state == 32 + 4 * 2 * (3 + 12 + 4) + 36


def test_nx1_state_counts_a_list_per_kernel_position():
    """3x3, two input blocks: 48 + pointers (2 + 2 + 1 words) + 9 * six lists of one run."""
    state = find("poplin::ConvPartialnx1").state_bytes(workers=6, kernel=(3, 3), worklist_elements=16, in_groups=2)
    assert state == 48 + 4 * 5 + 9 * (6 * 4 + 6 * 6)


@pytest.mark.parametrize("zero_as_float", [None, True])
def test_planner_zeroing_counts_floats(zero_as_float):
    """Half partials zero four per cycle, the planner counts two: 96 elements, 16 per worker."""
    arguments = {"positions": 6, "row_width": 6, "partials_type": "half", "zero_as_float": zero_as_float}
    difference = _told(conv.nx1_cycles)(**arguments) - _told(conv.nx1_cycles)(**arguments, kernel_zeroing=False)
    assert difference == 6 * ((8 if zero_as_float else 4) + 5)
