"""Operations placed on an IPU, compiled together: numbers from XLA and a profile, by the compiler of every source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp

from workbench.engine.frontends.describe.replicas import axis_env, meta
from workbench.engine.frontends.describe.source import ArraySpec, Source
from workbench.engine.frontends.numbers.replicated import for_each, on_each
from workbench.engine.frontends.trace.jaxpr import graph_from_jaxpr
from workbench.engine.graph import Input, Output
from workbench.engine.options import Options
from workbench.errors import InputError
from workbench.tf import _hooks
from workbench.tf._graph import Graph, Operation, Tensor, known_shape
from workbench.tf._graph.evaluate import Run, State


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A variable as the runner of a program knows one: a value, and a way to assign it."""

    variable: Any

    @property
    def value(self) -> Any:
        """The value between runs."""
        return self.variable.held()

    def assign(self, value: Any) -> None:
        """Keep the value a run ended with."""
        self.variable.value_now = value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cluster:
    """Operations that run on one device without a break: what they take, what others need of them, what they touch."""

    graph: Graph
    operations: tuple[Operation, ...]
    inputs: tuple[Tensor, ...]
    shapes: tuple[tuple[int, ...], ...]  # of the inputs: those that were fed where no other is known
    outputs: tuple[Tensor, ...]
    variables: tuple[Any, ...]
    written: tuple[Any, ...]
    name: str = "main"
    replicas: int = 1
    traced: Source | None = None  # for one replica, when it was traced before

    @property
    def pipeline(self) -> Any:
        """The pipeline in it, if there is one."""
        return None if self.staged is None else self.staged.pipeline

    @property
    def staged(self) -> Operation | None:
        """The operation that runs a pipeline, if there is one."""
        found = [operation for operation in self.operations if operation.pipeline is not None]
        if len(found) > 1:
            raise InputError(
                f"{len(found)} pipelines are compiled together",
                expected="one pipeline in what is compiled",
                todo="give each a call of ipu_compiler.compile of its own",
            )
        return found[0] if found else None

    @property
    def repeats(self) -> int:
        """How often a run of it runs the program."""
        return 1 if self.pipeline is None else int(self.pipeline.asked.repeats)

    @property
    def idle(self) -> bool:
        """Whether running it would change nothing: no output, no variable written, nothing given to the host."""
        return not self.outputs and not self.written and not any(op.effects.queues for op in self.operations)

    def __call__(self, *values: Any) -> list[Any]:
        """Evaluate it: values of the inputs and variables in; outputs and new values of what is written out."""
        given = dict(zip(self.inputs, values, strict=False))
        state = State(dict(zip(self.variables, values[len(self.inputs) :], strict=True)))
        run = Run(self.graph, state, given)
        run.evaluate([*self.operations, *self.outputs])
        made = [given[tensor] for tensor in self.outputs]
        return [jnp.asarray(each) for each in (*made, *(state.values[variable] for variable in self.written))]

    def trace_source(self) -> Source:
        """The traced program, with variables where they live and everything else streamed."""
        if self.traced is not None:
            return self.traced
        if self.staged is not None:
            traced: Source = self.staged.traced_by(self, Held)
            return traced
        specs = tuple(
            ArraySpec(name=tensor.name, shape=shape, dtype=str(tensor._dtype))
            for tensor, shape in zip(self.inputs, self.shapes, strict=True)
        )
        held = [(variable.shape, str(variable.dtype)) for variable in self.variables]
        types = [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in specs]
        types += [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in held]
        closed = jax.make_jaxpr(self, axis_env=axis_env(self.replicas) if self.replicas > 1 else None)(*types)
        compiled = jax.jit(jax.extend.core.jaxpr_as_fun(closed) if self.replicas == 1 else self.on_all)
        graph = graph_from_jaxpr(
            closed, self._described(), self._results(), name=self.name, mode="function", meta=meta(self.replicas)
        )
        return Source(
            graph=graph,
            specs=specs,
            jaxpr=closed,
            compute=lambda values: compiled(*values),
            variables=(*((None,) * len(specs)), *(Held(variable) for variable in self.variables)),
            unpack=tuple,
            pack=list,
        )

    def on_all(self, *values: Any) -> list[Any]:
        """Evaluate it on every replica, each with its own elements of infeeds; the results are those of the first."""
        placed = [on_each(value, self.replicas) for value in values]
        axes = (0, [axis for _, axis in placed])
        batched = for_each(lambda number, held: self(*held), axes, self.replicas)
        return [value[0] for value in batched(jnp.arange(self.replicas), [value for value, _ in placed])]

    def _described(self) -> list[Input]:
        given = [Input(name=tensor.name, role="input") for tensor in self.inputs]
        kept = [Input(name=variable.handle, role=variable.role, layer=variable.layer) for variable in self.variables]
        return [*given, *kept]

    def _results(self) -> list[Output]:
        made = [Output(name=tensor.name) for tensor in self.outputs]
        first = len(self.inputs)
        updates = [
            Output(name=variable.handle, role="update", updates=first + self.variables.index(variable))
            for variable in self.written
        ]
        return [*made, *updates]


def cluster(
    graph: Graph, operations: Sequence[Operation], given: Mapping[Tensor, Any], wanted: Sequence[Tensor]
) -> Cluster:
    """The cluster of these operations. `wanted`: tensors somebody else needs."""
    mine = set(operations)
    inputs = dict.fromkeys(each for op in operations for each in op.inputs if each.op not in mine or each in given)
    effects = operations[0].effects
    for operation in operations[1:]:
        effects = effects | operation.effects
    touched = sorted(effects.reads | effects.writes, key=lambda variable: variable.name)
    names = {op.scopes.names[0] for op in operations if op.scopes.names}
    return Cluster(
        graph=graph,
        operations=tuple(operations),
        inputs=tuple(inputs),
        shapes=tuple(_shape_of(each, given) for each in inputs),
        outputs=tuple(dict.fromkeys(each for each in wanted if each.op in mine and each not in given)),
        variables=tuple(touched),
        written=tuple(variable for variable in touched if variable in effects.writes),
        name=graph.function or (names.pop() if len(names) == 1 else "main"),
    )


def _shape_of(tensor: Tensor, given: Mapping[Tensor, Any]) -> tuple[int, ...]:
    return tuple(given[tensor].shape) if tensor in given else known_shape(tensor)


def compile_cluster(found: Cluster, options: Options) -> Any:
    """The executable of a cluster with these options, and those its pipeline was asked with."""
    asked = found.pipeline.asked.options if found.pipeline is not None else {}
    try:
        return _hooks.compiler.get()(found, options.with_values(asked), replicas=found.replicas)
    except InputError as error:
        if found.pipeline is None or _COUNT_OF_COMPILE not in error.mends:
            raise
        told = (part.replace(_COUNT_OF_COMPILE, _COUNT) for part in (error.what, error.expected, error.todo))
        raise InputError(*told) from error


# Micro-batches of an update: what an argument of a compile is called, and that of a pipeline, which the user gave.
_COUNT_OF_COMPILE, _COUNT = "gradient_accumulation_steps", "gradient_accumulation_count"


__all__ = ["Cluster", "cluster", "compile_cluster"]
