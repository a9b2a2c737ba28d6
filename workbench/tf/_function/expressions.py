"""Expressions and built-in functions on tensors, as AutoGraph hands them over."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from workbench.base.text import short
from workbench.errors import InputError, KindError
from workbench.tf._function import lines
from workbench.tf._function.iteration import Enumerated, TensorRange, turns_of
from workbench.tf._function.statements import if_stmt
from workbench.tf._graph import known_shape
from workbench.tf._graph.convert import is_symbolic, symbolic
from workbench.tf._ops.control import as_tensor
from workbench.tf._ops.math import OPERATIONS

Lazy = Callable[[], Any]
_NONE = object()


def and_(first: Lazy, second: Lazy) -> Any:
    """`and`: of tensors both are computed."""
    given = first()
    return OPERATIONS["logical_and"](given, second()) if is_symbolic(given) else given and second()


def or_(first: Lazy, second: Lazy) -> Any:
    """`or`: of tensors both are computed."""
    given = first()
    return OPERATIONS["logical_or"](given, second()) if is_symbolic(given) else given or second()


def not_(value: Any) -> Any:
    """`not`."""
    return OPERATIONS["logical_not"](value) if is_symbolic(value) else not value


def eq(first: Any, second: Any) -> Any:
    """`==`: entry by entry for tensors."""
    if first is None or second is None or not (is_symbolic(first) or is_symbolic(second)):
        return first == second
    return OPERATIONS["equal"](first, second)


def not_eq(first: Any, second: Any) -> Any:
    """`!=`: entry by entry for tensors."""
    if first is None or second is None or not (is_symbolic(first) or is_symbolic(second)):
        return first != second
    return not_(eq(first, second))


def if_exp(cond: Any, if_true: Lazy, if_false: Lazy, expr_repr: str) -> Any:
    """`a if cond else b`."""
    if not is_symbolic(cond):
        return if_true() if cond else if_false()
    held: list[Any] = [None]

    def take(value: Lazy) -> Callable[[], None]:
        def taken() -> None:
            held[0] = value()

        return taken

    def put(state: Any) -> None:
        held[0] = state[0]

    if_stmt(cond, take(if_true), take(if_false), lambda: (held[0],), put, (expr_repr,), 1)
    return held[0]


def assert_stmt(expression: Any, message: Lazy) -> None:
    """`assert`, of what is known while the function is recorded."""
    if is_symbolic(expression):
        where = lines.here()
        raise InputError(
            f"assert of a tensor, which has no value while the function is recorded{f' ({where})' if where else ''}",
            todo="return it, and check it where the function was called",
        )
    assert expression, message()


def tensor_range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: Any = None) -> Any:
    """`tf.range`: of tensors, something to loop over."""
    ends = (0, start, delta) if limit is None else (start, limit, delta)
    if not any(is_symbolic(each) for each in ends):
        return OPERATIONS["range"](start, limit, delta, dtype, name=name)
    given = [symbolic(each) if is_symbolic(each) else each for each in ends]
    for each in given:
        if is_symbolic(each) and known_shape(as_tensor(each)) != ():
            raise KindError(f"tf.range({short(start)}, {short(limit)}, {short(delta)})", expected="one number each")
    return TensorRange(start=given[0], limit=given[1], delta=given[2], dtype=dtype)


def _range(start: Any, stop: Any = None, step: Any = 1) -> Any:
    if any(is_symbolic(each) for each in (start, stop, step)):
        return tensor_range(start, stop, step)
    return range(start) if stop is None else range(start, stop, step)


def _len(value: Any) -> Any:
    return known_shape(as_tensor(symbolic(value)))[0] if is_symbolic(value) else len(value)


def _int(value: Any = 0, *base: Any) -> Any:
    return OPERATIONS["cast"](value, "int32") if is_symbolic(value) else int(value, *base)


def _float(value: Any = 0.0) -> Any:
    return OPERATIONS["cast"](value, "float32") if is_symbolic(value) else float(value)


def _enumerate(iterable: Any, start: int = 0) -> Any:
    if turns_of(iterable) is None:
        return enumerate(iterable, start)
    return Enumerated(inner=iterable, start=start)


def _next(iterator: Any, default: Any = _NONE) -> Any:
    if isinstance(iterator, types.GeneratorType):
        where = lines.here()
        raise InputError(
            f"next() of a generator, which would be read once, while the function is recorded"
            f"{f' ({where})' if where else ''}",
            expected="an iterator over a tf.data.Dataset",
            todo="make tf.data.Dataset.from_generator(lambda: ...) of it and take iter(dataset)",
        )
    return next(iterator) if default is _NONE else next(iterator, default)


BUILTINS: dict[Any, Callable[..., Any]] = {
    range: _range,
    len: _len,
    int: _int,
    float: _float,
    enumerate: _enumerate,
    next: _next,
}
OPERATORS = {
    "and_": and_,
    "or_": or_,
    "not_": not_,
    "eq": eq,
    "not_eq": not_eq,
    "if_exp": if_exp,
    "assert_stmt": assert_stmt,
}

__all__ = ["BUILTINS", "OPERATORS", "tensor_range"]
