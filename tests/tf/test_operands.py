"""Numbers of Python beside tensors: none is cut to a whole one, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure, run
from workbench import tf

WHOLE = np.array([1, 2, 3], np.int32)


@pytest.mark.parametrize(
    "computation",
    [
        lambda x: x * 0.5,
        lambda x: 0.5 * x,
        lambda x: x * 2.0,  # a whole one too
        lambda x: x * [0.5, 0.5, 0.5],
        lambda x: x / 0.5,
        lambda x: x < 0.5,
        lambda x: tf.equal(x, 0.5),
        lambda x: tf.maximum(x, 0.5),
        lambda x: tf.where(x > 1, x, 0.5),
        lambda x: tf.pad(x, [[1, 1]], constant_values=0.5),
        lambda x: tf.concat([x, [0.5]], 0),
        lambda x: tf.Variable(1) + 0.5,
    ],
)
def test_a_real_number_beside_whole_ones_is_refused(computation: Callable[[Any], Any]) -> None:
    configure()
    told = r"tf\.\w+\(.*(0\.5|2\.0).* cannot be converted to int32, the type beside it; cast that with tf\.cast"
    with pytest.raises(TypeError, match=told) as raised:
        run(computation, WHOLE)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    "made",
    [
        lambda: tf.convert_to_tensor(0.5, dtype=tf.int32),
        lambda: tf.constant(0.5, dtype=tf.int32),
        lambda: tf.constant([1, 2.0], dtype=tf.int32),
        lambda: tf.Variable(0.5, dtype=tf.int32),
        lambda: tf.Variable(1).assign(0.5),
        lambda: tf.constant_initializer(0.5)([2], tf.int32),
        lambda: tf.one_hot([0], 2, on_value=0.5, dtype=tf.int32),
        lambda: tf.range(0.5, 3.0, dtype=tf.int32),
    ],
)
def test_a_real_number_is_made_no_whole_one(made: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"(0\.5|\[1, 2\.0\]).* cannot be converted to int32"):
        made()


def test_what_the_type_beside_has_is_taken() -> None:
    configure()
    assert run(lambda x: [x * 2, x / 2, tf.add(x, [1, 1, 1])], WHOLE)[0][1].tolist() == [0.5, 1, 1.5]
    assert run(lambda x: tf.cast(x, tf.float32) * 0.5, WHOLE)[0][0].tolist() == [0.5, 1, 1.5]
    assert run(lambda x: x * 2, WHOLE.astype(np.float32))[0][0].tolist() == [2, 4, 6]
    assert tf.one_hot([1], 2, dtype=tf.int32).tolist() == [[0, 1]]
    assert tf.constant([], dtype=tf.int32).shape == (0,)


REAL = (np.float32(0.5), np.array(0.5), np.full((), 0.5, "float16"))


@pytest.mark.parametrize("real", REAL)
@pytest.mark.parametrize(
    "made",
    [
        lambda real: tf.constant(real, dtype=tf.int32),
        lambda real: tf.convert_to_tensor(tf.constant(real), dtype=tf.int32),
        lambda real: tf.Variable(real, dtype=tf.int32),
        lambda real: tf.Variable(1).assign(real),
        lambda real: tf.Variable(1).assign_add(real),
        lambda real: tf.Variable(1).load(real),
    ],
)
def test_an_array_of_real_numbers_is_made_none_of_whole_ones(made: Callable[[Any], Any], real: Any) -> None:
    with pytest.raises(ValueError, match=r"0\.5.* cannot be converted to int32"):
        made(real)


def test_a_tensor_that_a_variable_would_cut_is_refused() -> None:
    with tf.Graph().as_default():
        counted, real = tf.Variable(1), tf.compat.v1.placeholder(tf.float32, [])
        with pytest.raises(ValueError, match=r"which Variable:0 of int32 would cut.*tf\.cast\(x, tf\.int32\)"):
            counted.assign_add(real)
        assert counted.assign_add(tf.cast(real, tf.int32)).dtype == tf.int32
        assert tf.Variable(0.5).assign(tf.cast(real, tf.int32)).dtype == tf.float32


@pytest.mark.parametrize(
    "made",
    [
        lambda: tf.Variable(np.uint8(3)).assign_add(300),
        lambda: tf.Variable(np.uint8(3)).assign(np.int32(-1)),
        lambda: tf.constant(np.array([1, 300]), dtype=tf.uint8),
        lambda: tf.constant(2**40),
    ],
)
def test_a_whole_number_comes_out_as_no_other(made: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"(300|-1|1099511627776) is none of the numbers from "):
        made()


def test_arrays_that_a_type_has_are_taken() -> None:
    assert tf.constant(np.array([1, 255]), dtype=tf.uint8).tolist() == [1, 255]
    assert tf.constant(np.array([]), dtype=tf.int32).shape == (0,)
    assert tf.Variable(1).assign(np.int64(7)).numpy() == 7
    assert tf.Variable(1.0).assign(np.int64(7)).numpy() == 7.0


@pytest.mark.parametrize("left", [tf.constant(2.0), np.float32(2), np.array([2.0], "float32")])
def test_a_constant_may_stand_on_the_left_of_a_tensor(left: Any) -> None:
    def every(x: Any) -> Any:
        return left + x, left - x, left * x, left / x, left < x, left >= x

    made = tf.function(every)(tf.constant(4.0))
    assert [np.ravel(each).item() for each in made] == [6, -2, 8, 0.5, True, False]


@pytest.mark.parametrize(
    ("call", "name", "takes"),
    [
        (lambda: tf.pad([1.0], [[0, 1]], mode="edge"), "tf.pad", "(tensor, paddings, constant_values=0)"),
        (lambda: tf.sqrt(1.0, 2.0), "tf.sqrt", "(x)"),
        (lambda: tf.add(1.0), "tf.add", "(x, y)"),
        (lambda: tf.logical_or(True), "tf.logical_or", "(x, y)"),
        (lambda: tf.nn.relu(), "tf.nn.relu", "(features)"),
        (lambda: tf.reduce_sum(), "tf.reduce_sum", "(input_tensor, axis=None, "),
        (lambda: tf.random.normal(), "tf.random.normal", "(shape, mean=0.0, "),
    ],
)
def test_a_call_that_does_not_fit_is_told_by_the_name_it_was_made_by(
    call: Callable[[], Any], name: str, takes: str
) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    told = str(raised.value)
    assert told.startswith(f"{name}: ")
    assert f"Expected: arguments of {name}{takes}" in told


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: tf.constant(None), r"tf\.constant\(value=None\): None is no array of numbers\."),
        (lambda x: tf.range("a"), r"tf\.range\(start='a'\): 'a' is no array of numbers\."),
        (lambda x: tf.split(x, 2, axis=7), "axis=7.: an axis is beyond the dimensions there are"),
        (lambda x: tf.concat([x, x], 5), r"tf\.concat\(values=\[float32\[2, 3\], float32\[2, 3\]\], axis=5\): "),
        (lambda x: tf.pad(x, [[-1, 1], [0, 0]]), "is padded by 2 pairs of sizes, 0 or more"),
        (lambda x: tf.reshape(x, None), r"tf\.reshape\(.*, shape=None\): None is no whole number\."),
        (lambda x: tf.fill([2.5], 1.0), r"tf\.fill\(dims=\[2\.5\], value=1\.0\): 2\.5 is no whole number\."),
        (lambda x: tf.tile(x, [2]), "multiples has 1 number, and input 2 dimensions: it takes one for each"),
        (lambda x: tf.tile(x, [1, 2, 2]), "multiples has 3 numbers, and input 2 dimensions: it takes one for each"),
        (lambda x: tf.tile(1.0, 2), "multiples has 1 number, and input 0 dimensions: it takes one for each"),
    ],
)
def test_what_is_none_or_beyond_is_told_in_one_line(call: Callable[[Any], Any], told: str) -> None:
    """NumPy's and JAX's own words named none of what was given."""
    with pytest.raises(TypeError, match=told) as caught:
        call(tf.ones((2, 3)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("nothing", [None, [1.0, None, 2.0], "1.5", np.array([None, 1.0, 2.0])])
@pytest.mark.parametrize("of", [tf.add, tf.pow, tf.equal, tf.maximum, lambda x, y: tf.clip_by_value(x, y, 1.0)])
def test_what_is_no_number_beside_a_tensor_is_refused_and_no_nan(of: Callable[[Any, Any], Any], nothing: Any) -> None:
    with pytest.raises(TypeError, match="is no array of numbers"):
        of(tf.ones((3,)), nothing)
    with pytest.raises(TypeError, match="is no array of numbers"):
        tf.function(lambda x: of(x, nothing))(tf.ones((3,)))


def test_a_whole_number_beyond_64_bits_is_one_that_a_real_type_has() -> None:
    assert tf.constant(2**70, dtype=tf.float32) == np.float32(2.0**70)
    assert tf.tile([[1.0, 2.0]], [2, 1]).tolist() == [[1, 2], [1, 2]]
    assert tf.tile(1.0, []) == 1.0
