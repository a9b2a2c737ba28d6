"""The classes of TensorFlow 2.1 give the numbers of what replaces them, after equally many updates."""

from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, assert_alike, configure, four_layers, in_scopes
from workbench import ipu, tf
from workbench.errors import InputError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:ipu.keras:DeprecationWarning")
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def dense() -> list[Any]:
    layers = [keras.layers.Dense(5, activation="relu"), keras.layers.Dense(4), keras.layers.Dense(6)]
    return [*layers, keras.layers.Dense(3)]


def old(twins: Twins, build: Any) -> Any:
    keras.utils.set_random_seed(11)
    with twins.strategy.scope():
        model = build()
        model.compile(keras.optimizers.SGD(0.1), LOSS, ["accuracy"])
    return model


def of_functional() -> Any:
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(5, activation="relu")(inputs)
    return ipu.keras.Model(inputs, keras.layers.Dense(3)(hidden), gradient_accumulation_count=3)


def new_functional() -> Any:
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(5, activation="relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(3)(hidden))


def agree(twins: Twins, ours: Any, theirs: Any, batch_size: int = 8) -> None:
    before, after = (twins.fitted(each, batch_size=batch_size, shuffle=False) for each in (ours, theirs))
    assert before == pytest.approx(after, rel=1e-5)
    assert_alike(ours, theirs)
    assert ours.evaluate(twins.x, twins.y, batch_size=batch_size, verbose=0) == pytest.approx(
        theirs.evaluate(twins.x, twins.y, batch_size=batch_size, verbose=0), rel=1e-5
    )
    np.testing.assert_allclose(
        ours.predict(twins.x, batch_size=batch_size),
        theirs.predict(twins.x, batch_size=batch_size, verbose=0),
        rtol=1e-5,
        atol=1e-6,
    )


def test_a_model_is_one_with_gradient_accumulation(twins: Twins) -> None:
    ours, theirs = old(twins, of_functional), twins.made(new_functional, here=True, steps_per_execution=6)
    theirs.set_gradient_accumulation_options(3)
    agree(twins, ours, theirs)
    assert int(ours.optimizer.iterations.value) == 4  # two epochs of 6 batches, 3 an update


def test_a_sequential_is_one_with_gradient_accumulation(twins: Twins) -> None:
    ours = old(twins, lambda: ipu.keras.Sequential(dense(), gradient_accumulation_count=2))
    theirs = twins.made(lambda: keras.Sequential(dense()), here=True, steps_per_execution=6)
    theirs.set_gradient_accumulation_options(2)
    assert ours.trainable_variables == []  # not known before it has run
    agree(twins, ours, theirs)


@pytest.mark.parametrize("nested", [True, False])
def test_a_pipelined_sequential_is_one_with_stages(twins: Twins, nested: bool) -> None:
    configure(2)

    def build() -> Any:
        layers = four_layers().layers
        if nested:
            return ipu.keras.PipelineSequential([layers[:2], layers[2:]], gradient_accumulation_count=4)
        return ipu.keras.PipelineSequential(layers, gradient_accumulation_count=4, device_mapping=[0, 0, 1, 1])

    ours, theirs = old(twins, build), twins.made(four_layers, here=True, steps_per_execution=8)
    theirs.set_pipeline_stage_assignment([0, 0, 1, 1])
    theirs.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    agree(twins, ours, theirs, 6)
    assert [each.pipeline_stage for each in ours.get_pipeline_stage_assignment()] == [0, 0, 1, 1]


def test_a_pipelined_model_has_the_stages_of_its_scopes(twins: Twins) -> None:
    configure(2)

    def build() -> Any:
        made = in_scopes()
        return ipu.keras.PipelineModel(made.inputs, made.outputs, gradient_accumulation_count=4)

    ours, theirs = old(twins, build), twins.made(in_scopes, here=True, steps_per_execution=8)
    theirs.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    before, after = (twins.fitted(each, batch_size=6, shuffle=False) for each in (ours, theirs))
    assert before == pytest.approx(after, rel=1e-5)
    assert_alike(ours, theirs)


@pytest.mark.slow
def test_replicas_take_batches_in_turn_as_of_what_replaces_them(twins: Twins) -> None:
    configure(2)
    ours, theirs = old(twins, of_functional), twins.made(new_functional, here=True, steps_per_execution=6)
    theirs.set_gradient_accumulation_options(3)
    agree(twins, ours, theirs)
    assert int(ours.optimizer.iterations.value) == 2
    assert [each.request.replicas for each in twins.strategy.executables] == [2] * 6


@pytest.mark.slow
@pytest.mark.parametrize(("ipus", "serial"), [(4, 1), (1, 2)], ids=["on two replicas", "serialised"])
def test_pipelines_on_replicas_and_over_serialised_batches(twins: Twins, ipus: int, serial: int) -> None:
    configure(ipus)
    more: dict[str, Any] = {"batch_serialization_iterations": serial, "device_mapping": [0, 0]} if serial > 1 else {}

    def build() -> Any:
        layers = four_layers().layers
        return ipu.keras.PipelineSequential([layers[:2], layers[2:]], gradient_accumulation_count=4, **more)

    ours, theirs = old(twins, build), twins.made(four_layers, here=True, steps_per_execution=8)
    theirs.set_pipeline_stage_assignment([0, 0, 1, 1])
    theirs.set_pipelining_options(gradient_accumulation_steps_per_replica=4, **more)
    agree(twins, ours, theirs, 3)
    assert int(ours.optimizer.iterations.value) == 4  # two epochs of 16 batches, 8 an update


@pytest.mark.slow
@pytest.mark.parametrize("pipelined", [False, True])
def test_datasets_are_taken_with_and_without_an_end(twins: Twins, pipelined: bool) -> None:
    configure(2 if pipelined else 1)

    def build() -> Any:
        layers = four_layers().layers
        return ipu.keras.PipelineSequential([layers[:2], layers[2:]], gradient_accumulation_count=4)

    ours = old(twins, build if pipelined else of_functional)
    samples = tf.data.Dataset.from_tensor_slices((twins.x, twins.y)).batch(4, drop_remainder=True)
    ours.fit(samples, epochs=2, verbose=0)
    each = 12 // (4 if pipelined else 3)
    assert int(ours.optimizer.iterations.value) == 2 * each
    ours.fit(samples.repeat(), epochs=2, steps_per_epoch=2, steps_per_run=1, verbose=0)
    assert int(ours.optimizer.iterations.value) == 2 * each + 4
    found = ours.evaluate(samples, verbose=0)
    assert found == pytest.approx(ours.evaluate(twins.x, twins.y, batch_size=4, verbose=0), rel=1e-5)
    np.testing.assert_allclose(
        ours.predict(samples.map(lambda x, y: x)), ours.predict(twins.x, batch_size=4), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(InputError, match="how many batches"):
        ours.fit(samples.repeat())


def test_steps_are_weight_updates_and_what_fills_none_is_left_out(twins: Twins) -> None:
    ours = old(twins, of_functional)
    ours.fit(twins.x[:31], twins.y[:31], batch_size=8, verbose=0)  # three whole batches, which one update takes
    assert int(ours.optimizer.iterations.value) == 1
    ours.fit(twins.x, twins.y, batch_size=4, steps_per_epoch=4, steps_per_run=2, verbose=0, prefetch_depth=2)
    assert int(ours.optimizer.iterations.value) == 5
    assert ours.steps_per_execution == 6


def test_what_the_old_classes_do_not_take_is_refused(twins: Twins) -> None:
    ours = old(twins, of_functional)
    inputs = keras.Input((6,))
    outputs = keras.layers.Dense(3)(inputs)
    refused: list[tuple[type[Exception], str, Any]] = [
        (InputError, "fit, evaluate or predict", lambda: ours(twins.x)),
        (NotImplementedError, "run_eagerly", lambda: ours.compile(run_eagerly=True)),
        (UnsupportedError, "validation_split", lambda: ours.fit(twins.x, twins.y, validation_split=0.5)),
        (InputError, "at least 24", lambda: ours.fit(twins.x[:23], twins.y[:23], batch_size=8)),
        (InputError, "steps_per_run is 2", lambda: ours.fit(twins.x, twins.y, steps_per_epoch=3, steps_per_run=2)),
        (InputError, "outside the scope", of_functional),
        (InputError, "the data hold 7", lambda: ours.fit(twins.x, 7)),
        (InputError, r"\[47, 48\] samples", lambda: ours.fit(twins.x, twins.y[:47])),
        (InputError, "epochs is None", lambda: ours.fit(twins.x, twins.y, epochs=None)),
        (InputError, "callbacks is 7", lambda: ours.predict(twins.x, callbacks=7)),
    ]
    inside: list[tuple[type[Exception], str, Any]] = [
        (InputError, "gradient_accumulation_count is 0", lambda: ipu.keras.Sequential([], 0)),
        (UnsupportedError, "layer_replacement", lambda: ipu.keras.Sequential([], layer_replacement=True)),
        (InputError, "device_mapping is None", lambda: ipu.keras.PipelineSequential(dense(), 2)),
        (InputError, "lists and layers", lambda: ipu.keras.PipelineSequential([dense(), dense()[0]], 2)),
        (InputError, "layers is 'x'", lambda: ipu.keras.Sequential("x")),
        (InputError, "nosuch is 1", lambda: ipu.keras.Model(nosuch=1)),
        (InputError, "stages holds 7", lambda: ipu.keras.PipelineSequential([[7]], 2)),
        (
            InputError,
            "has a stage",
            lambda: ipu.keras.PipelineModel(inputs, outputs, gradient_accumulation_count=2),
        ),
    ]
    for kind, says, call in refused:
        with pytest.raises(kind, match=says):
            call()
    for kind, says, call in inside:
        with twins.strategy.scope(), pytest.raises(kind, match=says):
            call()


@pytest.mark.filterwarnings("default")
def test_they_say_what_replaces_them(twins: Twins) -> None:
    with twins.strategy.scope(), pytest.warns(DeprecationWarning, match="set_pipeline_stage_assignment"):
        ipu.keras.PipelineSequential([dense()[:2], dense()[2:]], gradient_accumulation_count=2)
