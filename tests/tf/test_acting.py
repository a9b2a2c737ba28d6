"""Arguments of `tf` that act: getters, regularizers, seeds, stopped gradients, generators; and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError, WorkbenchError

tf = wb.tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


def begun() -> Any:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def in_half(getter: Any, name: str, dtype: Any = None, trainable: bool = True, **others: Any) -> Any:
    """Kept in single precision, used in half: what mixed-precision programs do."""
    found = getter(name, dtype="float32", trainable=trainable, **others)
    return tf.cast(found, dtype) if dtype != tf.float32 else found


def test_a_custom_getter_gives_what_is_used() -> None:
    with tf.variable_scope("all", dtype=tf.float16, custom_getter=in_half):
        used = tf.get_variable("w", [2], initializer=tf.constant_initializer(0.1))
    (kept,) = tf.trainable_variables()
    assert (kept.name, kept.dtype, used.dtype) == ("all/w:0", tf.float32, tf.float16)
    np.testing.assert_array_equal(begun().run(used), np.full(2, 0.1, "float32").astype("float16"))


def test_getters_inside_each_other_call_the_outer_one() -> None:
    def doubled(getter: Any, *args: Any, **named: Any) -> Any:
        return getter(*args, **named) * 2.0

    def increased(getter: Any, *args: Any, **named: Any) -> Any:
        return getter(*args, **named) + 1.0

    with tf.variable_scope("outer", custom_getter=doubled), tf.variable_scope("inner", custom_getter=increased):
        used = tf.get_variable("w", initializer=3.0, custom_getter=doubled)
    assert begun().run(used) == ((3.0 * 2) + 1) * 2


def test_regularizers_join_their_collection(graph: Any) -> None:
    def squares(variable: Any) -> Any:
        return 0.5 * tf.reduce_sum(tf.square(variable))

    with tf.variable_scope("all", regularizer=squares):
        tf.get_variable("a", initializer=np.array([1.0, 2.0], "float32"))
        tf.get_variable("b", initializer=3.0, regularizer=lambda variable: variable * 4.0)
        tf.get_variable("kept", initializer=1.0, trainable=False)
    session = begun()
    assert [float(session.run(each)) for each in graph.get_collection("regularization_losses")] == [2.5, 12.0]


def test_the_shape_of_a_variable_is_that_of_its_first_value() -> None:
    assert tf.Variable([1.0, 2.0], shape=[2]).shape == (2,)
    with pytest.raises(InputError, match=r"shape is \[3\].*\(2,\)"):
        tf.Variable([1.0, 2.0], shape=[3])


def test_an_initializer_verifies_its_shape_when_it_is_told_to() -> None:
    assert tf.constant_initializer([1.0, 2.0])([3, 2]).shape == (3, 2)
    with pytest.raises(InputError, match=r"shape \(2,\) was asked for shape \(3, 2\)"):
        tf.constant_initializer([1.0, 2.0], verify_shape=True)([3, 2])


def test_an_assignment_without_its_value_is_an_operation() -> None:
    variable = tf.get_variable("v", initializer=1.0)
    assert isinstance(variable.assign(2.0, read_value=False), tf.Operation)
    session = begun()
    assert session.run(variable.assign_add(2.0)) == 3.0


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: tf.random_uniform([64], seed=seed),
        lambda seed: tf.random_normal([64], seed=seed),
        lambda seed: tf.truncated_normal([64], seed=seed),
        lambda seed: tf.nn.dropout(tf.random_uniform([64], 1, 1.001), rate=0.5, seed=seed) > 0.0,
    ],
)
def test_an_operation_with_a_seed_has_numbers_of_its_own(draw: Any) -> None:
    """The same in every graph and beside whatever else is drawn; others with another seed; new ones in each run."""

    def numbers(seeds: list[Any]) -> list[Any]:
        with tf.Graph().as_default():
            return list(tf.Session().run([draw(seed) for seed in seeds]))

    alone, (other, beside, _) = numbers([5]), numbers([6, 5, None])
    np.testing.assert_array_equal(alone[0], beside)
    assert np.any(alone[0] != other)
    with tf.Graph().as_default():
        made, session = draw(5), tf.Session()
        assert np.any(session.run(made) != session.run(made))


def test_dropout_of_what_is_fed_draws_in_every_run() -> None:
    x = tf.placeholder("float32", [64])
    made, session = tf.nn.dropout(x, rate=0.5), tf.Session()
    first, second = (session.run(made, {x: np.ones(64)}) for _ in range(2))
    assert set(first) == set(second) == {0.0, 2.0}
    assert np.any(first != second)


def test_the_seed_of_the_graph_moves_operations_with_one() -> None:
    found = []
    for seed in (1, 2, 1):
        with tf.Graph().as_default():
            made = tf.random_uniform([8], seed=3)
            tf.set_random_seed(seed)
            found.append(tf.Session().run(made))
    np.testing.assert_array_equal(found[0], found[2])
    assert np.any(found[0] != found[1])


def test_whole_numbers_are_drawn_between_their_bounds() -> None:
    made = tf.Session().run(tf.random_uniform([500], 3, 6, dtype="int32"))
    assert sorted(set(made.tolist())) == [3, 4, 5]
    with pytest.raises(InputError, match="maxval is None"):
        tf.random_uniform([2], dtype="int32")
    with pytest.raises(InputError, match="minval below maxval"):
        tf.random_uniform([2], 3, 3, dtype="int32")


def test_numbers_are_drawn_around_each_of_several_means() -> None:
    means = np.array([0.0, 1000.0], "float32")
    made = tf.Session().run(tf.random_normal([50, 2], means, 1e-3))
    np.testing.assert_allclose(made, np.broadcast_to(means, (50, 2)), atol=0.01)


def test_stopped_tensors_are_constants_to_a_gradient() -> None:
    """z = x² · x; with x² a constant dz/dx = x², else 3 x²; what flows through it alone has none."""
    x = tf.placeholder("float32", [])
    square = x * x
    product = square * x
    asked = [*tf.gradients(product, x, stop_gradients=[square]), *tf.gradients(product, x)]
    assert [float(each) for each in tf.Session().run(asked, {x: 3.0})] == [9.0, 27.0]
    assert tf.gradients(tf.exp(square), x, stop_gradients=square) == [None]
    (zeros,) = tf.gradients(tf.exp(square), x, stop_gradients=square, unconnected_gradients="zero")
    assert tf.Session().run(zeros, {x: 3.0}) == 0


def test_partial_gradients_of_what_depends_on_each_other() -> None:
    """As TensorFlow documents it: b = 2 a, and the partial gradients of a + b are 1 and 1, its total ones 3 and 1."""
    a = tf.placeholder("float32", [])
    b = 2.0 * a
    partial = tf.gradients(a + b, [a, b], stop_gradients=[a, b])
    total = tf.gradients(a + b, [a, b])
    assert [float(each) for each in tf.Session().run([*partial, *total], {a: 1.0})] == [1, 1, 3, 1]


def test_a_loss_with_a_gradient_of_its_own() -> None:
    weight = tf.get_variable("w", initializer=np.array([1.0, 2.0], "float32"))
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    update = optimizer.minimize(weight * weight, grad_loss=tf.constant([1.0, 10.0]), name="mine")
    session = begun()
    session.run(update)
    np.testing.assert_allclose(session.run(weight), [1 - 0.5 * 2, 2 - 0.5 * 10 * 4])
    assert update.name == "mine"


def test_rmsprop_centered_takes_the_mean_off() -> None:
    """Two steps with gradients 2 and 2, by hand."""
    weight = tf.get_variable("w", initializer=1.0)
    update = tf.train.RMSPropOptimizer(0.1, decay=0.5, epsilon=1e-3, centered=True).minimize(2.0 * weight)
    session = begun()
    value, square, mean = 1.0, 1.0, 0.0
    for _ in range(2):
        session.run(update)
        square, mean = 0.5 * square + 0.5 * 4, 0.5 * mean + 0.5 * 2
        value -= 0.1 * 2 / np.sqrt(square - mean * mean + 1e-3)
        np.testing.assert_allclose(session.run(weight), value, rtol=1e-5)


def test_a_condition_of_one_result_is_that_one_unless_strict() -> None:
    x = tf.placeholder("float32", [])
    one = tf.cond(x > 0.0, lambda: [x + 1.0], lambda: [x - 1.0])
    (listed,) = tf.cond(x > 0.0, lambda: [x + 1.0], lambda: [x - 1.0], strict=True)
    assert [float(each) for each in tf.Session().run([one, listed], {x: 2.0})] == [3.0, 3.0]


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (lambda x: tf.cond(x, lambda: x, lambda: x), "pred is .*one tf.bool"),
        (lambda x: tf.cond(x > 0.0, lambda: x, lambda: (x, x)), "the same structure"),
        (lambda x: tf.cond(x > 0.0, lambda: x, lambda: tf.ones([2])), "the same shapes and types"),
        (lambda x: tf.cond("yes", lambda: x, lambda: x), "pred is 'yes'"),
    ],
)
def test_conditions_that_are_none_are_told(of: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        of(tf.placeholder("float32", []))


def test_a_hint_is_followed_where_it_can_be() -> None:
    assert tf.convert_to_tensor(3, dtype_hint=tf.float32).dtype == "float32"
    assert tf.convert_to_tensor(3.5, dtype_hint=tf.int32).dtype == "float32"
    assert tf.convert_to_tensor(300, preferred_dtype="int8").dtype == "int32"


def test_a_generator_is_called_with_arguments_and_gives_what_was_said() -> None:
    def numbers(first: int, behind: int) -> Iterator[Any]:
        yield from ((each, [each, each]) for each in range(first, behind))

    made = tf.data.Dataset.from_generator(numbers, (tf.int32, tf.float32), ([], [2]), args=(2, 4))
    assert [(a.dtype, b.dtype, a.tolist(), b.tolist()) for a, b in made] == [
        ("int32", "float32", each, [each, each]) for each in (2, 3)
    ]
    for types, shapes, told in (
        ((tf.int32,), None, "as output_types say"),
        ((tf.int32, tf.float32), ([], [3]), r"shape \(2,\).*\(3,\), as output_shapes say"),
    ):
        with pytest.raises(InputError, match=told):
            list(tf.data.Dataset.from_generator(lambda: numbers(0, 1), types, shapes))


def test_passes_of_a_shuffled_dataset_differ_unless_told() -> None:
    ten = tf.data.Dataset.range(10, output_type=tf.int32)
    assert ten.cardinality() == 10
    for again in (True, False):
        data = ten.shuffle(10, seed=4, reshuffle_each_iteration=again)
        first, second = ([int(each) for each in data] for _ in range(2))
        assert sorted(first) == sorted(second) == list(range(10))
        assert (first == second) is not again
    assert [int(x) for x in ten.shuffle(10, seed=4)] == [int(x) for x in ten.shuffle(10, seed=4)]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: tf.get_variable("v", [1], partitioner=3), "partitioner is 3"),
        (lambda: tf.get_variable("v", [1], validate_shape=False), "validate_shape is False"),
        (lambda: tf.get_variable("v", [1], synchronization=3), "synchronization"),
        (lambda: tf.assign(3, 4), "ref is 3"),
        (lambda: tf.assign(tf.Variable(1.0), 4, nosuch=3), "nosuch"),
        (lambda: tf.gradients(1.0, 2.0, aggregation_method=2), "aggregation_method is 2"),
        (lambda: tf.gradients(1.0, 2.0, stop_gradients=2), "stop_gradients is 2"),
        (lambda: tf.device("nosuch").__enter__(), "device_name is 'nosuch'"),
        (lambda: tf.variable_scope(None).__enter__(), "name_or_scope is None"),
        (lambda: tf.variable_scope("a", reuse="always").__enter__(), "reuse is 'always'"),
        (lambda: tf.train.MomentumOptimizer(0.1, "fast"), "momentum is 'fast'"),
        (lambda: tf.train.AdamOptimizer(beta1=float("nan")), "beta1 is nan"),
        (lambda: tf.data.Dataset.range(4).batch(0), "batch_size is 0"),
        (lambda: tf.data.Dataset.range(4).cache("here"), "filename is 'here'"),
        (lambda: tf.Variable(None), "initial_value is None"),
        (lambda: tf.Variable("text"), "initial_value is 'text'"),
    ],
)
def test_what_cannot_act_is_refused(call: Any, named: str) -> None:
    with pytest.raises(WorkbenchError, match=named):
        call()
