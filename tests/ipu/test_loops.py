"""Loops run whole on the IPU: their bodies are once in the program, called as often as they turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import compiled, configure, run
from workbench import ipu, tf
from workbench.errors import InputError

repeat, while_loop = ipu.loops.repeat, ipu.loops.while_loop


@pytest.fixture(autouse=True)
def configured() -> None:
    configure()


def test_repeat_one_value() -> None:
    (result,), session = run(lambda x: repeat(10, lambda value: value + 2, x), np.zeros(2, np.float32))
    assert result.tolist() == [20, 20]
    steps = session.profile.steps
    assert 10 in set(steps["times"])
    assert sum(steps["name"].str.contains("elementwise") & (steps["times"] == 10)) <= 2  # counting, and the body


def test_repeat_several_values() -> None:
    def body(one: Any, other: Any) -> Any:
        return other, one + other

    result, _ = run(lambda: repeat(10, body, [tf.constant(0.0), 1.0]))
    assert result == [55.0, 89.0]  # Fibonacci


def test_without_values_a_loop_is_an_operation() -> None:
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
    result = compiled(lambda: repeat(5, lambda: count.assign_add(2.0).op))
    assert isinstance(result, tf.Operation)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(result)
        assert session.run(count) == 10


def test_while() -> None:
    (result,), _ = run(
        lambda x: while_loop(lambda value: tf.reduce_sum(value) < 100, lambda value: value * 2, x), [1.0, 2.0]
    )
    assert result.tolist() == [64, 128]  # sums 3, 6 … 96, 192


@pytest.mark.parametrize(("most", "expected"), [(3, 8.0), (100, 128.0)])
def test_while_with_a_maximum(most: int, expected: float) -> None:
    def computation(x: Any) -> Any:
        return while_loop(lambda value: value < 100, lambda value: value * 2, x, maximum_iterations=most)

    assert run(computation, np.float32(1))[0] == [expected]


def test_a_condition_reads_what_the_body_writes() -> None:
    total = tf.get_variable("total", [], initializer=tf.zeros_initializer())

    def body(count: Any) -> Any:
        with tf.control_dependencies([total.assign_add(3.0)]):
            return count + 1

    def computation() -> Any:
        return while_loop(lambda count: total.read_value() < 10, body, [tf.constant(0)])

    result, session = run(computation)
    assert result == [4]
    assert session.run(total) == 12


def test_loops_nest_and_use_what_is_around_them() -> None:
    def computation(x: Any) -> Any:
        step = x * 2

        def outer(total: Any) -> Any:
            inner = repeat(3, lambda value: value + step, [total])
            return inner * 1.0

        return repeat(2, outer, [tf.zeros([2])])

    (result,), _ = run(computation, np.array([1, 2], np.float32))
    assert result.tolist() == [12, 24]


def test_a_body_hands_on_what_is_around_it() -> None:
    def around(x: Any) -> Any:
        inner = repeat(2, lambda one: repeat(2, lambda two: x, [0.0]), [0.0])
        ends = while_loop(lambda one, two: tf.less(one, 3.0), lambda one, two: (one + 1, x), [0.0, 0.0])
        return [repeat(3, lambda value: x, [0.0]), inner, *ends]

    assert run(around, np.float32(5))[0] == [5, 5, 3, 5]
    assert run(lambda go: while_loop(lambda one: go, lambda one: one + 1, [0.0], maximum_iterations=2), True)[0] == [2]


def test_gradients_go_through_a_loop() -> None:
    def computation(x: Any) -> Any:
        y = repeat(3, lambda value: value * x, [tf.constant(1.0)])
        return tf.gradients(y, [x])

    assert run(computation, np.float32(2))[0] == [12.0]  # of x^3


def test_training_moves_variables_by_one_update_a_turn() -> None:
    weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(1.0))

    def body(loss: Any) -> Any:
        loss = tf.square(weight * 1.0)
        train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
        with tf.control_dependencies([train]):
            return tf.identity(loss)

    result, session = run(lambda: repeat(3, body, [0.0]))
    assert result == [0.0625]  # 1, 1/4, 1/16: each update halves the weight
    assert session.run(weight) == 0.125


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (lambda: 1.0, "cannot be called with 1 input:"),
        (lambda one, other: one, "cannot be called with 1 input:"),
        (lambda one: (one, one), "was given float32\\[\\] and returned float32\\[\\], float32\\[\\]"),
        (lambda one: tf.cast(one, tf.int32), "returned int32\\[\\]"),
        (lambda one: tf.stack([one, one]), "returned float32\\[2\\]"),
    ],
)
def test_bodies_that_do_not_fit(body: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        compiled(lambda: repeat(2, body, [tf.constant(1.0)]))
    assert run(lambda: repeat(2, lambda one: one + 1, [1.0]))[0] == [3.0]


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        (lambda one: tf.reduce_sum(one), r"returned float32\[\]\. Expected: one bool"),
        (lambda one: one < 3, r"returned bool\[2\]\..* To mend it: compare .* tf\.reduce_all"),
        (lambda one: (one[0] < 3, one[1] < 3), r"returned bool\[\], bool\[\]\."),
        (lambda one: 1, r"returned int32\[\]\."),
        (lambda one: None, r"returned nothing\."),
        (lambda one: tf.no_op(), r"returned <tf.Operation"),
    ],
)
def test_conditions_that_are_not_one_yes_or_no(condition: Any, told: str) -> None:
    with pytest.raises(InputError, match=rf"^The loop's condition {told}"):
        compiled(lambda: while_loop(condition, lambda one: one + 1, [np.zeros(2, np.float32)]))
    assert run(lambda: while_loop(lambda one: one < 3, lambda one: one + 1, [[1.0]]))[0][0].tolist() == [3]


def test_operations_come_behind_tensors() -> None:
    with pytest.raises(ValueError, match="tensors before its operations"):
        compiled(lambda: repeat(2, lambda one: (tf.no_op(), one), [1.0]))


def test_a_condition_takes_the_values_alone() -> None:
    queue = ipu.ipu_infeed_queue.IPUInfeedQueue([np.float32(1)] * 3)
    with pytest.raises(TypeError, match="A condition is not given elements of the infeed queue"):
        compiled(lambda: while_loop(lambda one, fed: one < 3, lambda one, fed: one + fed, [0.0], queue))
    with pytest.raises(TypeError, match="with 1 input and 1 from the infeed queue"):
        compiled(lambda: repeat(2, lambda one: one, [0.0], queue))


def test_a_loop_that_changes_nothing_runs_as_nothing(caplog: pytest.LogCaptureFixture) -> None:
    (same,), _ = run(lambda x: repeat(3, lambda value: (value, tf.no_op()), x), [1.0, 2.0])
    assert same.tolist() == [1, 2]
    result = compiled(lambda: repeat(3, tf.no_op))
    with tf.Session() as session:
        assert session.run(result) is None
    assert "without results" in caplog.text


@pytest.mark.parametrize(("count", "text"), [("three", "n of a loop is 'three'"), (True, "True"), (2.0, "2.0")])
def test_a_count_is_a_whole_number(count: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        compiled(lambda: repeat(count, lambda value: value, [1.0]))
    with pytest.raises(TypeError, match="maximum_iterations"):
        compiled(lambda: while_loop(lambda value: value < 3, lambda value: value, [1.0], maximum_iterations=count))


def test_a_dataset_is_no_queue() -> None:
    with pytest.raises(TypeError, match="IPUInfeedQueue"):
        compiled(lambda: repeat(2, lambda value, more: value + more, [1.0], [np.float32(1)]))  # type: ignore[arg-type]
