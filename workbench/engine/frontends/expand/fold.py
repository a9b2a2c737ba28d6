"""Scalars known while tracing are computed while tracing: lengths, epsilons and comparisons of constants."""

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
_UNARY: Mapping[str, Callable[..., Any]] = {"neg": np.negative, "abs": np.abs, "not": np.logical_not, "sqrt": np.sqrt}
_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
}
FOLDED_DTYPES = frozenset({"float32", "float16", "int32", "uint32", "bool"})
LARGEST_FOLDED_ARRAY = 16


def _evaluate(op: str, values: Sequence[Any], params: Mapping[str, Any], dtype: str) -> Any:
    if op == "convert_element_type":
        return values[0].astype(dtype)
    # Because of integers these take bits, which NumPy's logical operations do not.
    if op in _BINARY and not (op in ("and", "or") and dtype != "bool"):
        return _BINARY[op](*values)
    if op == "div":
        return values[0] / values[1] if dtype.startswith("float") and values[1] != 0 else None
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
