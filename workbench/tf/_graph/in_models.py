"""Operations of `tf` on tensors of a Keras model that is being made: each is an operation of that functional model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import keras
import numpy as np

from workbench.errors import InputError
from workbench.tf._graph.dtypes import DType
from workbench.tf._graph.graph import Tensor
from workbench.tf._graph.layers import of_graph
from workbench.tf._graph.variables import Variable

# NumPy and JAX leave an operator with one of their arrays on the left to the tensor's own, as they do for tensors of a
# graph: else both ask a tensor of a model for an array, and Keras has an error for an answer.
keras.KerasTensor.__array_ufunc__ = None
keras.KerasTensor.__jax_array__ = None

# By module and name, such as "math.concat": what a saved model says of its operations.
_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def known_as(kind: str, function: Callable[..., Any]) -> str:
    """The name under which models keep a function of this kind."""
    name = f"{function.__module__.rpartition('.')[2]}.{kind}"
    _FUNCTIONS[name] = function
    return name


def of_model(values: Iterable[Any]) -> bool:
    """Whether one of the values is a tensor computed from Keras inputs, rather than from tensors of a graph."""
    return any(
        isinstance(each, keras.KerasTensor) and not isinstance(each, Tensor) and not of_graph(each) for each in values
    )


@dataclass(frozen=True, slots=True)
class _Given:
    """Where an argument is a tensor of the model: which of those the operation is called with."""

    number: int


@keras.saving.register_keras_serializable(package="tf")
class TFOpLambda(keras.Operation):  # type: ignore[misc]
    """One operation of `tf` in a functional model, called with the tensors among its arguments.

    The name is the one TensorFlow's Keras has for it. `function`: which, such as "math.concat"; `arguments`: all of
    them, by position and by name.
    """

    def __init__(self, function: str, arguments: Any, name: str | None = None) -> None:
        super().__init__(name=name)
        self.function, self.arguments = function, arguments
        self.error: Exception | None = None  # what the function last raised, which Keras words anew

    def call(self, *tensors: Any) -> Any:
        """What the function gives of arrays."""
        given, named = jax.tree_util.tree_map(
            lambda each: tensors[each.number] if isinstance(each, _Given) else each, self.arguments
        )
        try:
            return _FUNCTIONS[self.function](*given, **named)
        except Exception as error:
            self.error = error
            raise

    def compute_output_spec(self, *tensors: Any) -> Any:
        """What it makes of tensors of these shapes; they are dense, also where Keras calls a product sparse."""
        return super().compute_output_spec(*(keras.KerasTensor(each.shape, each.dtype) for each in tensors))

    def get_config(self) -> dict[str, Any]:
        """What makes the operation again."""
        kept = jax.tree_util.tree_map(_written, self.arguments)
        return {
            "function": self.function,
            "arguments": keras.saving.serialize_keras_object(kept),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TFOpLambda:
        """The operation of a configuration."""
        given, named = keras.saving.deserialize_keras_object(config["arguments"])
        return cls(config["function"], (_read(given), _read(named)), config["name"])


_TENSOR = "tensor"


def _written(argument: Any) -> Any:
    """An argument as a configuration has it."""
    if isinstance(argument, _Given):
        return {_TENSOR: argument.number}
    if isinstance(argument, jax.Array | np.ndarray):
        return np.asarray(argument) if argument.ndim else argument.item()
    return argument


def _read(kept: Any) -> Any:
    """The arguments of a configuration."""
    if isinstance(kept, dict):
        return _Given(kept[_TENSOR]) if list(kept) == [_TENSOR] else {key: _read(each) for key, each in kept.items()}
    return type(kept)(map(_read, kept)) if isinstance(kept, list | tuple) else kept


def in_model(function: str, kind: str, args: Any, kwargs: Any, name: str | None) -> Any:
    """Put the operation into the model its arguments are of, called `tf.<kind>` or as is said, each name once.

    Errors: `InputError` for a variable among them, which the model would neither have nor train.
    """
    tensors: list[Any] = []
    arguments = jax.tree_util.tree_map(lambda each: _kept(each, tensors), (args, kwargs))
    called = f"tf.{kind}" if name is None else name.replace("/", "_")
    number = keras.backend.get_uid(called)
    made = TFOpLambda(function, arguments, called if number == 1 else f"{called}_{number - 1}")
    try:
        return made(*tensors)
    except Exception:
        if made.error is None:
            raise
        raise made.error from None


def _kept(value: Any, tensors: list[Any]) -> Any:
    """An argument as a model keeps it: of its tensors, put behind those there are, which one."""
    if isinstance(value, keras.KerasTensor):
        tensors.append(value)
        return _Given(len(tensors) - 1)
    if isinstance(value, Variable | keras.Variable):
        raise InputError(
            f"variable {value.name} meets a tensor of a Keras model, which would neither have nor train it",
            todo="use it in the call of a layer of your own, which makes it by self.add_weight",
        )
    return str(value) if isinstance(value, DType) else value


__all__ = ["in_model", "known_as", "of_model"]
