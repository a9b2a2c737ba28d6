"""One more row, column or channel costs little beyond what padding to blocks of channels explains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import api
from workbench.profiler.profile import Profile

pytestmark = pytest.mark.slow
BLOCK = 8  # channels of the smallest block of a vertex; both sizes lie inside one, so both are padded alike
DEEPEST = 16  # channels of the largest block
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


def with_padding_apart(dtype: str, sizes: tuple[int, int, int]) -> tuple[int, int]:
    """Cycles of a product, and those of the copies that fill its channels up to whole blocks."""
    m, k, n = sizes
    profile = api.profile(lambda a, b: a @ b, struct(dtype, m, k), struct(dtype, k, n), target="bow")
    steps = profile.steps[profile.steps["kind"] == "OnTileExecute"]
    copies = steps["name"].str.rsplit("/", n=1).str[-1].isin(("rearrange", "fill"))
    return device_cycles(profile), int(steps["total_cycles"][copies].sum())


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("columns", [64, 256, 1024])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_whole_blocks_and_one_element_less_or_more(dtype: str, columns: int, axis: int) -> None:
    whole = (1024, 1024, columns)
    cycles, none = with_padding_apart(dtype, whole)
    assert none == 0
    for less_or_more in (-1, 1):
        jittered = [size + less_or_more * (place == axis) for place, size in enumerate(whole)]
        padded = [-(-size // DEEPEST) * DEEPEST for size in jittered]
        most = max(cycles, with_padding_apart(dtype, (padded[0], padded[1], padded[2]))[0])
        found, copies = with_padding_apart(dtype, (jittered[0], jittered[1], jittered[2]))
        assert found - copies < MOST * most, (jittered, found, copies, most)


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
