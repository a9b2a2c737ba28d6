"""A recording of a `tf.function` for arguments of one kind: its graph, and how it runs on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.text import short
from workbench.errors import InputError, KindError
from workbench.tf import _graph
from workbench.tf._function import keras_calls
from workbench.tf._function.signature import Asked, TensorSpec
from workbench.tf._graph import Graph, Operation, Tensor
from workbench.tf._graph.convert import is_symbolic, symbolic
from workbench.tf._graph.evaluate import needed_by
from workbench.tf._graph.variables import GLOBAL, Variable
from workbench.tf._ops.control import as_tensor, effects
from workbench.tf._session.cluster import cluster
from workbench.tf._session.session import Session

_SEEDS = "ipu seed"  # of `tf.random`, which the graph around shares with its functions


class EagerTensor(np.ndarray[Any, Any]):
    """A value that a `tf.function` returned, or an outfeed gave: an array with `numpy()`."""

    def numpy(self) -> Any:
        """The value: an array, or a number of NumPy."""
        plain = self.view(np.ndarray)
        return plain[()] if plain.shape == () else plain

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(super().__getitem__(index)).view(EagerTensor)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Where:
    """Where a function runs: `device`, and the strategy whose scope is open, which is told what was compiled."""

    device: str
    strategy: Any = None
    scopes: _graph.Scopes = field(default_factory=_graph.current_scopes)

    @property
    def key(self) -> Any:
        """Calls of equal keys share a recording."""
        return self.device, id(self.strategy), self.scopes.attributes, self.scopes.shard

    @property
    def on_ipu(self) -> bool:
        """Whether it is an IPU."""
        return "IPU" in self.device.upper()


@dataclass(slots=True, kw_only=True, eq=False)
class Recording:
    """What was recorded, and its session, which compiles it once for each configuration."""

    name: str
    graph: Graph
    asked: Asked
    where: Where
    params: tuple[Tensor, ...]
    results: list[Any]  # leaves: tensors, or None for operations and None
    structure: Any
    whole: bool  # whether XLA compiles it whole on the host too
    session: Session = field(init=False)
    _compiled: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.session = Session(graph=self.graph)

    @property
    def targets(self) -> list[Any]:
        """Tensors that are returned, and operations that change something."""
        tensors = [each for each in self.results if isinstance(each, Tensor)]
        return [*tensors, *effects(self.graph)]

    def run(self, values: Sequence[Any]) -> Any:
        """Run it on these values of its tensors; what the function returns, as arrays."""
        given = {param: jnp.asarray(value, param._dtype) for param, value in zip(self.params, values, strict=True)}
        if self.whole and not self.where.on_ipu:
            self._on_host(given)
        else:
            self.session._evaluate(self.targets, given)
            self._tell()
        leaves = [eager(given[each]) if isinstance(each, Tensor) else each for each in self.results]
        return jax.tree_util.tree_unflatten(self.structure, leaves)

    def _tell(self) -> None:
        """The strategy keeps what was compiled."""
        if self.where.strategy is None:
            return
        known = self.where.strategy.executables
        for each in self.session.executables:
            if not any(each is other for other in known):
                self.where.strategy._keep(each)

    def _on_host(self, given: dict[Tensor, Any]) -> None:
        operations = needed_by(self.targets, given)
        if not operations:
            return
        found = cluster(self.graph, operations, given, [each for each in self.targets if isinstance(each, Tensor)])
        if self._compiled is None:
            self._compiled = jax.jit(lambda *held: found(*held))
        taken = [given[each] for each in found.inputs]
        made = self._compiled(*taken, *(variable.held() for variable in found.variables))
        given.update(zip(found.outputs, made, strict=False))
        for variable, value in zip(found.written, made[len(found.outputs) :], strict=True):
            variable.value_now = value


def record(name: str, body: Callable[..., Any], asked: Asked, where: Where, *, whole: bool, first: bool) -> Recording:
    """Record what a function does with arguments of these kinds. `first`: whether it may make variables."""
    graph = Graph(function=name)
    graph.collections[_SEEDS] = _graph.get_default_graph().root.collections.setdefault(_SEEDS, [])
    given = zip(asked.names, asked.types, strict=True)
    named = [(label, kind) for label, kind in given if kind is not None]
    with (
        graph.as_default(),
        _graph.scoped(device=where.device, compiled=where.on_ipu, names=(), after=(), outside="", stage=None),
        keras_calls.recorded(),
    ):
        params = tuple(
            Operation("Placeholder", (), [kind], _graph.no_value, name=label).outputs[0] for label, kind in named
        )
        args, kwargs = asked.filled(params)
        returned = body(*args, **kwargs)
        leaves, structure = jax.tree_util.tree_flatten(returned, is_leaf=lambda each: each is None)
        results = [_result(name, each) for each in leaves]
    _first_values(name, graph, first)
    return Recording(
        name=name,
        graph=graph,
        asked=asked,
        where=where,
        params=params,
        results=results,
        structure=structure,
        whole=whole,
    )


def _result(name: str, value: Any) -> Any:
    if value is None or isinstance(value, Operation):
        return None
    given = symbolic(value)
    if isinstance(given, TensorSpec) or not (is_symbolic(given) or hasattr(given, "dtype") or _number(given)):
        raise KindError(
            f"{name} returned {short(value)}", expected="tensors, numbers, None, or lists and dicts of them"
        )
    found = as_tensor(given)
    if found.graph is not _graph.get_default_graph():
        raise InputError(
            f"{name} returned {found.name}, which was made inside a loop or a branch on tensors",
            expected="tensors of the function itself",
            todo="assign it to a variable that has a value before the loop or in both branches",
        )
    return found


def _number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex)


def eager(value: Any) -> EagerTensor:
    """An array with `numpy()`."""
    return np.asarray(value).view(EagerTensor)


def _first_values(name: str, graph: Graph, first: bool) -> None:
    """Variables that were made while the function was recorded get their first values, once."""
    made = [each for each in graph.get_collection(GLOBAL) if type(each) is Variable and each.role != "seed"]
    if made and not first:
        raise InputError(
            f"{name} made {made[0].name} in a call that is not its first",
            expected="variables that are made once",
            todo="make it outside the function, or only where it is None yet",
        )
    for each in made:
        each.initialize()
        each.deferred = False


__all__ = ["EagerTensor", "Recording", "Where", "eager", "record"]
