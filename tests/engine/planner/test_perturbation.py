"""One more row, column or channel costs little where it needs no more blocks of channels and no other padding."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import api
from workbench.profiler.profile import Profile

pytestmark = pytest.mark.slow
BLOCK = 8  # channels of the smallest block of a vertex; both sizes lie inside one, so both are padded alike
MOST = 1.15
DTYPES = st.sampled_from(("float16", "float32"))


def inside_a_block(least: int, most: int) -> st.SearchStrategy[int]:
    """Sizes that, like the next one, are no multiple of the block."""
    return st.integers(least, most).filter(lambda size: 0 < size % BLOCK < BLOCK - 1)


def device_cycles(profile: Profile) -> int:
    """Compute, exchange and sync; the host's copies are proportional to bytes."""
    steps = profile.steps
    return int(steps[steps["kind"] != "StreamCopy"]["total_cycles"].sum())


def struct(dtype: str, *shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, dtype)


def product(dtype: str, m: int, k: int, n: int) -> int:
    compiled = api.compile(lambda a, b: a @ b, struct(dtype, m, k), struct(dtype, k, n), target="bow")
    return device_cycles(compiled.profile)


def convolution(dtype: str, images: int, height: int, width: int, ins: int, outs: int, size: int) -> int:
    import jax

    def program(x: Any, filters: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, filters, (1, 1), "SAME", dimension_numbers=numbers)

    shapes = (images, height, width, ins), (size, size, ins, outs)
    return device_cycles(api.compile(program, *(struct(dtype, *shape) for shape in shapes), target="bow").profile)


def check(one: int, other: int) -> None:
    assert max(one, other) < MOST * min(one, other), (one, other)


@settings(max_examples=40, deadline=None)
@given(dtype=DTYPES, sizes=st.tuples(*[inside_a_block(256, 2000)] * 3), axis=st.integers(0, 2))
def test_products(dtype: str, sizes: tuple[int, int, int], axis: int) -> None:
    more = [size + (place == axis) for place, size in enumerate(sizes)]
    check(product(dtype, *sizes), product(dtype, *more))


@settings(max_examples=40, deadline=None)
@given(
    dtype=DTYPES,
    field=st.tuples(st.integers(1, 4), st.integers(14, 56), st.integers(14, 56)),
    channels=st.tuples(inside_a_block(17, 130), inside_a_block(17, 260)),
    size=st.sampled_from((1, 3)),
    axis=st.integers(0, 1),
)
def test_convolutions(dtype: str, field: tuple[int, int, int], channels: tuple[int, int], size: int, axis: int) -> None:
    more = [channel + (place == axis) for place, channel in enumerate(channels)]
    check(convolution(dtype, *field, *channels, size), convolution(dtype, *field, *more, size))
