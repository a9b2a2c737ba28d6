"""`tensorflow.python.ipu.ipu_strategy`: what is made in the scope of a strategy runs on the IPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.checked import checked
from workbench.base.text import short
from workbench.engine.frontends.describe.replicas import mean, replicas_here, total
from workbench.errors import InputError, KindError
from workbench.ipu.config._cpu import check_cpu
from workbench.ipu.devices import device_number
from workbench.tf import _graph
from workbench.tf._graph.convert import check_depth, check_tensors
from workbench.tf.distribute import ReduceOp, get_strategy, opened


class IPUStrategyV1:
    """A strategy for a system with one or more IPUs.

    `ipu_device`: where programs run; `cpu_device`: the host beside it. `enable_dataset_iterators`: datasets iterated
    over in a `tf.function` are infeeds. `enable_keras_extensions`: Keras models made in the scope run on the IPU.
    `profile` and `executables` hold what was compiled for its models.
    """

    @checked
    def __init__(
        self,
        ipu_device: str = "/device:IPU:0",
        cpu_device: str = "/device:CPU:0",
        enable_dataset_iterators: bool = True,
        enable_keras_extensions: bool = True,
    ) -> None:
        device_number(ipu_device)
        check_cpu("cpu_device", cpu_device)
        self._ipu_device, self._cpu_device = str(ipu_device), str(cpu_device)
        self._enable_dataset_iterators = enable_dataset_iterators
        self._enable_keras_extensions = enable_keras_extensions
        self._executables: list[Any] = []

    @contextmanager
    def scope(self) -> Iterator[IPUStrategyV1]:
        """Keras models made inside run on the IPU."""
        if not self._enable_keras_extensions:
            with opened(self):
                yield self
            return
        from workbench.ipu.keras._extensions.base import alike, with_options
        from workbench.ipu.keras._extensions.inject import Making, injected

        with opened(self), injected(Making(kind=_class_of, made=_made, read=with_options, alike=alike)):
            yield self

    @property
    def executables(self) -> tuple[Any, ...]:
        """What was compiled for models and functions of this strategy, in order."""
        return tuple(self._executables)

    @property
    def profile(self) -> Any:
        """The profile of what was compiled last. An `InputError` before anything is."""
        if not self._executables:
            raise InputError(
                "nothing was compiled yet", todo="call fit, evaluate or predict of a model made in scope(), or run"
            )
        return self._executables[-1].profile

    def run(self, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Call a function that is compiled whole on the strategy's IPU device, and return what it returns.

        `args`, `kwargs`: a list and a dictionary of its arguments. `executables` and `profile` hold what was compiled.
        Numbers of 64 bits are used in 32, as in a call of the function itself. Errors: `ValueError` for `fn` that is no
        `tf.function`.
        """
        if not getattr(fn, "is_tf_function", False):
            raise InputError(
                f"{getattr(fn, '__name__', '')!r} is no tf.function: fn is {short(fn)}",
                expected="a function that is compiled whole",
                todo="write @tf.function above it; Model.fit, evaluate and predict need none",
            )
        if options is not None:
            raise InputError(
                f"options is {short(options)}", expected="None: a strategy for IPUs has no options of a run"
            )
        _check_arguments(args, kwargs)
        with self.scope():
            return fn(*args, **(kwargs or {}))

    def experimental_run_v2(self, fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        """As `run`, by its earlier name."""
        return self.run(fn, args, kwargs)

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None) -> Any:
        """What replicas have, as one: their sum or mean in a program on the IPU, the value itself outside one.

        `reduce_op`: a `tf.distribute.ReduceOp`, or its name; else a `ValueError`. `axis`: a dimension that is reduced
        too, None for none.
        """
        name = str(getattr(reduce_op, "name", reduce_op)).upper()
        if name not in ReduceOp.__members__:
            raise InputError(f"reduce_op is {short(reduce_op)}", expected="ReduceOp.SUM or ReduceOp.MEAN")
        check_tensors("value", value)
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int | np.integer)):
            raise InputError(f"axis is {short(axis)}", expected="the number of a dimension, or None")
        return jax.tree_util.tree_map(lambda each: _reduced(ReduceOp[name], each, axis), value)

    @checked
    def experimental_distribute_dataset(self, dataset: Any, options: None = None) -> Any:
        """The dataset: replicas are inside a program, and take its elements in turn."""
        if isinstance(dataset, str | bytes) or not isinstance(dataset, Iterable) or isinstance(dataset, Mapping | set):
            raise KindError(f"dataset is {short(dataset)}", expected="a tf.data.Dataset, or another iterable")
        return dataset

    @property
    def extended(self) -> IPUExtendedV1:
        """What library authors ask of a strategy."""
        return IPUExtendedV1(self, self._ipu_device, self._cpu_device)

    @property
    def num_replicas_in_sync(self) -> int:
        """Always 1: replicas of a program are inside it."""
        return 1

    @property
    def supports_loss_scaling(self) -> bool:
        """Always true."""
        return True

    def _keep(self, executable: Any) -> None:
        self._executables.append(executable)


class IPUExtendedV1:
    """What library authors ask of a strategy: where things are."""

    def __init__(self, container_strategy: Any, ipu_device: str, cpu_device: str) -> None:
        self._container_strategy = container_strategy
        self._ipu_device, self._cpu_device = ipu_device, cpu_device

    def non_slot_devices(self, var_list: Any) -> str:
        """The device of what belongs to no variable: the IPU's."""
        return self._ipu_device

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices programs run on."""
        return (self._ipu_device,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices variables live on."""
        return (self._ipu_device,)


def _reduced(operation: ReduceOp, value: Any, axis: Any) -> Any:
    def compute(each: Any) -> Any:
        if axis is not None:
            each = (jnp.sum if operation is ReduceOp.SUM else jnp.mean)(each, axis=axis)
        replicas = replicas_here()
        (found,) = (total if operation is ReduceOp.SUM else mean)([each], replicas)
        return found

    rank = len(np.shape(value)) if not isinstance(value, _graph.Tensor) else len(value.shape)
    if axis is not None and not -rank <= axis < rank:
        raise InputError(f"axis is {short(axis)}", expected=f"the number of one of {rank} dimensions, or None")
    if isinstance(value, _graph.Tensor):
        return _graph.record("CrossReplica" + operation.name.title(), compute, value)
    return compute(value) if axis is not None or replicas_here() > 1 else value


def _check_arguments(args: Any, kwargs: Any) -> None:
    if not isinstance(args, list | tuple):
        raise KindError(f"args is {short(args)}", expected="a list or tuple of the function's arguments")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise KindError(f"kwargs is {short(kwargs)}", expected="a dictionary of arguments by name, or None")
    for name, value in (("args", args), ("kwargs", kwargs)):
        try:
            check_depth(value)
        except RecursionError as error:
            raise InputError(f"{name} is {short(value)}: {error}", expected="tensors and objects") from None


def _class_of(kind: type) -> type | None:
    """The class of a model made now: with its extension where a scope with Keras extensions is open."""
    strategy = get_strategy()
    if not isinstance(strategy, IPUStrategyV1) or not strategy._enable_keras_extensions:
        return None
    from workbench.ipu.keras._extensions.base import extension_of
    from workbench.ipu.keras._extensions.inject import extended

    extension = extension_of(kind)
    return None if extension is None else extended(kind, extension)


def _made(model: Any) -> None:
    """A model of the open strategy, with options as they are at first."""
    from workbench.ipu.keras._extensions.model_options import ModelOptions

    object.__setattr__(model, "_ipu_strategy", get_strategy())
    object.__setattr__(model, "_ipu_options", ModelOptions())
    object.__setattr__(model, "_ipu_hear", None)
    object.__setattr__(model, "_ipu_stages_set", None)


IPUStrategy = IPUStrategyV1

__all__ = ["IPUExtendedV1", "IPUStrategy", "IPUStrategyV1"]
