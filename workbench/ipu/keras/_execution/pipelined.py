"""One weight update, or one pass over some batches, of a model in stages: a program of calls as every pipeline's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.engine.frontends.describe.checks import traced_control_flow
from workbench.engine.frontends.describe.keras_layers import layer_classes, numbered_calls
from workbench.engine.frontends.describe.name_stack import LOSS_LAYER, METRICS_LAYER, OPTIMIZER_LAYER, UPDATE_SCOPE
from workbench.engine.frontends.describe.replicas import axes, mean, total
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.staging.pipeline import Forward, Pipeline
from workbench.engine.frontends.staging.program import Described, program_of, staged_source, sum_input, updates_by_stage
from workbench.engine.frontends.staging.stages import stage_of_path
from workbench.engine.frontends.staging.vjp import accumulator, counter
from workbench.engine.frontends.trace.jaxpr import closed_of
from workbench.engine.frontends.trace.staged_calls import Program, StagedCall
from workbench.engine.graph import Graph, Input, Output
from workbench.engine.graph.execution import Execution
from workbench.ipu._pipeline.asked import SUM, Asked, with_stage_options
from workbench.ipu._pipeline.feeds import serialised
from workbench.ipu._pipeline.sums import sums_of
from workbench.ipu.keras._execution.program import described_variables
from workbench.ipu.keras._execution.turns import State, Turns
from workbench.ipu.keras._extensions.assignment import Stages

_HEAD = "scaled loss"


@dataclass(slots=True, eq=False)
class Held:
    """A value between runs of a program, or data of the next one."""

    value: Any = None
    from_host: bool = False

    def assign(self, value: Any) -> None:
        """Keep the value a run ended with; data are not written to."""
        if not self.from_host:
            self.value = value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelinedProgram:
    """`micro_batches` batches of each replica through the stages, and in training their update.

    `stages` are those of layers and of their calls; `asked` are the arguments of the pipeline, `execution` says how
    often it runs. `kept` and `fed` are where a run finds its state and data, and leaves the former.
    """

    turns: Turns
    micro_batches: int
    state: State
    data: Any
    stages: Stages
    asked: Asked
    execution: Execution
    kept: list[Held]
    fed: list[Held]
    results: list[Any]

    @property
    def _training(self) -> bool:
        return self.turns.mode == "training"

    def _forward(self, *values: Any) -> list[Any]:
        """The scaled loss in training; what goes to the host; and the state behind it."""
        tree = jax.tree_util.tree_structure((self.state, self.data))
        state, data = jax.tree_util.tree_unflatten(tree, values)
        with numbered_calls(self.turns.model):
            scaled, given, after = self.turns.ahead(state, data)
        leaves, self.results[:] = _flat(given)
        return [*([scaled] if self._training else []), *leaves, *jax.tree_util.tree_leaves(after)]

    def _traced(self) -> tuple[Forward, list[Input], dict[str, Any], list[str]]:
        """The forward program; the described parameters with their types; names of what goes to the host."""
        leaves, data = jax.tree_util.tree_leaves(self.state), jax.tree_util.tree_leaves(self.data)
        inputs = described_variables(self.turns)
        fed = [Input(name=f"infeed/{place}", role="input") for place in range(len(data))]
        with traced_control_flow():
            closed = jax.make_jaxpr(self._forward)(*leaves, *data)
        first = int(self._training)
        given = len(closed.jaxpr.outvars) - len(leaves) - first
        named = [f"outfeed/{place}" for place in range(given)]
        pairs = list(zip(closed.jaxpr.invars, closed.jaxpr.outvars[first + given :], inputs + fed, strict=False))
        changed = [(after, item) for before, after, item in pairs[: len(leaves)] if before is not after]
        outvars = [*closed.jaxpr.outvars[: first + given], *(after for after, _ in changed)]
        closed = closed_of([closed], closed.jaxpr.eqns, closed.jaxpr.invars, outvars)
        head = [_HEAD] * first
        owners = {item.name: item.layer for item in inputs}
        owners |= {_HEAD: LOSS_LAYER, **dict.fromkeys(named, METRICS_LAYER)}
        late = {item.name for item in inputs if item.role == "optimizer" or item.layer == METRICS_LAYER}
        late |= {each.name for each in fed[len(jax.tree_util.tree_leaves(_x(self.data))) :]}
        forward = Forward(
            closed=closed,
            names=tuple(item.name for item in (*inputs, *fed)),
            results=(*head, *named, *(item.name for _, item in changed)),
            owners=owners,
            trained=frozenset(item.name for item in inputs if item.role == "parameter" and self._training),
            state=frozenset(item.name for _, item in changed),
            late=frozenset(late),
            head=_HEAD if self._training else "",
            replicas=self.turns.replicas,
        )
        kinds = [jax.ShapeDtypeStruct(tuple(each.shape), each.dtype) for each in (*leaves, *data)]
        return forward, [*inputs, *fed], dict(zip(forward.names, kinds, strict=True)), named

    def _program(self) -> Program:
        forward, described, types, named = self._traced()
        buffers = [sum_input(item.name, item.layer) for item in described if item.name in forward.trained]
        for item in buffers:
            kind = types[item.of]
            dtype = self.turns.accumulation.dtype_of(str(kind.dtype))
            types[item.name] = jax.ShapeDtypeStruct(kind.shape, dtype)
        sums = sums_of(self.asked, {each: str(types[accumulator(each)].dtype) for each in forward.trained})
        classes, stages = layer_classes(self.turns.model), self.stages
        pipeline = Pipeline(replace(forward, sums=sums), stages.of_layers, classes, stages.of_calls)
        calls = pipeline.training() if self._training else pipeline.forward_only()
        if self._training:
            calls = [*calls, *self._updates(described, buffers, types)]
        counters = []
        for call in calls:
            name = counter(call.stage)
            if name in call.results and name not in types:
                counters.append(Input(name=name, role="state"))
                types[name] = jax.ShapeDtypeStruct((), "int32")
        inputs = [*described, *buffers, *counters]
        return program_of(calls, inputs, [(Output(name=name), name) for name in named], types, self.micro_batches)

    def _updates(
        self, described: Sequence[Input], buffers: Sequence[Input], types: Mapping[str, Any]
    ) -> list[StagedCall]:
        """The optimizer applied to the sums, one call for each stage."""
        weights = [item for item in described if item.role == "parameter"]
        slots = [item for item in described if item.role == "optimizer"]
        first, second, replicas = len(weights), len(weights) + len(slots), self.turns.replicas
        reduce = total if self.asked.reduction is SUM else mean
        normal = self.micro_batches * self.asked.serial * replicas if self.turns.accumulation.normalize else 1

        def apply(*values: Any) -> list[Any]:
            held, state, sums = list(values[:first]), list(values[first:second]), values[second:]
            with jax.named_scope(UPDATE_SCOPE):
                found = [each / normal if normal > 1 else each for each in reduce(sums, replicas)]
                found = [each.astype(value.dtype) for each, value in zip(found, held, strict=True)]
                new, new_state = self.turns.model.optimizer.stateless_apply(state, found, held)
                cleared = [jnp.zeros(value.shape, value.dtype) for value in sums]
            return [*new, *new_state, *cleared]

        updated = [*weights, *slots, *buffers]
        closed = jax.make_jaxpr(apply, axis_env=axes(replicas))(*(types[item.name] for item in updated))
        owners = {item.name: item.layer or OPTIMIZER_LAYER for item in updated}
        homes = {item.name: stage_of_path(item.layer, self.stages.of_layers) or 0 for item in updated}
        return updates_by_stage(closed, [item.name for item in updated], homes, owners)

    def trace_source(self) -> Source:
        """The traced program, run under its schedule."""
        model, replicas, serial = self.turns.model, self.turns.replicas, int(self.asked.serial)
        program = self._program()
        leaves = jax.tree_util.tree_leaves(self.data)
        described = Described(
            name=model.name,
            batch_size=int(leaves[0].shape[0]) * serial,
            mode="training" if self._training else "inference",
            assumptions=(),
            stages=self.stages.count,
            replicas=replicas,
            layers=layer_classes(model),
            apart=frozenset(item.name for item in described_variables(self.turns) if replicas > 1 and _is_apart(item)),
            finish=lambda made: serialised(made, serial, replicas),
            finish_graph=self._finished,
        )
        names = [item.name for item in program.inputs]
        return staged_source(
            program,
            described,
            dict(zip(names, (*self.kept, *self.fed), strict=False)),
            unpack=tuple,
            interface="function",
            pack=list,
            specs=(),
            model=model,
        )

    def _finished(self, graph: Graph) -> Graph:
        """The graph with what its stages and its execution are told."""
        graph = with_stage_options(graph, self.asked)
        return replace(graph, meta={**graph.meta, **self.execution.meta()})

    # -- a run ------------------------------------------------------------------------------------------

    def spread(self, state: State) -> State:
        """The state before an execution: what replicas have apart is there for each."""
        return self._each(state, lambda value, item: jnp.stack([value] * self.turns.replicas))

    def joined(self, state: State) -> State:
        """The state behind an execution: statistics of the first replica, metrics of the last."""
        return self._each(state, lambda value, item: value[-1 if item.layer == METRICS_LAYER else 0])

    def _each(self, state: State, change: Callable[[Any, Input], Any]) -> State:
        if self.turns.replicas == 1:
            return state
        leaves, tree = jax.tree_util.tree_flatten(state)
        pairs = zip(leaves, described_variables(self.turns), strict=True)
        changed: State = jax.tree_util.tree_unflatten(
            tree, [change(value, item) if _is_apart(item) else value for value, item in pairs]
        )
        return changed

    def run(self, executable: Any, state: State, elements: Sequence[Any]) -> Iterator[tuple[Any, State]]:
        """Results and state of each batch of each replica in turn; state is that after all."""
        for held, value in zip(self.kept, jax.tree_util.tree_leaves(state), strict=True):
            held.value = value
        replicas = self.turns.replicas
        ordered = [each for number in range(replicas) for each in elements[number::replicas]]
        stacked = self.asked.serial > 1
        for held, leaves in zip(self.fed, zip(*map(jax.tree_util.tree_leaves, ordered), strict=True), strict=True):
            held.value = np.stack(leaves) if stacked else np.concatenate(leaves)
        made = [np.asarray(each) for each in executable.run()]
        tree = jax.tree_util.tree_structure(state)
        after = jax.tree_util.tree_unflatten(tree, [held.value for held in self.kept])
        each_of = [self._apart(value, shape) for value, shape in zip(made, self.results[1], strict=True)]
        for number in range(len(elements) // replicas):
            parts = [value[:, number] if replicas > 1 else value[0, number] for value in each_of]
            yield jax.tree_util.tree_unflatten(self.results[0], parts), after

    def _apart(self, value: Any, shape: tuple[int, ...]) -> Any:
        """A result by replica and batch."""
        return value.reshape(self.turns.replicas, -1, *shape)


def _is_apart(described: Input) -> bool:
    """Whether replicas have values of their own: statistics and metrics, which no replica tells the others."""
    return described.role == "state"


def _flat(given: Any) -> tuple[list[Any], list[Any]]:
    leaves, tree = jax.tree_util.tree_flatten(given)
    return leaves, [tree, [tuple(each.shape) for each in leaves]]


def _x(data: Any) -> Any:
    return data[0] if isinstance(data, tuple | list) else data


__all__ = ["Held", "PipelinedProgram"]
