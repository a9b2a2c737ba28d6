from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np
import pytest

from tests.engine.frontends.keras_models import mlp, residual
from workbench.engine.frontends.describe.keras_layers import plain_operations
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.graph import walk
from workbench.errors import InputError


def test_a_training_step_as_text(golden: Callable[[str, str], None]) -> None:
    model = mlp(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="mse")
    golden("engine/frontends/mlp_training.txt", str(trace_keras(model, batch_size=2).graph))


def test_parameters_and_results_are_described() -> None:
    model = mlp(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="mse")
    graph = trace_keras(model, batch_size=2).graph
    roles = Counter(item.role for item in graph.inputs)
    # Two kernels, two biases; a momentum for each, the iteration and the learning rate; x; y.
    assert roles == {"parameter": 4, "optimizer": 6, "input": 1, "target": 1}
    slots = {item.name.rsplit("/", 1)[-1]: item.layer for item in graph.inputs if item.role == "optimizer"}
    assert slots["tiny_hidden_kernel_momentum"] == "hidden"
    assert slots["tiny_out_bias_momentum"] == "out"
    assert slots["iteration"] == ""
    updated = {graph.inputs[output.updates].name for output in graph.outputs if output.updates is not None}
    # Nothing writes the learning rate.
    assert updated == {item.name for item in graph.inputs if item.role in ("parameter", "optimizer")} - {
        next(item.name for item in graph.inputs if item.name.endswith("learning_rate"))
    }
    assert (graph.outputs[0].name, graph.outputs[0].role) == ("loss", "loss")
    assert (graph.mode, graph.batch_size) == ("training", 2)


def test_every_operation_has_a_layer_and_a_direction() -> None:
    model = residual(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    graph = trace_keras(model, batch_size=2).graph
    for _, node in walk(graph):
        assert node.origin.layer, str(node)
    classes = {node.origin.layer: node.origin.layer_class for _, node in walk(graph)}
    (sum_of_two,) = plain_operations(model)  # Keras numbers it by what was built in this process before
    assert classes["norm"] == "BatchNormalization"
    assert classes["conv_a"] == "Conv2D"
    assert set(classes) == {
        "conv_a",
        "norm",
        "relu",
        "twice",
        "skip",
        "pool",
        "drop",
        sum_of_two.name,
        "<script>alert(1)",
        "loss",
        "metrics",
        "optimizer",
    }
    assert {node.origin.direction for _, node in walk(graph)} == {"forward", "backward", "update"}


def test_a_name_with_markup_stays_text() -> None:
    graph = trace_keras(residual(), batch_size=2, mode="inference").graph
    assert "<script>alert(1)" in {node.origin.layer for node in graph.body.nodes}
    assert "<script>alert(1)/kernel" in {item.name for item in graph.inputs}


def test_calls_of_a_shared_layer_are_numbered() -> None:
    graph = trace_keras(residual(), batch_size=2, mode="training").graph
    calls = {(node.origin.call, node.origin.direction) for node in graph.body.nodes if node.origin.layer == "twice"}
    assert {(1, "forward"), (2, "forward"), (1, "backward"), (2, "backward"), (1, "update")} == calls


def test_tracing_leaves_the_model_as_it_was() -> None:
    model = residual()
    before = {name for layer in model.layers for name in vars(layer)}
    trace_keras(model, batch_size=2, mode="training")
    assert {name for layer in model.layers for name in vars(layer)} == before
    assert not any("call" in vars(layer) for layer in model.layers)


def test_states_and_seeds_have_their_roles() -> None:
    graph = trace_keras(residual(), batch_size=2, mode="training").graph
    roles = {item.role: item.layer for item in graph.inputs}
    assert (roles["state"], roles["seed"]) == ("norm", "drop")
    updated = {graph.inputs[output.updates].role for output in graph.outputs if output.updates is not None}
    assert updated == {"parameter", "state", "seed", "optimizer"}


def test_inference_updates_nothing() -> None:
    graph = trace_keras(residual(), batch_size=3, mode="inference").graph
    assert [output.name for output in graph.outputs] == ["output"]
    assert graph.body.results[0].shape == (3, 3)
    assert {node.origin.direction for node in graph.body.nodes} == {"forward"}


@pytest.mark.parametrize(
    ("compiled", "mode", "optimizer", "expected"),
    [
        (False, None, None, "inference"),
        (True, None, None, "training"),
        (False, None, "sgd", "training"),
        (True, "inference", None, "inference"),
    ],
)
def test_the_mode_follows_the_optimizer(compiled: bool, mode: str | None, optimizer: Any, expected: str) -> None:
    model = mlp(optimizer="sgd", loss="mse") if compiled else mlp()
    assert trace_keras(model, 2, mode, optimizer=optimizer).graph.mode == expected


def test_what_nobody_said_is_listed() -> None:
    assert trace_keras(mlp(), 2, "training").assumptions == (
        "loss: sparse categorical cross-entropy, because none was given and the output is a softmax",
        "optimizer: SGD with learning rate 0.01, because none was given",
    )
    assert trace_keras(mlp(optimizer="sgd", loss="mse"), 2).assumptions == ()


@pytest.mark.parametrize(
    ("activation", "units", "sentence", "target"),
    [
        ("sigmoid", 1, "binary cross-entropy", ((2, 1), "float32")),
        (None, 3, "mean squared error", ((2, 3), "float32")),
        ("softmax", 3, "sparse categorical cross-entropy", ((2,), "int32")),
    ],
)
def test_the_default_loss_follows_the_output(
    activation: str | None, units: int, sentence: str, target: tuple[Any, str]
) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(units, activation=activation)])
    source = trace_keras(model, 2, "training")
    assert sentence in source.assumptions[0]
    assert (source.specs[1].shape, source.specs[1].dtype) == target


def test_float16_runs_through_the_whole_step() -> None:
    graph = trace_keras("mlp", batch_size=2, mode="training", precision="float16").graph
    held = {item.name: value.dtype for item, value in zip(graph.inputs, graph.body.params, strict=True)}
    assert {held[item.name] for item in graph.inputs if item.role in ("parameter", "input")} == {"float16"}
    assert {node.results[0].dtype for node in graph.body.nodes if node.op == "dot_general"} == {"float16"}


def test_mixed_precision_keeps_float32_weights() -> None:
    graph = trace_keras("mlp", batch_size=2, mode="training", precision="mixed_float16").graph
    assert {
        value.dtype for item, value in zip(graph.inputs, graph.body.params, strict=True) if item.role == "parameter"
    } == {"float32"}
    assert "float16" in {node.results[0].dtype for node in graph.body.nodes if node.op == "dot_general"}


def test_a_live_model_in_another_precision_is_copied() -> None:
    model = mlp(optimizer="sgd", loss="mse")
    source = trace_keras(model, 2, precision="float16")
    assert source.model is not model
    assert source.assumptions == ("precision: run trains a float16 copy of 'tiny', not the model itself",)
    assert {variable.dtype for variable in model.variables} == {"float32"}


def test_the_policy_in_force_is_put_back() -> None:
    before = keras.config.dtype_policy().name
    trace_keras("mlp", batch_size=2, precision="float16")
    assert keras.config.dtype_policy().name == before


def test_a_builder_is_built_without_values() -> None:
    source = trace_keras(mlp, 2, "training")
    assert source.lazy
    assert source.assumptions[0] == "weights: initialised by the first run, with seed 0"


def test_a_builder_that_compiles_its_model_is_built_with_values() -> None:
    source = trace_keras(lambda: mlp(optimizer="adam", loss="mse"), 2)
    assert not source.lazy
    assert source.graph.mode == "training"


def test_variables_without_values_are_not_filled_by_the_next_model() -> None:
    source = trace_keras("mlp", batch_size=2, mode="training")
    model = mlp()
    model.stateless_call(model.trainable_variables, model.non_trainable_variables, keras.ops.ones((2, 6)))
    assert "value=" in repr(model.variables[0])
    assert not any("value=" in repr(variable) for variable in source.model.variables)


def test_a_subclassed_model_is_traced_from_its_build() -> None:
    class Small(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(3, name="inner")

        def build(self, input_shape: Any) -> None:
            self.dense.build(input_shape)

        def call(self, x: Any) -> Any:
            return self.dense(x) * 2.0

    model = Small()
    model.build((None, 5))
    graph = trace_keras(model, batch_size=4, mode="training").graph
    assert {node.origin.layer for node in graph.body.nodes} >= {"inner", "loss"}


def test_a_model_with_two_inputs_names_them() -> None:
    a, b = keras.Input((3,), name="left"), keras.Input((3,), name="right")
    model = keras.Model([a, b], keras.layers.Dense(2)(keras.layers.Add()([a, b])))
    source = trace_keras(model, batch_size=2, mode="inference")
    assert [spec.name for spec in source.specs] == ["x['left']", "x['right']"]


def test_an_unknown_precision_is_an_error() -> None:
    with pytest.raises(InputError) as error:
        trace_keras(mlp(), 2, precision="int8")
    assert str(error.value) == "precision is 'int8'. Expected: one of: float32, float16, mixed_float16."


def test_equal_models_have_equal_graphs() -> None:
    """Keras counts in the names it makes up; what is cached by content must not see that."""
    first, second = (
        str(trace_keras(residual, batch_size=2, mode="training", optimizer="adam").graph) for _ in range(2)
    )
    assert first == second


def test_names_go_on_counting_after_a_builder() -> None:
    before = keras.layers.ReLU().name
    trace_keras(residual, batch_size=2)
    after = keras.layers.ReLU().name
    assert int(after.removeprefix("re_lu").strip("_") or 0) == int(before.removeprefix("re_lu").strip("_") or 0) + 1


class Applied(keras.layers.Layer):
    """A layer that computes with a function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def call(self, x: Any) -> Any:
        return self.function(x)


class Shaped(Applied):
    """One that Keras need not call to know its shape."""

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


def of_layer(layer: Callable[[Any], Any], function: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: keras.Sequential([keras.Input((4,)), layer(function)])


def test_a_builder_whose_layer_names_an_axis_is_told_which_and_what_to_do() -> None:
    """Keras traces a layer while it builds a model, where no program is and so no replicas; then a shape is enough."""

    def summed(x: Any) -> Any:
        return jax.lax.psum(x, "replicas")

    with pytest.raises(InputError, match=r"names the axis 'rows', .*jax\.vmap\(function, axis_name='rows'\)"):
        trace_keras(of_layer(Applied, lambda x: jax.lax.psum(x, "rows")), 2)
    with pytest.raises(InputError, match=r"names the axis 'replicas', .*give replicas=, and the layer a compute_outp"):
        trace_keras(of_layer(Applied, summed), 2, replicas=2)
    assert trace_keras(of_layer(Shaped, summed), 2, replicas=2).graph.meta["replicas"] == 2


def test_a_builder_whose_layer_asks_for_values_is_told_what_to_write() -> None:
    with pytest.raises(InputError, match=r"^numpy, or an index by a mask, was used on a traced value"):
        trace_keras(of_layer(Applied, np.tanh), 2)
    with pytest.raises(InputError, match=r"^Python control flow .* depends on a traced value"):
        trace_keras(of_layer(Applied, lambda x: x if keras.ops.sum(x) > 0 else -x), 2)
