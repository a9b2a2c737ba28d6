"""Evaluating a graph: every operation on values (numpy, JAX or traced), once, its gradients with its forward pass.

A gradient is taken with `jax.vjp` around the operations between its sources and its targets, and their values are
kept, so that what a program computes and differentiates is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from workbench.errors import InputError
from workbench.tf._graph.graph import Effects, Graph, Operation, Running, Tensor, known_shape
from workbench.tf._graph.marks import host_region, scope_names


@dataclass(slots=True)
class State:
    """Values of variables while a graph is evaluated; what was written is remembered."""

    values: dict[Any, Any] = field(default_factory=dict)
    written: set[Any] = field(default_factory=set)

    def read(self, variable: Any) -> Any:
        """The value now."""
        return self.values[variable]

    def write(self, variable: Any, value: Any) -> None:
        """Give a new value."""
        self.values[variable] = value
        self.written.add(variable)


@dataclass(frozen=True, slots=True, eq=False)
class GradientOf:
    """What a gradient operation asks: of `targets`, with respect to `sources` (tensors or variables).

    `spans`: numbers of operations, first and behind the last, that are differentiated through; all when there is none.
    `stopped`: tensors that are constants to it.
    """

    targets: tuple[Tensor, ...]
    sources: tuple[Any, ...]
    spans: tuple[tuple[int, int], ...] = ()
    stopped: frozenset[Tensor] = frozenset()

    def through(self, operation: Operation) -> bool:
        """Whether an operation is differentiated through."""
        return not self.spans or any(first <= operation.number < behind for first, behind in self.spans)


@dataclass(slots=True, eq=False)
class _Group:
    """Operations evaluated under one `jax.vjp`, and the pullback when that has been done.

    `begun`: what its path needs besides is being evaluated, which may need some of the path where two gradients each
    go through what the other stands on. That part is evaluated beforehand too.
    """

    asked: GradientOf
    path: tuple[Operation, ...]
    pullback: Any = None
    begun: bool = False


@dataclass(slots=True, eq=False)
class Run:
    """One evaluation of one graph. `given` holds values of tensors made elsewhere: captures, feeds, other clusters."""

    graph: Graph
    state: State
    given: dict[Tensor, Any] = field(default_factory=dict)
    done: set[Operation] = field(default_factory=set)
    groups: dict[GradientOf, _Group] = field(default_factory=dict)
    together: frozenset[Operation] = frozenset()
    wanted: frozenset[Tensor] = frozenset()
    stopped: frozenset[Tensor] = frozenset()
    nudged: dict[Tensor, Any] = field(default_factory=dict)

    def value(self, tensor: Tensor) -> Any:
        """The value of a tensor that was evaluated or given."""
        return self.given[tensor]

    def evaluate(self, targets: Iterable[Tensor | Operation], known: Iterable[Operation] = ()) -> None:
        """Evaluate what the targets need, in the order the operations were made."""
        self.done.update(known)
        targets = list(targets)
        self.wanted |= {each for each in targets if isinstance(each, Tensor)}
        needed = needed_by(targets, self.given, self.done)
        self.together = frozenset(needed)
        for operation in needed:
            gradient = operation.gradient
            if gradient is not None and gradient not in self.groups:
                self.groups[gradient] = _Group(gradient, path_between(gradient))
        for operation in needed:
            if operation not in self.done:
                self._step(operation)

    def _step(self, operation: Operation) -> None:
        for group in self.groups.values():
            if group.pullback is None and operation in group.path:
                if not group.begun:
                    self._differentiate(group)
                elif operation.effects.writes or operation.effects.queues:
                    raise InputError(
                        f"two gradients each go through what the other stands on, and {operation.name} among it "
                        "changes something, so it cannot be evaluated for both",
                        todo="take both gradients of one target, or change it behind both",
                    )
        if operation not in self.done:
            gradient = operation.gradient
            if gradient is not None and self.groups[gradient].pullback is None:
                self._differentiate(self.groups[gradient])
            self._execute(operation)

    def _execute(self, operation: Operation) -> None:
        values = [self.value(tensor) for tensor in operation.inputs]
        with ExitStack() as stack:
            for name in scope_names(operation.scopes, operation.updates, operation.line):
                stack.enter_context(jax.named_scope(name))
            if operation.scopes.outside and not operation.effects:
                self._on_host(operation.scopes.outside)
                return
            results = operation.compute(self, values)
        self._keep(operation, results)

    def _keep(self, operation: Operation, results: Sequence[Any]) -> None:
        for tensor, value in zip(operation.outputs, results, strict=True):
            held = jax.lax.stop_gradient(value) if tensor in self.stopped else value
            self.given[tensor] = held + self.nudged[tensor] if tensor in self.nudged else held
        self.done.add(operation)

    def _on_host(self, name: str) -> None:
        """All operations of an outside compilation scope as one call of the host: one copy there, one back."""
        waiting = self.together - self.done
        steps = [each for each in self.graph.operations if each in waiting and _on_host_as(each, name)]
        made = {tensor for step in steps for tensor in step.outputs}
        inputs = list(dict.fromkeys(each for step in steps for each in step.inputs if each not in made))
        readers = [each for each in self.graph.operations if each not in set(steps)]
        read = {tensor for reader in readers for tensor in reader.inputs}
        inner = {tensor for step in steps for tensor in step.inputs} - read - self.wanted
        outputs = [tensor for step in steps for tensor in step.outputs if tensor not in inner]

        def compute(*values: Any) -> list[Any]:
            host = Run(self.graph, self.state, dict(zip(inputs, values, strict=True)))
            for step in steps:
                host._keep(step, step.compute(host, [host.value(tensor) for tensor in step.inputs]))
            return [host.value(tensor) for tensor in outputs]

        results = host_region(compute, name)(*(self.value(tensor) for tensor in inputs))
        self.given.update(zip(outputs, results, strict=True))
        self.done.update(steps)

    def pullback(self, asked: GradientOf) -> Any:
        """The function from gradients of the targets to gradients of the sources."""
        return self.groups[asked].pullback

    def _differentiate(self, group: _Group) -> None:
        group.begun = True
        outside = [
            operation
            for step in group.path
            for operation in (*self._makers(step), *step.control_inputs)
            if operation not in group.path
        ]
        before = set(group.path)
        self._without(outside, before)
        sources = group.asked.sources
        start = [self._start(each, group.path) for each in sources]
        keep = [tensor for step in group.path for tensor in step.outputs]
        made_here = set(keep)
        written: list[Any] = []

        def forward(values: Sequence[Any]) -> tuple[Any, Any]:
            state = State(dict(self.state.values), set())
            given = {tensor: value for tensor, value in self.given.items() if tensor not in made_here}
            inner = Run(self.graph, state, given, set(self.done) - before, together=frozenset(before))
            inner.stopped = group.asked.stopped
            for source, value in zip(sources, values, strict=True):
                if isinstance(source, Tensor) and source in made_here:
                    inner.nudged[source] = value
                elif isinstance(source, Tensor):
                    given[source] = value
                else:
                    state.values[source] = value
            inner.groups.update(
                (step.gradient, _Group(step.gradient, path_between(step.gradient)))
                for step in group.path
                if step.gradient is not None
            )
            for step in group.path:
                if step not in inner.done:
                    inner._step(step)
            outputs = [given[tensor] for tensor in group.asked.targets]
            written[:] = state.written
            return outputs, ([given.get(tensor) for tensor in keep], [state.values[each] for each in written])

        _, group.pullback, (kept, changed) = jax.vjp(forward, start, has_aux=True)
        for tensor, value in zip(keep, kept, strict=True):
            if value is not None:
                self.given.setdefault(tensor, value)
        for variable, value in zip(written, changed, strict=True):
            self.state.write(variable, value)
        self.done.update(group.path)

    def _start(self, source: Any, path: Sequence[Operation]) -> Any:
        """What is differentiated at: the value of a source or, where that depends on another, nothing added to it."""
        if not isinstance(source, Tensor):
            return self.state.read(source)
        if source.op in path:
            return jnp.zeros(known_shape(source), str(source._dtype))
        return self.value(source)

    def _makers(self, step: Operation) -> list[Operation]:
        return [tensor.op for tensor in step.inputs if tensor not in self.given]

    def _without(self, operations: Iterable[Operation], excluded: set[Operation]) -> None:
        for operation in needed_by([each for each in operations if each.graph is self.graph], self.given, self.done):
            if operation not in excluded and operation not in self.done:
                self._step(operation)


def _on_host_as(operation: Operation, name: str) -> bool:
    return operation.scopes.outside == name and not operation.effects


def needed_by(
    targets: Iterable[Tensor | Operation], given: Mapping[Tensor, Any], done: Iterable[Operation] = ()
) -> list[Operation]:
    """The operations the targets need, in the order they were made, without what is given or done."""
    finished = set(done)
    pending = [each.op if isinstance(each, Tensor) else each for each in targets if each not in given]
    found: set[Operation] = set()
    while pending:
        operation = pending.pop()
        if operation in found or operation in finished:
            continue
        found.add(operation)
        pending += [tensor.op for tensor in operation.inputs if tensor not in given and _here(tensor, operation)]
        pending += operation.control_inputs
    return sorted(found, key=lambda operation: operation.number)


def _here(tensor: Tensor, operation: Operation) -> bool:
    return tensor.graph is operation.graph


def path_between(asked: GradientOf) -> tuple[Operation, ...]:
    """The operations on a way from the sources to the targets, in order."""
    ancestors = needed_by(asked.targets, {})
    tensors = {source for source in asked.sources if isinstance(source, Tensor)}
    variables = {source for source in asked.sources if not isinstance(source, Tensor)}
    reached: set[Operation] = set()
    for operation in ancestors:
        flowing = [tensor for tensor in operation.inputs if tensor in tensors or tensor not in asked.stopped]
        from_source = any(tensor in tensors or tensor.op in reached for tensor in flowing)
        reads = bool(variables & operation.effects.reads) and not operation.effects.writes & variables
        if (from_source or reads) and asked.through(operation):
            reached.add(operation)
    return tuple(operation for operation in ancestors if operation in reached)


def run_body(
    run: Running, graph: Graph, bound: Mapping[Tensor, Any], results: Sequence[Tensor | Operation], state: State
) -> list[Any]:
    """Evaluate the body of a loop, branch or function on bound values; its results' values, None for operations."""
    given = {tensor: run.given[tensor] for tensor in graph.captures if tensor in run.given} | dict(bound)
    inner = Run(graph, state, given)
    inner.evaluate([each for each in results if isinstance(each, Operation) or each.graph is graph])
    return [
        inner.given[each]
        if isinstance(each, Tensor) and each in inner.given
        else run.given.get(each)
        if isinstance(each, Tensor)
        else None
        for each in results
    ]


def body_effects(graph: Graph, results: Sequence[Tensor | Operation]) -> Effects:
    """What a body touches to make its results."""
    found = Effects()
    for operation in needed_by([each for each in results if isinstance(each, Operation) or each.graph is graph], {}):
        found = found | operation.effects
    return found
