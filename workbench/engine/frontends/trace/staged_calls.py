"""A program of several functions: calls over named values, executed on the host or assembled into a `Graph`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp

from workbench.base.identity import ByIdentity
from workbench.engine.frontends.trace.body import Converter
from workbench.engine.frontends.trace.jaxpr import function_from_jaxpr, new_converter
from workbench.engine.graph import Function, Graph, GraphBuilder, Input, Output, Value, verify_graph
from workbench.engine.graph.origin import Direction, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCall:
    """One function of a program: `results` are written over the names they carry, as `operands` are read by name.

    `owners` is the layer of each result, "" where none. `repeated`: called once per micro-batch. `turn`: where a call
    that is not repeated has its turn, if not with the updates: before all micro-batches, or after the updates.
    """

    name: str
    closed: Any
    operands: tuple[str, ...]
    results: tuple[str, ...]
    owners: tuple[str, ...]
    stage: int
    direction: Direction
    repeated: bool = True
    turn: Literal["", "before", "after"] = ""

    @property
    def updates(self) -> bool:
        """Whether it updates weights, from what was there before any call does."""
        return not self.repeated and not self.turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Calls in order, the described entry parameters, and the described results with the names they have."""

    calls: tuple[StagedCall, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[Output, str], ...]
    types: Mapping[str, Any]
    micro_batches: int

    def of_turn(self, turn: str) -> list[StagedCall]:
        """The calls that have their turn before all micro-batches, or after the updates."""
        return [call for call in self.calls if call.turn == turn]

    @property
    def prepared(self) -> frozenset[str]:
        """What is made before all micro-batches."""
        return frozenset(name for call in self.of_turn("before") for name in call.results)

    @property
    def per_micro_batch(self) -> list[str]:
        """The outputs that every micro-batch makes."""
        once = {name for call in self.calls if not call.repeated for name in call.results}
        return [name for output, name in self.outputs if output.role != "update" and name not in once]


Converted: TypeAlias = dict[tuple[Any, ...], tuple[Function, list[Any]]]
"""By what makes calls one function: their jaxpr, the function and the arrays it closes over."""


def assemble(
    program: Program, layers: Mapping[str, str], converted: Converted | None = None, **described: Any
) -> Graph:
    """The graph: one function per call, an entry that calls them; `described` goes to `Graph`.

    `converted` keeps functions for other programs that have the same calls.
    """
    known: Converted = {} if converted is None else converted
    converter = new_converter(layers)
    entry = GraphBuilder("main")
    inputs = list(program.inputs)
    values: dict[str, Value] = {}
    for item in inputs:
        kind = program.types[item.name]
        values[item.name] = entry.param(tuple(kind.shape), str(kind.dtype))
    constants: ByIdentity[Any, Value] = ByIdentity()
    before: dict[str, Value] = {}  # what updates read: a counter they share is advanced by none before another
    for call in program.calls:
        if call.updates and not before:
            before = dict(values)
        function, arrays = _function_of(call, converter, known)
        for array in arrays:
            if array not in constants:
                inputs.append(Input(name=f"constant_{len(constants)}", role="constant"))
                constants[array] = entry.param(tuple(array.shape), str(array.dtype))
        converter.functions[call.name] = function
        read = before if call.updates else values
        operands = (*(read[name] for name in call.operands), *(constants[array] for array in arrays))
        results = entry.node(
            "call",
            operands,
            tuple((value.shape, value.dtype) for value in function.results),
            origin=Origin(direction=call.direction),
            calls=(call.name,),
            times=program.micro_batches if call.repeated else 1,
            stage=call.stage,
            direction=call.turn or call.direction,
        )
        values.update(zip(call.results, results, strict=True))
    main = entry.function(tuple(values[name] for _, name in program.outputs))
    return verify_graph(
        Graph(
            {"main": main, **converter.functions},
            "main",
            tuple(inputs),
            tuple(output for output, _ in program.outputs),
            **described,
        )
    )


def _function_of(call: StagedCall, converter: Converter, known: Converted) -> tuple[Function, list[Any]]:
    """A call's function, as before where it is of the same jaxpr and calls nothing, which is named by the graph."""
    key = (call.closed, call.name, call.owners, call.direction)
    if key in known:
        return known[key]
    inner = len(converter.functions)
    function, arrays = function_from_jaxpr(converter, call.closed, call.name, call.owners, call.direction)
    if len(converter.functions) == inner:
        known[key] = (function, arrays)
    return function, arrays


@lru_cache(maxsize=256)
def compiled_body(closed: Any) -> Callable[..., Any]:
    """A body compiled by XLA at its first call; programs that share one compile it once."""
    return jax.jit(jax.extend.core.jaxpr_as_fun(closed))  # type: ignore[no-any-return]


def host_function(program: Program) -> Callable[[Sequence[Any]], list[Any]]:
    """Executes the calls over all micro-batches: values of the entry parameters to values of the results.

    Inputs and targets hold the micro-batches behind each other along their first axis; losses and metrics are the
    mean over the micro-batches.
    """
    compiled = {call.name: compiled_body(call.closed) for call in program.calls}
    data = [item.name for item in program.inputs if item.role in ("input", "target")]

    def execute(calls: Sequence[StagedCall], env: dict[str, Any]) -> None:
        for call in calls:
            env.update(zip(call.results, compiled[call.name](*(env[name] for name in call.operands)), strict=True))

    def compute(values: Sequence[Any]) -> list[Any]:
        env = {item.name: value for item, value in zip(program.inputs, values, strict=True)}
        whole = {name: env[name] for name in data}
        collected: dict[str, list[Any]] = {name: [] for name in program.per_micro_batch}
        execute(program.of_turn("before"), env)
        for number in range(program.micro_batches):
            env.update((name, micro_batch_of(whole[name], program.types[name].shape, number)) for name in data)
            execute([call for call in program.calls if call.repeated], env)
            for name, held in collected.items():
                held.append(env[name])
        before = dict(env)
        for call in program.calls:
            if call.updates:
                updated = compiled[call.name](*(before[name] for name in call.operands))
                env.update(zip(call.results, updated, strict=True))
        execute(program.of_turn("after"), env)
        return [joined(output, collected[name]) if name in collected else env[name] for output, name in program.outputs]

    return compute


def micro_batch_of(whole: Any, shape: Sequence[int], number: int) -> Any:
    """A micro-batch of this shape of all of them behind each other; of single numbers, one."""
    return whole[number * shape[0] : (number + 1) * shape[0]] if shape else whole[number]


def joined(output: Output, values: Sequence[Any]) -> Any:
    """The results of all micro-batches: outputs behind each other, losses and metrics as their mean."""
    if output.role == "output":
        return jnp.concatenate([jnp.atleast_1d(value) for value in values])
    return sum(values) / len(values)


def whole_batch(spec: Any, micro_batches: int) -> Any:
    """The type of an array that holds all micro-batches of one update."""
    return replace(spec, shape=(spec.shape[0] * micro_batches, *spec.shape[1:]))
