"""Every vertex of the registry by hand: operands of its sizes and types are taken, others are a clear error."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import workbench as wb
from tests.engine.vertices.sampled import NAMES, SAMPLES
from workbench.base.dtypes import DTYPE_OF_WORD, HAND_WORDS
from workbench.engine import cost, vertices
from workbench.engine.vertices.operands import IN_TYPES, OUT_TYPES, Sizes
from workbench.errors import InputError

PRIME = 10_007  # a number of elements that no sample goes through
SIZED = [name for name in NAMES if vertices.find(name).operands(dict(cost.inputs_of(SAMPLES[name]))) is not None]
READ = [
    name
    for name in NAMES
    if not {"short", "quarter"} & {str(value) for key, value in SAMPLES[name].items() if key in (*IN_TYPES, *OUT_TYPES)}
]
TYPED = [name for name in READ if any(SAMPLES[name].get(key) for key in IN_TYPES)]


def told(name: str) -> dict[str, Any]:
    """The sample's arguments, as plain data that a user may type."""
    return dict(cost.inputs_of(SAMPLES[name]))


def fitting(name: str) -> dict[str, tuple[int, str]]:
    """A first and a second operand and a result, each with elements and type, as the codelet says they are."""
    arguments, codelet = told(name), vertices.find(name)
    words = [arguments[key] for key in IN_TYPES if arguments.get(key)] or ["float"]
    results = [arguments[key] for key in OUT_TYPES if arguments.get(key)] or words
    sizes = codelet.operands(arguments) or Sizes(read=None, written=None)
    read, written = (sorted(each or {12}, reverse=True) for each in (sizes.read, sizes.written))
    if sizes.in_bytes:
        read, written = ([size // 4 for size in each] for each in (read, written))
    return {
        "a": (read[0], DTYPE_OF_WORD[words[0]]),
        "b": (read[0], DTYPE_OF_WORD[words[-1]]),
        "out": (written[0], DTYPE_OF_WORD[results[0]]),
    }


def made(name: str, fields: dict[str, tuple[int, str]], **more: Any) -> Any:
    """The vertex of a program by hand with such fields."""
    g = wb.tiles.Graph("ipu2", tiles=4)
    tensors = {key: g.variable(key, (size,), dtype).map_linearly(tiles=1) for key, (size, dtype) in fields.items()}
    step = g.compute_set("step")
    step.vertex(name, tile=0, **tensors, **{**told(name), **more})
    return step.vertices[0]


@pytest.mark.parametrize("name", NAMES)
def test_operands_that_fit_are_taken(name: str) -> None:
    arguments = told(name)
    vertex = made_or_told(name)
    assert dict(vertex.arguments).items() >= arguments.items()


def made_or_told(name: str) -> Any:
    """With operands of its own sizes; what is said of blocks, which tensors of one dimension have not, without."""
    try:
        return made(name, fitting(name))
    except InputError as error:
        if "contradicts its tensors" not in str(error):
            raise
        return made(name, {})


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("field", ["a", "b", "out"])
def test_an_operand_of_another_length_is_an_error(name: str, field: str) -> None:
    fields = fitting(name)
    sizes = vertices.find(name).operands(told(name))
    assert sizes is not None
    if (sizes.written if field == "out" else sizes.read) is None:
        pytest.skip("may be of any length")
    fields[field] = (PRIME, fields[field][1])
    with pytest.raises(InputError, match=rf"{PRIME * (4 if sizes.in_bytes else 1)}|contradicts"):
        made(name, fields)


def codelet_names(name: str) -> list[str]:
    return list(inspect.signature(vertices.find(name).cycles).parameters)


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("field", ["a", "b", "out"])
def test_an_operand_of_another_type_is_an_error(name: str, field: str) -> None:
    fields, codelet = fitting(name), vertices.find(name)
    named = {told(name).get(key) for key in (*IN_TYPES, *OUT_TYPES)} | set(codelet.also_types)
    other = next(dtype for dtype, word in HAND_WORDS.items() if word not in named and dtype not in ("bool", "uint8"))
    fields[field] = (fields[field][0], other)
    if field == "out" and not any(told(name).get(key) for key in OUT_TYPES) and "out_type" in codelet_names(name):
        pytest.skip("its type follows from the tensor")
    if (sizes := codelet.operands(told(name))) is not None and sizes.in_bytes:
        pytest.skip("copies bytes of any type")
    with pytest.raises(InputError, match=r"of type|contradicts"):
        made(name, fields)


@pytest.mark.parametrize("name", [name for name in NAMES if SAMPLES[name]])
@pytest.mark.parametrize("value", ["x", 1, -1, 0, 1.5, None, (), (-1,), ("x",), {}, float("nan")], ids=repr)
def test_an_argument_of_another_kind_is_an_error_or_has_a_cost(name: str, value: Any) -> None:
    g = wb.tiles.Graph("ipu2", tiles=4)
    for key in told(name):
        step = g.compute_set("step")
        try:
            step.vertex(name, tile=0, **{**told(name), key: value})
        except InputError:
            continue
        assert vertices.cycles(g.target.machine, name, **dict(step.vertices[0].arguments)) >= 0


@pytest.mark.parametrize(
    ("name", "fields", "more", "said"),
    [
        (
            "poplin::OuterProduct",
            {"a": (16, "float32"), "b": (64, "float32"), "out": (1024, "float32")},
            {"width": 8, "type": "float"},
            "poplin::OuterProduct reads a of 16 elements .*Expected: 8 or 64 elements",
        ),
        (
            "popops::Reduce",
            {"a": (64, "float32"), "out": (1, "float32")},
            {"specialisation": 1},
            "popops::Reduce: specialisation is 1. Expected: text",
        ),
        (
            "popops::BinaryOp1D",
            {"a": (1000, "float16"), "b": (1000, "float32"), "out": (1000, "float16")},
            {},
            "popops::BinaryOp1D is given b of type 'float' .*Expected: one of: half",
        ),
    ],
)
def test_the_error_names_vertex_field_and_what_was_expected(
    name: str, fields: dict[str, tuple[int, str]], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        made(name, fields, **more)
