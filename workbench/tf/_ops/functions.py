"""Operations made of functions: loops until a condition fails, and gradients of one's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from workbench.base.checked import called, checked
from workbench.base.text import short
from workbench.base.whole import MOST_EXACT, whole
from workbench.errors import InputError, KindError
from workbench.tf import _graph, _hooks
from workbench.tf._graph.convert import check_depth, is_symbolic, plain, symbolic
from workbench.tf._graph.in_models import of_model
from workbench.tf._graph.variables import Variable
from workbench.tf._ops.control import as_tensor


@checked
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: None = None,
    parallel_iterations: int = 10,
    back_prop: Literal[True] = True,
    swap_memory: Literal[False] = False,
    name: str | None = None,
    maximum_iterations: int | None = None,
    return_same_structure: bool = False,
) -> Any:
    """Run `body` while `cond` of the same values is true, as `ipu.loops.while_loop`, on a list of any structure.

    The last values, in the structure of the first; unless `return_same_structure`, a list of one is that one.
    Iterations follow one another, however many `parallel_iterations` allow, and shapes stay as they are.
    """
    whole("parallel_iterations", parallel_iterations, most=MOST_EXACT)
    if not isinstance(loop_vars, list | tuple) or not loop_vars:
        raise KindError(f"loop_vars is {short(loop_vars)}", expected="a list of the loop's first values")
    try:
        check_depth(loop_vars)
        flat, tree = jax.tree_util.tree_flatten(loop_vars, is_leaf=lambda each: isinstance(each, Variable))
        flat = [as_tensor(each) for each in flat]
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise KindError(f"loop_vars is {short(loop_vars)}: {error}", expected="tensors, or numbers") from None

    def holds(*values: Any) -> Any:
        return called("cond", cond, *tree.unflatten(values))

    def step(*values: Any) -> Any:
        made = called("body", body, *tree.unflatten(values))
        return jax.tree_util.tree_leaves(made)

    with _graph.scoped(names=(*_graph.current_scopes().names, *([name] if name else []))):
        last = _hooks.ipu.get().loops.while_loop(holds, step, flat, maximum_iterations=maximum_iterations)
    found = tree.unflatten(last if isinstance(last, list) else [last])
    return found[0] if len(found) == 1 and not return_same_structure else found


@checked
def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a gradient of its own: `f` of arrays gives its result, and a function from the gradients of the
    result to those of its arguments.

    Errors: `InputError` for tensors of a Keras model, which would not keep the gradient.
    """

    def computed(*values: Any) -> Any:
        made = called("f", f, *values)
        if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
            raise InputError(f"f returned {short(made)}", expected="its result, and the function of its gradient")
        result, gradient = made

        def pulled(given: Any) -> Any:
            found = gradient(*given) if isinstance(given, tuple | list) else gradient(given)
            each = found if isinstance(found, tuple | list) else (found,)
            return tuple(jnp.zeros_like(value) if one is None else one for one, value in zip(each, values, strict=True))

        return (tuple(result) if isinstance(result, list) else result), pulled

    differentiated = jax.custom_gradient(computed)

    @functools.wraps(f)
    def decorated(*args: Any) -> Any:
        if of_model(args):
            raise InputError(
                "a function with a gradient of its own meets a tensor of a Keras model, which would not keep it",
                todo="call it in the call of a layer of your own",
            )
        if any(is_symbolic(each) for each in args):
            return _graph.record("CustomGradient", differentiated, *(symbolic(each) for each in args))
        return differentiated(*(jnp.asarray(plain(each)) for each in args))

    return decorated


__all__ = ["custom_gradient", "while_loop"]
