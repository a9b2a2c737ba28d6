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

from workbench.base.checked import called, checked, checked_methods
from workbench.base.host import refuse_beyond_host
from workbench.base.text import short
from workbench.errors import InputError, KindError
from workbench.tf import _hooks
from workbench.tf._graph.dtypes import DType, as_dtype, check_has, cuts, given_type, holds_numbers
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
    refuse_passing,
    scoped,
)
from workbench.tf._graph.initializers import glorot_uniform_initializer
from workbench.tf._graph.operators import with_operators
from workbench.tf._graph.shapes import TensorShape, known_sizes

_SHORTER = {"float64": "float32", "int64": "int32"}  # numbers of Python, as TensorFlow types them
GLOBAL, TRAINABLE, LOCAL = "variables", "trainable_variables", "local_variables"
REGULARIZATION = "regularization_losses"


@with_operators
@checked_methods
class Variable:
    """A resource variable. In a graph, using it reads it and `assign` is an operation; elsewhere both happen at once.

    `initial_value`: an array, a tensor, or a function without arguments that gives one, of `shape` where that is said.
    `constraint`: none; clip what is assigned.
    Errors: `InputError` for a first value that is none, of another shape, or more than this machine can hold.
    """

    @checked
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
        constraint: None = None,
    ) -> None:
        if initial_value is None:
            raise InputError(
                "initial_value is None", expected="the variable's first value, or a function that gives it"
            )
        self._given = initial_value
        self._trainable = trainable
        self.role = role or ("parameter" if trainable else "state")
        self.deferred = building() if deferred is None else deferred
        self.graph: Graph = get_default_graph().root
        self.scopes = current_scopes()
        self.name = f"{self.graph.unique_name('/'.join((*self.scopes.names, name or 'Variable')))}:0"
        first = self._first_of_numbers()
        self._dtype = given_type(_SHORTER.get(str(first.dtype), first.dtype) if dtype is None else dtype)
        if not callable(initial_value) and cuts(first, str(self._dtype)):
            raise self._no_first(f"it cannot be converted to {self._dtype}")
        self.shape = tuple(int(size) for size in first.shape)
        if shape is not None and known_sizes(shape) != self.shape:
            raise InputError(f"shape is {short(shape)}", expected=f"{self.shape}, the shape of the first value")
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
                refuse_passing(given)
                return jax.ShapeDtypeStruct(known_shape(given), given._dtype)
            return _hooks.session.get()(graph=given.graph).run(given)
        if callable(given):
            return jax.eval_shape(lambda: self._array(called("initial_value", given))) if abstract else given()
        return np.asarray(given) if not hasattr(given, "shape") else given

    def _first_of_numbers(self) -> Any:
        """Shape and type of the first value, which is an array of numbers or yes and no."""
        try:
            first = self._first(abstract=True)
        except (TypeError, ValueError, RecursionError) as error:
            if callable(self._given):  # theirs
                raise
            raise self._no_first(error) from None
        if not holds_numbers(first):
            raise self._no_first(f"it is of type {first.dtype}")
        return first

    def _array(self, value: Any) -> Any:
        try:
            return jnp.asarray(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._no_first(error) from None

    def _no_first(self, why: Any) -> InputError:
        return InputError(
            f"initial_value is {short(self._given)}, which is no first value of variable {self.name!r}: {why}",
            expected="numbers, an array, a tensor, or a function without arguments that gives one",
        )

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
        return _session(session).run(self)

    def held(self) -> Any:
        """The value kept between runs; an error before it was initialised."""
        if self.value_now is None:
            raise InputError(
                f"the variable {self.name} has no value yet",
                todo="run tf.global_variables_initializer() in the session first",
            )
        return self.value_now

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value at once, in every session: they share the values of a graph's variables."""
        if session is not None:
            _session(session)
        array = self._made(value)
        if array.shape != self.shape:
            raise InputError(
                f"value is {short(value)}, of shape {array.shape}", expected=f"{self.shape}, as {self.name}"
            )
        self.value_now = array

    def assign(
        self, value: Any, use_locking: bool | None = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Give it a new value. Gives the new value, or with `read_value=False` the operation.

        `use_locking` changes nothing, here and in the others: an update is one step of a program.
        """
        return self._update(
            "Assign", lambda old, new: jnp.broadcast_to(new, old.shape), "value", value, name, read_value
        )

    def assign_add(
        self, delta: Any, use_locking: bool | None = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to it."""
        return self._update("AssignAdd", lambda old, new: old + new, "delta", delta, name, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool | None = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from it."""
        return self._update("AssignSub", lambda old, new: old - new, "delta", delta, name, read_value)

    def _made(self, value: Any, word: str = "value") -> Any:
        """An array of its type; of arrays of objects and things that are no numbers, an error."""
        try:
            found = value if isinstance(value, jax.Array) else np.asarray(value)
            if np.dtype(found.dtype).kind not in "biufV":
                raise TypeError(f"it is of type {found.dtype}")
            check_has(found if hasattr(value, "dtype") else value, str(self._dtype))
            return jnp.asarray(found, str(self._dtype))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(
                f"{word} is {short(value)}, a value given to variable {self.name!r}: {error}",
                expected=f"numbers of shape {self.shape}, or one number",
            ) from None

    def _update(
        self, kind: str, change: Callable[[Any, Any], Any], word: str, value: Any, name: str | None, read_value: bool
    ) -> Any:
        if isinstance(value, Variable):
            value = value.read_value()
        if not isinstance(value, Tensor):
            value = self._fitting(self._made(value, word), word, value)
        elif cuts(value, str(self._dtype)):
            raise InputError(
                f"{word} is {short(value)}, which {self.name} of {self._dtype} would cut",
                todo=f"cut it yourself, tf.cast(x, tf.{self._dtype}), or make the variable one of {value.dtype}",
            )
        if not isinstance(value, Tensor) and not (self.deferred or building()):
            self.value_now = jnp.asarray(change(self.held(), value), str(self._dtype))
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
        return operation.outputs[0] if read_value else operation

    def _fitting(self, made: Any, word: str, value: Any) -> Any:
        """What is one number, or broadcasts to the variable's shape."""
        try:
            fits = np.broadcast_shapes(made.shape, self.shape) == self.shape
        except ValueError:
            fits = False
        if not fits:
            raise InputError(
                f"{word} is {short(value)}, a value of shape {made.shape} that {self.name} was assigned",
                expected=f"shape {self.shape}",
            )
        return made

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self._dtype}>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.held(), dtype)

    __hash__ = object.__hash__


def _placed(old: Any, new: Any) -> Any:
    return jnp.broadcast_to(new, old.shape)


def _session(session: Any) -> Any:
    """A session, the default one where none is given."""
    found = default_session() if session is None else session
    kind: Any = _hooks.session.get()
    if not isinstance(found, kind):
        raise KindError(f"session is {short(session)}", expected="a tf.Session, or None for the default one")
    return found


@dataclass(slots=True)
class VariableScope:
    """A scope of variable names. `reuse`: None makes variables, True finds them, `AUTO_REUSE` does what is needed."""

    name: str = ""
    reuse: Any = None
    use_resource: bool = True
    initializer: Any = None
    dtype: Any = "float32"
    regularizer: Any = None
    custom: Any = None
    original_name_scope: str = field(default="")

    def reuse_variables(self) -> None:
        """Find variables from here on."""
        self.reuse = True

    @checked
    def set_use_resource(self, use_resource: bool) -> None:
        """What variables made from here on say of themselves; they are resources either way."""
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
@checked
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Callable[..., Any] | None = None,
    reuse: bool | str | None = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
) -> Iterator[VariableScope]:
    """Variables and operations made inside carry this name; see `get_variable`.

    `initializer`, `regularizer`, `dtype`, `custom_getter`: what variables made inside have that are not told their own;
    a custom getter is called with the getter around it, the name and the arguments, and gives what is used instead.
    `values` are in the graph already. Errors: `InputError` for a scope without a name, or another `reuse` than True,
    False, None or `AUTO_REUSE`.
    """
    if name_or_scope is None and default_name is None:
        raise InputError("name_or_scope is None, and so is default_name", expected="the scope's name")
    if isinstance(reuse, str) and reuse != AUTO_REUSE:
        raise InputError(f"reuse is {short(reuse)}", expected="True, False, None or tf.AUTO_REUSE")
    refuse_strangers(values)
    outer = get_variable_scope()
    stack = get_default_graph().root.collections[_SCOPES]
    again = name_or_scope if isinstance(name_or_scope, VariableScope) else None
    shown = again.name if again else name_or_scope if name_or_scope is not None else str(default_name or "")
    name = again.name if again else "/".join(part for part in (outer.name, str(shown)) if part)
    held = again or outer
    made = VariableScope(
        name,
        (reuse or held.reuse) if again or reuse is None else reuse,
        held.use_resource if use_resource is None else use_resource,
        held.initializer if initializer is None else _initializer(initializer),
        outer.dtype if dtype is None else given_type(dtype),
    )
    made.regularizer = regularizer or held.regularizer
    made.custom = _getter(custom_getter, held.custom)
    stack.append(made)
    names = current_scopes().names
    inside = (*names, str(shown)) if shown and not again else names
    try:
        with scoped(names=inside):
            yield made
    finally:
        stack.remove(made)


def refuse_strangers(values: Any) -> None:
    """`values` of a scope are tensors and what can be made some: they have no further effect in one graph."""
    for each in () if values is None else values if isinstance(values, list | tuple) else [values]:
        if each is not None and not isinstance(
            each, Tensor | Variable | np.ndarray | np.generic | jax.Array | int | float
        ):
            raise KindError(f"values is {short(values)}", expected="a list of tensors")


def _initializer(given: Any) -> Any:
    """What gives first values: a function, or an array, a tensor or a number."""
    if given is None or callable(given) or isinstance(given, Tensor | Variable):
        return given
    if holds_numbers(given):
        return given
    raise InputError(
        f"initializer is {short(given)}",
        expected="one of tf's initializers, a function of a shape, an array or a tensor",
    )


def _getter(inner: Any, outer: Any) -> Any:
    """A custom getter inside another: it calls that one as its getter."""
    if inner is None or outer is None:
        return inner or outer

    def both(getter: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return called("custom_getter", inner, lambda *more, **others: outer(getter, *more, **others), *args, **named)

    return both


@checked
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[..., Any] | None = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: None = None,
    partitioner: None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: None = None,
) -> Any:
    """The variable of this name in the scope: made the first time, found when the scope reuses.

    `initializer`: a function of a shape (and dtype) or, without a shape, of nothing, an array, or None for Glorot's
    uniform. `regularizer`: a function of the variable; what it gives joins the collection "regularization_losses".
    `custom_getter(getter, name, ...)`: gives what is used instead. A name that exists in a
    scope that does not reuse, or does not in one that does, is a `ValueError`. Shapes are always validated, and
    variables neither cached, partitioned nor constrained: other values of these arguments are refused.
    """
    if not validate_shape:
        raise InputError("validate_shape is False", expected="True: XLA compiles for fixed shapes")
    scope = get_variable_scope()
    own = _getter(custom_getter, scope.custom)
    given = {
        "shape": None if shape is None else known_sizes(shape),
        "dtype": None if dtype is None else given_type(dtype),
        "initializer": _initializer(initializer),
        "regularizer": regularizer,
        "trainable": trainable,
        "collections": collections,
        "use_resource": use_resource,
    }
    if own is None:
        return _got(name, **given)
    if given["dtype"] is None:
        given["dtype"] = as_dtype(scope.dtype)
    return called("custom_getter", own, _got, name, **{**given, "trainable": trainable is not False})


def _got(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    use_resource: bool | None = None,
) -> Variable:
    """The variable itself, found or made: what a custom getter is given as its getter."""
    scope = get_variable_scope()
    graph = get_default_graph().root
    full = "/".join(part for part in (scope.name, name) if part)
    found = graph.variables.get(full)
    if found is not None:
        if scope.reuse is None or scope.reuse is False:
            raise InputError(
                f"Variable {full} already exists", todo="open its scope with reuse=tf.AUTO_REUSE, or give another name"
            )
        return _same(found, shape, full)
    if scope.reuse is True:
        raise InputError(f"Variable {full} does not exist", todo="make it before its scope reuses variables")
    given = scope.initializer if initializer is None else initializer
    constant = given is not None and not callable(given)
    as_it_is = constant or (shape is None and given is not None and not _asks_for_a_shape(given))
    # The value's own type, as TensorFlow's, where nobody says one.
    wanted = None if as_it_is and dtype is None else as_dtype(scope.dtype if dtype is None else dtype)
    with scoped(names=()):
        made = Variable(
            _constant(given, shape, full) if constant else _initial(given, shape, str(wanted)),
            trainable is not False,
            full,
            wanted,
            use_resource=scope.use_resource if use_resource is None else use_resource,
            deferred=True,
            collections=collections or (GLOBAL,),
        )
    graph.variables[full] = made
    regularize = regularizer or scope.regularizer
    if regularize is not None and made.trainable:
        graph.add_to_collection(REGULARIZATION, regularize(made))
    return made


def _same(found: Variable, shape: Any, name: str) -> Variable:
    if shape is not None and tuple(int(size) for size in shape) != found.shape:
        raise InputError(f"Variable {name} has shape {found.shape}, but shape {tuple(shape)} was asked for")
    return found


def _constant(value: Any, shape: Any, name: str) -> Any:
    """A first value that is an array, a tensor or numbers, whose shape is the variable's."""
    found = value if hasattr(value, "shape") else np.asarray(value)
    if shape is not None and tuple(int(size) for size in shape) != tuple(found.shape):
        raise InputError(
            f"Variable {name} has shape {tuple(shape)}, but its initializer has shape {tuple(found.shape)}: it is "
            f"{short(value)}",
            todo="give the initializer alone, or one of tf's initializers with the shape",
        )
    return found


def _initial(initializer: Any, shape: Any, dtype: str) -> Any:
    if initializer is None:
        initializer = glorot_uniform_initializer()
    if isinstance(initializer, type):
        made = initializer()
        if not callable(made):
            raise InputError(
                f"initializer is {short(initializer)}", expected="a class whose objects are called for values"
            )
        initializer = made
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
