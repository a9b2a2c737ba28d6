"""Variables that keep their value between runs of a session, in scopes of names."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from workbench.base.host import refuse_beyond_host
from workbench.errors import InputError
from workbench.tf import _hooks
from workbench.tf._graph.dtypes import DType, as_dtype
from workbench.tf._graph.graph import (
    Effects,
    Graph,
    Operation,
    Tensor,
    building,
    current_scopes,
    default_session,
    get_default_graph,
    known_shape,
    scoped,
)
from workbench.tf._graph.initializers import glorot_uniform_initializer
from workbench.tf._graph.shapes import TensorShape

_SHORTER = {"float64": "float32", "int64": "int32"}  # numbers of Python, as TensorFlow types them
GLOBAL, TRAINABLE, LOCAL = "variables", "trainable_variables", "local_variables"


class Variable:
    """A resource variable. In a graph, using it reads it and `assign` is an operation; elsewhere both happen at once.

    `initial_value`: an array, a tensor, or a function without arguments that gives one.
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        *,
        use_resource: bool = True,
        deferred: bool | None = None,
        role: str = "",
        collections: Sequence[str] = (),
        shape: Any = None,
    ) -> None:
        self._given = initial_value
        self._trainable = trainable
        self.role = role or ("parameter" if trainable else "state")
        self.deferred = building() if deferred is None else deferred
        self.graph: Graph = get_default_graph().root
        self.scopes = current_scopes()
        self.name = f"{self.graph.unique_name('/'.join((*self.scopes.names, name or 'Variable')))}:0"
        first = self._first(abstract=True)
        self._dtype = as_dtype(dtype or _SHORTER.get(str(first.dtype), first.dtype))
        self.shape = tuple(int(size) for size in first.shape)
        if not self.deferred:
            self._check_size()
        self.value_now: Any = None
        self._initializer: Operation | None = None
        self.resource = use_resource
        self.layer = self.handle.rpartition("/")[0]
        for key in (*(collections or (GLOBAL,)), *((TRAINABLE,) if trainable else ())):
            self.graph.add_to_collection(key, self)
        if not self.deferred:
            self.initialize()

    def _first(self, abstract: bool = False) -> Any:
        given = self._given
        if isinstance(given, Tensor):
            if abstract:
                return jax.ShapeDtypeStruct(known_shape(given), given._dtype)
            return _hooks.session.get()(graph=given.graph).run(given)
        if callable(given):
            return jax.eval_shape(lambda: jnp.asarray(given())) if abstract else given()
        return np.asarray(given) if not hasattr(given, "shape") else given

    def _check_size(self) -> None:
        size_bytes = math.prod(self.shape) * self._dtype.size
        refuse_beyond_host(f"the first value of variable {self.name!r} of shape {self.shape}", size_bytes)

    def initialize(self) -> None:
        """Give it its first value."""
        self._check_size()
        value = self._first()
        kept = np.asarray(value) if not isinstance(value, jax.Array) else value
        if kept.dtype == np.float64:
            kept = kept.astype(np.float32)
        self.value_now = jnp.asarray(kept, str(self._dtype))

    @property
    def dtype(self) -> DType:
        """Its type."""
        return self._dtype

    @property
    def trainable(self) -> bool:
        """Whether optimizers update it by default."""
        return self._trainable

    @property
    def op(self) -> Operation:
        """The operation that initialises it."""
        return self.initializer

    @property
    def device(self) -> str:
        """Where it was made."""
        return self.scopes.device

    @property
    def handle(self) -> str:
        """The name it is known by in files."""
        return self.name.partition(":")[0]

    @property
    def initializer(self) -> Operation:
        """The operation that gives it its first value, on the host."""
        if self._initializer is None:

            def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
                self.initialize()
                run.state.values[self] = self.value_now
                return ()

            with scoped(device="cpu", after=(), outside="", names=()):
                self._initializer = Operation(
                    "init",
                    (),
                    (),
                    compute,
                    name=f"{self.handle}/init",
                    graph=self.graph,
                    effects=Effects(queues=frozenset({self})),
                )
        return self._initializer

    def get_shape(self) -> Any:
        """The static shape."""
        return TensorShape(self.shape)

    def read_value(self) -> Any:
        """Its value: a tensor in a graph, an array elsewhere."""
        if not (self.deferred or building()):
            return self.value_now
        return Operation(
            "ReadVariable",
            (),
            [(self.shape, str(self._dtype))],
            lambda run, values: [run.state.read(self)],
            name=f"{self.handle}/read",
            effects=Effects(reads=frozenset({self})),
        ).outputs[0]

    value = read_value

    def initialized_value(self) -> Any:
        """Its first value."""
        return self._first()

    def numpy(self) -> np.ndarray[Any, Any]:
        """Its value as an array."""
        return np.asarray(self.held())

    def eval(self, session: Any = None) -> Any:
        """Its value in a session."""
        return (session or default_session()).run(self)

    def held(self) -> Any:
        """The value kept between runs; an error before it was initialised."""
        if self.value_now is None:
            raise InputError(
                f"the variable {self.name} has no value yet",
                todo="run tf.global_variables_initializer() in the session first",
            )
        return self.value_now

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value at once."""
        array = jnp.asarray(value, str(self._dtype))
        if array.shape != self.shape:
            raise InputError(f"{self.name} was given shape {array.shape}", expected=f"shape {self.shape}")
        self.value_now = array

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Give it a new value."""
        return self._update("Assign", lambda old, new: jnp.broadcast_to(new, old.shape), value, name)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to it."""
        return self._update("AssignAdd", lambda old, new: old + new, delta, name)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from it."""
        return self._update("AssignSub", lambda old, new: old - new, delta, name)

    def _update(self, kind: str, change: Callable[[Any, Any], Any], value: Any, name: str | None) -> Any:
        if isinstance(value, Variable):
            value = value.read_value()
        if not isinstance(value, Tensor) and not (self.deferred or building()):
            self.value_now = jnp.asarray(change(self.held(), jnp.asarray(value, str(self._dtype))), str(self._dtype))
            return self
        inputs = [value] if isinstance(value, Tensor) else []

        def compute(run: Any, values: Sequence[Any]) -> Sequence[Any]:
            new = change(run.state.read(self), jnp.asarray(values[0] if values else value, str(self._dtype)))
            if new.shape != self.shape:
                raise InputError(f"{self.name} was assigned shape {new.shape}", expected=f"shape {self.shape}")
            run.state.write(self, new)
            return [new]

        touched = frozenset({self})
        operation = Operation(
            kind,
            inputs,
            [(self.shape, str(self._dtype))],
            compute,
            name=name or f"{self.handle.rsplit('/', 1)[-1]}/{kind}",
            effects=Effects(reads=touched, writes=touched),
        )
        return operation.outputs[0]

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self._dtype}>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.held(), dtype)

    __hash__ = object.__hash__


@dataclass(slots=True)
class VariableScope:
    """A scope of variable names. `reuse`: None makes variables, True finds them, `AUTO_REUSE` does what is needed."""

    name: str = ""
    reuse: Any = None
    use_resource: bool = True
    initializer: Any = None
    dtype: Any = "float32"
    custom: Any = None
    original_name_scope: str = field(default="")

    def reuse_variables(self) -> None:
        """Find variables from here on."""
        self.reuse = True

    def set_use_resource(self, use_resource: bool) -> None:
        """Variables are resources either way."""
        self.use_resource = use_resource


AUTO_REUSE = "auto"
_SCOPES = "variable scope"


def get_variable_scope() -> VariableScope:
    """The scope in force."""
    graph = get_default_graph().root
    stack = graph.collections.setdefault(_SCOPES, [VariableScope()])
    found: VariableScope = stack[-1]
    return found


@contextmanager
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    custom_getter: Any = None,
) -> Iterator[VariableScope]:
    """Variables and operations made inside carry this name; see `get_variable`."""
    outer = get_variable_scope()
    stack = get_default_graph().root.collections[_SCOPES]
    if isinstance(name_or_scope, VariableScope):
        made = VariableScope(name_or_scope.name, reuse or name_or_scope.reuse, True, initializer, outer.dtype)
        shown = name_or_scope.name
    else:
        shown = name_or_scope if name_or_scope is not None else str(default_name or "")
        name = "/".join(part for part in (outer.name, shown) if part)
        kept = outer.reuse if reuse is None else reuse
        made = VariableScope(name, kept, True, initializer or outer.initializer, dtype or outer.dtype)
        made.custom = custom_getter or outer.custom
    stack.append(made)
    names = current_scopes().names
    inside = (*names, shown) if shown and not isinstance(name_or_scope, VariableScope) else names
    try:
        with scoped(names=inside):
            yield made
    finally:
        stack.remove(made)


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    use_resource: bool | None = None,
    **others: Any,
) -> Variable:
    """The variable of this name in the scope: made the first time, found when the scope reuses.

    `initializer`: a function of a shape (and dtype) or, without a shape, of nothing, an array, or None for Glorot's
    uniform. A name that exists in a
    scope that does not reuse, or does not in one that does, is a `ValueError`.
    """
    scope = get_variable_scope()
    graph = get_default_graph().root
    full = "/".join(part for part in (scope.name, name) if part)
    found = graph.variables.get(full)
    if found is not None:
        if scope.reuse is None or scope.reuse is False:
            raise ValueError(
                f"Variable {full} already exists. To mend it: open its scope with reuse=tf.AUTO_REUSE, "
                "or give another name."
            )
        return _same(found, shape, full)
    if scope.reuse is True:
        raise ValueError(f"Variable {full} does not exist. To mend it: make it before its scope reuses variables.")
    given = scope.initializer if initializer is None else initializer
    constant = given is not None and not callable(given)
    as_it_is = constant or (shape is None and given is not None and not _asks_for_a_shape(given))
    # The value's own type, as TensorFlow's, where nobody says one.
    wanted = None if as_it_is and dtype is None else as_dtype(dtype or scope.dtype)
    with scoped(names=()):
        made = Variable(
            _constant(given, shape, full) if constant else _initial(given, shape, str(wanted)),
            trainable is not False,
            full,
            wanted,
            deferred=True,
            collections=collections or (GLOBAL,),
        )
    graph.variables[full] = made
    return made


def _same(found: Variable, shape: Any, name: str) -> Variable:
    if shape is not None and tuple(int(size) for size in shape) != found.shape:
        raise ValueError(f"Variable {name} has shape {found.shape}, but shape {tuple(shape)} was asked for.")
    return found


def _constant(value: Any, shape: Any, name: str) -> Any:
    """A first value that is an array, a tensor or numbers, whose shape is the variable's."""
    found = value if hasattr(value, "shape") else np.asarray(value)
    if shape is not None and tuple(int(size) for size in shape) != tuple(found.shape):
        raise ValueError(
            f"Variable {name} has shape {tuple(shape)}, but its initializer has shape {tuple(found.shape)}. "
            "To mend it: give the initializer alone, or one of tf's initializers with the shape."
        )
    return found


def _initial(initializer: Any, shape: Any, dtype: str) -> Any:
    if initializer is None:
        initializer = glorot_uniform_initializer()
    if isinstance(initializer, type):
        initializer = initializer()
    if shape is None and not _asks_for_a_shape(initializer):
        return initializer
    size = tuple(int(each) for each in (shape or ()))
    return lambda: initializer(size, dtype=dtype)


def _asks_for_a_shape(initializer: Any) -> bool:
    """Whether it has to be given one; a function without arguments gives the first value as it is."""
    try:
        inspect.signature(initializer).bind()
    except (TypeError, ValueError):  # or does not say what it takes
        return True
    return False


__all__ = ["AUTO_REUSE", "Variable", "VariableScope", "get_variable", "get_variable_scope", "variable_scope"]
