"""Keras layers called on tensors of a graph: one operation for the layers between, their weights as its variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import keras

from workbench.tf._graph.dtypes import as_dtype
from workbench.tf._graph.graph import (
    Effects,
    Operation,
    Tensor,
    current_scopes,
    get_default_graph,
    scoped,
)
from workbench.tf._graph.shapes import UNKNOWN
from workbench.tf._graph.stand_ins import Shape, types_of
from workbench.tf._graph.variables import GLOBAL, TRAINABLE, Variable

_KNOWN = "keras variables"


class KerasVariable(Variable):
    """A variable of a Keras layer in a graph; its value is the layer's."""

    def __init__(self, held: Any, role: str = "", layer: str | None = None) -> None:
        self.held_by_keras = held
        self._given = held
        self._trainable = bool(held.trainable)
        self._dtype = as_dtype(held.dtype)
        self._initializer = None
        self.role = role or ("parameter" if held.trainable else "seed" if "seed" in held.path else "state")
        self.deferred = True
        self.graph = get_default_graph().root
        self.scopes = current_scopes()
        self.name = f"{self.graph.unique_name(held.path)}:0"
        self.shape = tuple(int(size) for size in held.shape)
        self.resource = True
        self.layer = self.handle.rpartition("/")[0] if layer is None else layer
        self.graph.add_to_collection(GLOBAL, self)
        if held.trainable:
            self.graph.add_to_collection(TRAINABLE, self)

    @property
    def value_now(self) -> Any:
        """The layer's value."""
        return self.held_by_keras.value

    @value_now.setter
    def value_now(self, value: Any) -> None:
        self.held_by_keras.assign(value)

    def initialize(self) -> None:
        """Keras gave it its first value when the layer was built."""


def adopt(tensor: Any) -> Tensor:
    """A Keras tensor computed from tensors of a graph, as a tensor of that graph."""
    inputs = _roots(tensor)
    function = keras.Function(inputs=inputs, outputs=tensor)
    held = [variable for operation in function.operations for variable in getattr(operation, "variables", ())]
    held += _variables_given_to(tensor, inputs)
    variables = [known(each) for each in {id(each): each for each in held}.values()]

    def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
        mapping = [(each.held_by_keras, run.state.read(each)) for each in variables]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            result = function(list(values))
        for each in variables:
            new = scope.get_current_value(each.held_by_keras)
            if each in written and new is not None:
                run.state.write(each, new)
        return [result]

    written = frozenset(each for each in variables if not each.trainable)
    given = [(None if each.shape is UNKNOWN else each.shape, each._dtype) for each in inputs]
    made: list[tuple[Shape, str]] = [(tuple(tensor.shape), str(tensor.dtype))]
    if not variables:
        made, _ = types_of(lambda *values: function(list(values)), given)
    with scoped(names=()):
        operation = Operation(
            "KerasLayers",
            inputs,
            made,
            compute,
            effects=Effects(reads=frozenset(variables), writes=written),
        )
    return operation.outputs[0]


def _roots(tensor: Any) -> list[Tensor]:
    """The tensors of the graph it was computed from."""
    return [each for each in _ancestors(tensor) if isinstance(each, Tensor)]


def of_graph(tensor: Any) -> bool:
    """Whether a Keras tensor was computed from tensors of a graph alone, rather than from Keras inputs."""
    return all(isinstance(each, Tensor) or _node(each).input_tensors for each in _ancestors(tensor))


def _variables_given_to(tensor: Any, inputs: Sequence[Tensor]) -> list[Any]:
    """Variables among the arguments of operations that are no layers' own."""
    given = [_node(each).arguments for each in _ancestors(tensor) if not isinstance(each, Tensor)]
    leaves = [leaf for each in given for leaf in jax.tree_util.tree_leaves((each.args, each.kwargs))]
    return [leaf for leaf in leaves if isinstance(leaf, keras.Variable)]


def _node(tensor: Any) -> Any:
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]


def _ancestors(tensor: Any) -> list[Any]:
    """The tensor and those it was computed from, as far as tensors of a graph, each once."""
    found: dict[int, Any] = {}
    pending = [tensor]
    while pending:
        each = pending.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        if not isinstance(each, Tensor):
            pending += _node(each).input_tensors
    return list(found.values())


def known(held: Any, role: str = "", layer: str | None = None) -> KerasVariable:
    """The variable that stands for one of Keras in the graph that is built; `role` and `layer`: of a new one."""
    kept = get_default_graph().root.collections.setdefault(_KNOWN, [])
    for each in kept:
        if each.held_by_keras is held:
            found: KerasVariable = each
            return found
    made = KerasVariable(held, role, layer)
    kept.append(made)
    return made


__all__ = ["KerasVariable", "adopt", "known", "of_graph"]
