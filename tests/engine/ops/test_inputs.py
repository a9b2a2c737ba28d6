"""Where inputs lie of which no reader says where it would like them, worked out by hand on eight tiles."""

from __future__ import annotations

import pytest

from tests.engine.ops.lowered import F32, single


@pytest.mark.parametrize(
    ("floats", "bytes_per_tile"),
    [
        (8, [0, 32, 0, 0, 0, 0, 0, 0]),  # one tile: the second
        (96, [0, 0, 0, 128, 128, 128, 0, 0]),  # 128 B each on three tiles: from the fourth
        (160, [128, 128, 0, 0, 0, 128, 128, 128]),  # five tiles from the sixth: around the end
        (256, [128] * 8),  # all of them: not turned
    ],
)
def test_an_input_begins_as_many_tiles_along_as_it_takes(floats: int, bytes_per_tile: list[int]) -> None:
    """As graphcore/tensorflow's MapTensorLinearlyImpl turns the mapping by its own width."""
    case = single("neg", [((floats,), F32)], [((floats,), F32)], tiles=8)
    assert case.variable("in0") == bytes_per_tile


def test_inputs_of_equal_width_share_their_tiles() -> None:
    """Two of 32 B are both on tile 1, so their sum moves nothing."""
    case = single("add", [((8,), F32), ((8,), F32)], [((8,), F32)], tiles=8)
    assert case.variable("in0") == case.variable("in1") == [0, 32, 0, 0, 0, 0, 0, 0]
    assert case.received() == []
