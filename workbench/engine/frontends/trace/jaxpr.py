"""A jaxpr becomes a `Graph`: calls inlined, loops and branches kept as functions, every equation with its origin.

The only file that touches what is not public in JAX and Keras.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jax._src.source_info_util import Scope
from jax._src.state.discharge import discharge_state
from jax.extend.core import ClosedJaxpr, Literal
from keras.src.backend.common import global_state
from keras.src.models.functional import Functional
from keras.src.random import seed_generator
from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.trainer import Trainer

from workbench.base.identity import ByIdentity
from workbench.engine.frontends.describe.name_stack import (
    LOSS_LAYER,
    METRICS_LAYER,
    REMAT_SCOPE,
    LayerNames,
    Stack,
    once,
)
from workbench.engine.frontends.trace.body import Context, Converter, finish, open_program
from workbench.engine.frontends.trace.flatten import Flattener
from workbench.engine.frontends.trace.jaxpr_params import is_program
from workbench.engine.graph import Function, Graph, Input, Output, verify_graph
from workbench.engine.graph.origin import Direction
from workbench.engine.graph.primitives import Kind, kind, primitive


def _read_stack() -> Callable[[Any], Stack]:
    """A reader of equations' own name stacks that remembers those it has seen."""
    seen: dict[Any, Stack] = {}

    def read(eqn: Any) -> Stack:
        raw = eqn.source_info.name_stack.stack
        known = seen.get(raw)
        if known is None:
            parts = tuple(("scope" if isinstance(part, Scope) else "transform", part.name) for part in raw)
            known = seen[raw] = once(parts)
        return known

    return read


def _read_traceback(eqn: Any) -> Any:
    return eqn.source_info.traceback


def new_converter(layers: Mapping[str, str] | None) -> Converter:
    """A converter for the jaxprs of one model; `layers` maps layer paths to Keras classes."""
    return Converter(LayerNames(layers or {}), _read_stack(), _read_traceback)


def function_from_jaxpr(
    converter: Converter, closed: Any, name: str, owners: Sequence[str], direction: Direction = "forward"
) -> tuple[Function, list[Any]]:
    """One function, and the arrays closed over, which are appended to its parameters.

    `owners` is the layer each result belongs to, "" where none; `direction` is that of equations whose name stack
    says nothing.
    """
    closed = _without_references(closed)
    body = Flattener(converter)
    body.own(closed.jaxpr.outvars, owners)
    params = [body.define(var) for var in closed.jaxpr.invars]
    results = body.flatten(closed.jaxpr, closed.consts, params, Context())
    constants = body.used_constants(results)
    owned = {number: layer for number, layer in zip(results, owners, strict=True) if layer}
    function = finish(body, name, [*params, *(number for number, _ in constants)], results, owned, direction)
    return function, [array for _, array in constants]


def _without_references(closed: Any) -> Any:
    """The program with what it keeps in mutable arrays of its own (`jax.new_ref`) passed from equation to equation."""
    return discharge_state(closed) if _makes_references(closed.jaxpr) else closed


def _makes_references(jaxpr: Any) -> bool:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "new_ref":
            return True
        if any(is_program(value) for value in eqn.params.values()):
            for value in eqn.params.values():
                programs = value if isinstance(value, list | tuple) else [value]
                if any(is_program(each) and _makes_references(open_program(each)[0]) for each in programs):
                    return True
    return False


def equation_stacks(closed: Any) -> list[Stack]:
    """The name stack of each outermost equation."""
    read = _read_stack()
    return [read(eqn) for eqn in closed.jaxpr.eqns]


def cut(closed: Any, equations: Sequence[Any], invars: Sequence[Any], outvars: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A closed jaxpr of those of `equations` that `outvars` need, and the `invars` it takes, in their order.

    `closed` lends its constants; `equations` keep their order.
    """
    needed = {atom for atom in outvars if not isinstance(atom, Literal)}
    kept = []
    for eqn in reversed(equations):
        if needed.isdisjoint(eqn.outvars):
            continue
        needed.update(atom for atom in eqn.invars if not isinstance(atom, Literal))
        kept.append(eqn)
    jaxpr = closed.jaxpr
    used = [var for var in invars if var in needed]
    held = [(var, value) for var, value in zip(jaxpr.constvars, closed.consts, strict=True) if var in needed]
    part = jaxpr.replace(
        constvars=[var for var, _ in held],
        invars=used,
        outvars=list(outvars),
        eqns=kept[::-1],
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return ClosedJaxpr(part, [value for _, value in held]), used


def closed_of(lenders: Sequence[Any], equations: Sequence[Any], invars: Sequence[Any], outvars: Sequence[Any]) -> Any:
    """A closed jaxpr of equations of several; `lenders` lend their constants."""
    read = {atom for eqn in equations for atom in eqn.invars if not isinstance(atom, Literal)}
    read.update(atom for atom in outvars if not isinstance(atom, Literal))
    held = {
        var: value
        for lender in lenders
        for var, value in zip(lender.jaxpr.constvars, lender.consts, strict=True)
        if var in read
    }
    jaxpr = lenders[0].jaxpr
    part = jaxpr.replace(
        constvars=list(held),
        invars=list(invars),
        outvars=list(outvars),
        eqns=list(equations),
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return ClosedJaxpr(part, list(held.values()))


def again(eqn: Any) -> Any:
    """An equation that computes again what has been computed before: its name stack says so."""
    stack = eqn.source_info.name_stack
    marked = type(stack)((Scope(REMAT_SCOPE), *stack.stack))
    return eqn.replace(source_info=eqn.source_info.replace(name_stack=marked))


def _owner(output: Output, inputs: Sequence[Input]) -> str:
    if output.updates is not None:
        return inputs[output.updates].layer
    return {"loss": LOSS_LAYER, "metric": METRICS_LAYER}.get(output.role, "")


def _of_the_host(functions: Mapping[str, Function]) -> list[str]:
    """What is assumed of functions that the host computes; a feed's waiting is modelled, so it is none of them."""
    nodes = [node for function in functions.values() for node in function.nodes]
    count = sum(kind(node) is Kind.HOST and not primitive(node.op).feeds for node in nodes)
    if not count:
        return []
    calls = "1 function" if count == 1 else f"{count} functions"
    return [f"host: {calls} of the host with the copies there and back, but without the host's own time"]


def graph_from_jaxpr(
    closed_jaxpr: Any,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    *,
    name: str = "model",
    batch_size: int = 1,
    mode: Any = "function",
    layers: Mapping[str, str] | None = None,
    assumptions: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
) -> Graph:
    """Convert a closed jaxpr whose parameters and results are described by `inputs` and `outputs`.

    `layers` maps layer paths to Keras classes; without it every scope of the name stack counts as a layer.
    Arrays the jaxpr closes over become entry parameters of role `"constant"` after the others.
    """
    converter = new_converter(layers)
    owners = [_owner(output, inputs) for output in outputs]
    function, constants = function_from_jaxpr(converter, closed_jaxpr, "main", owners)
    described = (*inputs, *(Input(name=f"constant_{i}", role="constant") for i in range(len(constants))))
    functions = {"main": function, **converter.functions}
    return verify_graph(
        Graph(
            functions,
            "main",
            described,
            tuple(outputs),
            name=name,
            batch_size=batch_size,
            mode=mode,
            assumptions=(*assumptions, *_of_the_host(functions)),
            meta=dict(meta or {}),
        )
    )


@contextmanager
def uninitialized_forgotten(*, where_it_fails: bool = False) -> Iterator[None]:
    """Take variables made inside off the list that Keras initialises when any outermost stateless scope ends.

    Variables made without values would otherwise be filled (seconds, and the memory of the whole model) by somebody
    else's scope, be it in the midst of a trace. `where_it_fails`: only if an error ends it, after which every scope
    would fail, at those that are initialised already.
    """
    before = ByIdentity((variable, None) for variable in _uninitialized())
    ended = False
    try:
        yield
        ended = True
    finally:
        pending = _uninitialized()
        if not (ended and where_it_fails):
            pending[:] = [variable for variable in pending if variable in before]


def _uninitialized() -> list[Any]:
    return global_state.get_global_attribute("uninitialized_variables") or []


@contextmanager
def names_from_one() -> Iterator[None]:
    """Let Keras count the names it makes up (`"dense_1"`) from the start, so that equal builders make equal models."""
    before = global_state.get_global_attribute("object_name_uids")
    global_state.set_global_attribute("object_name_uids", None)
    try:
        yield
    finally:
        global_state.set_global_attribute("object_name_uids", before)


def given_arguments(layer: Any) -> Mapping[str, Any] | None:
    """The arguments a layer was made with, without its name; None where Keras kept none, as it cannot write them."""
    kept = getattr(layer, "_auto_config", None)
    return None if kept is None else dict(kept.config)


def name_alike(variable: Any, other: Any) -> None:
    """Give a variable the name and path of another; Keras makes them of where a layer happens to be built."""
    variable._name, variable._path = other._name, other._path


def compile_arguments(model: Any) -> Mapping[str, Any]:
    """The arguments a model was compiled with; none if it was not, or by a `compile` of its own."""
    kept = getattr(model, "_compile_config", None)
    if not model.compiled or kept is None or type(model).compile is not Trainer.compile:
        return {}
    return dict(kept.config)


def unseeded_generator() -> Any:
    """The generator that Keras draws from where a layer names none; made now if nothing has drawn from it yet."""
    return seed_generator.global_seed_generator()


@contextmanager
def unseeded_draws(generator: Any) -> Iterator[None]:
    """Inside, `generator.next()` gives the seeds of layers that name none, which Keras refuses in a trace."""
    before = seed_generator.global_seed_generator
    seed_generator.global_seed_generator = lambda: generator
    try:
        yield
    finally:
        seed_generator.global_seed_generator = before


# What Keras' training loop reads data by; a subclass is taken by `fit` as it is.
KerasDataAdapter = DataAdapter
keras_slices = array_slicing.can_slice_array  # whether it reads a value as an array, None too
FunctionalModel = Functional  # what `keras.Model(inputs, outputs)` makes


def keras_adapter(x: Any, y: Any, sample_weight: Any, *, steps: int | None, **more: Any) -> Any:
    """Keras' own adapter of some data: arrays, a dataset of Keras, of torch, of TensorFlow."""
    return data_adapters.get_data_adapter(x, y, sample_weight, steps_per_epoch=steps, **more)


# Which adapter data get: of a kind that was told of, ours; of all others, the one Keras has.
_adapters = functools.singledispatch(data_adapters.get_data_adapter)


def keras_reads(kind: type, reader: Callable[..., Any]) -> None:
    """From here on, Keras' training loop reads data of this kind by the adapter that `reader` gives, called with the
    data and what was given beside them: the arguments of `keras_adapter`, steps as `steps_per_epoch`."""
    _adapters.register(kind, reader)
    data_adapters.get_data_adapter = lambda x, *args, **kwargs: _adapters(x, *args, **kwargs)


def validation_split(arrays: Any, share: float) -> tuple[Any, Any]:
    """Arrays without their last share, and that share, as `fit` takes them apart."""
    first, last = array_slicing.train_validation_split(arrays, validation_split=share)
    return first, last
