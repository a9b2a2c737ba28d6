"""Sessions: run what a fetch needs, operations of a device together; those of an IPU are compiled and profiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.errors import InputError
from workbench.tf import _graph, _hooks
from workbench.tf._graph import Graph, Operation, Tensor
from workbench.tf._graph.convert import is_symbolic, plain, symbolic
from workbench.tf._graph.evaluate import Run, State, needed_by
from workbench.tf._graph.shapes import UNKNOWN
from workbench.tf._graph.variables import Variable
from workbench.tf._session.cluster import Cluster, cluster
from workbench.tf._session.device import Device, device_of

HOST = ""


@dataclass(slots=True, eq=False)
class Session:
    """Runs a graph. `executables` are the programs compiled for it, in order; `profile` is that of the last one run."""

    target: str = ""
    graph: Graph = field(default_factory=_graph.get_default_graph)
    config: Any = None
    executables: list[Any] = field(default_factory=list)
    closed: bool = False
    _last: Any = None
    _devices: dict[str, Device] = field(default_factory=dict)
    _entered: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.graph is None:
            self.graph = _graph.get_default_graph()

    @property
    def executable(self) -> Any:
        """The program of an IPU that ran last."""
        if self._last is None:
            raise InputError("nothing ran on an IPU yet", todo="run something made in an ipu_scope")
        return self._last

    @property
    def profile(self) -> Any:
        """The profile of the program that ran last."""
        return self.executable.profile

    def __enter__(self) -> Session:
        contexts = [self.graph.as_default(), _graph.as_default_session(self)]
        if self.graph is _graph.get_default_graph():
            contexts = contexts[1:]
        for context in contexts:
            context.__enter__()
        self._entered = contexts
        return self

    def __exit__(self, *raised: Any) -> None:
        for context in reversed(self._entered):
            context.__exit__(*raised)
        self.close()

    def close(self) -> None:
        """Nothing runs in it afterwards."""
        self.closed = True

    def as_default(self) -> Any:
        """Make it the default session."""
        return _graph.as_default_session(self)

    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Values of the fetches, in their structure: arrays for tensors and variables, None for operations."""
        if self.closed:
            raise RuntimeError("Attempted to use a closed Session.")
        leaves, tree = jax.tree_util.tree_flatten(fetches, is_leaf=lambda each: each is None)
        found = [self._fetch(leaf) for leaf in leaves]
        given = dict(map(self._feed, (feed_dict or {}).items()))
        targets = [each for each in found if isinstance(each, Tensor | Operation)]
        self._evaluate(targets, given)
        values = [self._result(each, given) for each in found]
        return jax.tree_util.tree_unflatten(tree, values)

    def make_callable(self, fetches: Any, feed_list: Sequence[Tensor] = ()) -> Callable[..., Any]:
        """A function of the fed values."""
        return lambda *values: self.run(fetches, dict(zip(feed_list, values, strict=True)))

    def _fetch(self, each: Any) -> Any:
        if isinstance(each, str):
            graph = self.graph
            return graph.get_tensor_by_name(each) if ":" in each else graph.get_operation_by_name(each)
        if isinstance(each, Variable):
            return each if not each.deferred else each.read_value()
        found = symbolic(each) if is_symbolic(each) else each
        if isinstance(found, Tensor | Operation) and found.graph is not self.graph:
            raise ValueError(f"{found.name} is not an element of this graph.")
        if each is None or (not isinstance(found, Tensor | Operation) and not hasattr(found, "shape")):
            if isinstance(found, int | float | bool | complex):
                return np.asarray(found)
            raise TypeError(f"a fetch is {each!r}, which is no tensor, operation or variable")
        return found

    def _feed(self, item: tuple[Any, Any]) -> tuple[Tensor, Any]:
        key, value = item
        tensor = self.graph.get_tensor_by_name(key) if isinstance(key, str) else key
        if not isinstance(tensor, Tensor):
            raise TypeError(f"feed_dict has the key {key!r}, which is no tensor")
        array = np.asarray(value, str(tensor._dtype)) if tensor._dtype != "bfloat16" else jnp.asarray(value, "bfloat16")
        if tensor.shape is UNKNOWN:
            return tensor, array
        fits = len(array.shape) == len(tensor.shape) and all(
            want is None or want == have for want, have in zip(tensor.shape, array.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"Cannot feed value of shape {array.shape} for {tensor.name}, which has {tensor.shape}.")
        return tensor, array

    def _evaluate(self, targets: Sequence[Tensor | Operation], given: dict[Tensor, Any]) -> None:
        operations = needed_by(targets, given)
        groups: dict[tuple[int, str], list[Operation]] = {}
        for operation, level in levels(operations, given).items():
            groups.setdefault((level, device_of(operation)), []).append(operation)
        for level, place in sorted(groups, key=lambda key: (key[0], key[1] != HOST)):
            members = groups[level, place]
            if place == HOST:
                self._on_host(members, given)
                continue
            outside = [each for op in operations if op not in set(members) for each in op.inputs]
            wanted = [*outside, *(each for each in targets if isinstance(each, Tensor))]
            self._on_ipu(cluster(self.graph, members, given, wanted), place, given)

    def _on_host(self, operations: Sequence[Operation], given: dict[Tensor, Any]) -> None:
        state = _HostState()
        run = Run(self.graph, state, given)
        run.evaluate(operations)
        for variable in state.written:
            variable.value_now = state.values[variable]

    def _on_ipu(self, found: Cluster, place: str, given: dict[Tensor, Any]) -> None:
        device = self._devices.setdefault(place, Device(place))
        executable, results = device.run(found, [given[tensor] for tensor in found.inputs])
        if executable is not None and executable not in self.executables:
            self.executables.append(executable)
        self._last = executable or self._last
        given.update(zip(found.outputs, results, strict=True))

    def _result(self, each: Any, given: Mapping[Tensor, Any]) -> Any:
        if isinstance(each, Operation):
            return None
        value = given[each] if isinstance(each, Tensor) else plain(each)
        if value is None:
            return None
        array = np.asarray(value)
        return array[()] if array.shape == () else array


_hooks.session.set(lambda: Session)


class _HostState(State):
    """Variables on the host are read where they are kept."""

    def read(self, variable: Any) -> Any:
        """The value now."""
        return self.values[variable] if variable in self.values else variable.held()


def levels(operations: Sequence[Operation], given: Mapping[Tensor, Any]) -> dict[Operation, int]:
    """How many changes of device lie before each operation; operations are in the order they were made."""
    found: dict[Operation, int] = {}
    for operation in operations:
        before = [tensor.op for tensor in operation.inputs if tensor not in given]
        before += operation.control_inputs
        mine = device_of(operation)
        found[operation] = max(
            (found[other] + (device_of(other) != mine) for other in before if other in found), default=0
        )
    return found


class InteractiveSession(Session):
    """A session that is the default one from when it is made until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph or _graph.get_default_graph(), config)
        self._context = _graph.as_default_session(self)
        self._context.__enter__()

    def close(self) -> None:
        """No longer the default one."""
        self._context.__exit__(None, None, None)
        super().close()


__all__ = ["InteractiveSession", "Session", "levels"]
