"""Exceptions name the operation and layer that raised them first; halves saturate, or round without bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import workbench as wb
from workbench import ipu
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.numbers.numerics import behaviour_of, with_numerics
from workbench.engine.frontends.numbers.rounding import draw_key, first_key, round_half
from workbench.engine.options import Options
from workbench.errors import NumericError, RowIndexError
from workbench.ipu.config import IPUConfig


def words() -> np.ndarray[Any, Any]:
    return np.array([1, 2], np.uint32)


def run(function: Callable[..., Any], *values: Any, **behaviour: Any) -> Any:
    options = Options().with_values({f"floating_point_behaviour.{key}": value for key, value in behaviour.items()})
    source = with_numerics(trace_function(function, *values), options, words)
    (result,) = source.compute([jnp.asarray(value) for value in values])
    return np.asarray(result)


def scoped(function: Callable[..., Any]) -> Callable[..., Any]:
    def inside(*values: Any) -> Any:
        with jax.named_scope("layer"):
            return function(*values)

    return inside


FINE = np.array([0.5, 1.0], np.float32)


@pytest.mark.parametrize(
    ("option", "function", "bad", "cause", "operation"),
    [
        ("inv", jnp.log, [1.0, -1.0], "an invalid operation", "log"),
        ("inv", lambda x: x / x, [1.0, 0.0], "an invalid operation", "div"),
        ("inv", jnp.sqrt, [4.0, -4.0], "an invalid operation", "sqrt"),
        ("div0", lambda x: 1 / x, [1.0, 0.0], "a division by zero", "div"),
        ("div0", jnp.log, [1.0, 0.0], "a division by zero", "log"),
        ("div0", jax.lax.rsqrt, [1.0, 0.0], "a division by zero", "rsqrt"),
        ("oflo", jnp.exp, [1.0, 100.0], "an overflow", "exp"),  # e^100 is beyond 3.4e38
        ("oflo", lambda x: x * 3e38, [1.0, 2.0], "an overflow", "mul"),
    ],
)
def test_an_exception_stops_the_run(option: str, function: Any, bad: Any, cause: str, operation: str) -> None:
    values = np.array(bad, np.float32)
    assert np.isfinite(run(scoped(function), FINE, **{option: True})).all()
    with pytest.raises(NumericError, match=f"the run stopped at {cause} in operation '{operation}' of layer 'layer'"):
        run(scoped(function), values, **{option: True})


def test_the_first_exception_is_named_and_those_that_follow_from_it_are_not() -> None:
    def chain(x: Any) -> Any:
        with jax.named_scope("first"):
            x = jnp.exp(x)
        with jax.named_scope("second"):
            return x - x  # infinity less infinity, where both are of `first`

    with pytest.raises(NumericError) as caught:
        run(chain, np.float32(1000), inv=True, oflo=True)
    assert (caught.value.cause, caught.value.operation, caught.value.layer) == ("an overflow", "exp", "first")


def test_an_exception_of_one_kind_is_not_another() -> None:
    assert np.isinf(run(lambda x: 1 / x, np.zeros(2, np.float32), inv=True, oflo=True)).all()
    assert np.isnan(run(jnp.log, -np.ones(2, np.float32), div0=True, oflo=True)).all()


def test_masks_of_infinity_raise_nothing() -> None:
    def masked(x: Any) -> Any:
        return jax.nn.softmax(jnp.where(x > 1, x, -jnp.inf))

    every = {"inv": True, "div0": True, "oflo": True}
    assert run(masked, np.array([1.0, 2.0, 3.0], np.float32), **every).sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["scan", "while", "cond"])
def test_exceptions_inside_control_flow_are_found(kind: str) -> None:
    def looped(x: Any) -> Any:
        if kind == "scan":
            return jax.lax.fori_loop(0, 10, lambda _, value: jnp.exp(value), x)
        if kind == "while":
            return jax.lax.while_loop(lambda value: value < 1e30, jnp.exp, x)
        return jax.lax.cond(x > 0, lambda value: jnp.exp(value * 100), jnp.log, x)

    with pytest.raises(NumericError, match="an overflow in operation 'exp'"):
        run(looped, np.float32(1), oflo=True)


def test_a_loop_without_an_exception_gives_the_same_numbers() -> None:
    def looped(x: Any) -> Any:
        total, parts = jax.lax.scan(lambda carry, each: (carry + each, carry * each), jnp.float32(0), x)
        return jax.lax.while_loop(lambda value: value < 100, lambda value: value * 2, total) + parts.sum()

    x = np.arange(5, dtype=np.float32)
    assert run(looped, x, inv=True) == run(looped, x)


# A half holds at most 65504. 300 * 300 = 90000 is beyond, 250 * 250 = 62500 is not.
@pytest.mark.parametrize(("nanoo", "expected"), [(False, 65504.0), (True, np.nan)])
def test_halves_that_overflow(nanoo: bool, expected: float) -> None:
    x = np.array([300, -300, 250], np.float16)
    result = run(lambda value: value * jnp.abs(value), x, nanoo=nanoo, inv=True)
    assert np.array_equal(result, np.array([expected, -expected, 62500], np.float16), equal_nan=True)


def test_a_cast_saturates_too() -> None:
    assert run(lambda x: x.astype(jnp.float16), np.array([1e6], np.float32), div0=True) == [65504]


def test_without_a_behaviour_the_source_is_the_same() -> None:
    source = trace_function(jnp.exp, FINE)
    assert with_numerics(source, Options(), words) is source
    assert not behaviour_of(Options()).active


@pytest.mark.parametrize("exact", [1 + 0.3 * 2**-10, -(2 + 0.7 * 2**-9), 1000.123, 3e-6, 0.25, 2.0**-14 * 1.9999])
def test_rounding_is_unbiased_and_gives_only_the_two_neighbours(exact: float) -> None:
    count = 200_000
    drawn = np.asarray(round_half(jnp.full(count, exact, jnp.float32), draw_key(first_key(words()), 3))).astype(
        np.float64
    )
    value = float(np.float32(exact))
    nearest = np.float16(value)
    others = {float(np.nextafter(nearest, np.float16(side))) for side in (-np.inf, np.inf)}
    assert set(np.unique(drawn)) <= {float(nearest)} | others
    # Each draw is one of two halves `spacing` apart: the mean of n has a deviation of at most spacing / 2 / sqrt(n).
    spacing = abs(float(np.nextafter(nearest, np.float16(np.inf))) - float(nearest))
    assert abs(drawn.mean() - value) <= 4 * spacing / 2 / np.sqrt(count)


def test_updates_below_the_spacing_of_a_half_add_up_only_with_stochastic_rounding() -> None:
    def train(weight: Any) -> Any:
        return jax.lax.fori_loop(0, 1000, lambda _, held: held + jnp.float16(1e-4), weight)

    start = np.ones(4096, np.float16)  # between 1 and 2 halves are 2^-10 apart, ten times a step
    assert np.array_equal(run(train, start, inv=True), start)
    moved = run(train, start, esr="ON").astype(np.float64)
    step = float(np.float16(1e-4))
    # A walk of 1000 steps of two values 2^-10 apart: deviation below sqrt(1000) * 2^-11 each, over 4096 of them.
    assert abs(moved.mean() - (1 + 1000 * step)) < 4 * np.sqrt(1000) * 2**-11 / 64


def test_products_of_halves_round_stochastically_too() -> None:
    left, right = np.full((64, 3), 1.001, np.float16), np.full((3, 64), 1.0, np.float16)
    once = run(lambda a, b: a @ b, left, right, inv=True)
    many = run(lambda a, b: a @ b, left, right, esr="ON")
    exact = 3 * float(np.float16(1.001))
    assert len(np.unique(once)) == 1
    assert abs(many.astype(np.float64).mean() - exact) < abs(float(once[0, 0]) - exact) or len(np.unique(many)) == 1


def small_model() -> Any:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="first", use_bias=False)])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    return model


def test_a_model_stops_with_the_name_of_its_layer_and_keeps_its_weights() -> None:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 4
    config.floating_point_behaviour.oflo = True
    model = small_model()
    executable = wb.compile(model, batch_size=2, mode="training", config=config)
    x, y = np.full((2, 4), 3e38, np.float32), np.zeros((2, 2), np.float32)
    model.layers[0].kernel.assign(np.ones((4, 2), np.float32))  # four times 3e38 is beyond the largest float
    before = [np.array(variable.value) for variable in model.variables]
    with pytest.raises(NumericError, match="an overflow in operation 'dot_general' of layer 'first'"):
        executable.run(x, y)
    assert all(np.array_equal(old, held.value) for old, held in zip(before, model.variables, strict=True))
    assert executable.run(x / 3e38, y)["loss"] > 0  # usable after the error


@pytest.mark.slow
def test_weights_of_samples_are_checked_like_the_rest() -> None:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 4
    config.floating_point_behaviour.oflo = True
    executable = wb.compile(small_model(), batch_size=2, mode="training", config=config)
    x, y = np.ones((2, 4), np.float32), np.full((2, 2), 1e10, np.float32)
    with pytest.raises(NumericError, match="an overflow"):
        executable.run(x, y, sample_weight=np.full(2, 1e30, np.float32))


@pytest.mark.slow
def test_a_pipeline_stops_with_the_name_of_a_layer_of_its_stage() -> None:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 4
    config.floating_point_behaviour.oflo = True
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="first"), keras.layers.Dense(2)])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    executable = wb.compile(
        model, batch_size=2, mode="training", config=config, stages=[0, 1], gradient_accumulation_steps=4
    )
    x, y = np.ones((8, 4), np.float32), np.ones((8, 2), np.float32)
    assert executable.run(x, y)["loss"] > 0
    model.layers[0].kernel.assign(np.ones((4, 3), np.float32))
    x[3] = 3e38  # in the second micro-batch
    with pytest.raises(NumericError, match="an overflow in operation 'dot_general' of layer 'first'"):
        executable.run(x, y)


def looked_up(table: Any, places: Any) -> Any:
    return table[places]


def added(table: Any, places: Any) -> Any:
    return table.at[places].add(1.0)


@pytest.mark.parametrize(("function", "operation"), [(looked_up, "gather"), (added, "scatter-add")])
def test_validate_indices_stops_the_run_at_a_row_that_is_not_there(function: Any, operation: str) -> None:
    """Row 4 of four; without the option the host's rule for it holds."""
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    options = Options().with_values({"slices.poplar_options.validateIndices": "true"})
    inside, outside = np.array([0, 3, -1], np.int32), np.array([0, 4], np.int32)
    source = with_numerics(trace_function(scoped(function), table, inside), options, words)
    (found,) = source.compute([jnp.asarray(table), jnp.asarray(inside)])
    assert np.array_equal(found, function(jnp.asarray(table), inside))
    source = with_numerics(trace_function(scoped(function), table, outside), options, words)
    says = f"an index outside the table in operation '{operation}' of layer 'layer'"
    with pytest.raises(RowIndexError, match=says):
        source.compute([jnp.asarray(table), jnp.asarray(outside)])
    unchecked = trace_function(function, table, outside)
    assert with_numerics(unchecked, Options(), words) is unchecked


@pytest.mark.parametrize("stable", [False, True])
def test_enable_prng_stability_rounds_alike_what_replicas_share(stable: bool) -> None:
    """512 numbers 0.3 of the way between two halves, the same on two replicas, which each round them."""
    config = IPUConfig()
    config.floating_point_behaviour.esr = ipu.config.StochasticRoundingBehaviour.ON
    config.experimental.enable_prng_stability = stable
    config.ipu_model.tiles_per_ipu = 4
    weight = np.float32(1 + 0.3 * 2**-10)

    def shown(batch: Any, scale: Any) -> Any:
        return (jnp.broadcast_to(scale, (1, 512)) * weight).astype(jnp.float16) + 0 * batch

    batch = np.zeros((1, 512), np.float16)
    made = wb.compile(shown, batch, np.float32(1), config=config, replicas=2)
    first, second = made.run(np.zeros((2, 512), np.float16), np.float32(1))
    assert len(np.unique(first)) == 2  # rounded at random
    assert np.array_equal(first, second) is stable


def own(function: Callable[..., Any], *values: Any, **behaviour: Any) -> Any:
    """What an IPU of a configuration gives, which switches no exception on unless `behaviour` does."""
    config = IPUConfig()
    for name, value in behaviour.items():
        setattr(config.floating_point_behaviour, name, value)
    small = wb.target("ipu2", tiles_per_ipu=4)
    return np.asarray(wb.compile(function, *values, config=config, target=small).run(*values))


def test_a_configured_ipu_has_halves_of_its_own() -> None:
    x = np.array([300, -300, 250], np.float16)
    assert own(lambda value: value * jnp.abs(value), x).tolist() == [65504, -65504, 62496]
    assert own(lambda value: 1 / (value - 250), x).tolist()[:2] == [np.float16(1 / 50), np.float16(-1 / 550)]
    assert np.isnan(own(lambda value: 1 / (value - 250), x)[2])
    assert np.isinf(np.asarray(wb.compile(jnp.square, x, target="ipu2").run(x))[0])  # the host's, unconfigured


def test_what_is_no_number_is_the_least_integer_and_invalid() -> None:
    x = np.array([np.nan, -2.5, 7.0], np.float32)
    assert own(lambda value: value.astype(jnp.int32), x).tolist() == [-(2**31), -2, 7]
    with pytest.raises(NumericError, match="an invalid operation in operation 'convert_element_type'"):
        own(lambda value: value.astype(jnp.int32), x, inv=True)
    largest = np.array([-(2.0**31), 2147483520.0], np.float32)  # the least and the greatest that are integers
    assert own(lambda value: value.astype(jnp.int32), largest, inv=True).tolist() == [-(2**31), 2147483520]
    with pytest.raises(NumericError, match="excepted state"):
        own(lambda value: value.astype(jnp.int32), np.array([2.0**31], np.float32), inv=True)


@pytest.mark.parametrize(("stable", "shared", "own_data"), [(True, 2, 1), (False, 1, 1)])
def test_replica_identical_only_rounds_what_replicas_share(stable: bool, shared: int, own_data: int) -> None:
    """512 numbers 0.3 of the way between two halves: of what replicas share, of their data, and of its mean.

    The counts are of different halves found; the mean over replicas is the same on each, so it is rounded too.
    """
    config = IPUConfig()
    config.floating_point_behaviour.esr = ipu.config.StochasticRoundingBehaviour.REPLICA_IDENTICAL_ONLY
    config.experimental.enable_prng_stability = stable
    config.ipu_model.tiles_per_ipu = 4
    exact = np.float32(1 + 0.3 * 2**-10)

    def step(batch: Any, scale: Any) -> Any:
        def turn(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            same, own = carry
            return same * scale, own * scale

        same, own = jax.lax.fori_loop(0, 2, turn, (jnp.full((1, 512), exact), batch * exact))
        mean = jax.lax.pmean(own, "replicas")
        return tuple(each.astype(jnp.float16) for each in (same, own, mean))

    target = wb.target("ipu2", tiles_per_ipu=4)
    made = wb.compile(step, np.ones((1, 512), np.float32), np.float32(1), config=config, replicas=2, target=target)
    same, own, mean = made.run(np.ones((2, 512), np.float32), np.float32(1))
    assert [len(np.unique(each)) for each in (same, own, mean)] == [shared, own_data, shared]
    assert np.array_equal(same[0], same[1])
    assert np.array_equal(mean[0], mean[1])
