"""Operations made of functions: loops and gradients of one's own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.ipu.graphs import configure, run
from workbench import tf


def test_a_loop_runs_while_its_condition_holds() -> None:
    configure()
    # doubled until it is no less than 20: 3, 6, 12, 24
    made, _ = run(lambda x: tf.while_loop(lambda count, pair: pair["x"] < 20.0, _doubled, (0, {"x": x})), np.float32(3))
    assert (int(made[0]), float(made[1]["x"])) == (3, 24.0)


def _doubled(count: Any, pair: Any) -> Any:
    return count + 1, {"x": pair["x"] * 2.0}


@pytest.mark.parametrize("same", [False, True])
def test_a_loop_over_one_value_gives_it_or_a_list_of_it(same: bool) -> None:
    number = tf.placeholder("float32", ())
    made = tf.while_loop(lambda x: x < 5.0, lambda x: [x + 1.0], [number], return_same_structure=same)
    assert isinstance(made, list) is same
    with tf.Session() as session:
        assert session.run(made, {number: 0.5}) == ([5.5] if same else 5.5)


def test_a_loop_stops_after_as_many_turns_as_are_allowed() -> None:
    number = tf.placeholder("float32", ())
    made = tf.while_loop(lambda x: x < 5.0, lambda x: x + 1.0, [number], maximum_iterations=2)
    with tf.Session() as session:
        assert session.run(made, {number: 0.5}) == 2.5


def test_shapes_of_a_loop_do_not_vary() -> None:
    with pytest.raises(ValueError, match="shape_invariants"):
        tf.while_loop(lambda x: x < 5.0, lambda x: x, [1.0], shape_invariants=[()])


@tf.custom_gradient
def halved(x: Any) -> Any:
    """The square, whose gradient is said to be half of what it gets."""
    return tf.square(x), lambda grad: grad * 0.5


def test_a_function_has_the_gradient_it_says() -> None:
    number = tf.placeholder("float32", ())
    made = halved(number) * 3.0
    gradient = tf.gradients(made, [number])[0]
    with tf.Session() as session:
        assert session.run([made, gradient], {number: 2.0}) == [12.0, 1.5]
    assert float(halved(2.0)) == 4.0
    assert float(jax.grad(halved)(2.0)) == 0.5


def test_gradients_of_several_results_are_given_one_by_one() -> None:
    @tf.custom_gradient
    def both(x: Any, y: Any) -> Any:
        return [x, y], lambda of_x, of_y: (of_x * 10.0 + of_y, None)

    first, second = tf.placeholder("float32", ()), tf.placeholder("float32", ())
    left, right = both(first, second)
    gradients = tf.gradients(left * 2.0 + right * 3.0, [first, second])
    with tf.Session() as session:
        assert session.run(gradients, {first: 1.0, second: 1.0}) == [23.0, 0.0]


def test_a_constraint_of_a_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="constraint"):
        tf.Variable(1.0, constraint=lambda value: value)
