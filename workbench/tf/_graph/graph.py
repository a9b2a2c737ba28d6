"""A deferred graph: operations that record what to compute, and tensors that stand for their results.

An operation keeps a function over `keras.ops` or `jax.numpy` values, its inputs, the operations it waits for, and the
scopes it was made in (device, names, attributes). A graph inside another (a loop's body, a function) captures tensors
of the outer one by using them. Operations are numbered as they are made, so an operation's inputs have lower numbers.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import jax
import keras
import numpy as np

from workbench.base.checked import checked
from workbench.base.source.lines import calling_line
from workbench.base.text import short
from workbench.errors import InputError, KindError, StateError, WorkbenchError
from workbench.tf._graph.dtypes import DType, as_dtype
from workbench.tf._graph.operators import with_operators
from workbench.tf._graph.shapes import UNKNOWN, TensorShape
from workbench.tf._graph.stand_ins import types_of

_numbers = itertools.count()


class Running(Protocol):
    """What an operation's function sees of the run it is in: values of variables and of tensors."""

    @property
    def state(self) -> Any:
        """Values of variables, to `read` and to `write`."""

    @property
    def given(self) -> dict[Tensor, Any]:
        """Values of tensors that were evaluated or given."""

    def pullback(self, asked: Any) -> Any:
        """The function from gradients of the targets that were asked of to gradients of the sources."""


Compute = Callable[[Running, Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """What surrounds an operation when it is made: device, names, compiled for the IPU, stage and so on."""

    device: str = ""
    names: tuple[str, ...] = ()
    compiled: bool = False
    outside: str = ""
    shard: int | None = None
    stage: int | None = None  # of a pipeline
    attributes: tuple[tuple[str, str], ...] = ()
    after: tuple[Operation, ...] = ()

    @property
    def on_ipu(self) -> bool:
        """Whether operations made here run on an IPU."""
        return "IPU" in self.device.upper() and not self.outside


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """State an operation touches: variables it reads and writes, and what else it does, as objects."""

    reads: frozenset[Any] = frozenset()
    writes: frozenset[Any] = frozenset()
    queues: frozenset[Any] = frozenset()

    def __or__(self, other: Effects) -> Effects:
        return Effects(
            reads=self.reads | other.reads, writes=self.writes | other.writes, queues=self.queues | other.queues
        )

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes or self.queues)


NO_EFFECTS = Effects()


@dataclass(slots=True, eq=False)
class Graph:
    """Operations in the order they were made. `outer` is the graph this one is a body in, if it is one.

    `function`: the name of the `tf.function` whose body it records, if it records one.
    """

    outer: Graph | None = None
    operations: list[Operation] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    collections: dict[str, list[Any]] = field(default_factory=dict)
    captures: list[Tensor] = field(default_factory=list)
    finalized: bool = False
    function: str = ""
    _names: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> Graph:
        """The outermost graph around this one."""
        return self if self.outer is None else self.outer.root

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this the graph that operations are added to."""
        stack = _STATE.graphs
        stack.append(self)
        try:
            yield self
        finally:
            del stack[len(stack) - 1 - stack[::-1].index(self)]  # the innermost: it may be in force further out too

    def unique_name(self, name: str) -> str:
        """`name`, or `name_1` and so on when it is taken."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name

    def get_operations(self) -> list[Operation]:
        """The operations made so far."""
        return list(self.operations)

    @checked
    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of this name; an `InputError` where there is none."""
        for operation in self.operations:
            if operation.name == name:
                return operation
        raise InputError(f"name is {short(name)}, and the graph has no operation of that name")

    @checked
    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor `operation:number`; an `InputError` where there is none."""
        operation, _, number = name.partition(":")
        found = next((each.outputs for each in self.operations if each.name == operation), ())
        if not (number or "0").isdecimal() or int(number or 0) >= len(found):
            what = f"name is {short(name)}, and the graph has no operation and output of that name"
            raise InputError(what, expected='such as "operation:0"')
        return found[int(number or 0)]

    @checked
    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """What was added to a collection; with a scope, those whose name begins so."""
        found = self.collections.get(name, [])
        return [each for each in found if scope is None or str(getattr(each, "name", "")).startswith(scope)]

    @checked
    def add_to_collection(self, name: str, value: Any) -> None:
        """Add to a collection."""
        self.collections.setdefault(name, []).append(value)

    def finalize(self) -> None:
        """No more operations."""
        self.finalized = True


class Operation:
    """One step of a graph. Its `outputs` are tensors; running it for its effect alone gives None."""

    def __init__(
        self,
        kind: str,
        inputs: Sequence[Tensor],
        types: Sequence[tuple[Sequence[int | None] | None, str]],
        compute: Compute,
        *,
        name: str | None = None,
        effects: Effects = NO_EFFECTS,
        graph: Graph | None = None,
        scopes: Scopes | None = None,
    ) -> None:
        self.graph = graph or get_default_graph()
        if self.graph.finalized:
            raise StateError("the graph is finalized: no operation can be added to it")
        self.number = next(_numbers)
        self.line = calling_line(through_own=True)
        self.type = kind
        self.scopes = current_scopes() if scopes is None else scopes
        if name is not None and not isinstance(name, str):
            raise KindError(f"the name of a {kind} is {short(name)}", expected="a text, or None")
        self.name = self.graph.unique_name("/".join((*self.scopes.names, name or kind)))
        self.inputs = tuple(inputs)
        self.compute = compute
        self.effects = effects
        self.gradient: Any = None
        self.updates = False  # whether it is an optimizer's
        self.pipeline: Any = None  # the stages it runs, if it runs stages
        self.traced_by: Any = None  # then: the source of a cluster it is in, from the cluster and what holds variables
        self.outputs = tuple(Tensor(self, index, shape, dtype) for index, (shape, dtype) in enumerate(types))
        self.graph.operations.append(self)
        for tensor in self.inputs:
            if tensor.graph is not self.graph:
                _capture(tensor, self.graph)

    @property
    def control_inputs(self) -> tuple[Operation, ...]:
        """Operations that run before this one because a scope said so."""
        return tuple(each for each in self.scopes.after if each.graph is self.graph)

    @property
    def device(self) -> str:
        """The device it was placed on; empty for the host by default."""
        return "" if self.scopes.outside else self.scopes.device

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run it in a session, or in the default one."""
        (session or default_session()).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


def _capture(tensor: Tensor, graph: Graph) -> None:
    around = graph.outer
    while around is not None and around is not tensor.graph:
        around = around.outer
    if around is None and tensor.graph.outer is not None and tensor.graph.root is graph.root:
        raise InputError(
            f"{tensor.name} was made inside a loop or a branch that runs on the device, and is used outside it",
            expected="values that come out of it as variables: an appended list or an attribute does not",
            todo="give a variable its first value before the loop or branch, and a new one inside",
        )
    if around is None:
        raise InputError(f"{tensor.name} belongs to another graph", todo="build both in the same tf.Graph")
    if tensor not in graph.captures:
        graph.captures.append(tensor)


class NoValueError(WorkbenchError, AttributeError):
    """What only an array has, asked of a tensor that gets its value when a program runs."""


@with_operators
class Tensor(keras.KerasTensor):  # type: ignore[misc]
    """A value of a graph: `shape`, `dtype` and the operation that makes it. Shape None: nobody knows its rank."""

    __array_ufunc__ = None  # NumPy leaves an operator with one of its values on the left to the tensor's own

    @property
    def __jax_array__(self) -> Any:
        """None: so does JAX, which else asks for an array and gets the error of Keras' tensors."""
        raise AttributeError("a tensor of a graph has no array")

    def __init__(self, op: Operation, index: int, shape: Sequence[int | None] | None, dtype: str) -> None:
        super().__init__(shape=tuple(shape or ()), dtype=str(dtype), name=f"{op.name}:{index}")
        if shape is None:
            self._shape = UNKNOWN
        self.op = op
        self.value_index = index

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""
        return self.op.graph

    @property
    def dtype(self) -> DType:
        """Its type, as in `tf.float32`."""
        return as_dtype(self._dtype)

    @property
    def device(self) -> str:
        """Where it is made."""
        return self.op.device

    def get_shape(self) -> Any:
        """The static shape."""
        return UNKNOWN if self.shape is UNKNOWN else TensorShape(self.shape)

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Its value in a session, or in the default one."""
        return (session or default_session()).run(self, feed_dict)

    def __repr__(self) -> str:
        sizes = () if self.shape is UNKNOWN else self.shape
        text = ", ".join("?" if size is None else str(size) for size in sizes)
        shape = "<unknown>" if self.shape is UNKNOWN else f"({text})"
        return f'<tf.Tensor "{self.name}" shape={shape} dtype={self._dtype}>'

    def __getattr__(self, name: str) -> Any:
        if name == "numpy":
            raise NoValueError(
                f"{self.name} has no numpy(): it gets its value when the program runs",
                todo="return it from the function, or evaluate it in a session",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __bool__(self) -> bool:
        raise KindError(
            f"{self.name} has no value while the graph is built, so Python cannot branch on it. "
            "To mend it: use tf.cond, tf.where or ipu.loops.while_loop."
        )

    def __iter__(self) -> Iterator[Any]:
        if self.shape is UNKNOWN or not self.shape or self.shape[0] is None:
            raise KindError(f"{self.name} has no known first dimension to iterate over")
        return (self[index] for index in range(self.shape[0]))

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


@dataclass  # without slots, which all threads would share
class _State(threading.local):
    """Graphs, scopes and sessions in force in a thread, innermost last."""

    graphs: list[Graph] = field(default_factory=lambda: [Graph()])
    scopes: list[Scopes] = field(default_factory=lambda: [Scopes()])
    sessions: list[Any] = field(default_factory=list)


_STATE = _State()


def get_default_graph() -> Graph:
    """The graph operations are added to."""
    return _STATE.graphs[-1]


def next_number() -> int:
    """A number above those of all operations made so far, and below those of all that follow."""
    return next(_numbers)


def reset_default_graph() -> None:
    """Begin a new outermost graph."""
    if len(_STATE.graphs) > 1:
        raise InputError("the default graph cannot be reset inside `with graph.as_default()`")
    _STATE.graphs[:] = [Graph()]
    _STATE.scopes[:] = [Scopes()]


def building() -> bool:
    """Whether a body is being traced, or operations are asked for the IPU: what is called now is recorded."""
    return get_default_graph().outer is not None or bool(current_scopes().device)


def in_function() -> bool:
    """Whether the body of a `tf.function` is being recorded."""
    return bool(get_default_graph().root.function)


@contextmanager
def outside_graphs() -> Iterator[None]:
    """What is called inside is computed at once, though a graph is being built around it."""
    with Graph().as_default():
        _STATE.scopes.append(Scopes())
        try:
            yield
        finally:
            _STATE.scopes.pop()


def current_scopes() -> Scopes:
    """What surrounds an operation made now."""
    return _STATE.scopes[-1]


@contextmanager
def scoped(**changes: Any) -> Iterator[Scopes]:
    """Operations made inside have these scopes changed."""
    stack = _STATE.scopes
    depth = len(stack)
    made = replace(stack[-1], **changes)
    stack.append(made)
    try:
        yield made
    finally:
        del stack[depth:]


def amend(**changes: Any) -> None:
    """Change the scopes in force from here on, until the scope around ends."""
    _STATE.scopes[-1] = replace(_STATE.scopes[-1], **changes)


def default_session() -> Any:
    """The innermost session in a `with`."""
    if not _STATE.sessions:
        raise InputError("session is None, and there is no default session", todo="use `with tf.Session():`")
    return _STATE.sessions[-1]


@contextmanager
def as_default_session(session: Any) -> Iterator[Any]:
    """Make a session the default one."""
    _STATE.sessions.append(session)
    try:
        yield session
    finally:
        _STATE.sessions.remove(session)


def record(
    kind: str,
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    **kwargs: Any,
) -> Any:
    """Record a function of values as one operation; its result has the structure the function's has.

    Tensors anywhere in `args` and `kwargs` are its inputs; everything else is kept as it is.
    """
    leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    inputs = [leaves[place] for place in places]

    def rebuilt(values: Sequence[Any]) -> Any:
        filled = list(leaves)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        given, named = jax.tree_util.tree_unflatten(tree, filled)
        return function(*given, **named)

    given = [(None if each.shape is UNKNOWN else each.shape, each._dtype) for each in inputs]
    held = [size for leaf in leaves if not isinstance(leaf, Tensor) for size in np.shape(leaf)]
    types, structure = types_of(lambda *values: rebuilt(values), given, held)
    operation = Operation(
        kind,
        inputs,
        types,
        lambda run, values: jax.tree_util.tree_leaves(rebuilt(values)),
        name=name,
    )
    return jax.tree_util.tree_unflatten(structure, operation.outputs)


def no_value(run: Running, values: Sequence[Any]) -> Sequence[Any]:
    """For an operation whose results are always given: arguments of a function, values that a loop carries."""
    raise AssertionError("an argument of a body was never given")


def refuse_passing(first: Tensor) -> None:
    """An `InputError` for a variable's first value, made before a program runs, of what has a value only while it does:
    a function's arguments, a loop's values."""
    if any(each.compute is no_value for each in _ancestors(first)):
        raise InputError(
            f"initial_value is {first}, which has a value only while what is recorded runs",
            expected="a value that is known before, or a function that gives it",
            todo="make the variable outside the function or loop, and assign the tensor to it inside",
        )


def _ancestors(tensor: Tensor) -> Iterator[Operation]:
    """The operations that a tensor is computed by, each once."""
    pending, seen = [tensor.op], {tensor.op}
    while pending:
        operation = pending.pop()
        yield operation
        new = {each.op for each in operation.inputs} - seen
        seen |= new
        pending += new


def known_shape(tensor: Tensor) -> tuple[int, ...]:
    """The static shape; an `InputError` when a dimension is not known."""
    if tensor.shape is UNKNOWN or any(size is None for size in tensor.shape):
        raise InputError(
            f"{tensor.name} has shape {UNKNOWN if tensor.shape is UNKNOWN else tuple(tensor.shape)}",
            expected="every dimension known: XLA compiles for fixed shapes",
        )
    return tuple(int(size) for size in tensor.shape)


__all__ = [
    "NO_EFFECTS",
    "Effects",
    "Graph",
    "Operation",
    "Running",
    "Scopes",
    "Tensor",
    "amend",
    "as_default_session",
    "building",
    "current_scopes",
    "default_session",
    "get_default_graph",
    "in_function",
    "known_shape",
    "next_number",
    "no_value",
    "outside_graphs",
    "record",
    "reset_default_graph",
    "scoped",
]
