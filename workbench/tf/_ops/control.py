"""Bodies: functions traced into graphs of their own, for loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from workbench.base.checked import called, checked
from workbench.base.text import short
from workbench.errors import InputError
from workbench.tf import _graph
from workbench.tf._graph import Effects, Graph, Operation, Running, Tensor
from workbench.tf._graph.convert import array, convert_to_tensor, is_symbolic
from workbench.tf._graph.evaluate import State, body_effects, run_body
from workbench.tf._graph.shapes import UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """A traced function: its graph, the tensors that stand for its arguments, what it returned."""

    graph: Graph
    params: tuple[Tensor, ...]
    results: tuple[Any, ...]

    @property
    def effects(self) -> Effects:
        """What it touches."""
        return body_effects(self.graph, self.results)

    @property
    def captures(self) -> tuple[Tensor, ...]:
        """Tensors from outside that it uses, or hands on as they are."""
        through = [each for each in self.results if isinstance(each, Tensor) and each.graph is not self.graph]
        return tuple(dict.fromkeys((*self.graph.captures, *through)))

    def __call__(self, run: Running, captured: Mapping[Tensor, Any], values: Sequence[Any], state: State) -> list[Any]:
        """Evaluate it; the values of its results, None for operations."""
        bound = dict(zip(self.params, values, strict=True))
        return run_body(run, self.graph, {**captured, **bound}, self.results, state)


def parameters(graph: Graph, types: Sequence[tuple[tuple[int, ...], str]]) -> tuple[Tensor, ...]:
    """Tensors that stand for values a body is given."""
    if not types:
        return ()
    with _graph.scoped(names=(), after=()):
        return Operation("Argument", (), types, _graph.no_value, graph=graph).outputs


def trace(
    function: Callable[..., Any],
    types: Sequence[tuple[tuple[int, ...], str]],
    call: Callable[[Callable[..., Any], Sequence[Tensor]], Any] | None = None,
) -> tuple[Body, Any]:
    """A body of `function(*params)`, or of `call(function, params)`; and what it returned, as it returned it.

    In a `tf.function` what changes something runs whether or not it is returned: it is behind the results.
    """
    graph = Graph(outer=_graph.get_default_graph())
    params = parameters(graph, types)
    with graph.as_default(), _graph.scoped(after=()):
        returned = function(*params) if call is None else call(function, params)
        flat = [_result(each) for each in jax.tree_util.tree_leaves(returned)]
        if _graph.in_function():
            flat += [each for each in effects(graph) if each not in flat]
    return Body(graph=graph, params=params, results=tuple(flat)), returned


def effects(graph: Graph) -> list[Operation]:
    """Operations of a graph that change variables or reach the host: they run whether or not somebody asks."""
    return [each for each in graph.operations if each.effects.writes or each.effects.queues]


def _result(value: Any) -> Any:
    if isinstance(value, Operation):
        return value
    found = convert_to_tensor(value)
    return found if isinstance(found, Tensor) else _constant(found)


def _constant(value: Any) -> Tensor:
    fixed = jnp.asarray(value)
    operation = Operation("Const", (), [(fixed.shape, str(fixed.dtype))], lambda run, values: [fixed])
    return operation.outputs[0]


def as_tensor(value: Any) -> Tensor:
    """A tensor of the graph, from a constant too."""
    found = convert_to_tensor(value)
    return found if isinstance(found, Tensor) else _constant(found)


def type_of(tensor: Tensor) -> tuple[tuple[int, ...], str]:
    """Shape and type."""
    return _graph.known_shape(tensor), str(tensor._dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The variables a body writes, in an order, and how they travel through a loop."""

    variables: tuple[Any, ...]

    def enter(self, state: State) -> list[Any]:
        """Their values before."""
        return [state.read(variable) for variable in self.variables]

    def inside(self, state: State, values: Sequence[Any]) -> State:
        """The state a body runs in."""
        return State({**state.values, **dict(zip(self.variables, values, strict=True))})

    def leave(self, state: State, values: Sequence[Any]) -> None:
        """Their values after."""
        for variable, value in zip(self.variables, values, strict=True):
            state.write(variable, value)


def carried(*bodies: Body) -> Carried:
    """What these bodies write."""
    written = frozenset().union(*(body.effects.writes for body in bodies))
    return Carried(variables=tuple(sorted(written, key=lambda variable: variable.name)))


def loop(
    kind: str,
    bodies: Sequence[Body],
    first: Sequence[Tensor],
    results: int,
    execute: Callable[[Running, Mapping[Tensor, Any], list[Any]], list[Any]],
) -> Operation:
    """An operation over bodies: `execute(run, captured, values)` gives its results."""
    captures = list(dict.fromkeys(tensor for body in bodies for tensor in body.captures))
    effects = Effects()
    for body in bodies:
        effects = effects | body.effects

    def compute(run: Running, values: Sequence[Any]) -> Sequence[Any]:
        captured = dict(zip(captures, values[len(first) :], strict=True))
        return execute(run, captured, list(values[: len(first)]))

    types = [type_of(tensor) for tensor in first[:results]]
    return Operation(kind, (*first, *captures), types, compute, effects=effects)


@checked
def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """The results of one of two functions without arguments, chosen when the program runs.

    Unless `strict`, a list or tuple of one is that one. Errors: `InputError` for a `pred` that is not one yes or no,
    and for functions whose results differ in structure, shape or type.
    """
    return _made(pred, true_fn, false_fn, name) if strict else _unpacked(_made(pred, true_fn, false_fn, name))


def _unpacked(returned: Any) -> Any:
    return returned[0] if isinstance(returned, list | tuple) and len(returned) == 1 else returned


def _made(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], name: str | None) -> Any:
    if not is_symbolic(pred):
        return called("true_fn", true_fn) if _yes(pred) else called("false_fn", false_fn)
    chosen = as_tensor(pred)
    if (chosen.shape is not UNKNOWN and chosen.shape != ()) or str(chosen._dtype) != "bool":
        raise InputError(
            f"pred is {chosen}",
            expected="one tf.bool",
            todo="compare it, such as x > 0, or reduce it with tf.reduce_any",
        )
    then, returned = trace(_results_of("true_fn", true_fn), ())
    other, otherwise = trace(_results_of("false_fn", false_fn), ())
    _refuse_unlike(returned, otherwise, then, other)
    operation = choose(chosen, then, other, name)
    leaves, tree = jax.tree_util.tree_flatten(returned)
    outputs = iter(operation.outputs)
    return jax.tree_util.tree_unflatten(
        tree, [operation if isinstance(leaf, Operation) else next(outputs) for leaf in leaves]
    )


def choose(chosen: Tensor, then: Body, other: Body, name: str | None = None) -> Operation:
    """The operation that runs one of two bodies, whose tensors are of the same shapes and types; its outputs."""
    travelling = carried(then, other)

    def execute(run: Running, captured: Mapping[Tensor, Any], values: list[Any]) -> list[Any]:
        def branch(body: Body) -> Callable[[list[Any]], tuple[list[Any], list[Any]]]:
            def taken(held: list[Any]) -> tuple[list[Any], list[Any]]:
                state = travelling.inside(run.state, held)
                made = body(run, captured, (), state)
                tensors = [made[place] for place, each in enumerate(body.results) if isinstance(each, Tensor)]
                return tensors, [state.values[variable] for variable in travelling.variables]

            return taken

        made, held = jax.lax.cond(values[0], branch(then), branch(other), travelling.enter(run.state))
        travelling.leave(run.state, held)
        return list(made)

    captures = [*then.captures, *other.captures]
    unique = list(dict.fromkeys(captures))
    types = [type_of(each) for each in then.results if isinstance(each, Tensor)]

    def compute(run: Running, values: Sequence[Any]) -> Sequence[Any]:
        captured = dict(zip(unique, values[1:], strict=True))
        return execute(run, captured, list(values[:1]))

    effects = then.effects | other.effects
    return Operation("If", (chosen, *unique), types, compute, name=name, effects=effects)


def _results_of(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A branch whose results are tensors and operations, or an error that says which branch gave something else."""

    def branch() -> Any:
        found = called(name, function)
        try:
            return jax.tree_util.tree_map(_result, found)
        except InputError as error:
            raise InputError(
                f"{name} returned {short(found)}: {error}", expected="tensors, numbers or operations"
            ) from None

    return branch


def _yes(pred: Any) -> bool:
    """One yes or no that is known."""
    try:
        found = array(pred)
        if found.shape == () and found.dtype.kind in "biuf":
            return bool(found)
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    raise InputError(f"pred is {short(pred)}", expected="one yes or no")


def _refuse_unlike(first: Any, second: Any, then: Body, other: Body) -> None:
    """Both branches give the same structure of the same shapes and types."""
    if jax.tree_util.tree_structure(first) != jax.tree_util.tree_structure(second):
        raise InputError(
            f"true_fn returned {short(first)} and false_fn {short(second)}",
            expected="the same structure from both",
        )
    for one, two in zip(then.results, other.results, strict=False):  # behind what is returned are operations only
        both = [(each.shape, str(each._dtype)) if isinstance(each, Tensor) else None for each in (one, two)]
        if both[0] != both[1]:
            raise InputError(
                f"true_fn returned {short(one)} where false_fn returned {short(two)}",
                expected="results of the same shapes and types from both",
            )


__all__ = [
    "Body",
    "Carried",
    "as_tensor",
    "carried",
    "choose",
    "cond",
    "effects",
    "loop",
    "parameters",
    "trace",
    "type_of",
]
