"""Sessions: run what a fetch needs, operations of a device together; those of an IPU are compiled and profiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.text import short
from workbench.errors import InputError, KindError, OperandError, StateError, WorkbenchError
from workbench.tf import _graph, _hooks
from workbench.tf._graph import Graph, Operation, Tensor
from workbench.tf._graph.convert import check_depth, is_symbolic, plain, symbolic
from workbench.tf._graph.evaluate import Run, State, needed_by
from workbench.tf._graph.shapes import UNKNOWN
from workbench.tf._graph.variables import Variable
from workbench.tf._session.cluster import Cluster, cluster
from workbench.tf._session.device import Device, device_of

HOST = ""
_OF_VALUES = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError)


@dataclass(slots=True, eq=False)
class Session:
    """Runs a graph. `executables` are the programs compiled for it, in order; `profile` is that of the last one run."""

    target: str = ""
    graph: Graph = field(default_factory=_graph.get_default_graph)
    config: Any = None
    executables: list[Any] = field(default_factory=list, init=False)
    closed: bool = field(default=False, init=False)
    _last: Any = field(default=None, init=False)
    _devices: dict[str, Device] = field(default_factory=dict, init=False)
    _entered: list[Any] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.graph is None:
            self.graph = _graph.get_default_graph()
        if not isinstance(self.graph, Graph):
            raise InputError(f"graph is {short(self.graph)}", expected="a tf.Graph, or None for the default one")
        if not isinstance(self.target, str) or self.target:
            raise InputError(f"target is {short(self.target)}", expected='"": sessions run in this process')
        if self.config is not None:
            raise InputError(
                f"config is {short(self.config)}", expected="None", todo="configure IPUs by ipu.config.IPUConfig"
            )

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
            raise StateError("Attempted to use a closed Session.")
        for name, value in (("options", options), ("run_metadata", run_metadata)):
            if value is not None:
                raise InputError(f"{name} is {short(value)}", expected="None", todo="look at session.profile instead")
        found, tree = self._fetched(fetches)
        given = self._fed({} if feed_dict is None else feed_dict)
        targets = [each for each in found if isinstance(each, Tensor | Operation)]
        self._evaluate(targets, given)
        values = [self._result(each, given) for each in found]
        return jax.tree_util.tree_unflatten(tree, values)

    def _fetched(self, fetches: Any) -> tuple[list[Any], Any]:
        """What is asked for, and the structure that it comes in."""
        try:
            check_depth(fetches)
            leaves, tree = jax.tree_util.tree_flatten(fetches, is_leaf=lambda each: each is None)
            return [self._fetch(leaf) for leaf in leaves], tree
        except _OF_VALUES as error:
            if isinstance(error, KeyError | WorkbenchError):  # TensorFlow's, for a name that the graph has not
                raise
            told = f"{str(error).rstrip('.')}: fetches are {short(fetches)}"
            raise OperandError(told, expected="tensors, operations and variables of the session's graph") from error

    def _fed(self, feed_dict: Any) -> dict[Tensor, Any]:
        """The value of each tensor that is given one."""
        if not isinstance(feed_dict, Mapping):
            raise OperandError(f"feed_dict is {short(feed_dict)}", expected="a dictionary of values by tensor")
        found: dict[Tensor, Any] = {}
        for key, value in feed_dict.items():
            try:
                tensor, array = self._feed((key, value))
            except _OF_VALUES as error:
                if isinstance(error, KeyError | WorkbenchError):
                    raise
                told = f"{str(error).rstrip('.')}: feed_dict gives {short(key)} the value {short(value)}"
                raise OperandError(told, expected="arrays of the tensors' types and shapes") from error
            found[tensor] = array
        return found

    def make_callable(self, fetches: Any, feed_list: Sequence[Tensor] = ()) -> Callable[..., Any]:
        """A function of the fed values."""
        given = list(feed_list) if isinstance(feed_list, list | tuple) else [feed_list]
        if not all(isinstance(each, Tensor | str) for each in given):
            raise OperandError(f"feed_list is {short(feed_list)}", expected="a list of tensors")
        given = [self.graph.get_tensor_by_name(each) if isinstance(each, str) else each for each in given]
        self._fetched(fetches)
        return lambda *values: self.run(fetches, dict(zip(given, values, strict=True)))

    def _fetch(self, each: Any) -> Any:
        if isinstance(each, str):
            graph = self.graph
            return graph.get_tensor_by_name(each) if ":" in each else graph.get_operation_by_name(each)
        if isinstance(each, Variable):
            return each if not each.deferred else each.read_value()
        found = symbolic(each) if is_symbolic(each) else each
        if isinstance(found, Tensor | Operation) and found.graph is not self.graph:
            raise InputError(f"{found.name} is not an element of this graph.")
        if each is None or (not isinstance(found, Tensor | Operation) and not hasattr(found, "shape")):
            if isinstance(found, int | float | bool | complex):
                return np.asarray(found)
            raise KindError(f"a fetch is {short(each)}, which is no tensor, operation or variable")
        return found

    def _feed(self, item: tuple[Any, Any]) -> tuple[Tensor, Any]:
        key, value = item
        tensor = self.graph.get_tensor_by_name(key) if isinstance(key, str) else key
        if not isinstance(tensor, Tensor):
            raise KindError(f"feed_dict has the key {short(key)}, which is no tensor")
        array = np.asarray(value, str(tensor._dtype)) if tensor._dtype != "bfloat16" else jnp.asarray(value, "bfloat16")
        if tensor.shape is UNKNOWN:
            return tensor, array
        fits = len(array.shape) == len(tensor.shape) and all(
            want is None or want == have for want, have in zip(tensor.shape, array.shape, strict=True)
        )
        if not fits:
            raise InputError(f"Cannot feed value of shape {array.shape} for {tensor.name}, which has {tensor.shape}.")
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
        super().__init__(target, _graph.get_default_graph() if graph is None else graph, config)
        self._context = _graph.as_default_session(self)
        self._context.__enter__()

    def close(self) -> None:
        """No longer the default one."""
        self._context.__exit__(None, None, None)
        super().close()


__all__ = ["InteractiveSession", "Session", "levels"]
