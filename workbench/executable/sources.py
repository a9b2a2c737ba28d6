"""What can be compiled: the doors by which a source comes in, each with what tells it and how it is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.executable.request import NORM_MEMBERS, Request

if TYPE_CHECKING:
    from workbench.engine.frontends.describe.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One kind of source: whether a request's is of it, and how that is traced. `what` names it for a reader."""

    what: str
    claims: Callable[[Request], bool]
    trace: Callable[[Request], Source]


def trace_source(request: Request) -> Source:
    """The request's source, traced by the first door that claims it; an `InputError` when none does."""
    for door in DOORS:
        if door.claims(request):
            return door.trace(request)
    raise InputError(
        f"{request.source!r} cannot be compiled",
        expected="a Keras model, a function that builds one, a ready name, a JAX function with inputs, or tiles",
    )


def made_by_hand(source: Any) -> bool:
    """Whether a source is a program of tiles already (`wb.tiles`), which nothing traces: it has `compile_program`."""
    return hasattr(source, "compile_program")


def layered_source(name: str, input_shape: Sequence[int], layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Any:
    """A source that builds a Sequential model of these layers: (class in `keras.layers`, its arguments) each."""
    from workbench.engine.frontends.ready.layered import layered

    return layered(name, input_shape, layers)


def _is_model(request: Request) -> bool:
    from workbench.engine.frontends.ready import ReadyModel

    return isinstance(request.source, str | ReadyModel) or hasattr(request.source, "stateless_call")


def _trace_function(request: Request) -> Source:
    from workbench.engine.frontends.functions import trace_function

    return trace_function(
        request.source, *request.inputs, batch_size=request.batch_size or 1, replicas=request.replicas
    )


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
        one_stage=bool(request.options.get("allow_recompute")),
        inputs=request.inputs,
    )


DOORS = (
    Door(
        what="what traces itself, as the clusters of `tf` do",
        claims=lambda request: hasattr(request.source, "trace_source"),
        trace=lambda request: request.source.trace_source(),
    ),
    Door(what="a Keras model, or a ready one by name", claims=_is_model, trace=_trace_model),
    Door(
        what="a JAX function with inputs",
        claims=lambda request: callable(request.source) and bool(request.inputs),
        trace=_trace_function,
    ),
    Door(
        what="a function that builds a Keras model",
        claims=lambda request: callable(request.source),
        trace=_trace_model,
    ),
)

__all__ = ["DOORS", "Door", "layered_source", "made_by_hand", "trace_source"]
