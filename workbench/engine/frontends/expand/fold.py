"""What is known while tracing is computed while tracing: lengths, epsilons, comparisons of constants, and indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.engine.cost import Plain

_BINARY: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}
_UNARY: Mapping[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "not": np.logical_not,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
}
_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_and": np.all,
    "reduce_or": np.any,
}
_RUNNING: Mapping[str, np.ufunc] = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
}
_BITS: Mapping[str, Callable[..., Any]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}
_VIEWS: Mapping[str, Callable[[Any, Mapping[str, Any], tuple[int, ...]], Any]] = {
    "reshape": lambda value, params, shape: value.reshape(shape),
    "squeeze": lambda value, params, shape: value.reshape(shape),
    "expand_dims": lambda value, params, shape: value.reshape(shape),
    "transpose": lambda value, params, shape: value.transpose(params["permutation"]),
    "rev": lambda value, params, shape: np.flip(value, tuple(params["dimensions"])),
    "slice": lambda value, params, shape: value[_cut(params)],
    "broadcast_in_dim": lambda value, params, shape: _spread(value, params["broadcast_dimensions"], shape),
}
# As XLA divides integers: towards zero, the rest with the sign of the dividend.
_INTEGERS: Mapping[str, Callable[..., Any]] = {
    "div": lambda above, below: (above - np.fmod(above, below)) // below,
    "rem": np.fmod,
}
FOLDED_DTYPES = frozenset({"float32", "float16", "int32", "uint32", "bool"})
LARGEST_FOLDED_ARRAY = 16


def _cut(params: Mapping[str, Any]) -> tuple[slice, ...]:
    strides = params.get("strides") or (1,) * len(params["start_indices"])
    return tuple(map(slice, params["start_indices"], params["limit_indices"], strides))


def _spread(value: Any, axes: Sequence[int], shape: tuple[int, ...]) -> Any:
    seen = [1] * len(shape)
    for axis, size in zip(axes, value.shape, strict=True):
        seen[axis] = size
    return np.broadcast_to(value.reshape(seen), shape)


def _running(op: str, value: Any, params: Mapping[str, Any], dtype: str) -> Any:
    """What a running sum or the like comes to at each place of an axis, from the other end where it is reversed."""
    axis = params["axis"]
    seen = np.flip(value, axis) if params["reverse"] else value
    found = _RUNNING[op].accumulate(seen, axis, dtype=dtype)
    return np.flip(found, axis) if params["reverse"] else found


def _rows(value: Any, params: Mapping[str, Any]) -> Any:
    stretches = zip(params["firsts"], params["counts"], strict=True)
    return np.concatenate([value[first : first + count] for first, count in stretches])


def sorted_together(values: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """Arrays in the order of the first of them, the keys; equal ones stay as they were."""
    order = np.lexsort(values[: params["num_keys"]][::-1], axis=params["dimension"])
    return [np.take_along_axis(value, order, params["dimension"]) for value in values]


def evaluate(op: str, values: Sequence[Any], params: Mapping[str, Any], shape: tuple[int, ...], dtype: str) -> Any:
    """The value of an operation on known arrays, of any shape; None where nothing here computes it."""
    if op in _VIEWS:
        return _VIEWS[op](values[0], params, shape)
    if op == "constant":
        return params["value"]
    if op == "iota":
        return _spread(np.arange(shape[params["dimension"]]), (params["dimension"],), shape)
    if op == "concatenate":
        return np.concatenate(values, params["dimension"])
    if op in _RUNNING:
        return _running(op, values[0], params, dtype)
    if op == "known_rows":
        return _rows(values[0], params)
    if "int" in dtype and op in _BITS:
        return _BITS[op](*values)
    if op == "select_n" and values[0].dtype == bool:
        return np.where(values[0], values[-1], values[1])
    if op in _INTEGERS and "int" in dtype:
        return _INTEGERS[op](*values) if np.all(values[1]) else None
    return _evaluate(op, values, params, dtype)


def _evaluate(op: str, values: Sequence[Any], params: Mapping[str, Any], dtype: str) -> Any:
    if op == "convert_element_type":
        return values[0].astype(dtype)
    # Because of integers these take bits, which NumPy's logical operations do not.
    if op in _BINARY and not (op in ("and", "or") and dtype != "bool"):
        return _BINARY[op](*values)
    if op == "div":
        return values[0] / values[1] if dtype.startswith("float") and np.all(values[1] != 0) else None
    if op in _UNARY and (op != "not" or dtype == "bool"):
        return _UNARY[op](*values)
    if op == "clamp":
        return np.clip(values[1], values[0], values[2])
    if op == "select_n":
        return values[1 + int(values[0])]
    if op in _REDUCTIONS:
        return _REDUCTIONS[op](values[0], axis=tuple(params["axes"])).astype(dtype)
    return None


def fold(op: str, values: Sequence[Any], params: Mapping[str, Any], dtype: str) -> Plain:
    """The scalar result of an operation on known values, or None when it is left to the program."""
    if dtype not in FOLDED_DTYPES:
        return None
    with np.errstate(all="ignore"):
        found = _evaluate(op, values, params, dtype)
    if found is None or np.shape(found) != () or not np.all(np.isfinite(np.asarray(found, "float64"))):
        return None
    plain: Plain = np.asarray(found).astype(dtype).item()
    return plain
