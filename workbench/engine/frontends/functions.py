"""JAX-traceable functions become a `Source`; scopes opened with `jax.named_scope` are their layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from workbench.base.dtypes import dtype_name
from workbench.base.text import short
from workbench.engine.frontends.describe.arguments import leaves_as
from workbench.engine.frontends.describe.checks import BIND, check_dtype, data_dtype, sizes_of, traced_control_flow
from workbench.engine.frontends.describe.replicas import axis_env, check_replicas, meta
from workbench.engine.frontends.describe.source import ArraySpec, Source
from workbench.engine.frontends.numbers.replicated import for_all
from workbench.engine.frontends.trace.donated import crossing_again, donated_arguments, donations, said
from workbench.engine.frontends.trace.jaxpr import graph_from_jaxpr
from workbench.engine.frontends.trace.staged_calls import whole_batch
from workbench.engine.graph import Input, Output
from workbench.engine.graph.execution import RETURNED, SAMPLES
from workbench.errors import InputError


def _label(path: Any) -> str:
    """`args[0]['w']` as users write it, from the path of a leaf among the arguments."""
    return f"args{jax.tree_util.keystr(path)}"


def _leaves(inputs: tuple[Any, ...]) -> tuple[list[tuple[Any, Any]], Any]:
    """The leaves among the arguments, each with its path, and their tree."""
    try:
        flat, tree = jax.tree_util.tree_flatten_with_path(inputs)
    except ValueError as error:  # JAX sorts the names in a dictionary
        raise InputError(
            f"the inputs cannot be put in an order: {error.__cause__ or error}",
            expected="in each dictionary, names that can be sorted, as texts alone can",
            todo="give its arrays by names of one kind, or in a list",
        ) from None
    return flat, tree


def _spec(name: str, leaf: Any) -> ArraySpec:
    array = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else None
    if array is None:
        if not isinstance(leaf, (bool, int, float)):
            kind = np.asarray(leaf).dtype
            _check_registered(name, leaf, kind)
            check_dtype(name, kind)
        array = _as_array(name, leaf)
    given = data_dtype(name, array)
    dtype = given if dtype_name(given) == "key" else jax.dtypes.canonicalize_dtype(given)
    return ArraySpec(name=name, shape=sizes_of(name, array.shape), dtype=dtype_name(dtype))


def _check_registered(name: str, leaf: Any, kind: np.dtype[Any]) -> None:
    """What is neither an array nor holds any that JAX knows of is refused by its class."""
    if kind == np.dtype(object):
        raise InputError(
            f"{name} is a {type(leaf).__name__}",
            expected="an array, a number, or these in tuples, lists, dictionaries and classes registered with JAX",
            todo=f"register the class by jax.tree_util.register_dataclass, or {BIND}",
        )


def _as_array(name: str, number: Any) -> jax.Array:
    try:
        return jax.numpy.asarray(number)
    except OverflowError:
        wide = jax.config.jax_enable_x64
        raise InputError(
            f"{name} is {number!r}",
            expected=f"a number that {'64' if wide else '32'} bits hold",
            todo="give it as a float" if wide else "give it as a float, or switch jax_enable_x64 on",
        ) from None


def _type(spec: ArraySpec, leaf: Any) -> jax.ShapeDtypeStruct:
    """The type an argument is traced with; keys have one for each generator, and what is made of a Python number and
    of an array has the array's."""
    weak = getattr(leaf, "weak_type", isinstance(leaf, int | float) and not isinstance(leaf, bool | np.generic))
    return jax.ShapeDtypeStruct(spec.shape, leaf.dtype if spec.dtype == "key" else spec.dtype, weak_type=bool(weak))


def _result(value: Any) -> Any:
    """A result, which has to be an array or a number."""
    known = (
        isinstance(value, bool | int | float | complex) or hasattr(value, "dtype") or hasattr(value, "__jax_array__")
    )
    if known and not (isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "OUS"):
        return value
    raise InputError(
        f"the function returns {short(value)}",
        expected="arrays and numbers, in lists, tuples and dicts",
        todo="leave it out of the results",
    )


def _output(name: str, over: int | None) -> Output:
    """A result, which is written over a donated argument, or leaves for the host."""
    return Output(name=name) if over is None else Output(name=name, role="update", updates=over)


def _traced(fn: Callable[..., Any], tree: Any, types: Sequence[jax.ShapeDtypeStruct], replicas: int) -> tuple[Any, Any]:
    """The jaxpr of `fn` called with leaves of these types in `tree`, and the tree of its results."""
    structure: list[Any] = []

    def flattened(*leaves: Any) -> list[Any]:
        results, result_tree = jax.tree_util.tree_flatten(fn(*jax.tree_util.tree_unflatten(tree, leaves)))
        structure.append(result_tree)
        return [_result(each) for each in results]

    with traced_control_flow():
        return jax.make_jaxpr(flattened, axis_env=axis_env(replicas))(*types), structure[0]


def trace_function(
    fn: Callable[..., Any], *inputs: Any, name: str | None = None, batch_size: int | None = None, replicas: int = 1
) -> Source:
    """Trace `fn(*inputs)`; inputs are arrays, numbers or `jax.ShapeDtypeStruct`s, in any pytree.

    What a jitted `fn` donates, and gives back anew, is state of the chip. Every replica has the same of it,
    and a run that finds another is refused.
    `batch_size`: as how many samples a call of one replica counts, if anybody says so; the inputs fix the shapes.

    Errors: `InputError` for complex or string inputs, for float64 as a type (numbers of it are float32), for Python
    control flow on traced values, and for a function that returns no array.
    """
    flat, tree = _leaves(inputs)
    specs = tuple(_spec(_label(path), leaf) for path, leaf in flat)
    types = [_type(spec, leaf) for spec, (_, leaf) in zip(specs, flat, strict=True)]
    closed, results = _traced(fn, tree, types, check_replicas(replicas))
    count = len(closed.jaxpr.outvars)
    label = name or str(getattr(fn, "__name__", "function"))
    if not count:
        raise InputError(
            f"the function {label!r} returns no array", expected="one array or more", todo="return what it computes"
        )
    over = donations(closed.jaxpr)
    kept, returned = frozenset(over.values()), crossing_again(closed.jaxpr, over)
    graph = graph_from_jaxpr(
        closed,
        [Input(name=spec.name, role="state" if number in kept else "input") for number, spec in enumerate(specs)],
        [_output("output" if count == 1 else f"output_{number}", over.get(number)) for number in range(count)],
        name=label,
        batch_size=batch_size or 1,
        mode="function",
        meta=meta(replicas)
        | ({RETURNED: returned} if returned else {})
        | ({SAMPLES: batch_size * replicas} if batch_size else {}),
        assumptions=said([spec.name for spec in specs], sorted(kept), donated_arguments(closed.jaxpr)),
    )
    compiled = jax.jit(jax.extend.core.jaxpr_as_fun(closed))

    def compute(values: Sequence[Any]) -> Sequence[Any]:
        return compiled(*values)  # type: ignore[no-any-return]

    named = replicas > 1 or bool(closed.effects)  # an axis that is named, of one replica too, has to be there
    return Source(
        graph=graph,
        specs=tuple(
            whole_batch(spec, replicas) if spec.shape and number not in kept else spec
            for number, spec in enumerate(specs)
        ),
        jaxpr=closed,
        compute=for_all(compute, graph.inputs, graph.outputs, replicas, one_value=True) if named else compute,
        variables=(None,) * len(specs),
        unpack=lambda values: leaves_as(tree, values),
        pack=lambda values: jax.tree_util.tree_unflatten(results, list(values)),
    )
