"""Arguments of programs by hand: a wrong one is told, and none is taken for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError
from workbench.tiles import ComputeSet, Graph, Tensor


def variable(shape: Any = 8, dtype: str = "float32") -> Tensor:
    return Graph("ipu2", tiles=4).variable("x", shape, dtype)


def filled(dtype: str, value: Any) -> ComputeSet:
    x = variable(8, dtype).map_linearly(tiles=1)
    graph: Any = x.variable.graph
    made: ComputeSet = graph.compute_set("fill").vertex("popops::Fill", tile=0, out=x, value=value)
    return made


def sent(dtype: str, values: Any) -> Any:
    """What a copy to the host gives of values that the host gave."""
    x = variable(2, dtype).map_linearly()
    graph: Any = x.variable.graph
    return graph.run(graph.host_copy(x, "to_host"), x=values)["x"]


PIECE = "To mend it: write {tile: slice(first, stop)}, or a list of slices for a tile."


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Graph("ipu2", tiles=0), "tiles of a graph is 0. Expected: a whole number of at least 1."),
        (lambda: Graph(nams="x"), "Graph: got an unexpected keyword argument 'nams'"),  # type: ignore[call-arg]
        (lambda: Graph("ipu2", 4), "Expected: arguments of Graph(target='ipu2', *, tiles=None, name='tiles')."),  # type: ignore[call-arg]
        (lambda: variable(8, "half"), "To mend it: did you mean 'float16'?"),
        (lambda: variable("8"), "shape is '8'. Expected: a whole number or a list, each a whole number."),
        (lambda: variable().map({0: range(8)}), f"a piece of variable 'x' is 0. Expected: slices of 0 to 8. {PIECE}"),  # type: ignore[dict-item]
        (lambda: variable().map({0: 3}), "a piece of variable 'x' is 3. Expected: slices of 0 to 8."),  # type: ignore[dict-item]
        (lambda: variable().map({0: slice(0.0, 8.0)}), "a piece of variable 'x' is slice(0.0, 8.0, None)."),
        (lambda: variable().map({0: slice(9, None)}), "a piece of variable 'x' is slice(9, None, None)."),
        (lambda: variable()[0.5:2], "slice(0.5, 2, None) of x: float32[8]. Expected: whole numbers, and a positive"),
        (lambda: variable()[::0], "slice(None, None, 0) of x: float32[8]. Expected: whole numbers, and a positive"),
        (lambda: variable()[True], "index True into x: float32[8]. Expected: integers below 8, or slices."),
        (lambda: filled("int32", 1.5), "popops::Fill is given value=1.5. Expected: a number that int32 holds."),
        (lambda: filled("int32", 2**31), "value=2147483648. Expected: a number that int32 holds."),
        (lambda: filled("uint8", -1), "value=-1. Expected: a number that uint8 holds."),
        (lambda: filled("float16", 65_520.0), "value=65520.0. Expected: a number that float16 holds."),
        (lambda: filled("int32", float("nan")), "value=nan. Expected: a number that int32 holds."),
        (lambda: sent("int32", [0, 2**31]), "'x' was given 2147483648. Expected: numbers that int32 holds."),
        (lambda: sent("float32", [0, 1e300]), "'x' was given 1e+300. Expected: numbers that float32 holds."),
        (lambda: sent("uint32", [0, -1]), "'x' was given -1. Expected: numbers that uint32 holds."),
        (lambda: filled("float32", 10**400), "Expected: a number that float32 holds."),
        (lambda: filled("float32", np.complex64(1)), "Expected: a number."),
        (lambda: filled("bool", 2), "value=2. Expected: a number that bool holds."),
        (lambda: sent("bool", [0, 2]), "'x' was given int64. Expected: numbers that bool holds."),
        (lambda: wb.compile(Graph()), "which is no program alone. Expected: a step of it"),
    ],
)
def test_what_is_no_argument_is_told(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert told in str(caught.value)


def test_a_near_name_is_asked_for() -> None:
    x = variable().map_linearly()
    graph: Any = x.variable.graph
    with pytest.raises(InputError, match=r"run was given 'X'\. .* did you mean 'x'\?"):
        graph.run(graph.host_copy(x), X=np.ones(8))


@pytest.mark.parametrize(
    ("dtype", "value", "found"),
    [
        ("int32", 2.0, 2),
        ("int32", np.int64(-(2**31)), -(2**31)),
        ("uint8", 255, 255),
        ("bool", 1, True),
        ("float16", 65_519.0, 65_504.0),  # the largest, to which what is nearer than the next is rounded
        ("float32", float("-inf"), -np.inf),
        ("float32", 2**100, 2.0**100),
    ],
)
def test_a_fill_takes_what_its_type_holds(dtype: str, value: Any, found: Any) -> None:
    step = filled(dtype, value)
    graph: Any = step.graph
    assert graph.run(step)["x"].tolist() == [found] * 8


@pytest.mark.parametrize(
    ("dtype", "values"), [("uint32", [1, 2**32 - 1]), ("int8", [-128, 127]), ("float32", [np.inf, -np.inf])]
)
def test_the_host_gives_what_a_type_holds(dtype: str, values: Any) -> None:
    assert sent(dtype, values).tolist() == values


def test_a_program_for_fewer_tiles_says_of_how_many_it_is() -> None:
    """Its target has the name of the whole one, which is another machine."""
    x = variable().map_linearly()
    graph: Any = x.variable.graph
    with pytest.raises(InputError, match=r"target is 'ipu2', and the program was made for 'ipu2' with 4 tiles\."):
        wb.compile(graph.host_copy(x), target="ipu2")


def test_who_cuts_a_program_by_hand_is_named_as_it_was_asked() -> None:
    x = variable().map_linearly()
    graph: Any = x.variable.graph
    step = graph.host_copy(x)
    with pytest.raises(InputError, match="no layers to cut, and stages='auto' cuts"):
        wb.compile(step, stages="auto")
    with pytest.raises(InputError, match=r"no layers to cut, and wb\.plan cuts"):
        wb.plan(step, global_batch=2)
