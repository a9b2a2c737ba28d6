"""A model with several inputs and outputs trains as Keras trains it, and names the loss of each output."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import workbench as wb
from tests.engine.frontends.keras_models import furthest
from workbench.engine.frontends.keras import trace_keras
from workbench.engine.run import Runner
from workbench.errors import InputError

BATCH, TOLERANCE = 4, 1e-5
LOSSES = {"value": "mse", "label": "sparse_categorical_crossentropy"}


def model(optimizer: Any = "sgd", **compiled: Any) -> Any:
    """Two inputs and two outputs."""
    keras.utils.set_random_seed(2)
    first, second = keras.Input((6,), name="first"), keras.Input((3,), name="second")
    joined = keras.layers.Concatenate(name="joined")([keras.layers.Dense(5, name="hidden")(first), second])
    outputs = {
        "value": keras.layers.Dense(1, name="value")(joined),
        "label": keras.layers.Dense(3, activation="softmax", name="label")(joined),
    }
    made = keras.Model({"first": first, "second": second}, outputs)
    if compiled:
        made.compile(optimizer, **compiled)
    return made


def data(samples: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and targets."""
    draw = np.random.default_rng(5)
    x = {name: draw.random((samples, size), dtype="float32") for name, size in (("first", 6), ("second", 3))}
    return x, {"value": draw.random((samples, 1), dtype="float32"), "label": draw.integers(0, 3, samples)}


@pytest.mark.parametrize(("stages", "steps"), [(None, 1), (["hidden"], 2)])
def test_every_output_has_its_loss(stages: Any, steps: int) -> None:
    compiled = {"loss": LOSSES, "loss_weights": {"value": 1.0, "label": 0.5}, "metrics": {"label": ["accuracy"]}}
    ours, theirs = (model(keras.optimizers.SGD(0.1), **compiled) for _ in range(2))
    x, y = data(BATCH * steps)
    runner = Runner(trace_keras(ours, batch_size=BATCH, stages=stages, gradient_accumulation_steps=steps))
    for _ in range(2):
        expected = theirs.train_on_batch(x, y, return_dict=True)
        assert expected["value_loss"] > 0
        assert runner.run(x, y) == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE


@pytest.mark.parametrize(
    ("compiled", "given", "tolerance"),
    [
        ({}, {"loss": LOSSES}, TOLERANCE),
        ({}, {}, TOLERANCE),  # each output's own: the one is no class and the other a softmax
        ({"loss": LOSSES, "loss_weights": {"value": 2.0, "label": 0.5}}, {"optimizer": "adam"}, TOLERANCE),
        ({"loss": LOSSES, "loss_weights": {"value": 2.0, "label": 0.5}}, {"precision": "float16"}, 5e-3),
    ],
    ids=["losses given", "none given", "another optimizer", "halves"],
)
def test_losses_are_summed_as_keras_sums_them(compiled: Any, given: Any, tolerance: float) -> None:
    ours, theirs = model(**compiled), model(**(compiled or {"loss": LOSSES}))
    x, y = data(BATCH)
    runner = Runner(trace_keras(ours, batch_size=BATCH, mode="training", **given))
    assert runner.run(x, y)["loss"] == pytest.approx(
        theirs.train_on_batch(x, y, return_dict=True)["loss"], abs=tolerance
    )


def test_the_losses_chosen_are_listed() -> None:
    found = trace_keras(model(), batch_size=BATCH, mode="training")
    assert (
        "losses, because none were given: label is a softmax, so sparse categorical cross-entropy; "
        "value is neither a softmax nor a sigmoid, so mean squared error"
    ) in found.assumptions


@pytest.mark.parametrize("losses", [["mse"], {"value": "mse", "labels": "mse"}])
def test_losses_that_are_not_one_for_each_output(losses: Any) -> None:
    with pytest.raises(InputError, match=r"Expected: one for each of the 2 outputs \(label, value\)\."):
        trace_keras(model(), batch_size=BATCH, mode="training", loss=losses)


def weights(samples: int) -> dict[str, Any]:
    """A weight of each sample for each output."""
    draw = np.random.default_rng(6)
    return {name: draw.random(samples, dtype="float32") for name in LOSSES}


@pytest.mark.parametrize(("stages", "steps"), [(None, 1), (["hidden"], 2)])
@pytest.mark.parametrize("alike", [False, True])
def test_every_output_has_its_sample_weights(stages: Any, steps: int, alike: bool) -> None:
    compiled = {"loss": LOSSES, "loss_weights": {"value": 1.0, "label": 0.5}}
    ours, theirs = (model(keras.optimizers.SGD(0.1), **compiled, weighted_metrics={"value": ["mae"]}) for _ in range(2))
    x, y = data(BATCH * steps)
    given = weights(BATCH * steps)["value"] if alike else weights(BATCH * steps)
    runner = Runner(trace_keras(ours, batch_size=BATCH, stages=stages, gradient_accumulation_steps=steps))
    expected = theirs.train_on_batch(x, y, sample_weight=given, return_dict=True)
    found = runner.run(x, y, sample_weight=given)
    assert found["loss"] == pytest.approx(expected["loss"], abs=TOLERANCE)
    if steps == 1:  # the metrics of an update are the mean over its micro-batches, whose weights differ
        assert found == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE


def test_sample_weights_in_a_list_are_in_the_order_of_the_outputs() -> None:
    x, y = data(BATCH)
    given = weights(BATCH)
    named, listed = (Runner(trace_keras(model(loss=LOSSES), batch_size=BATCH)) for _ in range(2))
    assert named.run(x, y, sample_weight=given) == listed.run(x, y, sample_weight=[given["label"], given["value"]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": np.ones(BATCH)}, "sample_weight has weights for value"),
        ([np.ones(BATCH)] * 3, "sample_weight has 3 arrays"),
        ({"value": np.ones(BATCH), "label": np.ones(2)}, "sample_weight['label'] has shape (2,)"),
    ],
)
def test_sample_weights_that_are_not_one_for_each_output(given: Any, said: str) -> None:
    x, y = data(BATCH)
    with pytest.raises(InputError) as error:
        Runner(trace_keras(model(loss=LOSSES), batch_size=BATCH)).run(x, y, sample_weight=given)
    assert str(error.value).startswith(said)


def sequences(**arguments: Any) -> Any:
    """Two outputs of a number a step: values, and one of four classes."""
    keras.utils.set_random_seed(4)
    x = keras.Input((3, 6))
    hidden = keras.layers.Dense(8, "tanh")(x)
    outputs = {"value": keras.layers.Dense(2)(hidden), "label": keras.layers.Dense(4, "softmax")(hidden)}
    made = keras.Model(x, outputs)
    made.compile(keras.optimizers.SGD(0.1), **arguments)
    return made


@pytest.mark.parametrize("of_value", [(3,), (1,)])
@pytest.mark.parametrize("of_label", [(3,), (1,)])
def test_each_step_of_several_outputs_may_have_its_weight(of_value: tuple[int, ...], of_label: tuple[int, ...]) -> None:
    losses = {"value": "mse", "label": "sparse_categorical_crossentropy"}
    ours, theirs = (sequences(loss=losses) for _ in range(2))
    draw = np.random.default_rng(0)
    x = draw.random((BATCH, 3, 6), dtype="float32")
    y = {"value": draw.random((BATCH, 3, 2), dtype="float32"), "label": draw.integers(0, 4, (BATCH, 3))}
    given = {
        "value": draw.random((BATCH, *of_value), dtype="float32"),
        "label": draw.random((BATCH, *of_label), dtype="float32"),
    }
    expected = theirs.train_on_batch(x, y, sample_weight=given, return_dict=True)
    found = Runner(trace_keras(ours, batch_size=BATCH)).run(x, y, sample_weight=given)
    assert found["loss"] == pytest.approx(expected["loss"], abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE


def test_weights_of_steps_where_another_output_has_none_are_refused_with_the_cure() -> None:
    x, y = data(BATCH)
    runner = Runner(trace_keras(model(loss=LOSSES), batch_size=BATCH))
    with pytest.raises(InputError, match="sample_weight"):
        runner.run(x, y, sample_weight=[np.ones((BATCH, 3)), np.ones(BATCH)])


def ending_in(outputs: Any) -> Any:
    """A function that builds a model whose outputs are made of one value."""

    def build() -> Any:
        keras.utils.set_random_seed(2)
        rows = keras.Input((6,), name="rows")
        return keras.Model(rows, outputs(keras.layers.Dense(4, name="hidden")(rows)))

    return build


ONE = keras.layers.Dense
ENDS: dict[str, tuple[Any, Any]] = {
    "a list of two": (lambda h: [ONE(2, name="o")(h), ONE(3, name="p")(h)], ["mse", "mae"]),
    "two by name": (lambda h: {"o": ONE(2, name="o")(h), "p": ONE(3, name="p")(h)}, {"o": "mse", "p": "mae"}),
    "a list of one": (lambda h: [ONE(2, name="o")(h)], "mse"),
    "a list of one with a list of losses": (lambda h: [ONE(2, name="o")(h)], ["mse"]),
    "one by name": (lambda h: {"o": ONE(2, name="o")(h)}, {"o": "mse"}),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_function_that_builds_a_model_of_several_outputs_trains_as_the_model_it_builds(end: str) -> None:
    """Keras gives a model that it compiles an optimizer with a variable, which a model without weights may not have."""
    outputs, loss = ENDS[end]
    asked: dict[str, Any] = {"mode": "training", "batch_size": BATCH, "optimizer": "sgd", "loss": loss}
    built, made = (wb.profile(each, **asked) for each in (ending_in(outputs), ending_in(outputs)()))
    assert built.total_cycles == made.total_cycles > 0
    assert built.steps.equals(made.steps)


@pytest.mark.parametrize("end", ["a list of one", "a list of one with a list of losses"])
def test_a_list_of_one_output_trains_as_keras_trains_it(end: str) -> None:
    outputs, loss = ENDS[end]
    ours, theirs = (ending_in(outputs)() for _ in range(2))
    theirs.compile(keras.optimizers.SGD(0.1), loss)
    draw = np.random.default_rng(5)
    x, y = draw.random((BATCH, 6), dtype="float32"), draw.random((BATCH, 2), dtype="float32")
    runner = Runner(trace_keras(ours, batch_size=BATCH, optimizer=keras.optimizers.SGD(0.1), loss=loss))
    for _ in range(2):  # the second is of what the first has changed
        assert runner.run(x, y)["loss"] == pytest.approx(theirs.train_on_batch(x, y), abs=TOLERANCE)


HALF = {"value": "mse"}


@pytest.mark.parametrize("stages", [None, ["hidden"]])
@pytest.mark.parametrize("whole", [True, False])
def test_an_output_without_loss_and_metric_takes_no_targets(stages: Any, whole: bool) -> None:
    """As in Keras, which takes them or leaves them; no host has to send what nobody reads."""
    ours, theirs = (model(keras.optimizers.SGD(0.1), loss=HALF) for _ in range(2))
    steps = 4 if stages else 1
    x, y = data(BATCH * steps)
    source = trace_keras(ours, batch_size=BATCH, stages=stages, gradient_accumulation_steps=steps)
    assert [spec.name for spec in source.specs] == ["x['first']", "x['second']", "y['value']"]
    given = y if whole else {"value": y["value"]}
    expected = theirs.train_on_batch(x, given, return_dict=True)
    assert Runner(source).run(x, given) == pytest.approx(expected, abs=TOLERANCE)
    assert furthest(ours, theirs) < TOLERANCE


def in_a_list(losses: Any) -> Any:
    """The same two outputs in a list."""
    made = model()
    listed = keras.Model(made.input, [made.output["value"], made.output["label"]])
    listed.compile(keras.optimizers.SGD(0.1), loss=losses)
    return listed


@pytest.mark.parametrize("given", ["whole", "none", "left out", "alone"])
def test_targets_in_a_list_stand_where_their_outputs_do(given: str) -> None:
    ours, theirs = (in_a_list([None, "sparse_categorical_crossentropy"]) for _ in range(2))
    x, y = data(BATCH)
    targets: Any = {
        "whole": [y["value"], y["label"]],
        "none": [None, y["label"]],
        "left out": [y["label"]],
        "alone": y["label"],
    }[given]
    expected = theirs.train_on_batch(x, [y["value"], y["label"]], return_dict=True)
    for source in (trace_keras(ours, batch_size=BATCH), trace_keras(ours, inputs=(x, targets))):
        assert source.specs[2:] == (source.specs[-1],)
    assert Runner(source).run(x, targets) == pytest.approx(expected, abs=TOLERANCE)


def test_an_output_with_a_metric_alone_has_its_targets() -> None:
    ours, theirs = (model(keras.optimizers.SGD(0.1), loss=HALF, metrics={"label": ["accuracy"]}) for _ in range(2))
    x, y = data(BATCH)
    found = Runner(trace_keras(ours, inputs=(x, y))).run(x, y)
    assert found == pytest.approx(theirs.train_on_batch(x, y, return_dict=True), abs=TOLERANCE)
    assert "label_accuracy" in found


def test_one_weight_for_all_weighs_the_output_that_has_a_loss() -> None:
    ours, theirs = (model(keras.optimizers.SGD(0.1), loss=HALF) for _ in range(2))
    (x, y), weight = data(BATCH), np.arange(BATCH, dtype="float32")
    expected = theirs.train_on_batch(x, y, sample_weight=weight, return_dict=True)
    assert Runner(trace_keras(ours, batch_size=BATCH)).run(x, y, sample_weight=weight) == pytest.approx(
        expected, abs=TOLERANCE
    )


def test_examples_of_targets_that_are_not_as_many_as_are_compared_are_refused() -> None:
    """They were left aside, and targets like the outputs put in their place."""
    x, y = data(BATCH)
    with pytest.raises(InputError) as error:
        trace_keras(model(loss=LOSSES), inputs=(x, {"value": y["value"]}))
    assert str(error.value) == (
        "1 example of targets was given. Expected: one for each output that is compared: y['label'], y['value']. "
        "To mend it: give such examples, wb.compile(model, x, y), or give batch_size= and none."
    )
