"""Scopes: where operations run, and what attributes they carry into the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ipu.graphs import compiled, configure, run
from workbench import ipu, tf
from workbench.ipu import scopes

ONES = np.ones(4, np.float32)


@pytest.fixture(autouse=True)
def configured() -> None:
    configure()


def rows(session: tf.Session) -> Any:
    return session.profile.steps


def test_an_ipu_scope_places_operations() -> None:
    with scopes.ipu_scope("/device:IPU:0"):
        inside = tf.identity(tf.placeholder(tf.float32, [2]))
    outside = tf.identity(tf.placeholder(tf.float32, [2]))
    assert (inside.device, outside.device) == ("/device:IPU:0", "")


@pytest.mark.parametrize("device", ["/device:CPU:0", "IPU", ""])
def test_an_ipu_scope_is_for_an_ipu(device: str) -> None:
    with pytest.raises(ValueError, match="no IPU device"), scopes.ipu_scope(device):
        pass


def test_devices_run_programs_of_their_own() -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = [1, 2]
    config.ipu_model.tiles_per_ipu = 4
    config.configure_ipu_system()
    x = tf.placeholder(tf.float32, [2])
    with scopes.ipu_scope("/device:IPU:0"):
        first = x + 1
    with scopes.ipu_scope("/device:IPU:1"):
        second = first * 2
    with tf.Session() as session:
        assert session.run(second, {x: [1, 2]}).tolist() == [4, 6]
        assert [each.request.replicas for each in session.executables] == [1, 2]
    with scopes.ipu_scope("/device:IPU:2"):
        third = x + 1
    with pytest.raises(ValueError, match="IPU:2' is not configured"):
        tf.Session().run(third, {x: [1, 2]})


def sharded(x: Any) -> Any:
    with scopes.ipu_shard(0):
        first = tf.get_variable("first", [4, 4], initializer=tf.ones_initializer())
        y = tf.tanh(tf.matmul(x, first))
    with scopes.ipu_shard(1):
        second = tf.get_variable("second", [4, 4], initializer=tf.ones_initializer())
        return tf.reduce_sum(tf.matmul(y, second))


def test_shards_run_on_their_ipus_with_copies_between() -> None:
    configure(2)
    _, session = run(sharded, np.ones((2, 4), np.float32))
    computing = rows(session).query("kind == 'OnTileExecute'")
    assert set(computing["ipu"]) == {0, 1}
    assert (rows(session)["kind"] == "GlobalExchange").sum() == 1


def test_gradients_are_on_the_shard_of_what_they_differentiate() -> None:
    configure(2)

    def computation(x: Any) -> Any:
        loss = sharded(x)
        with scopes.ipu_shard(1):  # changes nothing of the gradients
            return tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    _, session = run(computation, np.ones((2, 4), np.float32))
    products = rows(session).query("direction == 'backward' and name.str.contains('matmul/compute')")
    # of the second weight and of y on IPU 1, of the first weight on IPU 0; x needs none
    assert sorted(products["ipu"]) == [0, 1, 1]


def test_more_shards_than_ipus_are_an_error_that_names_both() -> None:
    configure(1)
    with pytest.raises(ValueError, match="sharded over 2 IPUs, but /device:IPU:0 has 1"):
        run(sharded, np.ones((2, 4), np.float32))


@pytest.mark.parametrize("index", [-1, 1.5, "0", None, True])
def test_a_shard_is_a_number(index: Any) -> None:
    with pytest.raises(ValueError, match="index of ipu_shard is"), scopes.ipu_shard(index):
        pass


def test_outside_compilation_runs_on_the_host_with_its_copies() -> None:
    def computation(x: Any) -> Any:
        y = x * x
        with scopes.outside_compilation_scope():
            z = tf.reduce_sum(y) * tf.ones([2])
        return tf.reduce_sum(z) + x

    (result,), session = run(computation, ONES)
    assert result.tolist() == [9, 9, 9, 9]
    host = rows(session).query("kind == 'StreamCopy' and name.str.contains('host/')")
    assert host["bytes_sent"].tolist() == [16, 0]  # four floats there
    assert host["bytes_received"].tolist() == [0, 8]  # and two back
    assert len(session.executables) == 1


def test_outside_compilation_is_differentiated_on_the_host() -> None:
    def computation(x: Any) -> Any:
        with scopes.outside_compilation_scope():
            y = x * x * x
        return tf.gradients(tf.reduce_sum(y), [x])

    (result,), session = run(computation, np.array([1, 2], np.float32))
    assert result.tolist() == [3, 12]
    assert rows(session).query("kind == 'OnTileExecute' and name.str.contains('mul')").empty


def test_python_functions_run_outside_compilation_and_their_errors_are_heard() -> None:
    def checked(values: Any) -> Any:
        if values.sum() > 10:
            raise LookupError("too much")
        return np.sort(values)[::-1]

    def computation(x: Any) -> Any:
        with scopes.outside_compilation_scope():
            y = tf.py_function(checked, [x], tf.float32)
        return y * 2

    x = tf.placeholder(tf.float32, [3])
    result = compiled(computation, [x])
    with tf.Session() as session:
        assert session.run(result, {x: [1, 3, 2]})[0].tolist() == [6, 4, 2]
        with pytest.raises(LookupError, match="too much"):
            session.run(result, {x: [10, 3, 2]})
        assert session.run(result, {x: [1, 3, 2]})[0].tolist() == [6, 4, 2]
    with pytest.raises(ValueError, match="cannot run on an IPU"):
        compiled(lambda value: tf.py_function(checked, [value], tf.float32), [x])


def test_outside_compilation_is_inside_one_and_not_nested() -> None:
    with pytest.raises(ValueError, match="outside an XLA context"), scopes.outside_compilation_scope():
        pass
    with (
        scopes.ipu_scope("/device:IPU:0"),
        scopes.outside_compilation_scope(),
        pytest.raises(ValueError, match="nested"),
        scopes.outside_compilation_scope(),
    ):
        pass


def test_attributes_are_set_in_a_scope_and_restored_behind_it() -> None:
    def attributes() -> dict[str, str]:
        return dict(tf.no_op().scopes.attributes)

    with scopes.frontend_attribute("colour", "red"):
        assert attributes() == {"colour": "red"}
        with scopes.frontend_attribute("colour", "blue", restore_to="none"):
            assert attributes() == {"colour": "blue"}
        assert attributes() == {"colour": "red"}  # it had a value before
        with scopes.frontend_attribute("size", "1", restore_to="0"):
            assert attributes() == {"colour": "red", "size": "1"}
        assert attributes() == {"colour": "red", "size": "0"}
    assert attributes() == {}
    with pytest.raises(TypeError, match="attribute_value is 1"), scopes.frontend_attribute("colour", 1):  # type: ignore[arg-type]
        pass


def products(partials: Any) -> Any:
    left, right = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)

    def computation(a: Any, b: Any) -> Any:
        if partials is None:
            return tf.matmul(a, b)
        with scopes.partials_type(partials):
            return tf.matmul(a, b)

    return run(computation, left, right)[1].profile


def test_partials_of_a_scope_override_the_configuration() -> None:
    whole, half, usual = products(np.float32), products(np.float16), products(None)
    assert half.total_cycles < whole.total_cycles
    assert usual.total_cycles == whole.total_cycles
    configure(1, **{"matmuls.poplar_options": {"partialsType": "half"}})
    assert products(None).total_cycles == half.total_cycles
    assert products(np.float32).total_cycles == whole.total_cycles


@pytest.mark.parametrize("wrong", [np.int32, np.float64])
def test_partials_are_floats_or_halves(wrong: Any) -> None:
    with pytest.raises(ValueError, match="override_type is"), scopes.partials_type(wrong):
        pass


def rounded(override: bool | None) -> Any:
    def computation(x: Any) -> Any:
        if override is None:
            return tf.cast(x, tf.float16)
        with scopes.stochastic_rounding(override):
            return tf.cast(x, tf.float16)

    (result,), _ = run(computation, np.full(256, 1 + 0.3 * 2**-10, np.float32))
    return np.unique(result)


def test_stochastic_rounding_of_a_scope_overrides_the_configuration() -> None:
    assert (len(rounded(None)), len(rounded(True)), len(rounded(False))) == (1, 2, 1)
    configure(1, **{"floating_point_behaviour.esr": 1})  # ON
    assert (len(rounded(None)), len(rounded(True)), len(rounded(False))) == (2, 2, 1)


def test_a_training_loop_spans_shards() -> None:
    """Ten updates of two weights, one on each IPU; the same numbers as on one."""

    def losses(ipus: int) -> tuple[Any, Any]:
        tf.reset_default_graph()
        configure(ipus)
        elements = [np.full((2, 4), number + 1, np.float32) for number in range(10)]
        infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(elements), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

        def body(x: Any) -> Any:
            with tf.variable_scope("vs", use_resource=True):
                with scopes.ipu_shard(0):
                    first = tf.get_variable("first", [4, 4], initializer=tf.constant_initializer(0.1))
                    hidden = tf.matmul(x, first)
                with scopes.ipu_shard(ipus - 1):
                    second = tf.get_variable("second", [4, 1], initializer=tf.constant_initializer(0.1))
                    loss = tf.reduce_mean((tf.matmul(hidden, second) - 3.0) ** 2)
            train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
            with tf.control_dependencies([train]):
                return outfeed.enqueue(loss)

        result = compiled(lambda: ipu.loops.repeat(10, body, infeed_queue=infeed))
        held, session = outfeed.dequeue(), tf.Session()
        session.run(tf.global_variables_initializer())
        session.run(result)
        return session.run(held), session

    (alone, _), (apart, session) = losses(1), losses(2)
    assert np.allclose(alone, apart, rtol=1e-6)
    steps = rows(session).query("times == 10")
    assert (steps["kind"] == "GlobalExchange").sum() == 2  # the hidden values, and the gradient of them
    updates = steps.query("direction == 'update' and kind == 'OnTileExecute'")
    assert set(updates["ipu"]) == {0, 1}
