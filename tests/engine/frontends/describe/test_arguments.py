"""Lists of numbers given to `run` are arrays, wherever an array is expected."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import workbench as wb
from workbench.engine.frontends.describe.arguments import arrays_of, is_numbers, leaves_as

NUMBERS = arrays.arrays("float32", arrays.array_shapes(max_dims=3, max_side=4), elements=st.integers(-9, 9))


def as_given(array: Any, how: str) -> Any:
    found = array.tolist()
    return tuple(found) if how == "tuple" else found if how == "list" else array


@given(st.lists(st.tuples(NUMBERS, st.sampled_from(["list", "tuple", "array"])), min_size=1, max_size=3))
def test_the_arrays_of_an_argument_are_those_it_was_made_of(parts: list[tuple[Any, str]]) -> None:
    count = len(parts)
    values = [as_given(array, how) for array, how in parts]
    if all(isinstance(value, np.ndarray) or is_numbers(value) for value in values):
        found = arrays_of(values if count > 1 else values[0], count, jax.tree_util.tree_leaves)
        for one, (array, _) in zip(found, parts, strict=True):
            np.testing.assert_array_equal(np.asarray(one, "float32"), array)
    tree = jax.tree_util.tree_structure(tuple(array for array, _ in parts))
    for one, (array, _) in zip(leaves_as(tree, values), parts, strict=True):
        np.testing.assert_array_equal(np.asarray(one, "float32"), array)


def test_a_function_takes_lists_where_it_was_compiled_for_arrays() -> None:
    x, y = np.arange(6, dtype="float32").reshape(2, 3), np.float32(2)
    executable = wb.compile(lambda pair, y: pair["a"] * y + pair["b"][0], {"a": x, "b": [x]}, y)
    expected = executable.run({"a": x, "b": [x]}, y)
    np.testing.assert_array_equal(executable.run({"a": x.tolist(), "b": [x.tolist()]}, 2), expected)
    np.testing.assert_array_equal(executable.run({"a": x.tolist(), "b": (x,)}, 2.0), expected)


class Pair(NamedTuple):
    """Two arrays of one shape."""

    w: Any
    v: Any


@pytest.mark.parametrize(
    ("compiled", "given_"),
    [
        ({"v": 1.0, "w": 2.0}, {"v": 1.0, "x": 2.0}),  # another name
        ({"a": {"v": 1.0}, "b": [2.0]}, {"a": {"x": 1.0}, "b": (2.0,)}),  # further in, beside a tuple for a list
        (Pair(2.0, 1.0), {"w": 2.0, "v": 1.0}),  # in order of names it would be v, then w
        ({"v": 1.0, "w": 2.0}, [2.0, 1.0]),  # nothing says which is which
    ],
)
def test_a_function_takes_no_array_for_one_of_another_name(compiled: Any, given_: Any) -> None:
    executable = wb.compile(lambda tree: jax.tree.leaves(tree), compiled)
    executable.run(compiled)
    with pytest.raises(wb.InputError, match=r"^run was called with args\[0\]") as caught:
        executable.run(given_)
    assert caught.value.expected.startswith("as compiled: args[0]")


def test_a_function_takes_a_tuple_for_a_named_one() -> None:
    executable = wb.compile(lambda pair, y: pair.w - pair.v + y["z"], Pair(2.0, 1.0), {"z": 1.0})
    assert executable.run((5.0, 3.0), {"z": 1.0}) == 3.0


def test_a_model_takes_lists() -> None:
    first, second = keras.Input((3,), name="first"), keras.Input((2,), name="second")
    joined = keras.layers.Concatenate()([first, second])
    model = keras.Model([first, second], keras.layers.Dense(1, name="out")(joined))
    x, z = np.ones((2, 3), "float32"), np.ones((2, 2), "float32")
    executable = wb.compile(model, batch_size=2, mode="inference")
    expected = executable.run([x, z])
    np.testing.assert_array_equal(executable.run([x.tolist(), z.tolist()]), expected)
    np.testing.assert_array_equal(executable.run([x, z.tolist()]), expected)
    np.testing.assert_array_equal(executable.run({"first": x.tolist(), "second": z}), expected)


def test_a_list_that_is_no_array_is_refused() -> None:
    executable = wb.compile(lambda x: x * 2, np.ones((2, 3), "float32"))
    message = r"^args\[0\] is a list whose parts have different shapes\. Expected: parts of one shape\."
    with pytest.raises(wb.InputError, match=message):
        executable.run([[1, 2, 3], [4, 5]])
    with pytest.raises(wb.InputError, match=r"^args\[0\] holds strings\."):
        executable.run(["ab", "cd"])
