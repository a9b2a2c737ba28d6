"""`tensorflow.python.ipu.loops`: loops that run whole on the IPU, their bodies once in the program."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError, KindError, OperandError
from workbench.ipu._feeds import body_arguments
from workbench.ipu.ipu_infeed_queue import IPUInfeedQueue
from workbench.tf import _graph
from workbench.tf._graph import Operation, Running, Tensor
from workbench.tf._ops.control import Body, as_tensor, carried, loop, trace, type_of


def repeat(
    n: int,
    body: Callable[..., Any],
    inputs: Any = None,
    infeed_queue: IPUInfeedQueue | None = None,
    use_while_v1: bool = True,
) -> Any:
    """Run `body` `n` times over values it takes and returns; a queue's element comes behind them, or by name.

    Returns the last values: one tensor, a list of several, or the loop's operation when there are none.
    Errors: `TypeError` for a body that does not take these values, or returns others.
    """
    _check_switch(use_while_v1)
    return _loop(None, body, inputs, infeed_queue, n)


def while_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    inputs: Any = None,
    infeed_queue: IPUInfeedQueue | None = None,
    maximum_iterations: int | None = None,
    use_while_v1: bool = True,
) -> Any:
    """Run `body` while `condition` of the same values is true; otherwise as `repeat`."""
    _check_switch(use_while_v1)
    if not callable(condition):
        raise KindError(f"The loop's condition is {short(condition)}", expected="a function of the loop's values")
    return _loop(condition, body, inputs, infeed_queue, maximum_iterations)


def _loop(condition: Callable[..., Any] | None, body: Callable[..., Any], inputs: Any, queue: Any, count: Any) -> Any:
    _check_count(count, condition is None)
    _check_queue(queue)
    first = _tensors(inputs)
    _check_arguments("body", body, first, queue)
    if condition is not None:
        _check_arguments("condition", condition, first, None, queue is not None)
    types = [type_of(tensor) for tensor in first]
    traced, _ = trace(body, types, lambda function, params: _call(function, params, queue))
    _check_results(traced.results, types)
    bodies = [traced]
    if condition is not None:
        bodies.insert(0, _condition(condition, types))
    if queue is not None and not queue.dequeued:
        raise InputError("The loop took nothing from its infeed queue: the queue has not been dequeued.")
    operation = loop(
        "While" if condition is not None else "Repeat", bodies, first, len(first), _execution(bodies, count)
    )
    if not first:
        return operation
    return operation.outputs[0] if len(first) == 1 else list(operation.outputs)


def _check_count(count: Any, counted: bool) -> None:
    """How often a body runs: a whole number, which `while_loop` may leave open."""
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if (whole and 0 <= count < 2**31) or (count is None and not counted):
        return
    name = "n" if counted else "maximum_iterations"
    raise KindError(
        f"{name} of a loop is {short(count)}", expected="a whole number known when the program is built, of 32 bits"
    )


def _check_switch(use_while_v1: Any) -> None:
    """TensorFlow's own choice between two ways to write a loop down, of which a program on the chip shows nothing."""
    if not isinstance(use_while_v1, bool):
        raise KindError(f"use_while_v1 is {short(use_while_v1)}", expected="True or False")


def _check_queue(queue: Any) -> None:
    """A loop takes elements from a queue only."""
    if queue is not None and not hasattr(queue, "_dequeue"):
        raise KindError(
            f"infeed_queue of a loop is a {type(queue).__name__}, {short(queue)}",
            expected="an IPUInfeedQueue",
            todo="pass ipu_infeed_queue.IPUInfeedQueue(dataset)",
        )


def _tensors(inputs: Any) -> list[Tensor]:
    try:
        return [as_tensor(each) for each in _as_list(inputs)]
    except (TypeError, ValueError, OverflowError, AttributeError, RecursionError, MemoryError) as error:
        raise KindError(f"inputs of a loop are {short(inputs)}: {error}", expected="tensors, or numbers") from error


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, list | tuple) else [values]


def _call(body: Callable[..., Any], params: Sequence[Tensor], queue: Any) -> Any:
    given, named = body_arguments(queue._dequeue()) if queue is not None else ([], {})
    outputs = body(*params, *given, **named)
    outputs = list(outputs) if isinstance(outputs, list | tuple) else [] if outputs is None else [outputs]
    operations = [each for each in outputs if isinstance(each, Operation)]
    tensors = [as_tensor(each) for each in outputs if not isinstance(each, Operation)]
    if any(isinstance(each, Operation) for each in outputs[: len(tensors)]):
        raise InputError("the body of a loop must return its tensors before its operations")
    if operations and tensors:
        with _graph.scoped(after=tuple(operations)):
            tensors = [_graph.record("Identity", lambda value: value, tensor) for tensor in tensors]
    return [*tensors, *operations]


def _check_arguments(
    what: str, function: Callable[..., Any], first: Sequence[Any], queue: Any, fed: bool = False
) -> None:
    given, named = body_arguments(queue.structure) if queue is not None else ([], {})
    if not callable(function):
        raise KindError(f"The loop's {what} is {short(function)}", expected="a function of the loop's values")
    try:
        inspect.signature(function).bind(*first, *given, **named)
    except TypeError as error:
        behind = f" and {len(given) + len(named)} from the infeed queue" if queue is not None else ""
        note = ". A condition is not given elements of the infeed queue" if fed else ""
        raise KindError(
            f"The loop's {what} cannot be called with {things_text(len(first), 'input')}{behind}: {error}{note}."
        ) from None
    except ValueError:  # a function of C has no signature to look at
        return


def _condition(condition: Callable[..., Any], types: Sequence[tuple[tuple[int, ...], str]]) -> Body:
    """The traced condition, which returns one yes or no."""
    traced, returned = trace(condition, types)
    tensors = [type_of(each) for each in traced.results if isinstance(each, Tensor)]
    if len(tensors) == 1:
        shape, dtype = tensors[0]
        if dtype == "bool" and math.prod(shape) == 1:
            if len(traced.results) > 1:
                raise InputError(
                    "The loop's condition changes a variable, or reaches the host",
                    expected="a condition that only reads",
                    todo="change it in the loop's body",
                )
            return traced
    told = _text(tensors) if len(tensors) == len(traced.results) else short(returned)
    raise OperandError(
        f"The loop's condition returned {told}",
        expected="one bool, bool[]",
        todo="compare what it returns, such as value < 3, and reduce several with tf.reduce_all or tf.reduce_any",
    )


def _check_results(results: Sequence[Any], types: Sequence[tuple[tuple[int, ...], str]]) -> None:
    made = [type_of(each) for each in results if isinstance(each, Tensor)]
    if [dtype for _, dtype in made] != [dtype for _, dtype in types] or made != list(types):
        raise KindError(
            f"The loop's body was given {_text(types)} and returned {_text(made)}. "
            "To mend it: return as many tensors as there are inputs, of the same shapes and types."
        )


def _text(types: Sequence[tuple[tuple[int, ...], str]]) -> str:
    return ", ".join(f"{dtype}[{','.join(map(str, shape))}]" for shape, dtype in types) or "nothing"


def _execution(bodies: Sequence[Body], count: Any) -> Callable[[Running, Mapping[Tensor, Any], list[Any]], list[Any]]:
    """How a loop is run: counted where the number is known, else until its condition fails."""
    body, travelling = bodies[-1], carried(*bodies)

    def execute(run: Running, captured: Mapping[Tensor, Any], values: list[Any]) -> list[Any]:
        def step(carry: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
            state = travelling.inside(run.state, carry[1])
            made = body(run, captured, carry[0], state)
            return made[: len(values)], [state.values[variable] for variable in travelling.variables]

        def holds(carry: tuple[list[Any], list[Any]]) -> Any:
            return bodies[0](run, captured, carry[0], travelling.inside(run.state, carry[1]))[0]

        start = ([jnp.asarray(value) for value in values], travelling.enter(run.state))
        if len(bodies) == 1:
            final, held = jax.lax.fori_loop(0, int(count), lambda _, carry: step(carry), start)
        else:
            final, held = _until(holds, step, start, count)
        travelling.leave(run.state, held)
        return list(final)

    return execute


def _until(condition: Callable[[Any], Any], step: Callable[[Any], Any], start: Any, maximum: int | None) -> Any:
    """Steps while the condition holds, at most `maximum` of them."""
    counted = [] if maximum is None else [jnp.int32(0)]

    def goes_on(carry: Any) -> Any:
        again = jnp.reshape(condition(carry[1]), ())
        return again if maximum is None else jnp.logical_and(again, carry[0][0] < maximum)

    def one(carry: Any) -> Any:
        return [number + 1 for number in carry[0]], step(carry[1])

    return jax.lax.while_loop(goes_on, one, (counted, start))[1]


__all__ = ["repeat", "while_loop"]
