"""Arguments that a jitted function donates stay on the chip; what comes back anew is written over them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.engine.frontends.trace.donated import crossing_again, donated_arguments, donations

WIDE = jax.ShapeDtypeStruct((8, 4), "float32")
LONG = jax.ShapeDtypeStruct((6,), "float32")


def traced(function: Any, *types: Any) -> Any:
    return jax.make_jaxpr(function)(*types).jaxpr


@pytest.mark.parametrize(
    ("function", "donated", "over"),
    [
        (jax.jit(lambda a, b, c: (a + 1, b * 2), donate_argnums=0), [0], {0: 0}),
        # two of one shape: the first result of the shape takes the first, whatever it was made of
        (jax.jit(lambda a, b, c: (b * 2, a + 1), donate_argnums=(0, 1)), [0, 1], {0: 0, 1: 1}),
        (jax.jit(lambda a, b, c: (c.sum(), a + 1), donate_argnums=(0, 1)), [0, 1], {1: 0}),
        (jax.jit(lambda a, b, c: a.sum(), donate_argnums=0), [0], {}),  # no result has its shape
        (jax.jit(lambda a, b, c: a.astype("int32"), donate_argnums=0), [0], {}),  # nor its type
        (jax.jit(lambda a, b, c: (a, a + 1), donate_argnums=0), [0], {0: 0}),  # it comes back as it was, and stays
        (jax.jit(lambda a, b, c: (a + 1, b)), [], {}),
        (lambda a, b, c: (a + 1, b), [], {}),
    ],
)
def test_a_result_takes_the_memory_of_a_donated_argument(function: Any, donated: list[int], over: Any) -> None:
    jaxpr = traced(function, WIDE, WIDE, LONG)
    assert donated_arguments(jaxpr) == donated
    assert donations(jaxpr) == over


ONE = jax.jit(lambda a: a + 1, donate_argnums=0)
BOTH = jax.jit(lambda a, b: (a + 1, b * 2), donate_argnums=(0, 1))


@pytest.mark.parametrize(
    ("function", "over"),
    [
        (lambda a: ONE(ONE(a)), {0: 0}),  # two steps in one call: the second writes over what the first wrote
        (jax.jit(lambda a: ONE(ONE(a)), donate_argnums=0), {0: 0}),
        (lambda a: ONE(ONE(a) * 2), {}),  # the product is in memory of its own, and that is donated
        (lambda a: ONE(a) * 2, {}),
        # the memory of one array holds one result, of how many names or calls it is donated by
        (lambda a: BOTH(a, a), {0: 0}),
        (lambda a: (ONE(a), ONE(a)), {0: 0}),
    ],
)
def test_memory_that_is_donated_within_a_function(function: Any, over: Any) -> None:
    assert donations(traced(function, WIDE)) == over


def test_state_that_is_not_donated_is_seen() -> None:
    """Two arrays of 128 B come back; a float of the data and a scalar result are little beside them."""
    state = {"w": WIDE, "slot": WIDE}
    jaxpr = traced(lambda s, x: (jax.tree.map(lambda each: each + x[0], s), x.sum()), state, LONG)
    assert crossing_again(jaxpr, {}) == 2 * 128
    assert crossing_again(jaxpr, {0: 0, 1: 1}) == 0
    assert crossing_again(traced(lambda x: x * 2, WIDE), {}) == 0  # one array may be anything


def step(state: Any, x: Any, y: Any) -> Any:
    """A layer trained with momentum."""

    def loss(w: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(state["w"])
    speed = 0.9 * state["speed"] + gradient
    return {"w": state["w"] - 0.1 * speed, "speed": speed}, value


RNG = np.random.default_rng(5)
STATE = {name: RNG.normal(size=(16, 8)).astype(np.float32) for name in ("w", "speed")}
X, Y = (RNG.normal(size=(4, wide)).astype(np.float32) for wide in (16, 8))


def test_a_donated_state_stays_on_the_chip() -> None:
    executable = wb.compile(jax.jit(step, donate_argnums=0), STATE, X, Y)
    profile = executable.profile
    held = profile.variables.query("kind == 'state'")
    assert set(held["name"]) == {"args[0]['speed']", "args[0]['w']"}
    assert held["always_live"].all()
    copies = profile.steps.query("kind == 'StreamCopy'")
    arriving, leaving = int(copies["bytes_received"].sum()), int(copies["bytes_sent"].sum())
    assert (arriving, leaving) == (X.nbytes + Y.nbytes, 4)  # the data, and the loss
    (said,) = [each for each in profile.assumptions if "donated" in each]
    assert said.endswith(": args[0]['speed'], args[0]['w']")


def test_runs_return_the_new_state() -> None:
    executable = wb.compile(jax.jit(step, donate_argnums=0), STATE, X, Y)
    here: Any = STATE
    there: Any = STATE
    for _ in range(3):
        here, loss = executable.run(here, X, Y)
        there, expected = jax.jit(step)(there, X, Y)
        assert np.allclose(loss, expected, rtol=1e-6)
        assert all(np.allclose(here[name], there[name], rtol=1e-5, atol=1e-6) for name in STATE)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_rate_that_is_a_python_number_leaves_narrow_state_narrow(dtype: str) -> None:
    """As in a jitted call: a Python number takes the array's type, and an array of float32 does not."""
    state = jnp.ones((8, 4), dtype)
    step_by = jax.jit(lambda weights, rate: weights - rate * weights, donate_argnums=0)
    for rate, kind in ((0.5, dtype), (np.float32(0.5), "float32")):
        executable = wb.compile(step_by, state, rate)
        found = executable.run(state, rate)
        assert found.dtype == jax.eval_shape(step_by, state, rate).dtype == kind
        assert np.array_equal(found, np.full((8, 4), 0.5))
        assert ("state" in set(executable.profile.variables["kind"])) == (kind == dtype)


def test_a_state_that_comes_back_as_it_was() -> None:
    executable = wb.compile(jax.jit(lambda a, x: (a, a + x), donate_argnums=0), STATE["w"], STATE["speed"])
    same, total = executable.run(STATE["w"], STATE["speed"])
    assert np.array_equal(same, STATE["w"])
    assert np.array_equal(total, STATE["w"] + STATE["speed"])
    copies = executable.profile.steps.query("kind == 'StreamCopy'")
    assert (copies["bytes_received"].sum(), copies["bytes_sent"].sum()) == (X.nbytes * 2, X.nbytes * 2)


def test_all_replicas_start_from_one_state() -> None:
    """Data are the replicas' behind each other; the state is given once, and comes back once."""

    def averaged(state: Any, x: Any, y: Any) -> Any:
        new, loss = step(state, x, y)
        return jax.tree.map(lambda each: jax.lax.pmean(each, "replicas"), new), loss

    executable = wb.compile(jax.jit(averaged, donate_argnums=0), STATE, X, Y, replicas=2)
    new, losses = executable.run(STATE, np.concatenate([X, -X]), np.concatenate([Y, Y]))
    alone = [step(STATE, x, Y) for x in (X, -X)]
    assert np.allclose(losses, [loss for _, loss in alone], rtol=1e-5)
    assert np.allclose(new["w"], (alone[0][0]["w"] + alone[1][0]["w"]) / 2, rtol=1e-5, atol=1e-6)


def test_a_state_that_replicas_have_otherwise_is_refused() -> None:
    """The sums of their parts are 4 and 8: that of the first came back, as if the other had it too."""
    parts = np.array([1, 1, 1, 1, 2, 2, 2, 2], "float32")

    def ran(new: Any, state: Any = 0.0) -> Any:
        executable = wb.compile(jax.jit(new, donate_argnums=0), state, parts[:4], replicas=2)
        return executable.run(state, parts)

    with pytest.raises(wb.InputError, match=r"^args\[0\] is donated and comes back with another value on another repl"):
        ran(lambda state, x: (state + x.sum(), x))
    assert ran(lambda state, x: (state + jax.lax.pmean(x.sum(), "replicas"), x))[0] == 6
    assert ran(lambda state, x: (state + 1, x))[0] == 1
    assert np.isnan(ran(lambda state, x: (state / 0 + 0 * x.sum(), x))[0])  # of both, and so the same
    key = jax.random.key(0)
    assert ran(lambda state, x: (jax.random.split(state)[0], x), key)[0] == jax.random.split(key)[0]


def test_what_cannot_stay_is_told() -> None:
    profile = wb.compile(jax.jit(lambda a, x: (a * x).sum(), donate_argnums=0), WIDE, WIDE).profile
    assert "donated arguments that no result is written over arrive with each call: args[0]" in profile.assumptions
    assert set(profile.variables.query("kind == 'input'")["name"]) == {"args[0]", "args[1]"}


def test_the_host_s_share_names_what_keeps_state_on_the_chip() -> None:
    """The state is most of what crosses, so it is advised; once it is donated there is nothing to advise."""
    large = {name: jax.ShapeDtypeStruct((256, 512), "float32") for name in STATE}
    data = [jax.ShapeDtypeStruct((4, wide), "float32") for wide in (256, 512)]
    before, after = (wb.compile(each, large, *data).profile for each in (step, jax.jit(step, donate_argnums=0)))
    assert "donate_argnums" in str(before.insights)
    assert "donate_argnums" not in str(after.insights)
    assert after.total_cycles < before.total_cycles / 2


def test_a_step_by_hand_takes_what_the_compiled_model_takes() -> None:
    """The same layers and optimizer: `fit`'s step adds up losses, so the two are near, and the host sends the same."""
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(10)])
    optimizer, losses = keras.optimizers.Adam(), keras.losses.MeanSquaredError()
    optimizer.build(model.trainable_variables)

    def by_hand(state: Any, x: Any, y: Any) -> Any:
        def loss(weights: Any) -> Any:
            return losses(y, model.stateless_call(weights, [], x, training=True)[0])

        value, gradients = jax.value_and_grad(loss)(state[0])
        return optimizer.stateless_apply(state[1], gradients, state[0]), value

    state = ([each.value for each in model.trainable_variables], [each.value for each in optimizer.variables])
    data = [jax.ShapeDtypeStruct((32, wide), "float32") for wide in (64, 10)]
    own = wb.compile(jax.jit(by_hand, donate_argnums=0), state, *data).profile
    model.compile(keras.optimizers.Adam(), losses)
    given = wb.compile(model, batch_size=32).profile
    assert own.total_cycles == pytest.approx(given.total_cycles, rel=0.1)
    assert own.max_tile_bytes == pytest.approx(given.max_tile_bytes, rel=0.1)
    host = [each.steps.query("kind == 'StreamCopy'")["bytes_received"].sum() for each in (own, given)]
    assert host == [32 * (64 + 10) * 4] * 2
