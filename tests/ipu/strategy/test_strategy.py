"""A strategy by itself: its scope, where things are, how values of replicas become one, and what it refuses to run."""

import numpy as np
import pytest

from workbench import ipu, tf
from workbench.ipu.ipu_strategy import IPUExtendedV1, IPUStrategy


def test_the_open_strategy_is_the_one_in_force() -> None:
    outer, inner = IPUStrategy(), IPUStrategy()
    assert tf.distribute.get_strategy() is None
    with outer.scope() as opened:
        assert opened is outer
        assert tf.distribute.has_strategy()
        with inner.scope():
            assert tf.distribute.get_strategy() is inner
        assert tf.distribute.get_strategy() is outer
    assert not tf.distribute.has_strategy()


def test_where_things_are() -> None:
    strategy = IPUStrategy("/device:IPU:1")
    assert isinstance(strategy.extended, IPUExtendedV1)
    assert strategy.extended.non_slot_devices(None) == "/device:IPU:1"
    assert strategy.extended.worker_devices == strategy.extended.parameter_devices == ("/device:IPU:1",)
    assert (strategy.num_replicas_in_sync, strategy.supports_loss_scaling, strategy.executables) == (1, True, ())
    data = tf.data.Dataset.from_tensor_slices(np.arange(4))
    assert strategy.experimental_distribute_dataset(data) is data
    with pytest.raises(ValueError, match="'/device:CPU:0' is no IPU device"):
        IPUStrategy("/device:CPU:0")


def test_values_of_replicas_become_one() -> None:
    strategy = IPUStrategy()
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, 3.0) == 3.0
    np.testing.assert_array_equal(strategy.reduce("mean", np.array([1.0, 3.0]), axis=0), 2.0)
    with pytest.raises(ValueError, match="reduce_op is 'MAX'"):
        strategy.reduce("MAX", 3.0)


@pytest.mark.parametrize(("operation", "expected"), [("SUM", 6.0), ("MEAN", 3.0)])
def test_values_of_two_replicas_in_a_program(operation: str, expected: float) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()
    strategy, sent = IPUStrategy(), tf.placeholder(tf.float32, [])

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        made = ipu.ipu_compiler.compile(lambda value: strategy.reduce(operation, value), [sent])
    assert tf.Session().run(made, {sent: 3.0})[0] == expected


def test_what_is_not_run() -> None:
    strategy = IPUStrategy()
    for run in (strategy.run, strategy.experimental_run_v2):
        with pytest.raises(ValueError, match=r"'len' is no tf\.function"):
            run(len, ([],))

    def compiled(value: object) -> object:
        return value

    compiled.is_tf_function = True  # type: ignore[attr-defined]
    assert strategy.run(compiled, (np.float32(3),)) == 3
    with pytest.raises(ValueError, match="options is 3"):
        strategy.run(compiled, (), options=3)


def test_datasets_know_how_many_elements_they_have() -> None:
    ten = tf.data.Dataset.from_tensor_slices(np.arange(10))
    for made, count in (
        (ten, 10),
        (ten.batch(4), 3),
        (ten.batch(4, drop_remainder=True), 2),
        (ten.repeat(3), 30),
        (ten.repeat(), tf.data.INFINITE_CARDINALITY),
        (ten.repeat().take(7), 7),
        (ten.take(20), 10),
        (ten.skip(3), 7),
        (ten.shuffle(5).map(lambda each: each).prefetch(2).cache(), 10),
        (ten.filter(lambda each: each > 3), tf.data.UNKNOWN_CARDINALITY),
        (tf.data.Dataset.from_tensors(3), 1),
        (tf.data.Dataset.from_generator(lambda: iter([1])), tf.data.UNKNOWN_CARDINALITY),
    ):
        assert made.cardinality() == count
        if count >= 0:
            assert len(list(made)) == count
