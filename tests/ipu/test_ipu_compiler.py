"""`compile` returns what its reference says for every kind of result."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.graphs import compiled, configure, run
from workbench import ipu, tf
from workbench.errors import InputError

ONES = np.ones(2, np.float32)


@pytest.fixture(autouse=True)
def configured() -> None:
    configure()


def test_a_single_value_becomes_a_list_of_it() -> None:
    (result,), _ = run(lambda x: x + 1, ONES)
    assert result.tolist() == [2, 2]


def test_lists_and_tuples_become_lists() -> None:
    result, _ = run(lambda x: (x, x * 3), ONES)
    assert isinstance(result, list)
    assert [each.tolist() for each in result] == [[1, 1], [3, 3]]


def test_a_dictionary_keeps_its_names() -> None:
    result, _ = run(lambda x: {"twice": x * 2, "same": x}, ONES)
    assert {name: each.tolist() for name, each in result.items()} == {"twice": [2, 2], "same": [1, 1]}


def test_operations_behind_tensors_run_with_them() -> None:
    with tf.variable_scope("counts"):
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer())

    def computation(x: tf.Tensor) -> object:
        return x + 1, count.assign_add(1.0).op

    (result,), session = run(computation, ONES)
    assert result.tolist() == [2, 2]
    assert session.run(count) == 1


def test_operations_alone_and_none_become_an_operation_that_runs_them() -> None:
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())

    def nothing() -> None:
        count.assign_add(1.0)

    for computation in (lambda: count.assign_add(1.0).op, nothing, lambda: [count.assign_add(1.0).op]):
        result = compiled(computation)
        assert isinstance(result, tf.Operation)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert session.run(result) is None
            assert session.run(count) == 1


def test_tensors_come_before_operations() -> None:
    with pytest.raises(ValueError, match="its tensors before its operations"):
        compiled(lambda: [tf.no_op(), tf.constant(1.0)])


def test_outside_an_ipu_scope_it_says_so() -> None:
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(Exception, match="placed on no IPU"):
        ipu.ipu_compiler.compile(lambda value: value + 1, [x])
    configure()  # usable after the error
    assert run(lambda value: value + 1, ONES)[0][0].tolist() == [2, 2]


def test_inputs_may_be_nested_and_plain() -> None:
    def computation(pair: list[tf.Tensor], more: dict[str, tf.Tensor]) -> tf.Tensor:
        return pair[0] * pair[1] + more["bias"]

    result = compiled(computation, [[2.0, 3.0], {"bias": np.float32(1)}])
    assert tf.Session().run(result) == [7.0]


def test_no_inputs() -> None:
    assert tf.Session().run(compiled(lambda: tf.constant([1.0, 2.0]) + 1))[0].tolist() == [2, 3]


def test_a_session_compiles_a_program_once_and_shows_its_profile() -> None:
    x = tf.placeholder(tf.float32, [2])
    result = compiled(lambda value: value * 2, [x])
    with tf.Session() as session:
        for number in range(3):
            assert session.run(result, {x: [number, 1]})[0].tolist() == [2 * number, 2]
        assert len(session.executables) == 1
        assert session.profile.fits
        assert list(session.profile.cycle_breakdown["cycles"])


def test_programs_of_a_graph_may_change_devices_back_and_forth() -> None:
    x = tf.placeholder(tf.float32, [2])
    (first,) = compiled(lambda value: value * 2, [x])
    on_host = first + 1
    (second,) = compiled(lambda value: value * 3, [on_host])
    with tf.Session() as session:
        assert session.run([second, on_host], {x: [1, 2]})[0].tolist() == [9, 15]
        assert len(session.executables) == 2


def test_feeds_of_another_shape_are_refused_and_the_session_goes_on() -> None:
    x = tf.placeholder(tf.float32, [2])
    result = compiled(lambda value: value * 2, [x])
    with tf.Session() as session:
        with pytest.raises(ValueError, match=r"Cannot feed value of shape \(3,\)"):
            session.run(result, {x: [1, 2, 3]})
        with pytest.raises(ValueError, match="You must feed a value for the placeholder"):
            session.run(result)
        assert session.run(result, {x: [1, 2]})[0].tolist() == [2, 4]


def test_each_shape_that_is_fed_is_compiled_once() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    result = compiled(lambda value: value * 2, [x])
    with tf.Session() as session:
        for rows in (1, 3, 1):
            assert session.run(result, {x: np.ones((rows, 2))})[0].tolist() == [[2, 2]] * rows
        assert len(session.executables) == 2


def test_shapes_of_what_a_loop_carries_must_be_known() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    with pytest.raises(ValueError, match="every dimension known"):
        compiled(lambda value: ipu.loops.repeat(3, lambda each: each * 2, [value]), [x])


def test_a_program_is_traced_once_on_a_configured_device() -> None:
    seen: list[Any] = []

    class Watched(keras.layers.Layer):  # type: ignore[misc]
        """A layer that hears of every trace."""

        def call(self, value: Any) -> Any:
            seen.append(value)
            return value * 2

    configure()
    x = tf.placeholder(tf.float32, [2])
    result = compiled(Watched(), [x])
    seen.clear()  # a layer is asked for its result's shape as its operation is made
    with tf.Session() as session:
        assert session.run(result, {x: ONES})[0].tolist() == [2, 2]
    assert len(seen) == 1


def test_none_runs_all_that_has_an_effect() -> None:
    queue = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())

    def nothing() -> None:
        count.assign_add(1.0)
        queue.enqueue(tf.constant(3.0))
        tf.constant(1.0)

    result, held = compiled(nothing), queue.dequeue()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(result) is None
        assert (session.run(count), session.run(held).tolist()) == (1, [3.0])


def test_what_an_estimator_returns_is_refused() -> None:
    class EstimatorSpec:
        """As an estimator's model function returns one."""

    with pytest.raises(ValueError, match="an estimator compiles its model function itself"):
        compiled(lambda: [tf.constant(1.0), EstimatorSpec()])


@pytest.mark.parametrize("wrong", ["text", object(), np.array(["a"])])
def test_what_is_no_tensor_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="it must return tensors and operations"):
        compiled(lambda: [tf.constant(1.0), wrong])


@pytest.mark.parametrize(
    ("inputs", "many"), [(None, "0 inputs"), ([np.float32(1)], "1 input"), ([1.0, 2.0, 3.0], "3 inputs")]
)
def test_inputs_are_as_many_as_arguments(inputs: Any, many: str) -> None:
    told = rf"^computation cannot be called with {many}: .*To mend it: give them in the list"
    with ipu.scopes.ipu_scope("/device:IPU:0"), pytest.raises(InputError, match=told) as raised:
        ipu.ipu_compiler.compile(lambda a, b: a + b, inputs)
    assert isinstance(raised.value, TypeError)


def test_inputs_are_a_list() -> None:
    with ipu.scopes.ipu_scope("/device:IPU:0"), pytest.raises(TypeError, match=r"pass \[value\]"):
        ipu.ipu_compiler.compile(lambda x: x, tf.constant(1.0))
