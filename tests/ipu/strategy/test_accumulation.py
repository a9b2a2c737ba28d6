"""Gradients of several batches, of several replicas, add up to one update."""

from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, assert_alike, configure, functional
from workbench.ipu.config import IPUConfig


def updates_by_hand(twins: Twins, model: Any, batches: int, combine: Any) -> None:
    """One epoch of SGD with the gradients of so many batches of 8 combined."""
    gradients: list[list[Any]] = []

    import jax

    def loss(values: Any, x: Any, y: Any) -> Any:
        outputs, _ = model.stateless_call(values, [], x)
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, outputs)

    for start in range(0, len(twins.x), 8):
        values = [each.value for each in model.trainable_variables]
        gradients.append(jax.grad(loss)(values, twins.x[start : start + 8], twins.y[start : start + 8]))
        if len(gradients) == batches:
            for place, variable in enumerate(model.trainable_variables):
                variable.assign(variable.value - 0.1 * combine(np.stack([each[place] for each in gradients]), axis=0))
            gradients.clear()


@pytest.mark.parametrize(
    ("method", "combine"),
    [("sum", np.sum), pytest.param("MEAN", np.mean, marks=pytest.mark.slow), ("running_mean", np.mean)],
)
def test_an_update_has_the_gradients_of_its_batches(twins: Twins, method: str, combine: Any) -> None:
    ours, theirs = twins.made(functional, here=True, steps_per_execution=6), twins.made(functional, here=False)
    ours.set_gradient_accumulation_options(3, gradient_accumulation_reduction_method=method)
    twins.fitted(ours, epochs=1, shuffle=False)
    updates_by_hand(twins, theirs, 3, combine)
    assert_alike(ours, theirs)
    assert int(ours.optimizer.iterations) == 2


@pytest.mark.slow
def test_ten_batches_are_one_update_by_the_sum_of_their_gradients(twins: Twins) -> None:
    rows = np.arange(80) % 48
    twins.x, twins.y = twins.x[rows], twins.y[rows]
    twins.x[48:] *= 0.5  # ten batches, none of them twice
    ours, theirs = twins.made(functional, here=True, steps_per_execution=10), twins.made(functional, here=False)
    ours.set_gradient_accumulation_options(10)
    start = ours.get_weights()
    twins.fitted(ours, epochs=1, shuffle=False)
    updates_by_hand(twins, theirs, 10, np.sum)
    assert_alike(ours, theirs)
    assert int(ours.optimizer.iterations) == 1
    assert all(np.abs(now - then).max() > 1e-3 for now, then in zip(ours.get_weights(), start, strict=True))


def test_accumulators_have_the_bytes_of_the_parameters(twins: Twins) -> None:
    for steps in (1, 3):
        model = twins.made(functional, here=True, steps_per_execution=6)
        model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=steps)
        twins.fitted(model)
    alone, added = ({each.name: each for each in run.graph.inputs} for run in twins.strategy.executables)
    sums = [each for each in added.values() if each.role == "accumulator"]
    assert len(sums) == 4
    assert not [each for each in alone.values() if each.role == "accumulator"]
    held = twins.strategy.executables[1].profile.variables
    held = held[held.name.str.endswith("/accumulator")]
    assert held.bytes.sum() == sum(4 * int(np.prod(each.shape)) for each in model.trainable_variables)
    assert held.always_live.all()


@pytest.mark.slow
def test_a_type_and_a_place_of_what_an_update_reads(twins: Twins) -> None:
    def wide() -> Any:
        return keras.Sequential([keras.Input((6,)), keras.layers.Dense(50), keras.layers.Dense(3)])

    model = twins.made(wide, here=True, steps_per_execution=6, optimizer=keras.optimizers.Adam(0.01))
    model.set_gradient_accumulation_options(3, dtype="float16", offload_weight_update_variables=True)
    twins.fitted(model)
    profile = twins.strategy.profile
    assert set(profile.variables[profile.variables.name.str.endswith("/accumulator")].dtype) == {"float16"}
    # One program of two updates: the state is off the chip from each to the next, and comes for both.
    loads = profile.steps[profile.steps.name.str.endswith("/from_remote")]
    assert len(loads) == 6  # two slots of the kernels and of the bias that has at least 128 bytes
    assert set(loads.times) == {2}
    assert set(profile.steps[profile.steps.name.str.endswith("/to_remote")].times) == {2}
    assert set(profile.steps[profile.steps.name.str.contains("from_host")].times) == {6}


def test_steps_that_are_no_whole_number_of_updates_are_refused(twins: Twins) -> None:
    model = twins.made(functional, here=True, steps_per_execution=2)
    model.set_gradient_accumulation_options(3)
    before = model.get_weights()
    with pytest.raises(
        RuntimeError, match=r"steps_per_execution of the model .* is 2\. Expected: a multiple of .*replicas, 3 × 1\. To"
    ):
        twins.fitted(model)
    assert not twins.strategy.executables
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("arguments", "kind", "problem"),
    [
        ({"gradient_accumulation_steps_per_replica": 0}, ValueError, "per_replica is 0"),
        ({"gradient_accumulation_steps_per_replica": 2.0}, ValueError, "per_replica is 2.0"),
        ({"gradient_accumulation_reduction_method": "most"}, ValueError, "'most'"),
        ({"experimental_normalize_gradients": 1}, ValueError, "normalize_gradients is 1"),
        ({"opt": 1}, ValueError, "'opt' is set automatically"),
        ({"num_mini_batches": 2}, ValueError, "'num_mini_batches' is set automatically"),
        ({"speed": 2}, ValueError, "no argument 'speed'"),
    ],
)
def test_options_that_are_refused_change_nothing(
    twins: Twins, arguments: dict[str, Any], kind: type[Exception], problem: str
) -> None:
    model = twins.made(functional, here=True)
    model.set_gradient_accumulation_options(2)
    before = model.get_config()
    with pytest.raises(kind, match=problem):
        model.set_gradient_accumulation_options(**arguments)
    assert model.get_config() == before


@pytest.mark.slow
def test_replicas_reduce_once_an_update(twins: Twins) -> None:
    config = IPUConfig()
    config.auto_select_ipus = 2
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()
    cycles = []
    for steps in (1, 3):
        model = twins.made(functional, here=True, steps_per_execution=6)
        model.set_gradient_accumulation_options(steps)
        twins.fitted(model)
        found = twins.strategy.profile.steps
        cycles.append(int(found[found.cause == "collective"].total_cycles.sum()))
    assert cycles[0] == pytest.approx(3 * cycles[1], rel=0.1)  # where sums lie may differ


@pytest.mark.parametrize("steps", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_two_replicas_with_n_batches_are_one_with_twice_as_many(twins: Twins, steps: int) -> None:
    alone = twins.made(functional, here=True, steps_per_execution=6)
    alone.set_gradient_accumulation_options(2 * steps)
    twins.fitted(alone)
    config = IPUConfig()
    config.auto_select_ipus = 2
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()
    both = twins.made(functional, here=True, steps_per_execution=6)
    both.set_gradient_accumulation_options(steps)
    both.set_replication_options("mean")
    twins.fitted(both)
    assert_alike(both, alone)
    assert twins.strategy.executables[-1].request.replicas == 2
    np.testing.assert_allclose(
        both.predict(twins.x, batch_size=8, verbose=0), alone.predict(twins.x, batch_size=8, verbose=0), 1e-5, 1e-6
    )


@pytest.mark.slow
def test_replicas_keep_statistics_of_their_own_batches(twins: Twins) -> None:
    """What a batch normalisation remembers of six batches: alone all of them in turn, on two IPUs the first replica's,
    every other one. Gamma and beta are as before: each batch was normalised by itself on either.
    """

    def normalised() -> Any:
        statistics = keras.layers.BatchNormalization(momentum=0.5)
        return keras.Sequential([keras.Input((6,)), statistics, keras.layers.Dense(3)])

    def remembered(batches: Any) -> Any:
        mean = np.zeros(6)
        for batch in batches:
            mean = 0.5 * mean + 0.5 * batch.mean(axis=0)
        return mean

    def trained(steps: int) -> Any:
        model = twins.made(normalised, here=True, steps_per_execution=6)
        model.set_gradient_accumulation_options(steps)
        twins.fitted(model, epochs=1, shuffle=False)
        return model

    alone = trained(2)
    configure(2)
    both = trained(1)
    batches = twins.x.reshape(6, 8, 6)
    np.testing.assert_allclose(alone.layers[0].moving_mean, remembered(batches), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(both.layers[0].moving_mean, remembered(batches[::2]), rtol=1e-5, atol=1e-6)
    for own, other in zip(both.trainable_variables, alone.trainable_variables, strict=True):
        np.testing.assert_allclose(own.value, other.value, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_replicas_draw_numbers_of_their_own(twins: Twins) -> None:
    def dropped() -> Any:
        return keras.Sequential([keras.Input((6,)), keras.layers.Dropout(0.5, seed=3), keras.layers.Dense(3)])

    twins.x, twins.y = (np.repeat(each[:8], 6, axis=0).reshape(8, 6, -1) for each in (twins.x, twins.y))
    twins.x, twins.y = (np.swapaxes(each, 0, 1).reshape(48, -1).squeeze() for each in (twins.x, twins.y))
    alone = twins.made(dropped, here=True, steps_per_execution=1, optimizer=keras.optimizers.SGD(0.2))
    twins.fitted(alone, epochs=1, shuffle=False, steps_per_epoch=1)
    config = IPUConfig()
    config.auto_select_ipus = 2
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()
    both = twins.made(dropped, here=True, steps_per_execution=2)
    twins.fitted(both, epochs=1, shuffle=False, steps_per_epoch=2)
    # Were the masks of the two replicas alike, the sum of their equal gradients would be the step of twice the rate.
    assert np.abs(both.get_weights()[0] - alone.get_weights()[0]).max() > 1e-3
