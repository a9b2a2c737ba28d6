from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import workbench as wb
from tests.engine.frontends.keras_models import mlp
from workbench.engine.frontends.functions import trace_function
from workbench.engine.frontends.keras import trace_keras
from workbench.errors import InputError

WAYS_OUT = (
    "Python control flow (if, while, int(), float(), bool()) depends on a traced value. "
    "Expected: a program whose shape does not depend on the data. "
    "To mend it: use jax.numpy.where or jax.lax.select to choose values, jax.lax.cond to choose branches, "
    "jax.lax.while_loop or jax.lax.fori_loop to loop."
)


def message(call: Any) -> str:
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


def test_keras_on_another_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    assert message(lambda: trace_keras("mlp", 2)) == (
        "Keras runs on the backend 'tensorflow'. Expected: the backend 'jax'. "
        "To mend it: put `import os; os.environ['KERAS_BACKEND'] = 'jax'` before the first `import keras`, "
        "and restart the kernel."
    )


@pytest.mark.parametrize("size", [0, -4, 2.0, True, "8"])
def test_a_batch_size_that_cannot_be(size: Any) -> None:
    assert message(lambda: trace_keras(mlp(), size)) == (
        f"batch_size is {size!r}. Expected: a whole number of at least 1. To mend it: pass batch_size=1 or more."
    )


def test_no_batch_size() -> None:
    assert message(lambda: trace_keras(mlp())) == (
        "x has shape (None, 6) with unknown dimensions and no batch size was given. "
        "Expected: every dimension known when compiling. To mend it: pass batch_size=."
    )


def test_a_dimension_besides_the_batch_that_is_unknown() -> None:
    model = keras.Sequential([keras.Input((None, 3)), keras.layers.Dense(2)])
    assert message(lambda: trace_keras(model, 4)) == (
        "x has shape (None, None, 3) with unknown dimensions besides the batch. "
        "Expected: every dimension known when compiling. "
        "To mend it: give keras.Input a full shape, such as the length sequences are padded to."
    )


def test_two_batch_sizes() -> None:
    x = keras.Input(batch_shape=(4, 3))
    model = keras.Model(x, keras.layers.Dense(2)(x))
    assert trace_keras(model).graph.batch_size == 4
    assert message(lambda: trace_keras(model, 8)) == (
        "x was built for a batch of 4 and batch_size is 8. Expected: one batch size. "
        "To mend it: pass batch_size=4, or build the model without a batch size."
    )


def test_an_empty_model() -> None:
    assert message(lambda: trace_keras(keras.Sequential(name="void"), 2)) == (
        "the model 'void' is empty. Expected: at least one layer. "
        "To mend it: add layers: model.add(keras.layers.Dense(10))."
    )


def test_an_unbuilt_model() -> None:
    model = keras.Sequential([keras.layers.Dense(3)], name="bare")
    assert message(lambda: trace_keras(model, 2)) == (
        "the model 'bare' is not built: its input shape is unknown. "
        "Expected: a model whose layers have their weights' shapes. "
        "To mend it: begin it with keras.Input(shape), call model.build((batch_size, ...)), or give an example of its "
        "input: wb.compile(model, x)."
    )


def test_something_that_is_no_model() -> None:
    assert message(lambda: trace_keras(lambda: 3, 2)) == (
        "3 is not a Keras model. Expected: a keras.Model, a function that builds one, or a ready name."
    )


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (
            "float64",
            "input 'given' is float64. Expected: float32 or float16. "
            "To mend it: convert it: input 'given'.astype('float32').",
        ),
        (
            "string",
            "input 'given' holds strings. Expected: numbers. To mend it: turn it into numbers before it "
            "reaches the model (a vocabulary or StringLookup on the host).",
        ),
    ],
)
def test_inputs_of_a_type_the_ipu_does_not_have(dtype: str, expected: str) -> None:
    inputs = keras.Input((3,), dtype=dtype, name="given")
    model = keras.Model(inputs, keras.layers.Identity()(inputs))
    assert message(lambda: trace_keras(model, 2)) == expected


def test_arrays_of_a_function_of_a_type_the_ipu_does_not_have() -> None:
    assert message(lambda: trace_function(jnp.sin, jax.ShapeDtypeStruct((3,), np.float64))) == (
        "args[0] is float64. Expected: float32 or float16. To mend it: convert it: args[0].astype('float32')."
    )
    assert message(lambda: trace_function(jnp.sin, {"a": np.ones(3, "complex64")})) == (
        "args[0]['a'] is complex64. Expected: real numbers. To mend it: pass real and imaginary parts as two arrays."
    )
    assert message(lambda: trace_function(jnp.sin, "three")) == (
        "args[0] holds strings. Expected: numbers. To mend it: turn it into numbers before it reaches the model "
        "(a vocabulary or StringLookup on the host)."
    )


def test_numbers_of_float64_are_an_example_of_float32_as_they_are_for_fit() -> None:
    """NumPy makes float64 where nobody asks for a type; a number of it is as strongly typed as an array."""
    source = trace_function(lambda x, half: x + half, np.float64(3), jax.ShapeDtypeStruct((), "float16"))
    assert [spec.dtype for spec in source.specs] == ["float32", "float16"]
    (added,) = source.compute([jnp.float32(3), jnp.float16(1)])
    assert added.dtype == "float32"  # float16, were the number as weakly typed as one of Python
    model = mlp(optimizer="sgd", loss="mse")
    assert [spec.dtype for spec in trace_keras(model, inputs=(np.ones((4, 6)), np.ones((4, 4)))).specs] == [
        "float32"
    ] * 2


def branching(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def looping(x: Any) -> Any:
    while x < 3:
        x = x + 1
    return x


def counting(x: Any) -> Any:
    return sum(x for _ in range(int(x)))


@pytest.mark.parametrize("fn", [branching, looping, counting])
def test_python_control_flow_on_traced_values(fn: Any) -> None:
    shape = (3,) if fn is branching else ()
    assert message(lambda: trace_function(fn, jax.ShapeDtypeStruct(shape, "float32"))) == WAYS_OUT


def test_python_control_flow_in_a_layer() -> None:
    class Branch(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x if keras.ops.sum(x) > 0 else -x

        def compute_output_spec(self, x: Any) -> Any:
            return keras.KerasTensor(x.shape, x.dtype)

    model = keras.Sequential([keras.Input((3,)), Branch(), keras.layers.Dense(2)])
    assert message(lambda: trace_keras(model, 2)) == WAYS_OUT


@pytest.mark.parametrize("fn", [lambda x: np.sin(x), lambda x: x[x > 0]])
def test_numpy_on_a_traced_value(fn: Any) -> None:
    assert message(lambda: trace_function(fn, jnp.ones(3))) == (
        "numpy, or an index by a mask, was used on a traced value. "
        "Expected: operations of jax.numpy or keras.ops whose result has a known shape. "
        "To mend it: replace the numpy function by the one of the same name in jax.numpy or keras.ops, "
        "and x[mask] by jax.numpy.where(mask, x, 0)."
    )


def ranging(x: Any) -> Any:
    return sum(x for _ in range(x))


def test_a_traced_number_is_no_range() -> None:
    assert message(lambda: trace_function(ranging, jax.ShapeDtypeStruct((), "int32"))) == WAYS_OUT


def test_a_function_without_a_result() -> None:
    assert message(lambda: trace_function(lambda x: None, jnp.ones(3), name="quiet")) == (
        "the function 'quiet' returns no array. Expected: one array or more. To mend it: return what it computes."
    )


@pytest.mark.parametrize(
    ("losses", "what"),
    [(["mse", "mae"], "2 losses were given"), ({"out": "mse", "other": "mae"}, "losses for out, other were given")],
)
def test_losses_without_an_output(losses: Any, what: str) -> None:
    assert message(lambda: trace_keras(mlp(), 2, "training", loss=losses)) == (
        f"{what}. Expected: one loss. To mend it: give loss= a loss for each output, in a list or by name."
    )


def test_a_list_of_one_loss_is_that_loss() -> None:
    found = trace_keras(mlp(), 2, "training", loss=["mse"])
    assert str(found.graph) == str(trace_keras(mlp(), 2, "training", loss="mse").graph)


def test_a_model_without_weights_does_not_train() -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.ReLU()], name="still")
    assert message(lambda: trace_keras(model, 2, "training")) == (
        "the model 'still' has no weights to train. Expected: at least one trainable weight. "
        "To mend it: set layer.trainable = True, or compile with mode='inference'."
    )


def test_a_mode_that_is_none() -> None:
    assert message(lambda: trace_keras(mlp(), 2, "evaluate")) == (
        "mode is 'evaluate'. Expected: 'training', 'inference' or None."
    )


def test_a_random_key_stands_for_a_key_only() -> None:
    def function(key: Any, x: Any) -> Any:
        return jax.random.normal(key, (3,)) + x

    found = wb.compile(function, jax.random.key(0), np.zeros(3, "float32"), target=wb.target("ipu2", tiles_per_ipu=4))
    np.testing.assert_allclose(
        found.run(jax.random.key(2), np.ones(3, "float32")), function(jax.random.key(2), 1.0), rtol=1e-6
    )
    with pytest.raises(InputError, match=r"args\[0\] is float32. Expected: a random key"):
        found.run(np.float32(1), np.ones(3, "float32"))


def test_a_sequential_model_whose_layers_could_not_be_joined() -> None:
    """Keras has no orthogonal halves, goes on without a graph, and then has no inputs to ask for."""
    layers = [keras.layers.Input((5, 4)), keras.layers.GRU(3, dtype="float16")]
    model = keras.Sequential(layers, name="halves")
    assert message(lambda: trace_keras(model, 2)).startswith("the model 'halves' is not built: ")


def test_64_bits_are_named_where_they_are_the_reason() -> None:
    spec = jax.ShapeDtypeStruct((3,), "float32")
    with jax.enable_x64(True):
        with pytest.raises(wb.InputError, match=r"^args\[0\] is float64\..* switch jax_enable_x64 off, "):
            wb.compile(lambda x: x, jnp.ones(3))
        with pytest.raises(wb.InputError, match=r"^args\[0\] is float64\..* switch jax_enable_x64 off, "):
            wb.compile(lambda x: x, np.ones(3))
        with pytest.raises(wb.InputError, match=r"computes with float64 .* switch jax_enable_x64 off, "):
            wb.compile(lambda x: x * jnp.arange(3.0), spec)
    with pytest.raises(wb.InputError, match=r"^args\[0\] is float64\. .*astype\('float32'\)\.$"):
        wb.compile(lambda x: x, jax.ShapeDtypeStruct((3,), np.float64))


def test_whole_numbers_that_the_type_does_not_have_are_refused() -> None:
    executable = wb.compile(lambda x: x + 1, np.arange(3))
    assert executable.run(np.array([1, 2, 2**31 - 2])).tolist() == [2, 3, 2**31 - 1]
    with pytest.raises(wb.InputError, match=r"^args\[0\] holds 1099511627776\. Expected: .*\(int32\), as compiled\."):
        executable.run(np.array([1, 2, 2**40]))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("delete", lambda x: jnp.delete(x, jnp.array([3, 4]))),
        ("repeat", lambda x: jnp.repeat(x, jnp.array([2] * 10))),
        ("nonzero", lambda x: x[jnp.nonzero(x)[0]]),
        ("split", lambda x: jnp.split(x, jnp.array([3, 5]))[0]),
        ("unique", jnp.unique),
    ],
)
def test_a_shape_that_depends_on_values_is_refused_with_its_function_and_a_cure(name: str, function: Any) -> None:
    """It had been said of Python's control flow, which none of these has in the user's code."""
    with pytest.raises(InputError, match=rf"^jax\.numpy\.{name} needs the values .*pass numpy\.array\(\.\.\.\) to"):
        wb.compile(function, np.arange(10, dtype="float32"))


def test_the_cure_works() -> None:
    x = np.arange(10, dtype="float32")
    executable = wb.compile(lambda x: jnp.delete(x, np.array([3, 4])), x)
    np.testing.assert_array_equal(executable.run(x), np.delete(x, [3, 4]))


BIND = "bind a size or a setting to the function: wb.compile(functools.partial(function, size=3), x)."


class Settings:
    """A class that JAX does not know."""


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (
            jax.grad(lambda x: jax.lax.while_loop(lambda v: v < 9, lambda v: v * v, x)),
            (2.0,),
            "a loop that runs until a condition is met is differentiated, and its steps cannot all be kept. "
            "Expected: a loop whose count is known while the program is made. "
            "To mend it: use jax.lax.scan, keras.ops.scan, or jax.lax.fori_loop between Python numbers; "
            "stop the gradient in front of it; or compile with mode='inference'.",
        ),
        (
            lambda n: jnp.zeros(n),
            (3,),
            "a shape was made of a traced value. "
            "Expected: sizes that are known while the program is made, which Python numbers and array.shape are. "
            f"To mend it: {BIND}",
        ),
        (
            jax.jit(lambda n: jnp.zeros(n), static_argnums=0),
            (3,),
            "a static argument of jax.jit was given a traced value. "
            f"Expected: arrays as inputs, and what is static in the function. To mend it: {BIND}",
        ),
        (
            lambda x, begin: x[begin : begin + 2],
            (np.ones(4, "float32"), np.int32(1)),
            "a slice begins or ends at a value that is traced, or is no whole number. "
            "Expected: whole numbers that are known while the program is made. "
            "To mend it: use jax.lax.dynamic_slice(x, (begin,), (size,)) of a known size, "
            "or jax.lax.dynamic_update_slice to write.",
        ),
        (
            lambda x: {"x": x, "unit": "metres"},
            (2.0,),
            "the function returns 'metres'. Expected: arrays and numbers, in lists, tuples and dicts. "
            "To mend it: leave it out of the results.",
        ),
        (
            lambda settings: jnp.zeros(3),
            (Settings(),),
            "args[0] is a Settings. "
            "Expected: an array, a number, or these in tuples, lists, dictionaries and classes registered with JAX. "
            f"To mend it: register the class by jax.tree_util.register_dataclass, or {BIND}",
        ),
    ],
    ids=["loop", "shape", "static", "slice", "text", "class"],
)
def test_what_a_function_cannot_be_given_says_the_way_out(function: Any, arguments: Any, text: str) -> None:
    assert message(lambda: trace_function(function, *arguments)) == text


@pytest.mark.parametrize("stages", [None, ["first"]])
def test_a_layer_with_an_endless_loop_is_not_trained(stages: Any) -> None:
    loop = keras.layers.Lambda(
        lambda x: keras.ops.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 1.1), (0, x))[1]
    )
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, name="first"), loop, keras.layers.Dense(1)])
    text = message(lambda: trace_keras(model, 2, mode="training", stages=stages))
    assert text.startswith("a loop that runs until a condition is met is differentiated")


@pytest.mark.parametrize("collective", [jax.lax.psum, jax.lax.all_gather, lambda x, axis: x + jax.lax.axis_index(axis)])
def test_an_axis_that_nothing_names_is_refused_with_its_name(collective: Any) -> None:
    with pytest.raises(InputError) as error:
        trace_function(lambda x: collective(x, "rows"), np.ones(4, np.float32))
    assert str(error.value) == (
        "a collective, as jax.lax.psum, names the axis 'rows', and nothing around it has an axis of that name. "
        "Expected: an axis that jax.vmap names, or 'replicas', that of the replicas of the program. "
        "To mend it: write jax.vmap(function, axis_name='rows'), or name the axis 'replicas' and give replicas=."
    )
    summed = jax.vmap(lambda x: jax.lax.psum(x, "rows"), axis_name="rows")
    assert trace_function(summed, np.ones((2, 3), np.float32)).graph.functions
    assert trace_function(lambda x: jax.lax.psum(x, "replicas"), np.ones(4, np.float32), replicas=2).graph.functions


def test_a_name_that_python_does_not_know_stays_an_error_of_python() -> None:
    with pytest.raises(NameError, match="nowhere"):
        trace_function(lambda x: x + nowhere, np.ones(4, np.float32))  # type: ignore[name-defined]  # noqa: F821


def test_what_an_argument_of_a_function_is_not_is_told_by_its_name() -> None:
    """JAX's own words named none of what was given."""
    for size in (None, 2.5, -1):
        told = message(lambda size=size: trace_function(jnp.sin, jax.ShapeDtypeStruct((size, 3), "float32")))
        assert told.startswith(
            f"args[0] has shape ({size}, 3). Expected: a size for each dimension, known and at least"
        )
    wide = np.dtype(np.longdouble).name
    if wide != "float64":  # as on some machines
        assert message(lambda: trace_function(jnp.sin, np.ones(3, np.longdouble))).startswith(f"args[0] is {wide}. ")
    mixed = message(
        lambda: trace_function(lambda given: given[1], {"a": np.ones(2, "float32"), 1: np.ones(2, "int32")})
    )
    assert mixed.startswith("the inputs cannot be put in an order: '<' not supported between instances of ")
    assert "To mend it: give its arrays by names of one kind, or in a list." in mixed
