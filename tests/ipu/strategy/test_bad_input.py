"""Each kind of bad input is named, argument, layer or option, and leaves model and strategy as they were."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.strategy.twins import Twins, configure, four_layers, functional, in_scopes
from workbench import ipu, tf
from workbench.errors import InputError, UnsupportedError


@dataclass(frozen=True, kw_only=True)
class Bad:
    """What is done with a model, and what the error of this kind has to name."""

    names: str
    done: Callable[[Twins, Any], Any]
    kind: type[Exception] = ValueError
    build: Callable[[], Any] = functional
    steps: int = 1
    ipus: int = 1
    optimizer: Callable[[], Any] = lambda: keras.optimizers.SGD(0.1)
    told: bool = True  # whether the model can tell its options: not while a call strays from the stages of others
    set_before: Callable[[Any], Any] = lambda model: model.set_infeed_queue_options(prefetch_depth=4)


def fit(twins: Twins, model: Any, **more: Any) -> Any:
    return model.fit(**{"x": twins.x, "y": twins.y, "batch_size": 8, "verbose": 0, **more})


def fit_dataset(change: Callable[[Any], Any]) -> Callable[[Twins, Any], Any]:
    def done(twins: Twins, model: Any) -> Any:
        return model.fit(change(tf.data.Dataset.from_tensor_slices((twins.x, twins.y))), verbose=0)

    return done


def accumulate(model: Any) -> None:
    model.set_gradient_accumulation_options(4)


def in_two_stages(batches: int | None) -> Callable[[Any], None]:
    def done(model: Any) -> None:
        model.set_pipeline_stage_assignment([0, 0, 1, 1])
        model.set_pipelining_options(batches)

    return done


def staged_as(*stages: int) -> Callable[[Twins, Any], Any]:
    """Set after an assignment that stands: it has to stay."""

    def done(twins: Twins, model: Any) -> Any:
        return model.set_pipeline_stage_assignment(list(stages))

    return done


def backward_call(twins: Twins, model: Any) -> Any:
    assignment = model.get_pipeline_stage_assignment()
    assignment[0].pipeline_stage = 1
    return model.set_pipeline_stage_assignment(assignment)


class OwnTrainStep(keras.Sequential):
    def train_step(self, state: Any, data: Any) -> Any:
        return super().train_step(state, data)


class StepOfTensorFlow(keras.Sequential):
    def train_step(self, data: Any) -> Any:
        raise AssertionError("it is refused before it runs")


def step_of_tensorflow() -> Any:
    return StepOfTensorFlow([keras.Input((6,)), *four_layers().layers])


def own_train_step() -> Any:
    return OwnTrainStep([keras.Input((6,)), *four_layers().layers])


def nested(twins: Twins, model: Any) -> Any:
    with twins.strategy.scope(), ipu.keras.PipelineStage(0), ipu.keras.PipelineStage(1):
        pass


def negative(twins: Twins, model: Any) -> Any:
    with twins.strategy.scope(), ipu.keras.PipelineStage(-1):
        pass


def outside_a_strategy(twins: Twins, model: Any) -> Any:
    with ipu.keras.PipelineStage(0):
        pass


def strayed() -> Any:
    inputs = keras.Input((6,))
    with ipu.keras.PipelineStage(0):
        x = keras.layers.Dense(5)(inputs)
    return keras.Model(inputs, keras.layers.Dense(3, name="stray")(x))


def scaled(value: Any) -> Any:
    return value * 2


def old_with_validation(twins: Twins, model: Any) -> Any:
    with twins.strategy.scope():
        old = ipu.keras.Sequential([keras.layers.Dense(3)])
        old.compile("sgd", "mse")
    return old.fit(twins.x, twins.x[:, :3], batch_size=8, validation_split=0.5)


def old_replacing(twins: Twins, model: Any) -> Any:
    with twins.strategy.scope():
        return ipu.keras.Sequential([keras.layers.Dense(3)], layer_replacement=True)


def unset(model: Any) -> None:
    """Nothing was set before."""


CASES: dict[str, Bad] = {
    "no multiple of the accumulation": Bad(
        names="steps_per_execution.* multiple of", done=fit, steps=6, set_before=accumulate
    ),
    "no divisor of the batches": Bad(names="steps_per_execution 4, which does not divide 6 batches", done=fit, steps=4),
    "no steps for an endless dataset": Bad(
        names="give steps_per_epoch to fit", done=fit_dataset(lambda samples: samples.batch(8).repeat())
    ),
    "a partial batch": Bad(names="drop_remainder=True", done=fit_dataset(lambda samples: samples.batch(9))),
    "a partial batch of arrays": Bad(
        names="batch_size that divides", done=lambda twins, model: fit(twins, model, batch_size=9)
    ),
    "a generator": Bad(
        names="Python generator.*from_generator", done=fit_dataset(lambda samples: (each for each in samples.batch(8)))
    ),
    "too few IPUs": Bad(
        names="the model 'sequential.*needs 2 IPUs", done=fit, build=four_layers, steps=6, set_before=in_two_stages(6)
    ),
    "run_eagerly": Bad(
        names="run_eagerly=True",
        kind=RuntimeError,
        done=fit,
        set_before=lambda model: setattr(model, "run_eagerly", True),
    ),
    "a pipeline without accumulation": Bad(
        names="gradient_accumulation_steps_per_replica",
        done=fit,
        build=four_layers,
        steps=6,
        ipus=2,
        set_before=in_two_stages(None),
    ),
    "a pipeline whose updates fill no round": Bad(
        names="gradient_accumulation_steps_per_replica .* is 3, .*_per_replica=4",
        done=fit,
        build=four_layers,
        steps=6,
        ipus=2,
        set_before=in_two_stages(3),
    ),
    "a pipeline whose evaluation fills no round": Bad(
        names="evaluation .* has 3 batches .* for 4 batches, and steps_per_execution",
        done=lambda twins, model: model.evaluate(twins.x[:24], twins.y[:24], batch_size=8, verbose=0),
        build=four_layers,
        steps=3,
        ipus=2,
        set_before=in_two_stages(4),
    ),
    "an optimizer that updates all stages or none": Bad(
        names="LossScaleOptimizer",
        done=fit,
        build=four_layers,
        steps=6,
        ipus=2,
        optimizer=lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
        set_before=in_two_stages(6),
    ),
    "a train_step of TensorFlow's Keras, without a state": Bad(
        names=r"the train_step of .* takes \(data.*state, data.*as Keras on JAX calls it",
        done=fit,
        build=step_of_tensorflow,
        steps=6,
    ),
    "a train_step that cannot be cut by accumulation": Bad(
        names="train_step of the model",
        kind=RuntimeError,
        done=fit,
        build=own_train_step,
        steps=6,
        set_before=lambda model: model.set_gradient_accumulation_options(3),
    ),
    "a train_step that cannot be cut into stages": Bad(
        names="train_step of the model",
        kind=RuntimeError,
        done=fit,
        build=own_train_step,
        steps=6,
        ipus=2,
        set_before=in_two_stages(6),
    ),
    "a skipped stage": Bad(
        names="'dense.*' is on stage 2", done=staged_as(0, 0, 2, 2), build=four_layers, set_before=in_two_stages(6)
    ),
    "a missing first stage": Bad(
        names="'dense.*' is on stage 1", done=staged_as(1, 1, 1, 1), build=four_layers, set_before=in_two_stages(6)
    ),
    "a backward stage": Bad(
        names="'dense.*' is on stage 0", done=staged_as(0, 1, 0, 1), build=four_layers, set_before=in_two_stages(6)
    ),
    "a backward call": Bad(
        names="'second' is on stage 0 and takes what 'first' makes on 1",
        done=backward_call,
        build=in_scopes,
        set_before=unset,
    ),
    "a nested PipelineStage": Bad(names=r"PipelineStage\(1\) is opened inside", kind=RuntimeError, done=nested),
    "a strayed PipelineStage": Bad(
        names="outside the scope of an IPUStrategy", kind=RuntimeError, done=outside_a_strategy
    ),
    "a PipelineStage of no number": Bad(names="stage.* is -1", done=negative),
    "a call outside the stages": Bad(
        names="the call of 'stray' is in no PipelineStage", done=fit, build=strayed, set_before=unset, told=False
    ),
    "a fn that is no tf.function": Bad(
        names=r"'scaled' is no tf\.function", done=lambda twins, model: twins.strategy.run(scaled, (np.float32(3),))
    ),
    "an option that an old class does not have": Bad(
        names="'validation_split'", kind=UnsupportedError, done=old_with_validation
    ),
    "an option of an old class that does nothing here": Bad(
        names="layer_replacement", kind=UnsupportedError, done=old_replacing
    ),
}


NO_NUMBER = [0, -1, "2", "auto", None, 1.5, True]


def recompiled(steps: Any) -> Callable[[Twins, Any], Any]:
    return lambda twins, model: model.compile("adam", "mse", steps_per_execution=steps)


CASES |= {
    f"steps_per_execution={steps!r}": Bad(
        names=f"steps_per_execution of the model '.*' is {steps!r}. Expected: a whole number of at least 1",
        done=recompiled(steps),
    )
    for steps in NO_NUMBER
}
CASES |= {
    f"{name}={size!r}": Bad(
        names=f"^{name} is {size!r}. Expected: a whole number of at least 1",
        done=lambda twins, model, given={name: size}: fit(
            twins, model, **given, validation_data=(twins.x[:16], twins.y[:16])
        ),
    )
    for name in ("batch_size", "validation_batch_size")
    for size in (-1, 0, "8", 1.5)
}


def state_of(model: Any, told: bool) -> list[Any]:
    """Options with the stages, steps, counts and weights."""
    weights = [each.tolist() for each in model.get_weights()]
    options = model.get_config().get("ipu_options") if told else None
    return [options, model.steps_per_execution, int(model.optimizer.iterations), model.run_eagerly, weights]


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("case", CASES)
def test_it_is_named_and_nothing_is_half_set(twins: Twins, case: str) -> None:
    bad = CASES[case]
    configure(bad.ipus)
    model = twins.made(bad.build, here=True, steps_per_execution=bad.steps, optimizer=bad.optimizer())
    bad.set_before(model)
    before = state_of(model, bad.told)
    with pytest.raises(bad.kind, match=bad.names):
        bad.done(twins, model)
    assert state_of(model, bad.told) == before
    assert not twins.strategy.executables
    assert tf.distribute.get_strategy() is None
    outside = functional()
    assert not hasattr(outside, "set_pipelining_options")  # no scope stayed open


@pytest.mark.slow
def test_a_model_that_was_refused_trains_once_it_is_mended(twins: Twins) -> None:
    ours, theirs = (twins.made(functional, here=here, steps_per_execution=4 if here else 1) for here in (True, False))
    with pytest.raises(ValueError, match="steps_per_execution 4"):
        fit(twins, ours)
    ours.steps_per_execution = 3
    ours.train_function = None
    assert twins.fitted(ours) == pytest.approx(twins.fitted(theirs), rel=1e-5)


@pytest.mark.parametrize("call", ["fit", "evaluate", "predict"])
@pytest.mark.parametrize("steps", NO_NUMBER)
def test_steps_that_were_set_by_hand_are_named(twins: Twins, call: str, steps: Any) -> None:
    model = twins.made(functional, here=True)
    model.steps_per_execution = steps
    data = (twins.x,) if call == "predict" else (twins.x, twins.y)
    with pytest.raises(InputError, match=f"steps_per_execution of the model '.*' is {steps!r}"):
        getattr(model, call)(*data, batch_size=8, verbose=0)


class OwnCompile(keras.Sequential):
    def compile(self, rate: float, steps: Any) -> None:
        super().compile(keras.optimizers.SGD(rate), "mse", steps_per_execution=steps)


def test_a_compile_with_arguments_of_its_own_is_called_with_them(twins: Twins) -> None:
    with twins.strategy.scope():
        model = OwnCompile([keras.Input((6,)), keras.layers.Dense(3)])
        model.compile(0.5, steps=3)
        assert (float(model.optimizer.learning_rate), model.steps_per_execution) == (0.5, 3)
        model.compile(0.5, steps=0)
        with pytest.raises(InputError, match=r"steps_per_execution of the model '.*' is 0"):
            model.predict(twins.x, batch_size=8, verbose=0)
        with pytest.raises(TypeError, match="compile"):
            model.compile("adam")


def test_steps_are_numpys_numbers_too(twins: Twins) -> None:
    model = twins.made(functional, here=True, steps_per_execution=np.int64(3))
    assert model.predict(twins.x, batch_size=np.int32(8), verbose=0).shape[0] == len(twins.x)


@pytest.mark.parametrize(
    ("call", "given", "name"),
    [
        ("set_pipelining_options", {"pipeline_shedule": "Grouped"}, "pipeline_schedule"),
        ("set_pipelining_options", {"device_maping": [0, 1]}, "device_mapping"),
        (
            "set_gradient_accumulation_options",
            {"offload_weight_update_variable": True},
            "offload_weight_update_variables",
        ),
        ("set_infeed_queue_options", {"prefetch_dept": 2}, "prefetch_depth"),
    ],
)
def test_an_argument_that_is_nearly_one_is_asked_about(call: str, given: dict[str, Any], name: str) -> None:
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    with pytest.raises(InputError, match=rf"^{call} has no argument .*{name}.*\. To mend it: did you mean '{name}'\?$"):
        getattr(model, call)(**given)
