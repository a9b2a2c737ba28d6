"""Seeds make runs repeatable; a device that is never attached to gives zeros or says so."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import keras
import numpy as np
import pytest

import workbench as wb
from tests.ipu.graphs import compiled, configure, run
from workbench import ipu, tf
from workbench.ipu.config import DeviceConnectionType, IPUConfig, StochasticRoundingBehaviour


def config(**connection: Any) -> IPUConfig:
    made = IPUConfig()
    made.ipu_model.tiles_per_ipu = 4
    for name, value in connection.items():
        setattr(made.device_connection, name, value)
    return made


def test_a_seed_makes_stochastic_rounding_repeatable() -> None:
    rounding = config()
    rounding.floating_point_behaviour.esr = StochasticRoundingBehaviour.ON
    x = np.full(512, 1 + 0.3 * 2**-10, np.float32)
    cast = wb.compile(lambda value: value.astype(jnp.float16), x, config=rounding)
    ipu.utils.reset_ipu_seed(7)
    first, second = cast.run(x), cast.run(x)
    ipu.utils.reset_ipu_seed(7)
    assert np.array_equal(cast.run(x), first)
    assert not np.array_equal(first, second)
    ipu.utils.reset_ipu_seed(-7)
    assert not np.array_equal(cast.run(x), first)


def test_a_seed_makes_dropout_repeatable() -> None:
    layers = [keras.layers.Dense(64, name="wide"), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((4,)), *layers])
    model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse")
    executable = wb.compile(model, batch_size=4, mode="training", config=config())
    x, y = np.ones((4, 4), np.float32), np.zeros((4, 1), np.float32)

    def losses() -> list[float]:
        return [executable.run(x, y)["loss"] for _ in range(3)]

    ipu.utils.reset_ipu_seed(1)
    first = losses()
    assert len(set(first)) == 3
    ipu.utils.reset_ipu_seed(1)
    assert losses() == first
    assert losses() != first


@pytest.mark.parametrize("seed", [1.5, True, "1", None])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed is"):
        ipu.utils.reset_ipu_seed(seed)


def test_a_seed_is_for_an_ipu() -> None:
    with pytest.raises(ValueError, match="no IPU device"):
        ipu.utils.reset_ipu_seed(1, device="/device:CPU:0")


def test_precompiled_programs_give_zeros_and_change_nothing() -> None:
    connection = config(type=DeviceConnectionType.PRE_COMPILE, version="ipu2")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse")
    x = np.ones((2, 4), np.float32)
    trained = wb.compile(model, batch_size=2, mode="training", config=connection)
    before = [np.array(variable.value) for variable in model.variables]
    assert trained.run(x, np.ones((2, 2), np.float32)) == {"loss": 0.0}
    assert all(np.array_equal(old, held.value) for old, held in zip(before, model.variables, strict=True))
    assert not wb.compile(model, batch_size=2, mode="inference", config=connection).run(x).any()


def test_a_device_never_attached_to_runs_nothing() -> None:
    connection = config(type=DeviceConnectionType.NEVER, version="ipu2")
    executable = wb.compile(jnp.exp, np.ones(2, np.float32), config=connection)
    assert executable.profile.fits
    with pytest.raises(wb.InputError, match="never attaches to a device"):
        executable.run(np.ones(2, np.float32))


def test_replica_identical_only_rounds_feeds_and_not_elements_of_a_queue() -> None:
    """The published program of 1 + 1e-3 on two replicas, which are fed the same; a queue gives each its own."""
    options = {
        "floating_point_behaviour.esr": StochasticRoundingBehaviour.REPLICA_IDENTICAL_ONLY.value,
        "experimental.enable_prng_stability": True,
    }
    configure(2, **options)
    ones, small = np.ones(4096, np.float16), np.full(4096, 1e-3, np.float16)
    (fed,), _ = run(lambda x, y: x + y, ones, small)
    assert len(np.unique(fed)) == 2
    queue = ipu.ipu_infeed_queue.IPUInfeedQueue([(ones, small)] * 2)
    taken = compiled(lambda: ipu.loops.repeat(1, lambda v, x, y: x + y, [tf.zeros([4096], tf.float16)], queue))
    with tf.Session() as session:
        assert len(np.unique(session.run(taken))) == 1
