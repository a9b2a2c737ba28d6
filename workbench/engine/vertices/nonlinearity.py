"""PopNN non-linearities and their gradients, for one region (all workers) and many (one worker)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.operands import alike
from workbench.engine.vertices.popops import vector_width
from workbench.errors import InputError

_ESTIMATORS = "poplibs@7eac0f26 lib/popnn/popnnCycleEstimators.cpp"
_SUPERVISOR = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Op:
    """Cycles of one element and of one 8-byte vector, (float, half), and floating-point operations per element."""

    scalar: tuple[int, int]
    vector: tuple[int, int]
    flops: int


# poplibs@7eac0f26 lib/popnn/PerformanceEstimation.hpp:18-92, popnnCycleEstimators.cpp:47-79
_FORWARD = {
    "RELU": _Op(scalar=(1, 1), vector=(1, 1), flops=1),
    "SIGMOID": _Op(scalar=(5, 2), vector=(10, 4), flops=1),
    "TANH": _Op(scalar=(5, 1), vector=(10, 2), flops=1),
    "GELU": _Op(scalar=(10, 5), vector=(10, 5), flops=8),
    "GELU_ERF": _Op(scalar=(30, 15), vector=(30, 15), flops=8),
    "SWISH": _Op(scalar=(6, 3), vector=(11, 5), flops=2),
}
_GRADIENT = {
    "RELU": _Op(scalar=(3, 3), vector=(3, 3), flops=1),
    "SIGMOID": _Op(scalar=(3, 3), vector=(3, 3), flops=2),
    "TANH": _Op(scalar=(3, 3), vector=(3, 3), flops=2),
    "GELU": _Op(scalar=(10, 5), vector=(10, 5), flops=15),
    "GELU_ERF": _Op(scalar=(30, 15), vector=(30, 15), flops=15),
    "SWISH": _Op(scalar=(10, 7), vector=(15, 9), flops=5),
}


def _op(table: dict[str, _Op], op: str) -> _Op:
    try:
        return table[op]
    except KeyError:
        raise InputError(f"unknown non-linearity {op!r}", expected="one of: " + ", ".join(table)) from None


def _cycles_of(table: dict[str, _Op], op: str, type: str) -> tuple[int, int]:
    found = _op(table, op)
    column = 0 if type == "float" else 1
    return found.scalar[column], found.vector[column]


def _vectors(type: str, n: int, *, data_path_bytes: int) -> tuple[int, int]:
    width = vector_width(type, data_path_bytes)
    return n // width, n % width


def _forward_1d(op: str, type: str, n: int, in_place: bool, workers: int, *, data_path_bytes: int) -> int:
    scalar, vector = _cycles_of(_FORWARD, op, type)
    vectors, rest = _vectors(type, n, data_path_bytes=data_path_bytes)
    share = ceil_div(vectors, workers)
    worker = 20 + int(in_place and op == "SWISH")
    if share:
        worker += 3 + 2 * scalar + (share - 1) * vector
    if type == "float":
        worker += 3 + (2 + scalar) * (rest & 1)
    else:
        worker += 4 + (2 + scalar) * (rest >> 1) + (3 + scalar) * (rest & 1)
    return _SUPERVISOR + workers * worker


_FORWARD_1D_FORMULA = (
    "9 + workers*(23|24 + 3 + 2*op + (ceil(n/v/workers) - 1)*op_vector + rests*(2|3 + op)); op: RELU 1, SIGMOID "
    "5|2, TANH 5|1,"
    " GELU 10|5, GELU_ERF 30|15, SWISH 6|3 (float|half)"
)


def _forward_flops(*, op: str, n: int, **_: object) -> int:
    return n * _op(_FORWARD, op).flops


def _code_1d(*, op: str, **_: object) -> int:
    return 544 + 140 if op.startswith("GELU") else 384 + 400 if op == "SWISH" else 400


@codelet(
    "popnn::NonLinearity1D",
    kind="multi",
    source=f"{_ESTIMATORS}:78",
    formula=_FORWARD_1D_FORMULA,
    state_bytes=lambda **_: 12,
    code_bytes=_code_1d,
    flops=_forward_flops,
    operands=alike,
)
def non_linearity_1d(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `op` on `n` elements, out of place."""
    return _forward_1d(op, type, n, in_place=False, workers=workers, data_path_bytes=data_path_bytes)


@codelet(
    "popnn::NonLinearity1DInPlace",
    kind="multi",
    source=f"{_ESTIMATORS}:78",
    formula=_FORWARD_1D_FORMULA + "; SWISH one more",
    state_bytes=lambda **_: 8,
    code_bytes=_code_1d,
    flops=_forward_flops,
    operands=alike,
)
def non_linearity_1d_in_place(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `op` on `n` elements, in place."""
    return _forward_1d(op, type, n, in_place=True, workers=workers, data_path_bytes=data_path_bytes)


def _forward_2d(op: str, type: str, rows: Sequence[int], in_place: bool, *, data_path_bytes: int) -> int:
    scalar, vector = _cycles_of(_FORWARD, op, type)
    cycles = 5 + (1 if in_place and op == "SWISH" else 9)
    for n in rows:
        vectors, rest = _vectors(type, n, data_path_bytes=data_path_bytes)
        cycles += 9 if type == "float" else 12
        if vectors:
            cycles += 3 + 2 * scalar + (vectors - 1) * vector
        if type == "float":
            cycles += 2 + (2 + scalar) * rest
        else:
            cycles += 4 + (2 + scalar) * (rest >> 1) + (3 + scalar) * (rest & 1)
        cycles += 1
    return cycles


_FORWARD_2D_FORMULA = "14 + sum over rows of (12|17 + 3 + 2*op + (n/v - 1)*op_vector + rests*(2|3 + op)), float|half"


def _forward_2d_flops(*, op: str, rows: Sequence[int], **_: object) -> int:
    return sum(rows) * _op(_FORWARD, op).flops


def _code_2d(*, op: str, **_: object) -> int:
    return 624 + 140 if op.startswith("GELU") else 400 + 400 if op == "SWISH" else 450


@codelet(
    "popnn::NonLinearity2D",
    kind="worker",
    source=f"{_ESTIMATORS}:212",
    formula=_FORWARD_2D_FORMULA,
    state_bytes=lambda *, rows, **_: 12 + 8 * len(rows),
    code_bytes=_code_2d,
    flops=_forward_2d_flops,
    operands=alike,
)
def non_linearity_2d(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `op` on regions of `rows` elements, out of place."""
    return _forward_2d(op, type, rows, in_place=False, data_path_bytes=data_path_bytes)


@codelet(
    "popnn::NonLinearity2DInPlace",
    kind="worker",
    source=f"{_ESTIMATORS}:212",
    formula=_FORWARD_2D_FORMULA + "; SWISH starts with 6",
    state_bytes=lambda *, rows, **_: 8 + 4 * len(rows),
    code_bytes=_code_2d,
    flops=_forward_2d_flops,
    operands=alike,
)
def non_linearity_2d_in_place(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `op` on regions of `rows` elements, in place."""
    return _forward_2d(op, type, rows, in_place=True, data_path_bytes=data_path_bytes)


def _gradient_code(base: int, swish: int, gelu: int, op: str) -> int:
    return gelu + 488 if op.startswith("GELU") else swish + 400 if op == "SWISH" else base


@codelet(
    "popnn::NonLinearityGrad1D",
    kind="multi",
    source=f"{_ESTIMATORS}:154",
    formula="9 + workers*(24|26 + 5 + (ceil(n/v/workers) - 1)*op_vector + rests*(op + 1|2|4)); op: RELU, "
    "SIGMOID, TANH 3,"
    " GELU 10|5, GELU_ERF 30|15, SWISH 10|7 (float|half)",
    state_bytes=lambda **_: 16,
    code_bytes=lambda *, op, **_: _gradient_code(468, 248, 384, op),
    flops=lambda *, op, n, **_: n * _op(_GRADIENT, op).flops,
    operands=alike,
)
def non_linearity_grad_1d(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of the gradient of `op` on `n` elements."""
    scalar, vector = _cycles_of(_GRADIENT, op, type)
    vectors, rest = _vectors(type, n, data_path_bytes=data_path_bytes)
    share = ceil_div(vectors, workers)
    worker = 20
    if share:
        worker += 5 + (share - 1) * vector
    if type == "float":
        worker += 4 + (scalar + 1) * rest
    else:
        worker += 6 + (scalar + 2) * (rest >> 1) + (scalar + 4) * (rest & 1)
    return _SUPERVISOR + workers * worker


@codelet(
    "popnn::NonLinearityGrad2D",
    kind="worker",
    source=f"{_ESTIMATORS}:281",
    formula="17 + sum over rows of (12|14 + 5 + (n/v - 1)*op_vector + rests*(op + 1|2|4)), float|half",
    state_bytes=lambda *, rows, **_: 16 + 12 * len(rows),
    code_bytes=lambda *, op, **_: _gradient_code(484, 304, 588, op),
    flops=lambda *, op, rows, **_: sum(rows) * _op(_GRADIENT, op).flops,
    operands=alike,
)
def non_linearity_grad_2d(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of the gradient of `op` on regions of `rows` elements."""
    scalar, vector = _cycles_of(_GRADIENT, op, type)
    cycles = 17
    for n in rows:
        vectors, rest = _vectors(type, n, data_path_bytes=data_path_bytes)
        cycles += 9 + (5 + (vectors - 1) * vector if vectors else 0)
        if type == "float":
            cycles += 2 + (1 + scalar) * rest
        else:
            cycles += 4 + (2 + scalar) * (rest >> 1) + (4 + scalar) * (rest & 1)
        cycles += 1
    return cycles
