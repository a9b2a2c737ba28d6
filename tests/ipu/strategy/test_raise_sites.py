"""Where the SDK's strategy and Keras extensions raise, these do, or the table says why nothing here can."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import pytest

from tests.ipu.strategy.twins import Subclassed, Twins, configure, four_layers, functional, in_scopes, sequential
from workbench import ipu, tf
from workbench.ipu.ipu_strategy import IPUStrategy

ROWS = json.loads((Path(__file__).parents[2] / "data" / "raise_sites_of_keras.json").read_text(encoding="utf-8"))[
    "rows"
]


class OwnTrain(keras.Sequential):
    def make_train_function(self, force: bool = False) -> Any:
        return super().make_train_function(force)


class OwnTest(keras.Sequential):
    def make_test_function(self, force: bool = False) -> Any:
        return super().make_test_function(force)


class OwnPredict(keras.Sequential):
    def make_predict_function(self, force: bool = False) -> Any:
        return super().make_predict_function(force)


class OwnTestStep(keras.Sequential):
    def test_step(self, *given: Any) -> Any:
        return super().test_step(*given)


class OwnPredictStep(keras.Sequential):
    def predict_step(self, *given: Any) -> Any:
        return super().predict_step(*given)


class OwnCall(keras.Sequential):
    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        return super().call(inputs, training, mask)


class NoCall(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(3)


class OwnMinimize(keras.optimizers.SGD):
    def minimize(self, *given: Any, **named: Any) -> None:
        raise AssertionError("never called")


def made(twins: Twins, build: Callable[[], Any] = functional, **compiled: Any) -> Any:
    return twins.made(build, here=True, **compiled)


def staged(twins: Twins, kind: type[keras.Sequential] = keras.Sequential, **more: Any) -> Any:
    configure(2)
    model = made(twins, lambda: kind([keras.Input((6,)), *four_layers().layers]), steps_per_execution=6)
    model.set_pipeline_stage_assignment([0, 0, 1, 1])
    model.set_pipelining_options(**{"gradient_accumulation_steps_per_replica": 6, **more})
    return model


def fitted(twins: Twins, model: Any) -> Any:
    return twins.fitted(model, epochs=1)


def evaluated(twins: Twins, model: Any) -> Any:
    return model.evaluate(twins.x, twins.y, batch_size=8, verbose=0)


def predicted(twins: Twins, model: Any) -> Any:
    return model.predict(twins.x, batch_size=8, verbose=0)


def accumulating(twins: Twins, **compiled: Any) -> Any:
    model = made(twins, **compiled)
    model.set_gradient_accumulation_options(3)
    return fitted(twins, model)


def accumulate(twins: Twins, given: Any) -> Any:
    return made(twins).set_gradient_accumulation_options(**given)


def pipelined(twins: Twins, given: Any) -> Any:
    return made(twins).set_pipelining_options(**given)


def layers(twins: Twins, change: Callable[[list[Any]], Any]) -> Any:
    """Stages of four layers, as somebody changes them."""
    model = made(twins, four_layers)
    assignment = model.get_pipeline_stage_assignment()
    for each, stage in zip(assignment, (0, 0, 1, 1), strict=True):
        each.pipeline_stage = stage
    return model.set_pipeline_stage_assignment(change(assignment))


def calls(twins: Twins, change: Callable[[list[Any]], Any]) -> Any:
    model = made(twins, in_scopes)
    return model.set_pipeline_stage_assignment(change(model.get_pipeline_stage_assignment()))


def at(place: int, stage: Any) -> Callable[[list[Any]], Any]:
    def change(assignment: list[Any]) -> list[Any]:
        assignment[place].pipeline_stage = stage
        return assignment

    return change


def in_scope(twins: Twins, *stages: int) -> None:
    with twins.strategy.scope(), ipu.keras.PipelineStage(stages[0]):
        for stage in stages[1:]:
            with ipu.keras.PipelineStage(stage):
                pass


def stray(twins: Twins) -> Any:
    def build() -> Any:
        inputs = keras.Input((6,))
        with ipu.keras.PipelineStage(0):
            x = keras.layers.Dense(5)(inputs)
        return keras.Model(inputs, keras.layers.Dense(3)(x))

    return fitted(twins, made(twins, build))


def data(twins: Twins, change: Callable[[Any], Any], steps_per_execution: int = 1, **more: Any) -> Any:
    samples = tf.data.Dataset.from_tensor_slices((twins.x, twins.y))
    return made(twins, steps_per_execution=steps_per_execution).fit(change(samples), verbose=0, **more)


def outside(twins: Twins) -> None:
    with ipu.keras.PipelineStage(0):
        pass


def skipped(twins: Twins) -> Any:
    return calls(twins, lambda assignment: [at(place, 2)(assignment) for place in (2, 3)][-1])


def too_few(twins: Twins) -> Any:
    model = staged(twins)
    configure(1)
    return fitted(twins, model)


CASES: Mapping[str, tuple[str, Callable[[Twins], Any]]] = {
    "run of a plain function": (r"'len' is no tf\.function", lambda twins: twins.strategy.run(len, ([],))),
    "reduce by another operation": ("reduce_op is 'MAX'", lambda twins: twins.strategy.reduce("MAX", 3.0)),
    "an optimizer's own minimize": (
        "OwnMinimize, has a minimize of its own",
        lambda twins: accumulating(twins, steps_per_execution=3, optimizer=OwnMinimize(0.1)),
    ),
    "another way to reduce metrics": ("is 'most'", lambda twins: made(twins).set_replication_options("most")),
    "run_eagerly": ("run_eagerly=True", lambda twins: fitted(twins, made(twins, run_eagerly=True))),
    "a device that is no IPU": ("is no IPU device", lambda twins: IPUStrategy("/device:CPU:0")),
    "an execution of no whole update": ("a multiple of", lambda twins: accumulating(twins, steps_per_execution=2)),
    "a pipeline without accumulation": (
        "nobody said how many batches",
        lambda twins: fitted(twins, staged(twins, gradient_accumulation_steps_per_replica=None)),
    ),
    "parameters of an unbuilt model": ("isn't built", lambda twins: made(twins, Subclassed).count_params()),
    "a stage is skipped": (r"the stages are \[0, 2\]", skipped),
    "too few IPUs": ("needs 2 IPUs", too_few),
    "accumulation of no batch": (
        "per_replica is 0",
        lambda twins: accumulate(twins, {"gradient_accumulation_steps_per_replica": 0}),
    ),
    "accumulation by name is no mapping": ("must be a mapping", lambda twins: accumulate(twins, 3)),
    "accumulation with an optimizer": ("'opt' is set", lambda twins: accumulate(twins, {"opt": 3})),
    "accumulation with mini-batches": (
        "'num_mini_batches' is set",
        lambda twins: accumulate(twins, {"num_mini_batches": 3}),
    ),
    "a pipeline of no batch": (
        "per_replica is -1",
        lambda twins: pipelined(twins, {"gradient_accumulation_steps_per_replica": -1}),
    ),
    "devices that are no list": ("device_mapping is", lambda twins: pipelined(twins, {"device_mapping": (0, 1)})),
    "pipelining by name is no mapping": ("must be a mapping", lambda twins: pipelined(twins, 3)),
    "pipelining by another name": (
        "set gradient_accumulation_steps_per_replica",
        lambda twins: pipelined(twins, {"gradient_accumulation_count": 3}),
    ),
    "pipelining with what Keras sets": ("which Keras sets", lambda twins: pipelined(twins, {"infeed_queue": 3})),
    "pipelining with what does not fit": ("does not fit", lambda twins: pipelined(twins, {"outfeed_loss": True})),
    "an infeed with what Keras sets": (
        "'dataset', which Keras sets",
        lambda twins: made(twins).set_infeed_queue_options(dataset=3),
    ),
    "an infeed with what does not fit": (
        "no argument 'device_ordinal'",
        lambda twins: made(twins).set_infeed_queue_options(device_ordinal=0),
    ),
    "an outfeed with what does not fit": (
        "'outfeed_mode', which Keras sets",
        lambda twins: made(twins).set_outfeed_queue_options(outfeed_mode="all"),
    ),
    "fit of nothing": ("fit was given no data", lambda twins: made(twins).fit(verbose=0)),
    "predict of nothing": ("an epoch has 0 steps", lambda twins: made(twins).predict(twins.x[:0], verbose=0)),
    "an optimizer that is none": ("Could not interpret optimizer", lambda twins: made(twins, optimizer=3)),
    "a make_train_function of its own": (
        "make_train_function of the model",
        lambda twins: fitted(twins, made(twins, lambda: OwnTrain([keras.layers.Dense(3)]))),
    ),
    "a make_test_function of its own": (
        "make_test_function of the model",
        lambda twins: evaluated(twins, made(twins, lambda: OwnTest([keras.layers.Dense(3)]))),
    ),
    "a make_predict_function of its own": (
        "make_predict_function of the model",
        lambda twins: predicted(twins, made(twins, lambda: OwnPredict([keras.layers.Dense(3)]))),
    ),
    "a test_step of its own in stages": (
        "test_step of the model",
        lambda twins: evaluated(twins, staged(twins, OwnTestStep)),
    ),
    "a predict_step of its own in stages": (
        "predict_step of the model",
        lambda twins: predicted(twins, staged(twins, OwnPredictStep)),
    ),
    "a call of its own in stages": ("call of the model", lambda twins: fitted(twins, staged(twins, OwnCall))),
    "a stage below 0": ("is -1", lambda twins: in_scope(twins, -1)),
    "a stage outside a strategy": ("outside the scope of an IPUStrategy", outside),
    "a stage inside a stage": (r"PipelineStage\(1\) is opened inside", lambda twins: in_scope(twins, 0, 1)),
    "a generator": ("a Python generator", lambda twins: data(twins, lambda samples: (each for each in samples))),
    "data without end and steps": ("have no end", lambda twins: data(twins, lambda samples: samples.batch(8).repeat())),
    "a smaller last batch": ("3 samples, fewer", lambda twins: data(twins, lambda samples: samples.batch(9))),
    "data without elements": ("has 0 steps", lambda twins: data(twins, lambda samples: samples.batch(8).take(0))),
    "executions of no whole epoch": (
        "which does not divide 6",
        lambda twins: data(twins, lambda samples: samples.batch(8), 4),
    ),
    "batches of unknown size": (
        "may be smaller",
        lambda twins: data(twins, lambda samples: samples.filter(lambda x, y: y < 2).batch(8), steps_per_epoch=2),
    ),
    "fewer batches than steps": (
        "have 6 batches",
        lambda twins: data(twins, lambda samples: samples.batch(8), steps_per_epoch=7),
    ),
    "an assignment of a subclassed model": (
        "is a subclass of keras.Model",
        lambda twins: made(twins, Subclassed).get_pipeline_stage_assignment(),
    ),
    "setting an assignment of a subclassed model": (
        "is a subclass of keras.Model",
        lambda twins: made(twins, Subclassed).set_pipeline_stage_assignment([]),
    ),
    "a class without call": ("build", lambda twins: fitted(twins, made(twins, NoCall))),
    "calls assigned by no list": ("is a tuple", lambda twins: calls(twins, tuple)),
    "too few calls assigned": ("3 entries for 4", lambda twins: calls(twins, lambda each: each[1:])),
    "a call assigned by a number": ("holds 0", lambda twins: calls(twins, lambda each: [0, *each[1:]])),
    "calls assigned in another order": ("stands where", lambda twins: calls(twins, lambda each: each[::-1])),
    "a call without a stage": ("is None", lambda twins: calls(twins, at(1, None))),
    "a stage that steps back": ("takes what 'first' makes on 1", lambda twins: calls(twins, at(0, 1))),
    "a call outside the stages": ("is in no PipelineStage", stray),
    "layers assigned by no list": ("is a tuple", lambda twins: layers(twins, tuple)),
    "too few layers assigned": ("3 entries for 4", lambda twins: layers(twins, lambda each: each[1:])),
    "a layer assigned by a word": ("holds '0'", lambda twins: layers(twins, lambda each: ["0", *each[1:]])),
    "layers assigned in another order": ("stands where", lambda twins: layers(twins, lambda each: each[::-1])),
    "a layer without a stage": ("is None", lambda twins: layers(twins, at(1, None))),
    "a first stage of 1": ("is on stage 1", lambda twins: layers(twins, lambda each: [1, 1, 1, 1])),
    "a stage is skipped in a list": ("and the one before on 0", lambda twins: layers(twins, lambda each: [0, 0, 2, 2])),
}
KINDS = {each.__name__: each for each in (ValueError, RuntimeError, TypeError)}


def test_every_row_has_a_case_or_a_reason_and_every_case_a_row() -> None:
    assert len(ROWS) == 109
    assert all(("case" in row) != bool(row.get("reason")) for row in ROWS)
    assert {row["case"] for row in ROWS if "case" in row} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_it_raises_and_leaves_nothing_compiled(twins: Twins, case: str) -> None:
    match, call = CASES[case]
    kinds = {row.get("here", row["raises"]) for row in ROWS if row.get("case") == case}
    (kind,) = kinds
    with pytest.raises(KINDS[kind], match=match):
        call(twins)
    assert not twins.strategy.executables
    assert sequential().__class__ is keras.Sequential  # no scope stayed open
