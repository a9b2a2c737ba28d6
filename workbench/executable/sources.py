"""What can be compiled: the doors by which a source comes in, each with what tells it and how it is traced."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.base.host import late_interrupt
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.errors import InputError
from workbench.executable.arguments import refuse_foreign
from workbench.executable.request import ARGUMENTS, NORM_MEMBERS, Request

if TYPE_CHECKING:
    from workbench.engine.frontends.describe.source import Source


# One thread traces at a time: a model's layers, Keras' names and policies and Python's random numbers are ours then.
TRACING = threading.RLock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One kind of source: whether a request's is of it, and how that is traced.

    `what` names it for a reader; `takes` are the arguments that can act on it, besides those that all have.
    """

    what: str
    claims: Callable[[Request], bool]
    trace: Callable[[Request], Source]
    takes: tuple[str, ...]
    calls_with: str = ""  # what its sources are functions of, where they are


def check_source(request: Request) -> None:
    """An `InputError` when no door claims the request's source, or an argument has no place in its kind."""
    if made_by_hand(request.source):
        if not _takes_nothing(request.source.compile_program):  # a graph, of which there may be many programs
            raise InputError(
                f"source is {short(request.source)}, which is no program alone",
                expected="a step of it, as graph.sequence(...) makes one",
                todo="give the step that the program begins with",
            )
        refuse_foreign(request, "a program made by hand", ())
        return
    door = _door(request)
    refuse_foreign(request, door.what, door.takes)
    if door.calls_with:
        _check_call(request.source, request.inputs, door.calls_with)
    if request.precision is not None:
        from workbench.engine.frontends.step.building import check_precision

        check_precision(request.precision)
    if isinstance(request.optimizer, str):
        from workbench.engine.frontends.step.losses import as_optimizer

        as_optimizer(request.optimizer)


def check_layered(request: Request, caller: str) -> None:
    """An `InputError` for a source without layers, which `caller` cuts into stages."""
    source, what = request.source, "this source"
    if not hasattr(source, "trace_source") and not made_by_hand(source):
        if _is_model(request) or not callable(source) or (not request.inputs and _takes_nothing(source)):
            return  # what is of no kind is said when the source is checked
        what = f"the function {getattr(source, '__name__', repr(source))!r}"
    raise InputError(
        f"{what} has no layers to cut, and {caller} cuts them into stages",
        expected="a Keras model, a function without arguments that builds one, or a ready name",
        todo="wb.compile takes this source; wb.sweep(function, grid, inputs=(...)) a function of arrays at many points",
    )


def _takes_nothing(function: Any) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    except ValueError:  # a callable of C that does not say what it takes
        pass
    return True


def trace_source(request: Request) -> Source:
    """The request's source, traced by the first door that claims it; an `InputError` when none does."""
    return _door(request).trace(request)


def _door(request: Request) -> Door:
    for door in DOORS:
        if door.claims(request):
            return door
    raise InputError(
        f"{request.source!r} cannot be compiled",
        expected="a Keras model, a function that builds one, a ready name, a JAX function with inputs, or tiles",
    )


def made_by_hand(source: Any) -> bool:
    """Whether a source is a program of tiles already (`wb.tiles`), which nothing traces: it has `compile_program`."""
    return hasattr(source, "compile_program")


def layered_source(
    name: str,
    input_shape: Sequence[int],
    layers: Sequence[tuple[str, Mapping[str, Any], Sequence[int]]],
    input_type: str = "",
) -> Any:
    """A source that builds a model of these layers: (class in `keras.layers`, its arguments, places of its inputs)."""
    with late_interrupt():
        from workbench.engine.frontends.ready.layered import layered
    return layered(name, input_shape, layers, input_type)


def ready_source(name: str, **size: int) -> Any:
    """A ready model in these sizes, built when it is compiled; `size` of it are all of them, by name."""
    with late_interrupt():
        from workbench.engine.frontends.ready import ready
    return ready(name, **size)


def _is_model(request: Request) -> bool:
    with late_interrupt():
        from workbench.engine.frontends.ready import ReadyModel
    return isinstance(request.source, str | ReadyModel) or hasattr(request.source, "stateless_call")


def is_function(request: Request) -> bool:
    """Whether the source is a function of arrays, whose shapes the inputs fix."""
    return not made_by_hand(request.source) and _door(request).trace is _trace_function


def _trace_function(request: Request) -> Source:
    from workbench.engine.frontends.functions import trace_function

    return trace_function(request.source, *request.inputs, batch_size=request.batch_size, replicas=request.replicas)


def _trace_model(request: Request) -> Source:
    from workbench.engine.frontends.keras import trace_keras

    return trace_keras(
        request.source,
        request.batch_size,
        request.mode,
        optimizer=request.optimizer,
        loss=request.loss,
        precision=request.precision,
        stages=request.stages,
        gradient_accumulation_steps=request.gradient_accumulation_steps,
        replicas=request.replicas,
        norm_members=int(request.options.get(NORM_MEMBERS)),
        inputs=request.inputs,
    )


def _check_call(function: Any, inputs: tuple[Any, ...], expected: str) -> None:
    """An `InputError` when a function cannot be called with so many inputs."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable of C that does not say what it takes
        return
    try:
        signature.bind(*inputs)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        given = things_text(len(inputs), "input") if inputs else "no inputs"
        raise InputError(
            f"the function {name!r}{signature} was given {given}: {error}",
            expected=expected,
            todo=f"write wb.compile({name}, jax.ShapeDtypeStruct((16, 16), 'float32')), with a type for each argument; "
            "wb.sweep and wb.search take them as inputs=(...)",
        ) from None


_OF_MODELS = tuple(name for name in ARGUMENTS if name != "execution_profile")

DOORS = (
    Door(
        what="what traces itself, as the clusters of `tf` do",
        claims=lambda request: hasattr(request.source, "trace_source"),
        trace=lambda request: request.source.trace_source(),
        takes=("trip_counts",),
    ),
    Door(
        what="a Keras model, or a ready one by name",
        claims=_is_model,
        trace=_trace_model,
        takes=(*_OF_MODELS, "inputs"),
    ),
    Door(
        what="a JAX function with inputs",
        claims=lambda request: callable(request.source) and bool(request.inputs),
        trace=_trace_function,
        takes=("inputs", "batch_size", "replicas", "trip_counts"),
        calls_with="an example of each argument",
    ),
    Door(
        what="a function that builds a Keras model",
        claims=lambda request: callable(request.source),
        trace=_trace_model,
        takes=_OF_MODELS,
        calls_with="an example of each argument; or a function without arguments that builds a model",
    ),
)

__all__ = [
    "DOORS",
    "TRACING",
    "Door",
    "check_layered",
    "check_source",
    "is_function",
    "layered_source",
    "made_by_hand",
    "trace_source",
]
