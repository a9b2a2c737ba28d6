"""One execution as one program: batches from the infeed, results to the outfeed, everything else on the chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from workbench.base.dtypes import dtype_name
from workbench.engine.frontends.describe.checks import traced_control_flow
from workbench.engine.frontends.describe.keras_layers import layer_classes, numbered_calls
from workbench.engine.frontends.describe.name_stack import METRICS_LAYER
from workbench.engine.frontends.describe.replicas import axes, meta
from workbench.engine.frontends.describe.source import Source
from workbench.engine.frontends.staging.vjp import accumulator
from workbench.engine.frontends.step.prepare import describe_variables
from workbench.engine.frontends.step.training import Variables
from workbench.engine.frontends.trace.jaxpr import closed_of, graph_from_jaxpr
from workbench.engine.graph import Input, Output
from workbench.engine.graph.execution import SAMPLES, Execution, Queue
from workbench.errors import InputError
from workbench.ipu._feeds import feed_scopes
from workbench.ipu._replicas import give, take
from workbench.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from workbench.ipu.keras._execution.turns import State, Turns, variables_of

_LOOPED = 2  # turns from which a loop is made


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A queue of an execution and its name."""

    name: str
    queue: Queue

    def call(self) -> Callable[..., Any]:
        """What stands for the host's side in the traced program."""

        def host(*values: Any) -> Any:
            raise InputError("an execution takes its data from fit, evaluate or predict", todo="call one of them")

        host.feed = self.name  # type: ignore[attr-defined]
        return host


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExecutionProgram:
    """`count` batches of each replica, of these types: `state` lists types of variables, `data` is a tree of types."""

    turns: Turns
    count: int
    state: State
    data: Any
    infeed: Feed
    outfeed: Feed

    @property
    def _batches(self) -> int:
        """Batches of an update."""
        return self.turns.accumulation.steps if self.turns.accumulates else 1

    @property
    def _sums(self) -> list[Any]:
        if not self.turns.accumulates:
            return []
        kind = self.turns.accumulation.dtype_of
        return [jax.ShapeDtypeStruct(each.shape, kind(dtype_name(each.dtype))) for each in self.state[0]]

    def __call__(self, *values: Any) -> list[Any]:
        """Values of the state and of the accumulators before it, and after it."""
        state, held = jax.tree_util.tree_unflatten(self._tree, values)
        turn = self._accumulated if self.turns.accumulates else self._one
        made = _repeated(self.count // self._batches, lambda number, carry: turn(carry), (state, held))
        return list(jax.tree_util.tree_leaves(made))

    @property
    def _tree(self) -> Any:
        return jax.tree_util.tree_structure((self.state, self._sums))

    def _taken(self) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(self.data)
        with feed_scopes(self.infeed.queue.in_packets, self.infeed.queue.depth):
            return jax.tree_util.tree_unflatten(tree, take(self.infeed.call(), leaves))

    def _given(self, results: Any) -> None:
        with feed_scopes(self.outfeed.queue.in_packets, self.outfeed.queue.depth):
            give(self.outfeed.call(), jax.tree_util.tree_leaves(results))

    def _one(self, carry: tuple[State, Any]) -> tuple[State, Any]:
        data = self._taken()
        with numbered_calls(self.turns.model):
            results, state = self.turns.whole(carry[0], data)
        self._given(results)
        return state, carry[1]

    def _accumulated(self, carry: tuple[State, Any]) -> tuple[State, Any]:
        def batch(number: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
            data = self._taken()
            with numbered_calls(self.turns.model):
                results, state, sums = self.turns.add(*carry, number, data)
            self._given(results)
            return state, sums

        counted = self.turns.accumulation.method is GradientAccumulationReductionMethod.RUNNING_MEAN
        state, sums = _repeated(self._batches, batch, carry, counted=counted)
        return self.turns.update(state, sums), [jnp.zeros(each.shape, each.dtype) for each in sums]

    def trace_source(self) -> Source:
        """The traced program. Its numbers are made turn by turn elsewhere (`run.py`)."""
        model, replicas = self.turns.model, self.turns.replicas
        types = jax.tree_util.tree_leaves((self.state, self._sums))
        with traced_control_flow():
            closed = jax.make_jaxpr(self, axis_env=axes(replicas))(*types)
        inputs = self._described()
        changed = [
            number
            for number, (before, after) in enumerate(zip(closed.jaxpr.invars, closed.jaxpr.outvars, strict=True))
            if before is not after
        ]
        jaxpr = closed.jaxpr
        closed = closed_of([closed], jaxpr.eqns, jaxpr.invars, [jaxpr.outvars[place] for place in changed])
        graph = graph_from_jaxpr(
            closed,
            inputs,
            [Output(name=inputs[number].name, role="update", updates=number) for number in changed],
            name=model.name,
            batch_size=self._samples,
            mode="function",
            layers={**layer_classes(model), METRICS_LAYER: ""},
            meta={**meta(replicas), **Execution().meta(), SAMPLES: self._samples * self.count * replicas},
        )
        return Source(graph=graph, specs=(), jaxpr=closed, compute=_refused, model=model)

    @property
    def _samples(self) -> int:
        """Samples of a batch of one replica."""
        leaves = jax.tree_util.tree_leaves(self.data)
        return int(leaves[0].shape[0]) if leaves and leaves[0].shape else 1

    def _described(self) -> list[Input]:
        """What each variable of the program is."""
        known = described_variables(self.turns)
        trained = [each for each in known if each.role == "parameter"]
        sums = [
            Input(name=accumulator(each.name), role="accumulator", layer=each.layer, of=each.name) for each in trained
        ]
        return [*known, *sums[: len(self._sums)]]


def described_variables(turns: Turns) -> list[Input]:
    """What each variable of a mode's state is, in order."""
    lists = variables_of(turns.model, turns.mode)
    slots = lists[2] if turns.mode == "training" else []
    known = describe_variables(turns.model, Variables(lists[0], lists[1], slots))
    metrics = lists[-1] if turns.mode != "prediction" else []
    measured = [
        Input(name=f"{METRICS_LAYER}/{place}/{each.path}", role="state", layer=METRICS_LAYER)
        for place, each in enumerate(metrics)
    ]
    return [*known, *measured]


def _refused(values: Sequence[Any]) -> Sequence[Any]:
    raise InputError("an execution takes its data from fit, evaluate or predict", todo="call one of them")


def _repeated(count: int, turn: Callable[[Any, Any], Any], carry: Any, *, counted: bool = False) -> Any:
    """So many turns, as a loop whose carry is what they change; a number that none reads is not kept on tiles."""
    if count < _LOOPED:
        for number in range(count):
            carry = turn(number, carry)
        return carry
    leaves, tree = jax.tree_util.tree_flatten(carry)
    changes = _changed(turn, leaves, tree)

    def whole(some: Sequence[Any]) -> Any:
        found = list(leaves)
        for place, value in zip(changes, some, strict=True):
            found[place] = value
        return jax.tree_util.tree_unflatten(tree, found)

    def body(number: Any, some: Sequence[Any]) -> list[Any]:
        made = jax.tree_util.tree_leaves(turn(number, whole(some)))
        return [jnp.asarray(made[place], leaves[place].dtype) for place in changes]

    before = [leaves[place] for place in changes]
    if counted:
        return whole(jax.lax.fori_loop(0, count, body, before))
    after, _ = jax.lax.scan(lambda some, _: (body(0, some), None), before, length=count)
    return whole(after)


def _changed(turn: Callable[[Any, Any], Any], leaves: Sequence[Any], tree: Any) -> list[int]:
    """Places of the carry that a turn makes anew, by looking at which it hands on as they are."""
    handed_on: list[list[bool]] = []

    def look(number: Any, *values: Any) -> list[Any]:
        made = jax.tree_util.tree_leaves(turn(number, jax.tree_util.tree_unflatten(tree, values)))
        handed_on.append([after is before for after, before in zip(made, values, strict=True)])
        return []

    jax.eval_shape(look, jax.ShapeDtypeStruct((), "int32"), *leaves)
    return [place for place, same in enumerate(handed_on[0]) if not same]


__all__ = ["ExecutionProgram", "Feed", "described_variables"]
