"""`tf.function`: when it is recorded, what it returns, whose state it keeps, and which arguments act or are refused."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from workbench import tf


def test_a_kind_of_arguments_is_recorded_once() -> None:
    recorded = []

    @tf.function
    def scaled(x: Any, by: Any = 2.0, *, more: Any = None) -> Any:
        recorded.append((tuple(x.shape), by))
        return x * by

    for _ in range(3):
        np.testing.assert_array_equal(scaled(np.ones(3, np.float32)), 2 * np.ones(3))
    scaled(np.zeros(3, np.float32))
    assert len(recorded) == 1
    scaled(np.ones(4, np.float32))
    scaled(np.ones(4, np.float64))  # float32 on the device
    scaled(np.ones(4, np.int32), 2)
    scaled(np.ones(3, np.float32), 3.0)
    scaled(np.ones(3, np.float32), by=3.0)
    scaled(np.ones(3, np.float32), np.float32(3))
    scaled(np.ones(3, np.float32), 2.0, more="text")
    assert scaled.experimental_get_tracing_count() == len(recorded) == 6


def test_results_keep_their_structure_and_have_numpy() -> None:
    @tf.function
    def several(x: Any) -> Any:
        return {"twice": x * 2.0, "pair": (x, None), "number": 3}

    made = several(np.float32(2))
    assert isinstance(made["twice"].numpy(), np.float32)
    assert (made["twice"].numpy(), made["pair"][0].numpy(), made["pair"][1], int(made["number"])) == (4, 2, None, 3)
    rows = tf.function(lambda x: x)(np.arange(4.0))
    assert (rows[1].numpy(), f"{rows[2]:.1f}", type(rows.numpy())) == (1, "2.0", np.ndarray)


def test_variables_change_in_place_and_in_order() -> None:
    counter, total = tf.Variable(0), tf.Variable(10.0)

    @tf.function
    def step(x: Any) -> Any:
        before = total.read_value()
        counter.assign_add(1)
        total.assign(total * 2.0)
        total.assign_sub(x)
        return before, total

    for before in (10.0, 17.0, 31.0):
        made = step(np.float32(3))
        assert [float(each) for each in made] == [before, before * 2 - 3]
    assert (int(counter.numpy()), float(total.numpy())) == (3, 59.0)


def test_a_function_makes_its_variables_once() -> None:
    class Accumulator:
        def __init__(self) -> None:
            self.total: Any = None

        @tf.function
        def add(self, x: Any) -> Any:
            if self.total is None:
                self.total = tf.Variable(1.0)
            return self.total.assign_add(x)

    one, other = Accumulator(), Accumulator()
    assert [float(one.add(np.float32(2))) for _ in range(3)] == [3, 5, 7]
    assert float(other.add(np.float32(2))) == 3
    assert one.add is one.add
    assert one.add is not other.add

    made_again = tf.function(lambda x: tf.Variable(1.0) + x)
    made_again(np.float32(1))
    with pytest.raises(ValueError, match="in a call that is not its first"):
        made_again(np.ones(2, np.float32))


def test_gradients_of_variables_of_both_kinds() -> None:
    own, of_keras = tf.Variable([2.0, 3.0]), keras.Variable([5.0, 7.0])

    @tf.function
    def slopes(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(own * own * x) + tf.reduce_sum(of_keras * x)
        return loss, tape.gradient(loss, [own, of_keras])

    loss, (first, second) = slopes(np.array([1.0, 10.0], np.float32))
    assert float(loss) == 4 + 90 + 5 + 70
    np.testing.assert_array_equal(first, [4, 60])
    np.testing.assert_array_equal(second, [1, 10])


@pytest.mark.parametrize(
    "optimizer", ["Adam", *(pytest.param(each, marks=pytest.mark.slow) for each in ("SGD", "RMSprop", "Nadam"))]
)
def test_optimizers_of_keras_update_variables_of_both_kinds(optimizer: str) -> None:
    def run(variables: list[Any], made: Any) -> None:
        @tf.function
        def step(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(variables[0] * variables[0] * x) + tf.reduce_sum(variables[1] * x)
            made.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

        for _ in range(3):
            step(np.array([1.0, 2.0], np.float32))

    start = np.array([2.0, 3.0], np.float32), np.array([5.0, 7.0], np.float32)
    mixed = [tf.Variable(start[0]), keras.Variable(start[1])]
    plain = [keras.Variable(each) for each in start]
    first, second = getattr(keras.optimizers, optimizer)(0.1), getattr(keras.optimizers, optimizer)(0.1)
    run(mixed, first)
    for _ in range(3):
        x = np.array([1.0, 2.0], np.float32)
        second.apply([2 * np.asarray(plain[0]) * x, x], plain)
    for mine, theirs in zip(mixed, plain, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)
    assert int(first.iterations) == 3
    assert len(first.variables) == len(second.variables)


def test_layers_losses_and_metrics_keep_their_state() -> None:
    def build() -> Any:
        keras.utils.set_random_seed(3)
        layers = [
            keras.layers.Dense(4, "relu", kernel_regularizer="l2"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5, seed=1),
            keras.layers.Dense(3),
        ]
        return keras.Sequential(layers)

    x = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    y = np.arange(8) % 3
    model, loss, mean = build(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.metrics.Mean()

    @tf.function
    def step(x: Any, y: Any) -> Any:
        made = model(x, training=True)
        value = loss(y, made) + sum(model.losses)
        mean.update_state(value)
        return value, mean.result()

    values = [float(step(x, y)[0]) for _ in range(3)]
    plain = build()
    expected = []
    for _ in range(3):
        made = plain(x, training=True)
        expected.append(float(loss(y, made) + sum(plain.losses)))
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert float(mean.result()) == pytest.approx(np.mean(expected), rel=1e-6)
    for mine, theirs in zip(model.weights, plain.weights, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)

    @tf.function
    def forget() -> None:
        mean.reset_state()

    forget()
    assert float(mean.result()) == 0


def test_a_layer_with_several_outputs_runs_once() -> None:
    given = keras.Input((3,))
    hidden = keras.layers.BatchNormalization(momentum=0.5)(given)
    model = keras.Model(given, [hidden, hidden * 2.0])

    @tf.function
    def both(x: Any) -> Any:
        one, other = model(x, training=True)
        return one + other

    both(np.array([[0.0, 0.0, 0.0], [4.0, 4.0, 4.0]], np.float32))
    np.testing.assert_allclose(model.layers[1].moving_mean.numpy(), [1.0] * 3)  # half way from 0 to 2, once


def test_keras_is_as_it_was_behind_a_recording() -> None:
    held = [keras.Layer.__call__, keras.Loss.__call__, keras.Variable.assign, keras.optimizers.Optimizer.apply]
    tf.function(lambda x: keras.layers.Dense(2)(x))(np.ones((1, 3), np.float32))
    with pytest.raises(ZeroDivisionError):
        tf.function(lambda: 1 / 0)()
    assert held == [keras.Layer.__call__, keras.Loss.__call__, keras.Variable.assign, keras.optimizers.Optimizer.apply]
    assert "__getattribute__" not in vars(keras.Metric)
    assert "value" not in vars(keras.Variable)


def test_a_signature_holds_for_every_call() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.int32)])
    def scaled(x: Any, by: Any) -> Any:
        return x * tf.cast(by, tf.float32)

    np.testing.assert_array_equal(scaled([[1.0, 2.0]], 3), [[3, 6]])
    scaled(np.ones((4, 2), np.float32), by=np.int32(2))
    for wrong in (np.ones(2, np.float32), np.ones((4, 3), np.float32), np.ones((4, 2), np.int32), "text"):
        with pytest.raises(ValueError, match=r"argument 0 of scaled is .* Expected: TensorSpec"):
            scaled(wrong, 3)
    with pytest.raises(ValueError, match=r"called with 1 argument\."):
        tf.function(lambda *given: given, input_signature=[])(3)
    with pytest.raises(TypeError, match="input_signature holds 3"):
        tf.function(lambda x: x, input_signature=[3])


def test_a_concrete_function_takes_its_tensors() -> None:
    @tf.function
    def scaled(x: Any, by: Any) -> Any:
        return {"scaled": x * by}

    concrete = scaled.get_concrete_function(tf.TensorSpec([2], tf.float32), 3.0)
    np.testing.assert_array_equal(concrete(np.array([1.0, 2.0], np.float32))["scaled"], [3, 6])
    assert concrete.structured_input_signature == ((tf.TensorSpec([2], tf.float32), 3.0), {})
    assert ([tuple(each.shape) for each in concrete.outputs], concrete.name) == ([(2,)], "scaled")
    assert [each.name for each in concrete.inputs] == ["x:0"]
    with pytest.raises(TypeError, match="was called with 2 tensors"):
        concrete(1.0, 2.0)
    with pytest.raises(ValueError, match="Expected: TensorSpec"):
        concrete(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="every size known"):
        scaled.get_concrete_function(tf.TensorSpec([None], tf.float32), 3.0)


def test_functions_of_keras_read_variables_when_the_program_runs() -> None:
    held = keras.Variable([1.0, 2.0])
    read = tf.function(lambda x: keras.ops.sum(keras.ops.square(held)) + keras.ops.sum(x * held) + 2.0 * held[1])
    x = np.ones(2, np.float32)
    assert float(read(x)) == 1 + 4 + 1 + 2 + 4
    held.assign([2.0, 3.0])
    assert float(read(x)) == 4 + 9 + 2 + 3 + 6


def test_a_gradient_through_a_loop_needs_a_count() -> None:
    held = tf.Variable(2.0)

    @tf.function
    def power(x: Any, n: Any) -> Any:
        with tf.GradientTape() as tape:
            for _ in tf.range(n):
                x = x * held
        return tape.gradient(x, held)

    assert float(power(np.float32(1), 3)) == 12
    with pytest.raises(ValueError, match=r"only the running program knows.*tf\.range of a Python number"):
        power(np.float32(1), np.int32(3))


@pytest.mark.parametrize("compiled", [None, False, True])
def test_whole_or_one_by_one_a_host_gives_the_same(compiled: bool | None) -> None:
    held = tf.Variable(1.0)

    def step(x: Any) -> Any:
        for _ in tf.range(3):
            held.assign(held * x)
        return held + 1.0

    made = tf.function(step, jit_compile=compiled)
    assert [float(made(np.float32(2))) for _ in range(2)] == [9, 65]
    assert float(held.numpy()) == 64
    assert float(tf.function(lambda x: x, experimental_compile=compiled)(np.float32(5))) == 5


def test_random_numbers_are_drawn_anew_in_every_run() -> None:
    drawn = tf.function(lambda: tf.random.uniform([4]))
    first, second = drawn(), drawn()
    assert not np.array_equal(first, second)
    tf.random.set_seed(7)
    third = drawn()
    tf.random.set_seed(7)
    np.testing.assert_array_equal(third, drawn())
    with pytest.raises(ValueError, match=r"keras\.random was asked for numbers.*tf\.random"):
        tf.function(lambda: keras.random.uniform((4,)))()


def test_a_function_inside_another_is_part_of_it() -> None:
    @tf.function
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    assert float(tf.function(lambda x: power(x, 4))(np.float32(3))) == 81

    @tf.function
    def endless(x: Any) -> Any:
        return endless(x + 1.0)

    with pytest.raises(ValueError, match="calls itself with tensors of the same shapes"):
        endless(np.float32(1))


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: tf.function(3), TypeError, "func is 3"),
        (lambda: tf.function(lambda x: x, reduce_retracing=True), ValueError, "reduce_retracing is True"),
        (
            lambda: tf.function(lambda x: x, jit_compile=True, experimental_compile=False),
            ValueError,
            "experimental_compile is False",
        ),
        (lambda: tf.function(lambda x: x)(), TypeError, "missing a required argument"),
        (lambda: tf.function(lambda x: x)(each for each in [1]), TypeError, "is a generator.*from_generator"),
        (lambda: tf.function(lambda: object())(), TypeError, "returned <object"),
        (lambda: tf.function(lambda x: x.numpy())(np.ones(2)), AttributeError, "no numpy.*return it from the function"),
        (lambda: tf.function(lambda x: x)(tf.placeholder(tf.float32, [])), ValueError, "a tensor of a graph"),
        (lambda: tf.function(lambda x: x)(np.array(["text"])), TypeError, "an array of numbers"),
    ],
)
def test_what_is_refused(call: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()


def test_generators_and_coroutines_are_no_functions() -> None:
    def numbers() -> Any:
        yield 1

    with pytest.raises(TypeError, match="makes them one by one"):
        tf.function(numbers)
