"""`tf.GradientTape`: what was made while it was open is differentiated through, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import configure, run
from workbench import ipu, tf


@pytest.fixture(autouse=True)
def configured() -> None:
    configure()


def test_what_was_made_before_the_tape_is_a_constant() -> None:
    def computation(x: Any) -> Any:
        before = x * x
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = before * x + 2.0 * x
        behind = y * x
        return tape.gradient(y, x), before, behind

    (gradient, *_), _ = run(computation, [3.0, 4.0])
    assert gradient.tolist() == [11, 18]  # x^2, held constant, and 2


def test_trainable_variables_are_watched_and_updated() -> None:
    def computation(x: Any) -> Any:
        w = tf.get_variable("w", [2], initializer=tf.constant_initializer(2.0))
        fixed = tf.get_variable("fixed", [2], initializer=tf.ones_initializer(), trainable=False)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w * x * fixed)
        grads = tape.gradient(loss, [w, fixed])
        assert grads[1] is None
        train = tf.train.GradientDescentOptimizer(0.1).apply_gradients([(grads[0], w)])
        with tf.control_dependencies([train]):
            return tf.identity(loss), w

    (loss, weights), session = run(computation, [1.0, 3.0])
    assert loss == 16
    assert np.allclose(session.run(tf.trainable_variables()[0]), [2 - 0.4, 2 - 1.2])
    assert weights.shape == (2,)


def test_the_structure_is_that_of_the_sources() -> None:
    def computation(x: Any, y: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            z = tf.reduce_sum(x * x)
            with tape.stop_recording():
                held = x * 10.0
            whole = z + tf.reduce_sum(held * y)
        found = tape.gradient(whole, {"x": x, "y": y})
        assert set(found) == {"x", "y"}
        zero = tape.gradient(z, y, unconnected_gradients="zero")
        assert tape.gradient(z, y) is None
        return found["x"], found["y"], zero, tape.gradient(x * 3.0, x, output_gradients=tf.constant([2.0, 2.0]))

    def scaled(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * 3.0
        return tape.gradient(y, x, output_gradients=tf.constant([2.0, 5.0]))

    with pytest.raises(TypeError):  # x * 3.0 behind the tape depends on nothing in it
        run(computation, [1.0, 2.0], [5.0, 6.0])
    assert run(scaled, [1.0, 2.0])[0][0].tolist() == [6, 15]


def test_a_tape_gives_gradients_once_unless_it_is_persistent() -> None:
    def computation(x: Any, persistent: bool) -> Any:
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = x * x
            z = y * y
        return tape.gradient(y, x), tape.gradient(z, x), tape.gradient(z, y)

    with pytest.raises(RuntimeError, match="persistent=True"):
        run(lambda x: computation(x, False), [2.0])
    (first, second, between), _ = run(lambda x: computation(x, True), [2.0])
    assert (first.tolist(), second.tolist()) == ([4], [32])
    assert between.tolist() == [8]


def test_gradients_are_on_the_shards_of_what_they_differentiate() -> None:
    configure(2)

    def computation(x: Any) -> Any:
        first = tf.get_variable("first", [4, 4], initializer=tf.ones_initializer())
        second = tf.get_variable("second", [4, 4], initializer=tf.ones_initializer())
        with tf.GradientTape() as tape:
            with ipu.scopes.ipu_shard(0):
                hidden = tf.tanh(tf.matmul(x, first))
            with ipu.scopes.ipu_shard(1):
                loss = tf.reduce_sum(tf.matmul(hidden, second))
        with ipu.scopes.ipu_shard(1):  # changes nothing of the gradients
            return tape.gradient(loss, [first, second])

    _, session = run(computation, np.ones((2, 4), np.float32))
    products = session.profile.steps.query("direction == 'backward' and name.str.contains('matmul/compute')")
    assert sorted(products["ipu"]) == [0, 1, 1]


def test_misuse_says_what_to_do() -> None:
    tape = tf.GradientTape()
    with pytest.raises(ValueError, match="cannot watch"):
        tape.watch(1.0)
    with pytest.raises(ValueError, match="no graph computes"):
        tape.gradient(np.float32(1), tf.placeholder(tf.float32, []))
    with tape, pytest.raises(ValueError, match="leave it first"), tape:
        pass


def test_two_gradients_may_each_go_through_what_the_other_stands_on() -> None:
    # of v * w and v * w², with v = 2 and w = 3: w = 3 after v, and 2 v w = 12 after w
    first = tf.get_variable("first", (), initializer=tf.constant_initializer(2.0))
    second = tf.get_variable("second", (), initializer=tf.constant_initializer(3.0))
    with tf.GradientTape() as one, tf.GradientTape() as other:
        left, right = first * 1.0, second * 1.0
        product, square = left * right, left * right * right
    found = [one.gradient(product, first), other.gradient(square, second)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(found) == [3.0, 12.0]


def test_thousands_of_operations_in_a_chain_are_evaluated() -> None:
    start = tf.placeholder("float32", ())
    chain = start
    for _ in range(3000):
        chain = tf.identity(chain)
    gradient = tf.gradients(chain, [start])[0]
    with tf.Session() as session:
        assert session.run([chain, gradient], {start: 2.0}) == [2.0, 1.0]


def test_what_changes_something_is_not_evaluated_for_two_gradients() -> None:
    first = tf.get_variable("first", (), initializer=tf.constant_initializer(2.0))
    second = tf.get_variable("second", (), initializer=tf.constant_initializer(3.0))
    kept = tf.get_variable("kept", (), initializer=tf.constant_initializer(0.0), trainable=False)
    left, right = kept.assign(first * 1.0), second * 1.0
    found = [tf.gradients(left * right, first)[0], tf.gradients(left * right * right, second)[0]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(
            ValueError, match=r"two gradients each go through what the other stands on, and kept/Assign"
        ):
            session.run(found)
