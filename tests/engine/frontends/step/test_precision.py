"""A live model in another precision is what its builder gives under that policy, whatever lies inside what."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.base.identity import ByIdentity
from workbench.engine.frontends.describe.keras_layers import walk_layers
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.frontends.step.precision import in_precision
from workbench.engine.run import Runner
from workbench.errors import InputError

FEATURES, STEPS, BATCH = 4, 3, 2
OWN = "own"  # layers of that name are given their policy


class Counted(keras.layers.Layer):
    """A weight, and a whole number beside it."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(name="scale", shape=(shape[-1],))
        self.calls = self.add_weight(name="calls", shape=(), dtype="int32", initializer="zeros", trainable=False)

    def call(self, x: Any) -> Any:
        return x * self.scale

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


class Inside(keras.layers.Layer):
    """A layer that makes another."""

    def __init__(self, units: int, **more: Any) -> None:
        super().__init__(**more)
        self.inner = keras.layers.Dense(units, activation=lambda x: keras.ops.tanh(x))

    def build(self, shape: Any) -> None:
        self.inner.build(shape)

    def call(self, x: Any) -> Any:
        return self.inner(x)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


class OfAClass(keras.Model):
    """A subclassed model that says what it was made of; layers one after another."""

    def __init__(self, nestings: Any, **more: Any) -> None:
        super().__init__(**more)
        self.nestings = nestings
        self.parts = [made(each) for each in nestings]

    def build(self, shape: Any) -> None:
        for part in self.parts:
            part.build(shape)

    def call(self, x: Any, training: bool = False) -> Any:
        for part in self.parts:
            x = part(x, training=training)
        return x

    def get_config(self) -> Any:
        return {**super().get_config(), "nestings": self.nestings}


class Fixed(keras.Model):
    """A subclassed model of which nothing is given."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = keras.layers.Dense(FEATURES), keras.layers.GRU(FEATURES, return_sequences=True)

    def call(self, x: Any) -> Any:
        return self.second(self.first(x))


def sequence(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **own: make(FEATURES, return_sequences=True, dropout=0.1, seed=3, **own)


PLAIN: dict[str, Callable[..., Any]] = {
    "dense": lambda **own: keras.layers.Dense(FEATURES, kernel_regularizer=keras.regularizers.L2(0.1), **own),
    "norm": lambda **own: keras.layers.BatchNormalization(**own),
    "dropout": lambda **own: keras.layers.Dropout(0.5, seed=1, **own),
    "counted": lambda **own: Counted(**own),
    "attention": lambda **own: keras.layers.LayerNormalization(**own),
    "lstm": sequence(keras.layers.LSTM),
    "gru": sequence(keras.layers.GRU),
    "simple": sequence(keras.layers.SimpleRNN),
}
ROWS = st.sampled_from(["in a row", "around"])
LEAVES = st.tuples(st.sampled_from(sorted(PLAIN)), st.booleans())
Nesting = Any


def nestings() -> st.SearchStrategy[Nesting]:
    """Layers in models in models; wrappers and cells around layers, all of whose outputs are as their inputs."""
    called = st.one_of(
        LEAVES,
        st.tuples(st.just("each step"), st.sampled_from(["dense", "norm", "counted"]), st.booleans(), st.booleans()),
        st.tuples(st.just("both ways"), st.sampled_from(["lstm", "gru"])),
    )
    # Keras calls what is in a subclassed model to find its shapes, which it cannot with these cells.
    cells = st.tuples(
        st.just("cells"), st.lists(st.tuples(st.sampled_from(["LSTM", "GRU"]), st.booleans()), min_size=1)
    )
    classes = st.tuples(st.just("a class"), st.lists(called, min_size=1, max_size=3))
    return st.recursive(
        st.one_of(called, cells, classes), lambda inner: st.tuples(ROWS, st.lists(inner, min_size=1, max_size=3))
    )


NUMBERS = itertools.count()


def policy(own: bool, name: str = OWN) -> dict[str, Any]:
    """Arguments of a layer that is given its policy."""
    return {"dtype": "float32", "name": f"{name}_{next(NUMBERS)}"} if own else {}


def made(nesting: Nesting) -> Any:
    kind = nesting[0]
    if kind in PLAIN:
        return PLAIN[kind](**policy(nesting[1]))
    if kind == "each step":
        return keras.layers.TimeDistributed(PLAIN[nesting[1]](**policy(nesting[2])), **policy(nesting[3], "wrapper"))
    if kind == "both ways":
        return keras.layers.Bidirectional(PLAIN[nesting[1]](), merge_mode="sum")
    if kind == "cells":
        cells = [getattr(keras.layers, f"{name}Cell")(FEATURES, **policy(own)) for name, own in nesting[1]]
        return keras.layers.RNN(cells, return_sequences=True)
    return model(nesting)


def model(nesting: Nesting) -> Any:
    layers = [made(each) for each in nesting[1]] if nesting[0] != "a class" else []
    start = keras.Input((STEPS, FEATURES))
    if nesting[0] == "a class":
        found = OfAClass(nesting[1])
        found.build((None, STEPS, FEATURES))
        return found
    if nesting[0] == "in a row":
        return keras.Sequential([start, *layers])
    x = start
    for layer in layers:
        x = keras.layers.Add()([layer(x), x])
    return keras.Model(start, x)


def models() -> st.SearchStrategy[Nesting]:
    return st.tuples(ROWS, st.lists(nestings(), min_size=1, max_size=3))


@pytest.mark.parametrize(("precision", "wanted"), [("float16", "float16"), ("mixed_float16", "float32")])
@settings(max_examples=6, deadline=None)
@given(nesting=models())
def test_weights_without_a_policy_of_their_own_take_it(precision: str, wanted: str, nesting: Nesting) -> None:
    live = model(nesting)
    before = [(each.path, each.dtype, np.asarray(each.value)) for each in live.variables]
    copied, _ = in_precision(live, precision)
    own = ByIdentity(
        (each, None) for path, layer in walk_layers(live) if layer.name.startswith(OWN) for each in layer.variables
    )
    for (_, dtype, value), variable, new in zip(before, live.variables, copied.variables, strict=True):
        assert new.dtype == (wanted if dtype == "float32" and variable not in own else dtype)
        np.testing.assert_array_equal(np.asarray(new.value), value.astype(new.dtype))
    assert [(each.path, each.dtype) for each in live.variables] == [each[:2] for each in before]


KINDS: dict[str, Nesting] = {
    "attention": ("attention", False),
    "lstm": ("lstm", False),
    "gru": ("gru", False),
    "simple": ("simple", False),
    "each step": ("each step", "dense", False, False),
    "both ways": ("both ways", "gru"),
    "cells": ("cells", [("LSTM", False), ("GRU", False)]),
    "a class": ("a class", [("dense", True), ("gru", False)]),
    "nested": ("in a row", [("around", [("dense", False), ("counted", True)]), ("norm", False)]),
}


def traced(source: Any, precision: str, **more: Any) -> tuple[Any, ...]:
    """What a trace computes, and what it says of its variables and results."""
    found = trace_keras(source, BATCH, precision=precision, **more)
    computed = Counter((eqn.primitive.name, str(var.aval)) for eqn in found.jaxpr.eqns for var in eqn.outvars)
    held = [(each.role, str(var.aval)) for each, var in zip(found.graph.inputs, found.jaxpr.jaxpr.invars, strict=False)]
    return computed, held, [each.role for each in found.graph.outputs]


@pytest.mark.parametrize("precision", ["float16", "mixed_float16"])
@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k == "attention")) for k in KINDS])
def test_a_copy_is_what_its_builder_gives(kind: str, precision: str) -> None:
    def build() -> Any:
        return model(("in a row", [KINDS[kind]]))

    assert traced(build(), precision, mode="training") == traced(build, precision, mode="training")


def called() -> Any:
    live = Fixed()
    live(np.zeros((BATCH, STEPS, FEATURES), "float32"))
    return live


def told_its_shape() -> Any:
    live = Fixed()
    live.build((None, STEPS, FEATURES))
    return live


@pytest.mark.filterwarnings("ignore:.build.. was called on layer")
@pytest.mark.parametrize("build", [called, told_its_shape])
def test_a_subclassed_model_is_made_again(build: Callable[[], Any]) -> None:
    """With the names it had, whatever was made before it."""
    build()
    live = build()
    copied, _ = in_precision(live, "float16")
    assert [path for path, _ in walk_layers(copied)] == [path for path, _ in walk_layers(live)]
    assert {each.dtype for each in copied.trainable_variables} == {copied.dtype} == {"float16"}
    assert traced(live, "float16", mode="training")[0] == traced(called(), "float16", mode="training")[0]


def test_a_subclassed_copy_is_what_its_builder_gives() -> None:
    assert traced(called(), "float16", mode="training") == traced(called, "float16", mode="training")


@pytest.mark.parametrize("precision", ["float16", "mixed_float16"])
def test_a_copy_is_compiled_as_its_model(precision: str) -> None:
    def build() -> Any:
        made = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(3)])
        made.compile("adam", lambda y, p: keras.ops.mean(keras.ops.square(y - p)), metrics=["mae"])
        return made

    assert traced(build(), precision) == traced(build, precision)


def test_a_saved_model_has_no_policy_of_its_own(tmp_path: Path) -> None:
    nestings = [KINDS[name] for name in ("both ways", "each step", "lstm", "nested")]
    kept = model(("in a row", [each for each in nestings if "counted" not in str(each)]))
    kept.save(tmp_path / "kept.keras")
    copied, said = in_precision(keras.models.load_model(tmp_path / "kept.keras"), "float16")
    assert {each.dtype for each in copied.variables} == {"float16", "uint32"}
    assert len(said) == 1


def test_layers_that_keep_their_policy_are_named() -> None:
    live = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(2), keras.layers.Dense(2, dtype="float32")])
    _, said = in_precision(live, "float16")
    assert said[1] == f"precision: layers with a policy of their own keep it: {live.layers[1].name} (float32)"


def test_functions_of_the_users_own_go_along() -> None:
    layers = [Inside(FEATURES), Inside(FEATURES, dtype="float32"), keras.layers.Lambda(lambda x: 2 * x)]
    live = keras.Sequential([keras.Input((FEATURES,)), *layers, keras.layers.Dense(1, activation=lambda x: x - 1)])
    x = np.random.default_rng(0).random((BATCH, FEATURES), dtype="float32")
    ours = Runner(trace_keras(live, BATCH, "inference", precision="mixed_float16")).run(x)
    np.testing.assert_allclose(ours, np.asarray(live(x)), atol=2e-3)


class Subclassed(keras.Model):
    """A model whose making Keras does not know."""

    def __init__(self, units: int = 3) -> None:
        super().__init__()
        self.inner = keras.layers.Dense(units)

    def build(self, shape: Any) -> None:
        self.inner.build(shape)

    def call(self, x: Any) -> Any:
        return self.inner(x)


def subclassed() -> Any:
    made = Subclassed(5)
    made.build((None, FEATURES))
    return made


def shared() -> Any:
    dense, x = keras.layers.Dense(FEATURES), keras.Input((STEPS, FEATURES))
    return keras.Model(x, keras.layers.TimeDistributed(dense)(x) + dense(x))


def wrapped_with_a_policy() -> Any:
    layer = keras.layers.Bidirectional(keras.layers.LSTM(FEATURES, name="lstm"), dtype="float32", name="both")
    return keras.Sequential([keras.Input((STEPS, FEATURES)), layer, keras.layers.Dense(1)])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (subclassed, "Subclassed is a subclassed model without a get_config of its own"),
        (shared, "its 2 variables become 4 others: layers share weights, or have more"),
        (wrapped_with_a_policy, "whether 'both/forward_lstm' has a policy of its own is lost, because its wrapper"),
    ],
)
def test_what_cannot_be_copied_is_refused_by_name(make: Callable[[], Any], why: str) -> None:
    live = make()
    with pytest.raises(InputError) as error:
        trace_keras(live, BATCH, precision="float16")
    assert str(error.value).startswith(f"the model {live.name!r} cannot be copied into float16: {why}")
    assert "keras.config.set_dtype_policy('float16')" in str(error.value)
    assert "with a get_config that gives every argument" in str(error.value)
    assert {layer.dtype_policy.name for layer in live.layers} == {"float32"}


def recurrent(initializer: str = "orthogonal", start: str = "float32") -> Any:
    keras.utils.set_random_seed(4)
    gru = keras.layers.GRU(FEATURES, recurrent_initializer=initializer)
    return keras.Sequential([keras.Input((STEPS, FEATURES), dtype=start), gru, keras.layers.Dense(1)])


def test_a_gru_trains_in_halves_as_keras_trains_it() -> None:
    live = recurrent()
    keras.config.set_dtype_policy("float16")
    try:  # with another initialiser, as Keras does not make orthogonal halves on this machine
        theirs = recurrent("glorot_uniform", "float16")
        theirs.compile("sgd", "mse")
    finally:
        keras.config.set_dtype_policy("float32")
    for held, value in zip(theirs.trainable_variables, live.trainable_variables, strict=True):
        held.assign(value.value)
    draw = np.random.default_rng(1)
    x, y = (draw.random(shape).astype("float16") for shape in ((BATCH, STEPS, FEATURES), (BATCH, 1)))
    runner = Runner(trace_keras(live, BATCH, "training", precision="float16", optimizer="sgd", loss="mse"))
    for _ in range(2):
        assert runner.run(x, y)["loss"] == pytest.approx(float(theirs.train_on_batch(x, y)), rel=5e-3)


def test_orthogonal_halves_are_the_floats_of_their_seed() -> None:
    initial = []
    for precision in ("float32", "float16"):
        source = trace_keras(recurrent, BATCH, "inference", precision=precision)
        Runner(source).run(np.zeros((BATCH, STEPS, FEATURES), precision))
        initial.append(np.asarray(source.model.layers[0].cell.recurrent_kernel.value))
    floats, halves = initial
    np.testing.assert_allclose(floats @ floats.T, np.eye(FEATURES), atol=1e-5)
    np.testing.assert_array_equal(halves, floats.astype("float16"))
    with pytest.raises(NotImplementedError):  # nothing of Keras' own is left changed
        keras.initializers.Orthogonal()((4, 4), "float16")


def test_a_profile_holds_half_the_bytes() -> None:
    live = model(("in a row", [KINDS["nested"], KINDS["each step"], KINDS["gru"]]))
    own = {each.path for _, layer in walk_layers(live) if layer.name.startswith(OWN) for each in layer.variables}
    arguments: dict[str, Any] = {"batch_size": BATCH, "mode": "training", "optimizer": "adam"}
    before, after = (
        wb.profile(live, **arguments, **more).variables.groupby("name").agg({"bytes": "sum", "dtype": "first"})
        for more in ({}, {"precision": "float16"})
    )
    weights = [each.path for each in live.variables if each.dtype == "float32"]
    assert own & set(weights)
    for path in weights:
        assert after.bytes[path] == before.bytes[path] // (1 if path in own else 2), path
        if path in {each.path for each in live.trainable_variables}:
            slot = f"optimizer/{path.replace('/', '_')}_velocity"
            assert after.bytes[slot] == after.bytes[path]
    whole = [name for name in before.index if name.endswith(("/seed", "/calls", "/iteration"))]
    assert len(whole) > 2
    assert (after.bytes[whole] == before.bytes[whole]).all()


def test_layers_that_write_their_variables_type_are_copied() -> None:
    layers = [keras.layers.Conv1D(2, 3, name="conv"), keras.layers.SpatialDropout1D(0.1, name="drop")]
    model = keras.Sequential([keras.Input((8, 3)), *layers])
    variables = wb.profile(model, batch_size=2, mode="inference", precision="mixed_float16").variables
    assert set(variables.loc[variables["kind"] == "parameter", "dtype"]) == {"float32"}, variables
    assert "float16" in set(variables.loc[variables["kind"] == "activation", "dtype"])


def test_the_scaling_that_keras_puts_around_an_optimizer_is_said_where_it_is_and_only_there() -> None:
    def said(compiled: Any = "sgd", precision: str = "mixed_float16", **given: Any) -> list[str]:
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        model.compile(compiled, "mse")
        profile = wb.profile(model, batch_size=2, precision=precision, **given)
        scaled = any("branches:" in each for each in profile.assumptions)  # an update that depends on the scaled loss
        found = [each for each in profile.assumptions if each.startswith("optimizer: ")]
        assert scaled or not found
        return found

    (sentence,) = said()
    assert sentence.startswith("optimizer: in the LossScaleOptimizer that Keras puts around that of a mixed_float16")
    assert not said(mode="inference")
    assert not said(precision="float16")
    assert not said(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)))  # the model's own
    assert not said(optimizer=keras.optimizers.SGD(0.1))
