"""The extension of every model made in a strategy's scope: where it runs, its options, and Keras' loop on executions.

`fit`, `evaluate` and `predict` are Keras' own; they are given one kind of data, and functions that run executions.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras

from workbench.base.units import plural
from workbench.base.whole import count
from workbench.engine.frontends.step.losses import check_scale
from workbench.engine.frontends.step.own_step import check_step
from workbench.engine.frontends.trace.jaxpr import FunctionalModel
from workbench.engine.frontends.trace.jaxpr import validation_split as split_off
from workbench.errors import InputError
from workbench.ipu.keras._execution.data import Batches, batches, check_steps
from workbench.ipu.keras._execution.given import (
    check_callbacks,
    check_class_weight,
    check_share,
    check_splits,
    explained,
)
from workbench.ipu.keras._execution.polling import PolledCallbacks
from workbench.ipu.keras._execution.run import Execution
from workbench.ipu.keras._extensions.assignment import StageError
from workbench.ipu.keras._extensions.model_options import ModelOptions
from workbench.ipu.keras._extensions.options import (
    ReplicatedMetricReductionMethod,
    accumulation_of,
    infeed_options,
    outfeed_options,
)
from workbench.ipu.keras._extensions.pipelined import PipelinedExtension, PipelinedFunctional, PipelinedSequential
from workbench.ipu.keras._extensions.saving import KEY, read, written

LOGGER = logging.getLogger("workbench.ipu.keras")


class RunEagerlyError(InputError, RuntimeError):
    """A model that is to run eagerly, which a program on the IPU cannot."""


class ModelExtension(PipelinedExtension):
    """What a `keras.Model` made in the scope of an `IPUStrategy` has besides."""

    run_eagerly: bool
    steps_per_execution: int
    optimizer: Any
    __original_class__: type
    _ipu_hear: Any

    @property
    def _keras(self) -> Any:
        """The model as Keras knows it."""
        return super()

    # -- options ----------------------------------------------------------------------------------------

    def set_gradient_accumulation_options(
        self,
        gradient_accumulation_steps_per_replica: int | None = None,
        experimental_normalize_gradients: bool | None = None,
        gradient_accumulation_reduction_method: Any = "sum",
        **gradient_accumulation_optimizer_kwargs: Any,
    ) -> None:
        """Add gradients of several batches up before each weight update of `fit`.

        `gradient_accumulation_steps_per_replica`: the number of batches, 1 unless said; `steps_per_execution` is a
        multiple of it times the number of replicas. `gradient_accumulation_reduction_method`: "sum", "mean" or
        "running_mean", or a member of `GradientAccumulationReductionMethod`. `experimental_normalize_gradients`: divide
        every gradient by the number of batches of an update, over replicas too. By name: `dtype` of the sums,
        `offload_weight_update_variables`, `replicated_optimizer_state_sharding`. Errors: `ValueError`, `TypeError`.
        """
        found = accumulation_of(
            gradient_accumulation_steps_per_replica,
            experimental_normalize_gradients,
            gradient_accumulation_reduction_method,
            gradient_accumulation_optimizer_kwargs,
        )
        self._set_options(accumulation=found)

    def set_asynchronous_callbacks(self, asynchronous: bool = False) -> None:
        """Whether callbacks of batches come for every step, as its results leave the outfeed, or once an execution.

        Callbacks are called by a thread then; the weights they see are those the execution began with.
        """
        if not isinstance(asynchronous, bool):
            raise InputError(f"asynchronous is {asynchronous!r}", expected="True or False")
        self._set_options(asynchronous=asynchronous)

    def set_replication_options(self, replicated_metric_reduction_method: Any = "NONE") -> None:
        """What is reported of metrics that every replica has: "NONE" (the last one's), "LIST", "SUM" or "MEAN".

        What a layer remembers beside its weights, as a batch normalisation its moving mean, each replica has of its own
        batches; the model keeps the first replica's. Errors: `ValueError` for another method.
        """
        self._set_options(metrics=ReplicatedMetricReductionMethod.parse(replicated_metric_reduction_method))

    def set_infeed_queue_options(self, **kwargs: Any) -> None:
        """Arguments of the infeed that Keras makes: `prefetch_depth`, `optimise_latency`. Errors: `ValueError`."""
        self._set_options(infeed=infeed_options(kwargs))

    def set_outfeed_queue_options(self, **kwargs: Any) -> None:
        """Arguments of the outfeed that Keras makes: `buffer_depth`, `optimise_latency`. Errors: `ValueError`."""
        self._set_options(outfeed=outfeed_options(kwargs))

    # -- saved ------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Keras' configuration, and what of the options can be saved."""
        config = dict(self._keras.get_config())
        found = written(self._ipu_options, self._stages(), self.name)
        return config if found is None else {**config, KEY: found}

    def take_options(self, options: ModelOptions, stages: Any) -> None:
        """The options and stages of another model, or of a configuration."""
        object.__setattr__(self, "_ipu_options", options)
        self._set_stages(stages)

    # -- Keras' functions -------------------------------------------------------------------------------

    def make_train_function(self, force: bool = False) -> None:
        """What `fit` calls for each execution."""
        if self.train_function is None or force:
            self.train_function = self._execution("training")

    def make_test_function(self, force: bool = False) -> None:
        """What `evaluate` calls for each execution."""
        if self.test_function is None or force:
            self.test_function = self._execution("evaluation")

    def make_predict_function(self, force: bool = False) -> None:
        """What `predict` calls for each execution."""
        if self.predict_function is None or force:
            self.predict_function = self._execution("prediction")

    def _execution(self, mode: str) -> Execution:
        if self.run_eagerly:
            raise RunEagerlyError(
                f"the model {self.name!r} is compiled with run_eagerly=True, and an IPU runs compiled programs",
                todo="compile it without run_eagerly",
            )
        self._check_functions_of_its_own(mode)
        stages = self._stages_of_calls()
        options, accumulation = self._ipu_options, self._ipu_options.accumulation
        if stages is not None:
            accumulation = options.pipelining.accumulation
            if mode == "training" and options.pipelining.steps is None:
                raise InputError(
                    f"the model {self.name!r} is pipelined, and nobody said how many batches an update has",
                    todo="call set_pipelining_options(gradient_accumulation_steps_per_replica=...)",
                )
            self._check_call_of_its_own()
        cut = stages is not None or (mode == "training" and accumulation.steps > 1)
        self._check_steps_of_its_own(mode, cut=cut)
        if cut and mode == "training":
            self._check_optimizer(in_stages=stages is not None)
        return Execution(
            model=self,
            mode=mode,
            strategy=self._ipu_strategy,
            options=options,
            accumulation=accumulation,
            replicas=self._replicas(),
            stages=stages,
        )

    def _check_functions_of_its_own(self, mode: str) -> None:
        """What a class makes of an execution would never be called: ours is made in its place."""
        name = {"training": "train", "evaluation": "test", "prediction": "predict"}[mode]
        name = f"make_{name}_function"
        if getattr(type(self).__original_class__, name) is not getattr(keras.Model, name):
            raise StageError(
                f"{name} of the model {self.name!r} is its own, and in a strategy's scope it is never called",
                expected="a model without one",
                todo=f"leave {name} out, or make the model outside the scope",
            )

    def _check_call_of_its_own(self) -> None:
        """Stages are those of Keras' own calls of the layers; a class that calls them itself may call others."""
        own: Any = type(self).__original_class__
        if own.call not in (keras.Sequential.call, FunctionalModel.call):
            raise StageError(
                f"call of the model {self.name!r} is its own, and its stages are those of layers as Keras calls them",
                expected="a pipelined model without one",
                todo="leave call out, or reset_pipeline_stage_assignment()",
            )

    def _check_optimizer(self, *, in_stages: bool) -> None:
        """Gradients that are added up reach an optimizer by `apply`: a `minimize` of its own is never called.

        In stages each updates its own weights, which one question about all gradients at once would tie together.
        """
        if in_stages and isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer):
            raise InputError(
                f"the optimizer of the model {self.name!r} is a LossScaleOptimizer, which updates the weights of all "
                "stages or none of them",
                expected="an optimizer whose updates of the stages do not wait for each other",
                todo="compile the model with auto_scale_loss=False, or without a LossScaleOptimizer",
            )
        own = getattr(type(self.optimizer), "minimize", None)
        if own is not None and not (own.__module__ or "").startswith("keras."):
            raise InputError(
                f"the optimizer of the model {self.name!r}, {type(self.optimizer).__name__}, has a minimize of its own",
                expected="an optimizer without one where gradients are accumulated or stages are pipelined",
                todo="move what it does into apply() or update_step()",
            )

    def _check_steps_of_its_own(self, mode: str, *, cut: bool) -> None:
        """A model whose class says how a batch is treated is run as it is, whole."""
        name = {"training": "train_step", "evaluation": "test_step", "prediction": "predict_step"}[mode]
        if cut and getattr(type(self), name) is not getattr(keras.Model, name):
            raise StageError(
                f"{name} of the model {self.name!r} is its own, and runs whole",
                expected="a model without one where gradients are accumulated or stages are pipelined",
                todo="leave accumulation and stages out, or move the loss into compute_loss()",
            )
        check_step(self, name)

    # -- Keras' loop ------------------------------------------------------------------------------------

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile as the model's class does. Errors besides: `InputError` for `steps_per_execution` or a loss scale
        that is none, which leaves the model as it was.
        """
        try:
            given = inspect.signature(self._keras.compile).bind_partial(*args, **kwargs).arguments
        except TypeError:  # the call below says so
            given = {}
        self._checked_steps(given.get("steps_per_execution", 1))
        check_scale(given.get("optimizer"))
        self._keras.compile(*args, **kwargs)

    def _checked_steps(self, steps: Any) -> int:
        return count(f"steps_per_execution of the model {self.name!r}", steps)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
    ) -> Any:
        """Train as `keras.Model.fit` does, each execution of `steps_per_execution` batches as one program on the IPU.

        Errors besides Keras': `InputError` for data an IPU cannot be given: a generator, a smaller last batch, no
        number of steps for a dataset without end, a number that `steps_per_execution` does not divide, sizes of batches
        and counts of epochs that are none, complex numbers and other arrays that an IPU does not have, arrays that do
        not fit each other or the model, callbacks and weights of classes that are none.
        """
        _given("fit", x)
        count("epochs", epochs, least=0)
        count("initial_epoch", initial_epoch, least=0)
        if validation_batch_size is not None:
            count("validation_batch_size", validation_batch_size)
        check_callbacks(callbacks)
        check_class_weight(class_weight, y, sample_weight)
        check_share(validation_split)
        if validation_split and validation_data is None:
            check_splits(x, y, sample_weight, validation_split)
            (x, y, sample_weight), validation_data = split_off((x, y, sample_weight), validation_split)
        data = batches(
            x,
            y=y,
            sample_weight=sample_weight,
            class_weight=class_weight,
            batch_size=batch_size,
            steps=steps_per_epoch,
            shuffle=shuffle,
        )
        steps = check_steps(data, steps_per_epoch)
        if validation_data is not None:
            validation_data = self._validation(validation_data, validation_batch_size or batch_size, validation_steps)
        LOGGER.info("%s: the effective batch size is %s", self.name, self._effective_batch_size(data))
        told = {"add_history": True, "epochs": epochs, "steps": steps, "verbose": verbose}
        with self._steps_within(steps), self._polled("training", callbacks, told) as callbacks:
            return self._keras.fit(
                data,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_data,
                shuffle=False,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
                validation_freq=validation_freq,
            )

    def _validation(self, given: Any, batch_size: int | None, steps: int | None) -> Batches:
        x, y, weight = keras.utils.unpack_x_y_sample_weight(given)
        data = batches(x, y=y, sample_weight=weight, batch_size=batch_size, steps=steps, of=" of validation_data")
        self._check_divides(check_steps(data, steps), "validation_steps")
        return data

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Evaluate as `keras.Model.evaluate` does, on the IPU; errors as of `fit`."""
        _given("evaluate", x)
        check_callbacks(callbacks)
        data = batches(x, y=y, sample_weight=sample_weight, batch_size=batch_size, steps=steps)
        found = check_steps(data, steps)
        told = {"epochs": 1, "steps": found, "verbose": verbose}
        with self._steps_within(found), self._polled("evaluation", callbacks, told) as callbacks:
            return self._keras.evaluate(
                data, verbose=verbose, steps=steps, callbacks=callbacks, return_dict=return_dict, **kwargs
            )

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """Predict as `keras.Model.predict` does, on the IPU; errors as of `fit`."""
        _given("predict", x)
        check_callbacks(callbacks)
        data = batches(x, batch_size=batch_size, steps=steps)
        found = check_steps(data, steps)
        told = {"epochs": 1, "steps": found, "verbose": verbose}
        with self._steps_within(found), self._polled("prediction", callbacks, told) as callbacks:
            return self._keras.predict(data, verbose=verbose, steps=steps, callbacks=callbacks)

    def _effective_batch_size(self, data: Batches) -> str:
        """Samples of a weight update: the batch's, times accumulation steps, times replicas."""
        options = self._ipu_options
        pipelined = self._stages() is not None
        factor = (options.pipelining.accumulation if pipelined else options.accumulation).steps * self._replicas()
        return str(data.batch_size * factor) if data.batch_size is not None else f"{factor} times the dataset's"

    @contextmanager
    def _polled(self, mode: str, callbacks: Any, told: dict[str, Any]) -> Iterator[Any]:
        """The callbacks to give to Keras' loop, told of every step inside where they are asynchronous."""
        summed = self._stages() is not None and self._ipu_options.pipelining.accumulate_outfeed and mode != "prediction"
        if not self._ipu_options.asynchronous or summed or isinstance(callbacks, keras.callbacks.CallbackList):
            yield callbacks
            return
        polled = PolledCallbacks(callbacks, mode, add_progbar=told["verbose"] != 0, model=self, **told)
        object.__setattr__(self, "_ipu_hear", polled.hear)
        try:
            yield polled
        finally:
            object.__setattr__(self, "_ipu_hear", None)
            polled.close()

    @contextmanager
    def _steps_within(self, steps: int) -> Iterator[None]:
        """Executions of at most `steps` batches inside, of which an epoch has a whole number."""
        before = self._checked_steps(self.steps_per_execution)
        if before > steps:
            LOGGER.warning(
                "steps_per_execution of %s is %d, and an epoch has %d steps: executions have %d here",
                self.name,
                before,
                steps,
                steps,
            )
            self.steps_per_execution = steps
        try:
            self._check_divides(steps, "steps_per_epoch")
            yield
        finally:
            self.steps_per_execution = before

    def _check_divides(self, steps: int, what: str) -> None:
        each = min(self._checked_steps(self.steps_per_execution), steps)
        if steps % each:
            raise InputError(
                f"the model {self.name!r} has steps_per_execution {each}, which does not divide "
                f"{steps} {plural(steps, 'batch')}",
                expected="a whole number of executions",
                todo=f"compile it with a divisor of {steps}, or set {what}={steps // each * each}",
            )

    def _symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Keras traces the model with the first batch here, if it has to; what does not fit is told by name."""
        seen = [] if data_batch is None else [data_batch]

        def first() -> Iterator[Any]:
            for _, _, given in iterator:
                seen.append(given[0] if isinstance(given, list | tuple) else next(given))
                yield 0, 0, seen

        with explained(self, seen):
            self._keras._symbolic_build(iterator=first(), data_batch=data_batch)

    def _get_metrics_result_or_logs(self, logs: Any) -> Any:
        """What an epoch reports: what left the outfeed last, where replicas have metrics of their own."""
        return logs if self._replicas() > 1 else self._keras._get_metrics_result_or_logs(logs)

    def _one_batch(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        before, self.steps_per_execution = self.steps_per_execution, 1
        try:
            return call(*args, **kwargs)
        finally:
            self.steps_per_execution = before

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Train on one batch, as one execution."""
        return self._one_batch(self._keras.train_on_batch, *args, **kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate one batch, as one execution."""
        return self._one_batch(self._keras.test_on_batch, *args, **kwargs)

    def predict_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Predict one batch, as one execution."""
        return self._one_batch(self._keras.predict_on_batch, *args, **kwargs)


def _given(call: str, x: Any) -> None:
    if x is None:
        raise InputError(
            f"{call} was given no data", expected="arrays or a dataset of batches", todo=f"write {call}(x)"
        )


class SequentialExtension(PipelinedSequential, ModelExtension):
    """What a `keras.Sequential` made in the scope of an `IPUStrategy` has besides."""

    def __call__(self, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As Keras calls it; whole numbers reach a first layer that takes them as they are, such as an embedding.

        Without a `keras.Input` Keras would make them of the layer's own type, which is a floating one.
        """
        model = self._keras
        layers, kind = getattr(self, "_layers", []), str(getattr(inputs, "dtype", ""))
        if layers and not getattr(self, "built", False) and not layers[0].autocast and "int" in kind:
            self._layers = [keras.layers.InputLayer(batch_shape=tuple(inputs.shape), dtype=kind), *layers]
        return model.__call__(inputs, *args, **kwargs)


class FunctionalExtension(PipelinedFunctional, ModelExtension):
    """What a functional `keras.Model` made in the scope of an `IPUStrategy` has besides."""


def with_options(model: Any, config: Mapping[str, Any]) -> Any:
    """A model that was made of a configuration, with the options in it."""
    if isinstance(model, ModelExtension) and config.get(KEY):
        model.take_options(*read(config[KEY]))
    return model


def alike(model: Any, other: Any) -> Any:
    """A clone of another model, with its options."""
    if isinstance(model, ModelExtension) and isinstance(other, ModelExtension):
        model.take_options(other._ipu_options, other._stages())
    return model


def extension_of(kind: type) -> type | None:
    """The extension of a class of models; None for one that has it, and `keras.Model`, which makes another."""
    if kind is keras.Model or issubclass(kind, ModelExtension):
        return None
    if issubclass(kind, keras.Sequential):
        return SequentialExtension
    return FunctionalExtension if issubclass(kind, FunctionalModel) else ModelExtension


__all__ = ["FunctionalExtension", "ModelExtension", "SequentialExtension", "alike", "extension_of", "with_options"]
