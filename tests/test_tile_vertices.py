"""What a vertex written by hand is given agrees with its tensors: it costs what it touches."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import InputError

# Codelets that need nothing besides the tensors `a` and `out`, and what names their size.
VERTICES = {
    "popops::UnaryOp1D": ("n", {"op": "EXPONENT"}),
    "popops::BinaryOp1D": ("n", {"op": "ADD"}),
    "popops::Cast1D": ("num_elems", {}),
    "poplar::Memcpy": ("bytes", {}),
}


def vertex(name: str, shape: tuple[int, ...], dtype: str = "float32", **more: Any) -> Any:
    """A program of one vertex that reads `a` and writes `out`, both of that shape."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    a, out = (g.variable(each, shape, dtype).map_linearly(tiles=1) for each in ("a", "out"))
    step = g.compute_set("step")
    operands = {"a": a, "b": a} if name == "popops::BinaryOp1D" else {"a": a}
    step.vertex(name, tile=0, **operands, out=out, **VERTICES[name][1], **more)
    return step.vertices[0]


@given(
    name=st.sampled_from(sorted(VERTICES)),
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
    size=st.integers(1, 10_000),
)
def test_a_size_that_no_tensor_has_is_an_error(name: str, shape: tuple[int, ...], size: int) -> None:
    key, _ = VERTICES[name]
    width = 4 if key == "bytes" else 1
    blocks = {prod(shape[i:j]) * width for i in range(len(shape)) for j in range(i + 1, len(shape) + 1)}
    told = vertex(name, shape, **{key: prod(shape) * width})
    assert told.arguments == vertex(name, shape).arguments
    assume(size not in blocks)
    with pytest.raises(InputError, match=f"is given {key}={size}, which contradicts its tensors: a float32"):
        vertex(name, shape, **{key: size})


def test_the_error_says_what_the_tensors_have() -> None:
    with pytest.raises(InputError) as error:
        vertex("popops::BinaryOp1D", (6000,), n=1)
    assert str(error.value) == (
        "popops::BinaryOp1D is given n=1, which contradicts its tensors: a float32[6000], out float32[6000]. "
        "Expected: one of: 6000. To mend it: leave n= out if it follows from the tensors, or pass the part that the "
        "vertex is to touch."
    )


@pytest.mark.parametrize(("dtype", "word"), [("float32", "half"), ("float16", "float"), ("int32", "float")])
def test_a_type_that_no_tensor_has_is_an_error(dtype: str, word: str) -> None:
    with pytest.raises(InputError, match=f"is given type='{word}', which contradicts its tensors: a {dtype}"):
        vertex("popops::BinaryOp1D", (8,), dtype, type=word)


@pytest.mark.parametrize(
    ("rows", "agrees"), [((3, 3), True), ((6,), True), ((3,), False), ((2, 2), False), ((1,), False)]
)
def test_rows_are_those_of_a_tensor(rows: tuple[int, ...], agrees: bool) -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    a, out = (g.variable(each, (2, 3)).map_linearly(tiles=1) for each in ("a", "out"))
    step = g.compute_set("step")
    if agrees:
        step.vertex("popops::UnaryOp2D", tile=0, a=a, out=out, op="EXPONENT", rows=rows)
        return
    with pytest.raises(InputError, match=r"contradicts its tensors|reads a of 6 elements"):
        step.vertex("popops::UnaryOp2D", tile=0, a=a, out=out, op="EXPONENT", rows=rows)


def test_tensors_that_are_no_field_count_too() -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    a = g.variable("a", (50,)).map_linearly(tiles=1)
    step = g.compute_set("step")
    step.vertex("popops::UnaryOp1D", tile=0, op="EXPONENT", type="float", n=50, reads=[a], writes=[a])
    with pytest.raises(InputError, match="n=1, which contradicts"):
        step.vertex("popops::UnaryOp1D", tile=0, op="EXPONENT", type="float", n=1, reads=[a], writes=[a])


def slicing(name: str, table: int, taken: int, width: int, **more: int) -> Any:
    """A vertex that takes rows of a table by their numbers; rows of one number are a flat table."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    row = (width,) if width > 1 else ()
    shapes = {"base": (table, *row), "out": (taken, *row)}
    tensors = {key: g.variable(key, shape).map_linearly(tiles=1) for key, shape in shapes.items()}
    many = "offsets" if name == "popops::MultiSlice" else "num_sub_elements"
    sizes = {"region_size": width, many: taken, **({} if many == "offsets" else {"num_base_elements": table})}
    g.compute_set("step").vertex(name, tile=0, **tensors, **{**sizes, **more})


@given(
    name=st.sampled_from(["popops::MultiSlice", "popops::DynamicSlice1D"]),
    table=st.integers(2, 50),
    taken=st.integers(2, 50),
    width=st.integers(1, 20),
    wrong=st.integers(1, 50),
    key=st.sampled_from(["region_size", "many"]),
)
def test_rows_that_are_not_the_tables_are_an_error(
    name: str, table: int, taken: int, width: int, wrong: int, key: str
) -> None:
    slicing(name, table, taken, width)
    blocks = {table, taken, width, table * width, taken * width}
    many = "offsets" if name == "popops::MultiSlice" else "num_sub_elements"
    assume((wrong if key == "region_size" else wrong * width) not in blocks)
    with pytest.raises(InputError, match="contradicts its tensors"):
        slicing(name, table, taken, width, **{key if key == "region_size" else many: wrong})


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("popops::BroadcastVectorInner1D", {"op": "ADD", "b_slice_len": 7, "b_broadcast_factor": 1, "b_slices_m1": 0}),
        ("popops::EncodeOneHot", {"indices": 7}),
        ("popnn::CalcAccuracy", {"batch": 7}),
    ],
)
def test_other_sizes_are_those_of_tensors_too(name: str, given: dict[str, Any]) -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    tensors = {key: g.variable(key, (600,), "int32").map_linearly(tiles=1) for key in ("a", "out")}
    with pytest.raises(InputError, match="=7, which contradicts its tensors"):
        g.compute_set("step").vertex(name, tile=0, **tensors, **given)


@given(name=st.sampled_from(sorted(VERTICES)), read=st.integers(1, 500), written=st.integers(1, 500))
def test_what_is_written_is_as_large_as_what_is_read(name: str, read: int, written: int) -> None:
    assume(read != written and name != "poplar::Memcpy")
    g = wb.tiles.Graph("ipu2", tiles=4)
    a, out = (g.variable(key, (size,)).map_linearly(tiles=1) for key, size in (("a", read), ("out", written)))
    operands = {"a": a, "b": a} if name == "popops::BinaryOp1D" else {"a": a}
    step = g.compute_set("step")
    with pytest.raises(InputError, match=f"different numbers of elements: a {read}, .*out {written}"):
        step.vertex(name, tile=0, **operands, out=out, **VERTICES[name][1])
    with pytest.raises(InputError, match=f"writes out of {written} elements .*Expected: {read} elements"):
        step.vertex(name, tile=0, **operands, out=out, **VERTICES[name][1], **{VERTICES[name][0]: read})
