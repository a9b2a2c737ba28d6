"""Python functions on the host as operations of a graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError, KindError
from workbench.tf import _graph
from workbench.tf._graph import Effects, Operation, known_shape
from workbench.tf._graph.dtypes import as_dtype
from workbench.tf._ops.control import as_tensor


@dataclass(slots=True)
class Failures:
    """What the host's side of a program raised, kept until somebody asks."""

    raised: list[BaseException] = field(default_factory=list)

    def guard(self, function: Callable[..., Any], feed: str = "") -> Callable[..., Any]:
        """The function, its errors kept besides; `feed` names the queue it serves."""

        def guarded(*values: Any) -> Any:
            try:
                return function(*values)
            except Exception as error:
                self.raised.append(error)
                raise

        guarded.feed = feed  # type: ignore[attr-defined]
        return guarded

    def take(self) -> BaseException | None:
        """The first error, and forget all."""
        first = self.raised[0] if self.raised else None
        self.raised.clear()
        return first


class HostFunction:
    """A Python function of arrays whose results have the shapes it gave when it was first asked."""

    def __init__(self, function: Callable[..., Any], types: Sequence[str]) -> None:
        self.function, self.types = function, tuple(types)
        self.failures = Failures()

    def take_failure(self) -> BaseException | None:
        """What it raised since somebody last asked."""
        return self.failures.take()

    def on_arrays(self, *values: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """Its results as arrays of the declared types."""
        made = self.function(*(np.asarray(value) for value in values))
        parts = made if isinstance(made, list | tuple) else [made]
        if len(parts) != len(self.types):
            said = f"{len(self.types)}, as in Tout: {list(self.types)}"
            raise InputError(f"a host function returned {things_text(len(parts), 'value')}", expected=said)
        return tuple(np.asarray(part, dtype) for part, dtype in zip(parts, self.types, strict=True))


def called_with(function: Callable[..., Any], count: int, inputs: Any) -> None:
    """An `InputError` for a function that takes another number of inputs."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError as error:
        raise InputError(f"inp is {short(inputs)}, and func takes other arguments: {error}") from None
    except ValueError:  # one that does not say what it takes
        return


def host_function(function: Callable[..., Any], inputs: Any, types: Any, name: str | None) -> Any:
    """The operation of a Python function. Its results' shapes are found by calling it on zeros.

    Errors: `KindError` for types that are none, `InputError` for inputs that are no list of tensors or numbers.
    """
    single = not isinstance(types, list | tuple)
    try:
        kinds = [str(as_dtype(each)) for each in ([types] if single else types)]
    except TypeError:
        raise KindError(f"Tout is {short(types)}", expected="the type of the result, or a list of types") from None
    held = HostFunction(function, kinds)
    if not isinstance(inputs, list | tuple):
        raise InputError(f"inp is {short(inputs)}", expected="a list of tensors and numbers")
    try:
        given = [as_tensor(each) for each in inputs]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"inp is {short(inputs)}: {error}", expected="a list of tensors and numbers") from None
    scopes = _graph.current_scopes()
    if scopes.on_ipu:
        raise InputError(
            "a Python function cannot run on an IPU", todo="put it in `with ipu.scopes.outside_compilation_scope():`"
        )
    called_with(function, len(given), inputs)
    sample = held.on_arrays(*(np.zeros(known_shape(each), each._dtype) for each in given))
    specs = [jax.ShapeDtypeStruct(part.shape, part.dtype) for part in sample]

    def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
        return list(jax.pure_callback(held.failures.guard(held.on_arrays), tuple(specs), *values))

    made = Operation(
        "PyFunction",
        given,
        [(spec.shape, str(spec.dtype)) for spec in specs],
        compute,
        name=name,
        effects=Effects(queues=frozenset({held})),
    )
    return made.outputs[0] if single else list(made.outputs)


__all__ = ["Failures", "HostFunction", "host_function"]
