"""The model classes of the SDK's TensorFlow 2.1, over Keras' own models made in a strategy's scope.

Source: graphcore/tensorflow tensorflow/python/ipu/keras/{model,pipeline}.py of the SDK for TensorFlow 2.1. A step of
these classes is one weight update, and their program runs a whole epoch unless `steps_per_run` says fewer updates.
"""

from __future__ import annotations

import inspect
import warnings
from itertools import pairwise
from typing import Any

import jax
import keras
import numpy as np

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.base.whole import MOST_COUNT, MOST_TURNS, count, whole
from workbench.errors import CallError, InputError, UnsupportedError, WorkbenchError
from workbench.ipu.keras._execution.data import batches
from workbench.tf._graph.convert import check_depth as check_nesting
from workbench.tf._graph.dtypes import given_type
from workbench.tf.data import Dataset
from workbench.tf.distribute import get_strategy

_BATCH_SIZE = 32  # Keras' own where arrays are given without one


class Model:
    """A functional model on one IPU for training, `keras.Model(*args, **kwargs)`.

    `gradient_accumulation_count`: batches of a weight update, whose gradients are summed, in the type
    `gradient_accumulation_dtype`. Errors: `InputError` outside the scope of an `IPUStrategy`; `UnsupportedError` for
    `layer_replacement`.
    """

    _new = "keras.Model and set_gradient_accumulation_options"
    _model: Any
    _depth: int | None = None

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int = 1,
        gradient_accumulation_dtype: Any = None,
        layer_replacement: bool = False,
        **kwargs: Any,
    ) -> None:
        self._begin(gradient_accumulation_count, layer_replacement)
        model = _functional(args, kwargs)
        self._accumulate(model, gradient_accumulation_dtype)

    def _begin(self, count: Any, replaced: Any) -> None:
        """What every class asks of its scope and its arguments, before anything is made."""
        name = f"ipu.keras.{type(self).__name__}"
        whole("gradient_accumulation_count", count, most=MOST_COUNT)
        if not isinstance(replaced, bool):
            raise InputError(f"layer_replacement is {short(replaced)}", expected="True or False")
        if replaced:
            raise UnsupportedError(
                "layer_replacement is True", expected="False", todo="write layers of ipu.keras.layers in the model"
            )
        if not hasattr(get_strategy(), "_ipu_device"):
            raise InputError(
                f"{name} is made outside the scope of an IPUStrategy", todo="write it inside `with strategy.scope():`"
            )
        warnings.warn(f"{name} is deprecated: use {self._new}", DeprecationWarning, stacklevel=3)
        self._count = int(count)

    def _accumulate(self, model: Any, dtype: Any) -> None:
        more = {} if dtype is None else {"dtype": given_type(dtype, "gradient_accumulation_dtype")}
        model.set_gradient_accumulation_options(self._count, **more)
        self._model = model

    # -- what Keras has -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: a model of this class is no layer."""
        raise InputError(f"{self.name!r} was called", todo="call its fit, evaluate or predict")

    call = __call__

    def __getattr__(self, name: str) -> Any:
        """What the Keras model has and this class does not: weights, layers, summaries."""
        model = self.__dict__.get("_model")
        if model is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(model, name)

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Any = None, loss_weights: Any = None, **kwargs: Any
    ) -> None:
        """As `keras.Model.compile`. Errors: `UnsupportedError`, a `NotImplementedError`, names another argument."""
        unsupported = [name for name, value in kwargs.items() if value is not None]
        if unsupported:
            raise UnsupportedError(
                f"compile of {type(self).__name__} does not take {short(unsupported[0])}",
                expected="optimizer, loss, metrics, loss_weights",
            )
        self._model.compile(optimizer=optimizer, loss=loss, metrics=metrics, loss_weights=loss_weights)

    # -- runs ---------------------------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = 1,
        callbacks: Any = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Train. `steps_per_epoch`, `steps_per_run`: weight updates of an epoch and of a run of the program.

        `prefetch_depth`: of the infeed. Batches that fill no update are left out. Errors: `InputError`, as of a model
        made in a strategy's scope; `UnsupportedError` for other arguments, such as those of a validation.
        """
        whole("epochs", epochs, most=MOST_TURNS)
        whole("initial_epoch", initial_epoch, least=0, most=MOST_TURNS)
        _check_callbacks(callbacks)
        _check_verbose(verbose)
        if not isinstance(shuffle, bool):
            raise InputError(f"shuffle is {short(shuffle)}", expected="True or False")
        size, (x, y) = self._asked(kwargs, prefetch_depth, batch_size, (x, y), self._of_update(), steps_per_epoch)
        steps = self._planned(x, y, size, self._of_update(), steps_per_epoch, steps_per_run, "steps_per_epoch")
        told = {"epochs": epochs, "initial_epoch": initial_epoch, "verbose": verbose, "callbacks": callbacks}
        return self._model.fit(x, y, batch_size=size, shuffle=shuffle, steps_per_epoch=steps, **told)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int | None = None,
        verbose: Any = 1,
        steps: int | None = None,
        callbacks: Any = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Evaluate. A step is a batch, of pipelined models as many as an update has; else as `fit`."""
        _check_callbacks(callbacks)
        _check_verbose(verbose)
        size, (x, y) = self._asked(kwargs, prefetch_depth, batch_size, (x, y), self._of_step(), steps)
        found = self._planned(x, y, size, self._of_step(), steps, steps_per_run, "steps")
        return self._model.evaluate(x, y, batch_size=size, verbose=verbose, steps=found, callbacks=callbacks)

    def predict(
        self,
        x: Any,
        *,
        batch_size: int | None = None,
        verbose: Any = 0,
        steps: int | None = None,
        callbacks: Any = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Predict. Steps are those of `evaluate`."""
        _check_callbacks(callbacks)
        _check_verbose(verbose)
        size, (x,) = self._asked(kwargs, prefetch_depth, batch_size, (x,), self._of_step(), steps)
        found = self._planned(x, None, size, self._of_step(), steps, steps_per_run, "steps")
        return self._model.predict(x, batch_size=size, verbose=verbose, steps=found, callbacks=callbacks)

    def _of_update(self) -> int:
        """Batches of a weight update, over replicas."""
        return self._count * int(self._model._replicas())

    def _of_step(self) -> int:
        """Batches of a step that updates nothing."""
        return int(self._model._replicas())

    def _asked(
        self, unknown: Any, depth: Any, batch_size: Any, data: tuple[Any, ...], of_step: int, steps: Any
    ) -> tuple[int | None, tuple[Any, ...]]:
        """The size of a batch, and the data without what fills no step."""
        for name, value in unknown.items():
            if value is not None:
                raise UnsupportedError(f"{type(self).__name__} does not take {short(name)}", todo=f"leave {name} out")
        if depth is not None:
            whole("prefetch_depth", depth)
        if depth != self._depth:  # what was compiled with another is not used again
            self._model.set_infeed_queue_options(**({} if depth is None else {"prefetch_depth": depth}))
            self._depth = depth
        if isinstance(data[0], Dataset | keras.utils.PyDataset) or inspect.isgenerator(data[0]):
            return batch_size, data
        size = _BATCH_SIZE if batch_size is None else count("batch_size", batch_size)
        samples = _samples(data)
        if len(data) > 1 and self._model.loss is not None and not jax.tree_util.tree_leaves(data[1]):
            raise InputError(f"y is {short(data[1])}, and the model has a loss", expected="what it is held against")
        of_one = size * (of_step if steps is None else 1)
        kept = samples - samples % of_one
        if not kept:
            raise InputError(
                f"there are {samples} samples, and batch_size is {size}",
                expected=f"at least {of_one}, which one step takes",
            )
        return size, tuple(jax.tree_util.tree_map(lambda each: np.asarray(each)[:kept], each) for each in data)

    def _planned(self, x: Any, y: Any, size: Any, of_step: int, steps: Any, of_run: Any, called: str) -> int:
        """Batches of an epoch; the model's program takes those of a run."""
        if steps is None:
            known = batches(x, y=y, batch_size=size).known
            steps = None if known is None else known // of_step
        if steps is None:
            raise InputError("nobody can tell how many batches the data have", todo=f"give {called}")
        found = whole(called, steps, most=MOST_TURNS)
        run = found if of_run is None else count("steps_per_run", of_run)
        if found % run:
            raise InputError(f"steps_per_run is {run}, and {called} {found}", expected=f"a divisor of {found}")
        if self._model.steps_per_execution != run * of_step:
            self._model.steps_per_execution = run * of_step
            self._model._forget()
        return int(found * of_step)


class Sequential(Model):
    """A list of layers on one IPU for training, `keras.Sequential(layers)`; other arguments as of `Model`.

    Its variables are not known before it has run, unless a `keras.Input` is first.
    """

    _new = "keras.Sequential and set_gradient_accumulation_options"

    def __init__(
        self,
        layers: Any = None,
        gradient_accumulation_count: int = 1,
        gradient_accumulation_dtype: Any = None,
        layer_replacement: bool = False,
    ) -> None:
        self._begin(gradient_accumulation_count, layer_replacement)
        listed = [] if layers is None else layers
        known = keras.layers.Layer | keras.KerasTensor
        if not isinstance(listed, list | tuple) or not all(isinstance(each, known) for each in listed):
            raise InputError(f"layers is {short(layers)}", expected="a list of layers of Keras")
        model = _made(keras.Sequential, layers)
        self._accumulate(model, gradient_accumulation_dtype)


class PipelineModel(Model):
    """A functional model whose layers are called in `PipelineStage` scopes, as a pipeline over several IPUs.

    `gradient_accumulation_count`: batches of a weight update. The others are those of `pipelining_ops.pipeline`, and
    act as there. Errors: `InputError` for layers without stages, and as `set_pipelining_options` has them.
    """

    _new = "keras.Model, ipu.keras.PipelineStage and set_pipelining_options"

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int,
        gradient_accumulation_dtype: Any = None,
        batch_serialization_iterations: int = 1,
        device_mapping: Any = None,
        pipeline_schedule: Any = None,
        recomputation_mode: Any = None,
        forward_propagation_stages_poplar_options: Any = None,
        backward_propagation_stages_poplar_options: Any = None,
        weight_update_poplar_options: Any = None,
        offload_weight_update_variables: Any = None,
        replicated_optimizer_state_sharding: Any = False,
        offload_activations: Any = None,
        offload_gradient_accumulation_buffers: Any = None,
        replicated_weight_sharding: Any = None,
        offload_weights: Any = None,
        layer_replacement: bool = False,
        **kwargs: Any,
    ) -> None:
        self._begin(gradient_accumulation_count, layer_replacement)
        options = {
            "gradient_accumulation_dtype": gradient_accumulation_dtype,
            "batch_serialization_iterations": count("batch_serialization_iterations", batch_serialization_iterations),
            "pipeline_schedule": pipeline_schedule,
            "recomputation_mode": recomputation_mode,
            "forward_propagation_stages_poplar_options": forward_propagation_stages_poplar_options,
            "backward_propagation_stages_poplar_options": backward_propagation_stages_poplar_options,
            "weight_update_poplar_options": weight_update_poplar_options,
            "offload_weight_update_variables": offload_weight_update_variables,
            "replicated_optimizer_state_sharding": replicated_optimizer_state_sharding,
            "offload_activations": offload_activations,
            "offload_gradient_accumulation_buffers": offload_gradient_accumulation_buffers,
            "replicated_weight_sharding": replicated_weight_sharding,
            "offload_weights": offload_weights,
        }
        model, devices = self._staged(args, device_mapping, kwargs)
        given = {name: value for name, value in options.items() if value is not None}
        model.set_pipelining_options(self._count, devices, **given)
        self._model = model

    def _staged(self, args: tuple[Any, ...], devices: Any, kwargs: Any) -> tuple[Any, Any]:
        """The model with its stages, and the IPU of each."""
        model = _functional(args, kwargs)
        if model._stages() is None:
            raise InputError(
                f"no layer of {model.name!r} has a stage", todo="call its layers in `with ipu.keras.PipelineStage(0):`"
            )
        return model, devices

    def _of_update(self) -> int:
        return super()._of_update() * int(self._model._ipu_options.pipelining.serial)

    def _of_step(self) -> int:
        return self._of_update()


class PipelineSequential(PipelineModel):
    """Lists of layers, one for each stage, as a pipeline over several IPUs; arguments as of `PipelineModel`.

    `stages`: also one flat list, with an entry of `device_mapping` for each layer: a stage ends where the IPU changes.
    """

    _new = "keras.Sequential, set_pipeline_stage_assignment and set_pipelining_options"

    def __init__(self, stages: Any, gradient_accumulation_count: int, **kwargs: Any) -> None:
        super().__init__(stages, gradient_accumulation_count=gradient_accumulation_count, **kwargs)

    def _staged(self, args: tuple[Any, ...], devices: Any, kwargs: Any) -> tuple[Any, Any]:
        layers, stages, devices = _flat(args[0], devices)
        model = _made(keras.Sequential, layers, **kwargs)
        model.set_pipeline_stage_assignment(stages)
        return model, devices


def _flat(given: Any, devices: Any) -> tuple[list[Any], list[int], Any]:
    """All layers, the stage of each, and the IPU of each stage."""
    if not isinstance(given, list) or not given:
        raise InputError(f"stages is {short(given)}", expected="a list of lists of layers, one for each stage")
    nested = [isinstance(each, list) for each in given]
    if all(nested) and all(given):
        layers = [layer for stage in given for layer in stage]
        stages = [number for number, stage in enumerate(given) for _ in stage]
    elif any(nested):
        raise InputError(
            f"stages is {short(given)}, lists and layers, or an empty list", expected="a list of layers for each stage"
        )
    elif not isinstance(devices, list | tuple) or len(devices) != len(given):
        raise InputError(
            f"device_mapping is {short(devices)} for a flat list of {things_text(len(given), 'layer')}",
            expected="the IPU of each layer",
            todo="give it, or a list of layers for each stage",
        )
    else:
        layers, changes = list(given), [0, *(a != b for a, b in pairwise(devices))]
        stages = [int(each) for each in np.cumsum(changes)]
        devices = [device for device, changed in zip(devices, [1, *changes[1:]], strict=True) if changed]
    strange = [each for each in layers if not isinstance(each, keras.layers.Layer)]
    if strange:
        raise InputError(f"stages holds {short(strange[0])}", expected="layers of Keras")
    return layers, stages, devices


def _functional(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A functional model; an `InputError` for arguments that `keras.Model` has not, which Keras passes over."""
    unknown = [name for name in kwargs if name not in ("inputs", "outputs", "name", "trainable")]
    if unknown or len(args) > 3:
        told = f"{unknown[0]} is {short(kwargs[unknown[0]])}" if unknown else f"{len(args)} arguments are given"
        raise CallError(told, expected="what keras.Model takes: inputs, outputs, name")
    return _made(keras.Model, *args, **kwargs)


def _made(kind: Any, *args: Any, **kwargs: Any) -> Any:
    """A model of Keras, whose extension the open scope mixes in; what Keras does not take is told as ours."""
    try:
        return kind(*args, **kwargs)
    except WorkbenchError:
        raise
    except (TypeError, ValueError) as error:
        raise CallError(str(error), expected=f"what keras.{kind.__name__} takes") from error


def _samples(data: tuple[Any, ...]) -> int:
    """How many samples arrays hold, which may lie in lists or under names: as many in each."""
    try:
        check_nesting(data)
        leaves = jax.tree_util.tree_leaves(data)
    except RecursionError as error:
        raise InputError(
            f"x is {short(data[0])}, y {short(data[1:])}: {error}", expected="arrays, or a dataset"
        ) from None
    strange = [each for each in leaves if not np.ndim(each) or not hasattr(each, "dtype")]
    if strange or data[0] is None or not jax.tree_util.tree_leaves(data[0]):
        raise InputError(
            f"x is {short(data[0])}, y {short(data[1:])}; the data hold {short(strange[0] if strange else data[0])}",
            expected="arrays, in lists or by name, or a dataset",
        )
    counts = sorted({len(each) for each in leaves})
    if len(counts) > 1:
        raise InputError(
            f"the arrays of x and y have {counts} samples, shapes {[np.shape(each) for each in leaves]}",
            expected="as many in each",
        )
    return int(counts[0])


def _check_verbose(given: Any) -> None:
    known = isinstance(given, str | int) and given in ("auto", 0, 1, 2)
    if not known:
        raise InputError(f"verbose is {short(given)}", expected='"auto", 0, 1 or 2')


def _check_callbacks(given: Any) -> None:
    kinds = keras.callbacks.Callback | keras.callbacks.CallbackList
    listed = given if isinstance(given, list | tuple) else [given]
    if given is not None and not all(isinstance(each, kinds) for each in listed):
        raise InputError(f"callbacks is {short(given)}", expected="a list of keras.callbacks.Callback, or None")


IPUModel, IPUSequential = Model, Sequential

__all__ = ["IPUModel", "IPUSequential", "Model", "PipelineModel", "PipelineSequential", "Sequential"]
