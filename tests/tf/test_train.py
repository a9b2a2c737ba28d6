"""Gradients are those of JAX; optimizers step as their published rules say; datasets feed in order."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workbench import tf
from workbench.errors import InputError


def stepped(optimizer: Any, steps: int = 3, start: float = 2.0) -> list[float]:
    """The weight after each of a few updates of the loss weight²; its gradient is twice the weight."""
    weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(start))
    train = optimizer.minimize(tf.square(weight * 1.0))
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
            found.append(float(session.run(weight)))
    return found


def test_gradient_descent() -> None:
    assert stepped(tf.train.GradientDescentOptimizer(0.25)) == [1.0, 0.5, 0.25]


def test_momentum() -> None:
    # velocity 4, then 0.5 * 4 + 3.2, then 0.5 * 5.2 + 2.16 for weights 2, 1.6, 1.08
    assert stepped(tf.train.MomentumOptimizer(0.1, 0.5)) == pytest.approx([1.6, 1.08, 0.604])


def test_adam_takes_steps_of_its_rate_at_first() -> None:
    assert stepped(tf.train.AdamOptimizer(0.1), steps=2) == pytest.approx([1.9, 1.8], abs=1e-3)


def test_rmsprop() -> None:
    # mean square 0.9 * 1 + 0.1 * 16 = 2.5; step 0.1 * 4 / sqrt(2.5)
    assert stepped(tf.train.RMSPropOptimizer(0.1, epsilon=0.0), steps=1) == pytest.approx([2 - 0.4 / 2.5**0.5])


def test_a_rate_may_be_fed_and_a_step_counted() -> None:
    weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(2.0))
    rate = tf.placeholder(tf.float32, [])
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(rate).minimize(tf.square(weight * 1.0), global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {rate: 0.25})
        session.run(train, {rate: 0.0})
        assert session.run([weight, step]) == [1.0, 2]


def test_gradients_are_those_of_jax() -> None:
    def function(x: Any, y: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ y) ** 2)

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 4)).astype("float32"), rng.normal(size=(4, 2)).astype("float32")
    a, b = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, y.shape)
    loss = tf.reduce_sum(tf.tanh(tf.matmul(a, b)) ** 2)
    ours = tf.Session().run(tf.gradients(loss, [a, b]), {a: x, b: y})
    for mine, theirs in zip(ours, jax.grad(function, (0, 1))(x, y), strict=True):
        assert np.allclose(mine, theirs, atol=1e-5)


def test_gradients_of_gradients_and_of_what_does_not_matter() -> None:
    x, other = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [2])
    (first,) = tf.gradients(x * x * x, [x])
    (second,) = tf.gradients(first, [x])
    (nothing,) = tf.gradients(x * 2, [other])
    assert nothing is None
    assert tf.Session().run([first, second], {x: 2}) == [12.0, 12.0]


def test_given_gradients_of_targets_are_used() -> None:
    x = tf.placeholder(tf.float32, [2])
    assert tf.Session().run(tf.gradients(x * 3, [x], grad_ys=[[1.0, 10.0]]), {x: [1, 1]})[0].tolist() == [3, 30]


def test_what_is_computed_and_differentiated_is_computed_once() -> None:
    x = tf.placeholder(tf.float32, [4])
    y = x * tf.random_uniform([4])
    value, gradient = tf.Session().run([y, *tf.gradients(y, [x])], {x: [1] * 4})
    assert value.tolist() == gradient.tolist()  # two runs would draw two times four numbers


def test_there_must_be_variables_to_optimize() -> None:
    with pytest.raises(ValueError, match="No variables"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.placeholder(tf.float32, []) * 1)


def test_datasets_are_chains() -> None:
    data = tf.data.Dataset.from_tensor_slices((np.arange(6), np.arange(6) * 10))
    batches = list(data.map(lambda x, y: (x + 1, y)).batch(4, drop_remainder=True))
    assert [part.tolist() for part in batches[0]] == [[1, 2, 3, 4], [0, 10, 20, 30]]
    assert len(batches) == 1
    assert len(list(data.batch(4))) == 2
    assert [int(x) for x, _ in data.repeat(2)] == [0, 1, 2, 3, 4, 5] * 2
    assert sorted(int(x) for x, _ in data.shuffle(3, seed=1)) == list(range(6))
    assert [int(x) for x, _ in data.skip(1).take(2).cache()] == [1, 2]
    assert [int(x) for x in tf.data.Dataset.range(3).filter(lambda x: x != 1)] == [0, 2]
    with pytest.raises(ValueError, match="first dimensions"):
        tf.data.Dataset.from_tensor_slices((np.zeros(2), np.zeros(3)))


def test_a_list_is_one_array_of_a_dataset_and_a_tuple_several() -> None:
    dataset = tf.data.Dataset
    (both,) = dataset.from_tensors([[1, 2], [3, 4]])
    assert (both.tolist(), str(both.dtype)) == ([[1, 2], [3, 4]], "int32")
    pairs = list(dataset.from_tensor_slices(([1, 2], {"half": [0.5, 1.5]})))
    assert [(int(one), float(other["half"])) for one, other in pairs] == [(1, 0.5), (2, 1.5)]
    assert [str(each.dtype) for each in (pairs[0][0], pairs[0][1]["half"])] == ["int32", "float32"]
    assert str(next(iter(dataset.from_tensor_slices(np.zeros(2)))).dtype) == "float64"  # NumPy said so
    assert [int(x) for x in dataset.from_tensor_slices([2**40, 1])] == [2**40, 1]  # which int32 has not


def test_a_list_that_a_dataset_maps_to_is_a_tuple_and_numbers_are_arrays() -> None:
    twice = tf.data.Dataset.range(3).map(lambda x: [x, [x, x + 1]]).map(lambda x, beside: (x + beside[1], 1))
    assert [(int(one), int(other), str(other.dtype)) for one, other in twice] == [
        (n * 2 + 1, 1, "int32") for n in range(3)
    ]


def test_shards_of_a_dataset_have_every_element_once() -> None:
    data, names = tf.data.Dataset.range(5), tf.data.experimental
    parts = [data.shard(2, index) for index in (0, 1)]
    assert [[int(x) for x in part] for part in parts] == [[0, 2, 4], [1, 3]]
    assert [names.cardinality(part) for part in parts] == [3, 2]
    assert names.cardinality(data.repeat().shard(2, 1)) == names.INFINITE_CARDINALITY
    assert [int(x) for x in data.apply(lambda whole: whole.skip(3)).prefetch(names.AUTOTUNE)] == [3, 4]
    with pytest.raises(ValueError, match=r"index is 2\. Expected: "):
        data.shard(2, 2)
    with pytest.raises(TypeError, match=r"transformation_func gave 3\. Expected: a dataset"):
        data.apply(lambda whole: 3)


def test_a_dataset_behind_another_and_elements_with_their_numbers() -> None:
    first, second = tf.data.Dataset.range(5).batch(2), tf.data.Dataset.range(7, 9).batch(2)
    both = first.concatenate(second)
    assert [each.tolist() for each in both] == [[0, 1], [2, 3], [4], [7, 8]]
    assert both.cardinality() == 4
    assert second.concatenate(second.repeat()).cardinality() == tf.data.INFINITE_CARDINALITY
    assert second.concatenate(second.filter(lambda each: True)).cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert [(int(number), each.tolist()) for number, each in first.enumerate(3)] == [(3, [0, 1]), (4, [2, 3]), (5, [4])]
    assert first.enumerate().cardinality() == 3
    assert [pair.short for pair in (both, second.concatenate(first), second.concatenate(second))] == [1, 1, 0]
    with pytest.raises(TypeError, match="dataset is 3"):
        first.concatenate(3)


def test_a_signature_says_types_and_shapes_of_what_a_generator_gives() -> None:
    spec, made = tf.TensorSpec, tf.data.Dataset.from_generator
    (only,) = made(lambda: [[1, 2]], output_signature=spec([2], "int32"))
    assert (only.tolist(), str(only.dtype)) == ([1, 2], "int32")
    (pair,) = made(lambda: [(1, [2.0])], output_signature=(spec([], "int32"), spec([None], "float16")))
    assert [str(each.dtype) for each in pair] == ["int32", "float16"]
    with pytest.raises(ValueError, match=r"an array of shape \(2,\)\. Expected: \(3,\)"):
        list(made(lambda: [[1, 2]], output_signature=spec([3], "int32")))
    with pytest.raises(ValueError, match="beside output_types"):
        made(lambda: [1], "int32", output_signature=spec([], "int32"))
    with pytest.raises(ValueError, match=r"output_signature is 'int32'\. Expected: a tf\.TensorSpec"):
        made(lambda: [1], output_signature="int32")


def test_what_a_loss_does_not_depend_on_has_no_gradient_and_is_not_updated() -> None:
    used = tf.get_variable("used", [], initializer=tf.constant_initializer(2.0))
    other = tf.get_variable("other", [], initializer=tf.constant_initializer(3.0))
    loss = tf.square(used * 1.0)
    gradient, none = tf.gradients(loss, [used, other])
    assert none is None
    optimizer = tf.train.MomentumOptimizer(0.25, 0.9)
    train = optimizer.minimize(loss)
    assert optimizer.get_slot(other, "momentum") is None
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(gradient) == 4
        session.run(train)
        assert session.run([used, other]) == [1.0, 3.0]
    with pytest.raises(ValueError, match="No gradients provided"):
        optimizer.minimize(tf.constant(1.0))


class Doubled(tf.train.Optimizer):
    """Another optimizer with twice the gradients, as the SDK's own wrappers are written."""

    def __init__(self, inner: Any) -> None:
        super().__init__(False, name="Doubled")
        self._inner = inner

    def compute_gradients(self, loss: Any, var_list: Any = None, **more: Any) -> Any:
        return [(2 * grad, weight) for grad, weight in self._inner.compute_gradients(loss, var_list, **more)]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        return self._inner.apply_gradients(grads_and_vars, global_step, name)


def test_an_optimizer_may_wrap_another() -> None:
    assert stepped(Doubled(tf.train.GradientDescentOptimizer(0.125))) == [1.0, 0.5, 0.25]  # as a rate of 0.25


def test_functions_and_sizes_that_no_dataset_can_use_are_refused_where_they_are_given() -> None:
    data = tf.data.Dataset.from_tensor_slices((np.arange(3), np.arange(3)))
    with pytest.raises(InputError, match=f"batch_size is {10**30}"):
        data.batch(10**30)
    for call, name in ((data.map, "map_func"), (data.filter, "predicate")):
        with pytest.raises(InputError, match=f"{name} is <function .*which takes no element"):
            call(lambda: 1)  # came as Python's own TypeError out of a pass, in fit
        with pytest.raises(InputError, match=f"{name}: too many positional arguments.*arguments of {name}.x."):
            next(iter(call(lambda x: x)))
    assert [int(x) for x in data.map(max)] == [0, 1, 2]  # a function that does not say what it takes
    assert [int(x) for x in data.map(lambda *parts: sum(parts))] == [0, 2, 4]
