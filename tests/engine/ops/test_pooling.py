"""Pooling on four tiles, worked out by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.ops.lowered import F32, single
from tests.engine.vertices.machine import RATES
from workbench.engine.ops.windows import Windows, plan_pool, planned_grid, readers_grid, reading_grid

NO_PADDING = ((0, 0),) * 4
SQUARE = {"window_dimensions": (1, 2, 2, 1), "window_strides": (1, 2, 2, 1), "padding": NO_PADDING}


def test_windows_that_do_not_overlap_are_spread_over_the_tiles() -> None:
    """4x4x2 floats on tile 1, four windows of 2x2x2: each tile reduces one, 8 elements of 4 B brought to each."""
    case = single("reduce_window_max", [((1, 4, 4, 2), F32)], [((1, 2, 2, 2), F32)], **SQUARE)
    assert case.received() == [32, 0, 32, 32]
    arguments, tiles, count = case.vertex("popnn::MaxPooling")
    assert (tiles, count) == ([0, 1, 2, 3], 1)
    assert (arguments["positions"], arguments["row_width"], arguments["kernel_elements"]) == (1, 1, 4)
    assert (arguments["chans_per_group"], arguments["chan_groups"]) == (2, 1)
    assert case.variable("reduce_window_max") == [8, 8, 8, 8]


def test_flops_are_one_per_window_element() -> None:
    case = single("reduce_window_sum", [((1, 4, 4, 2), F32)], [((1, 2, 2, 2), F32)], **SQUARE)
    assert case.lowered.operators[0].flops == 8 * 4


def test_windows_that_overlap_bring_their_halo() -> None:
    """Stride 1: three columns of outputs, each reads 4 rows x 2 columns x 2 channels x 4 B of inputs on tile 1."""
    shape = {"window_dimensions": (1, 2, 2, 1), "window_strides": (1, 1, 1, 1), "padding": NO_PADDING}
    case = single("reduce_window_sum", [((1, 4, 4, 2), F32)], [((1, 3, 3, 2), F32)], **shape)
    assert case.variable("arranged") == [64, 64, 64, 0]
    assert case.received() == [64, 0, 64, 0]
    arguments, _, _ = case.vertex("popnn::SumPooling")
    assert (arguments["positions"], arguments["row_width"]) == (3, 1)


def test_the_gradient_finds_the_maxima_and_scatters() -> None:
    """Each tile owns one window of the input: it needs 2 gradients (8 B) and 8 inputs (32 B)."""
    types = [((1, 2, 2, 2), F32), ((1, 4, 4, 2), F32)]
    case = single("select_and_scatter_add", types, [((1, 4, 4, 2), F32)], select_prim="ge", **SQUARE)
    # Gradients and inputs are both on tile 1, where inputs lie that fit one tile.
    assert case.received() == [40, 0, 40, 40]
    assert [vertex for vertex, *_ in case.vertices()] == ["popnn::MaxPooling", "popnn::MaxPoolingGrad"]
    arguments, tiles, _ = case.vertex("popnn::MaxPoolingGrad")
    # Two rows of two columns; the stride of 2 halves the columns a work item covers.
    assert (arguments["positions"], arguments["row_width"], tiles) == (2, 1, [0, 1, 2, 3])
    assert case.variable("maxima") == [8, 8, 8, 8]
    assert case.variable("select_and_scatter_add") == [32, 32, 32, 32]


def test_a_larger_target_never_plans_a_slower_pool() -> None:
    case = {"tiles": 16}
    slow = single("reduce_window_max", [((2, 8, 8, 4), F32)], [((2, 4, 4, 4), F32)], **SQUARE)
    fast = single("reduce_window_max", [((2, 8, 8, 4), F32)], [((2, 4, 4, 4), F32)], **SQUARE, **case)
    step = next(one for one in fast.computes if one.name.endswith("reduce_window_max"))
    other = next(one for one in slow.computes if one.name.endswith("reduce_window_max"))
    assert fast.trace.steps[step.id].cycles <= slow.trace.steps[other.id].cycles


@given(
    size=st.integers(2, 9),
    window=st.integers(1, 3),
    stride=st.integers(1, 3),
    low=st.integers(0, 1),
    high=st.integers(0, 1),
    tiles=st.integers(1, 9),
)
def test_a_tile_reads_just_what_its_outputs_cover(
    size: int, window: int, stride: int, low: int, high: int, tiles: int
) -> None:
    outputs = (size + low + high - window) // stride + 1
    if outputs < 1:
        return
    windows = Windows(
        inputs=(size, 2),
        outputs=(outputs, 2),
        window=(window, 1),
        stride=(stride, 1),
        low=(low, 0),
        base_dilation=(1, 1),
        window_dilation=(1, 1),
    )
    owned = planned_grid(windows.outputs, plan_pool(windows, "max", 4, tiles, RATES), windows.channels)
    wanted = reading_grid(windows, owned)
    needs = _needs(wanted.intervals(), windows.inputs, tiles)
    expected = np.zeros_like(needs)
    owner = owned.tile_of_elements().reshape(windows.outputs)
    for out in range(outputs):
        for k in range(window):
            row = out * stride + k - low
            if 0 <= row < size:
                for channel in range(2):
                    expected[owner[out, channel], row, channel] = True
    assert (needs | ~expected).all()  # everything a window covers is there
    if stride <= window:  # and nothing else, unless windows leave gaps that an interval cannot
        assert (needs == expected).all()


@given(size=st.integers(2, 9), window=st.integers(1, 3), stride=st.integers(1, 3), tiles=st.integers(1, 9))
def test_the_gradient_gets_every_window_that_covers_it(size: int, window: int, stride: int, tiles: int) -> None:
    outputs = (size - window) // stride + 1
    if outputs < 1:
        return
    windows = Windows(
        inputs=(size, 2),
        outputs=(outputs, 2),
        window=(window, 1),
        stride=(stride, 1),
        low=(0, 0),
        base_dilation=(1, 1),
        window_dilation=(1, 1),
    )
    owned = planned_grid(windows.inputs, plan_pool(windows, "max_grad", 4, tiles, RATES), windows.channels)
    reached, _ = readers_grid(windows, owned)
    needs = _needs(reached.intervals(), windows.outputs, tiles)
    owner = owned.tile_of_elements().reshape(windows.inputs)
    for row in range(size):
        for out in range(outputs):
            if out * stride <= row < out * stride + window:
                assert needs[owner[row, 0], out, 0]


def _needs(intervals: tuple[np.ndarray, ...], shape: tuple[int, ...], tiles: int) -> np.ndarray:
    found = np.zeros((tiles, int(np.prod(shape))), bool)
    for tile, lo, hi in zip(*intervals, strict=True):
        found[tile, lo:hi] = True
    return found.reshape(tiles, *shape)
