"""popops unary, binary and scalar-broadcast codelets: `op` upper-case as in PopLibs, `type` of the operands.

1D vertices take `n` elements and are multi-vertices; 2D vertices take `rows` (elements of each row) and run in
one worker. A comparison's `type` is that of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import alike

_ASSEMBLED = {"ADD", "SUBTRACT", "MULTIPLY"}
_LOOP_TEXT = "loops * (op cycles + loads, stores and loop control where the op's table row leaves them out)"


def _assembled(op: str, dtype: str) -> bool:
    return op in _ASSEMBLED and dtype in ("float", "half")


def unary_loop_cycles(op: str, dtype: str, elements: int, *, in_place: bool = False, data_path_bytes: int) -> int:
    """Worker cycles of the inner loops over `elements` of a unary operation (four of overhead per vector)."""
    row = p.op_cost("unary_in_place" if in_place else "unary", op, dtype, data_path_bytes)
    if row.open_loop:
        return p.loop_cycles(elements, row.elements, row.cycles + 4)
    return ceil_div(elements, row.elements) * row.cycles


def binary_loop_cycles(op: str, dtype: str, elements: int, *, in_place: bool = False, data_path_bytes: int) -> int:
    """Worker cycles of the inner loops over `elements` of a binary operation (two of overhead, or five)."""
    row = p.op_cost("binary_in_place" if in_place else "binary", op, dtype, data_path_bytes)
    overhead = (2 if _assembled(op, dtype) else 5) if row.open_loop else 0
    return ceil_div(elements, row.elements) * (row.cycles + overhead)


def _broadcast_loop_cycles(
    op: str, dtype: str, elements: int, in_place: bool, uniform: bool, *, data_path_bytes: int
) -> int:
    row = p.op_cost("broadcast_in_place" if in_place else "broadcast", op, dtype, data_path_bytes)
    overhead = (1 if uniform and _assembled(op, dtype) else 4) if row.open_loop else 0
    return ceil_div(elements, row.elements) * (row.cycles + overhead)


def binary_worker_overhead_cycles(dtype: str) -> int:
    """Worker cycles of BinaryOp1D outside its loops."""
    return 29 if dtype == "float" else 26


def unary_worker_overhead_cycles(op: str) -> int:
    """Worker cycles of UnaryOp1D outside its loops."""
    return 33 if op == "EXPONENT" else 17


def _flops_1d(*, op: str, type: str, n: int) -> int:
    return p.op_flops(op, type, n)


def _flops_2d(*, op: str, type: str, rows: Sequence[int]) -> int:
    return p.op_flops(op, type, p.total(rows))


def _assembly_or_compiled(assembly_bytes: int, compiled_bytes: int) -> Callable[..., int]:
    """Code of the vertices whose ADD, SUBTRACT and MULTIPLY of floats and halves are assembly."""

    def code_bytes(*, op: str, type: str, **_: object) -> int:
        return assembly_bytes if _assembled(op, type) else compiled_bytes

    return code_bytes


def _unary_code_bytes(*, op: str, type: str, **_: object) -> int:
    """Assembly sizes, 4 B an instruction; library functions (SIN, TAN, ASIN, ...) bring a polynomial of their own."""
    if op in ("SIN", "COS", "TAN", "ASIN", "LOGARITHM_ONE_PLUS", "EXPONENT_MINUS_ONE") and type == "float":
        return 900
    if op in ("TANH", "SIGMOID", "RELU", "GELU_ERF"):
        return 284 if type == "half" else 244
    return 208


_binary_code_1d = _assembly_or_compiled(340, 300)
_binary_code_2d = _assembly_or_compiled(160, 280)
_broadcast_code_1d = _assembly_or_compiled(300, 280)
_broadcast_code_2d = _assembly_or_compiled(180, 280)


@codelet(
    "popops::UnaryOp1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:1543",
    formula=f"workers * (17, or 33 for EXPONENT, + {_LOOP_TEXT}) + 9 + 11, each worker ceil(n / workers) elements",
    state_bytes=lambda **_: p.POINTER + p.SPAN,
    code_bytes=_unary_code_bytes,
    flops=_flops_1d,
    operands=alike,
)
def unary_op_1d(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `out = op(in)` over n elements."""
    loops = unary_loop_cycles(op, type, ceil_div(n, workers), data_path_bytes=data_path_bytes)
    return p.multi(unary_worker_overhead_cycles(op) + loops, workers) + 9


@codelet(
    "popops::UnaryOp1DInPlace",
    kind="multi",
    source=f"{p.ESTIMATORS}:1575",
    formula=f"workers * (55 + {_LOOP_TEXT}) + 9 + 11, each worker ceil(n / workers) elements",
    state_bytes=lambda **_: p.SPAN,
    code_bytes=_unary_code_bytes,
    flops=_flops_1d,
    operands=alike,
)
def unary_op_1d_in_place(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `inOut = op(inOut)` over n elements."""
    return (
        p.multi(
            55 + unary_loop_cycles(op, type, ceil_div(n, workers), in_place=True, data_path_bytes=data_path_bytes),
            workers,
        )
        + 9
    )


@codelet(
    "popops::UnaryOp2D",
    kind="worker",
    source=f"{p.ESTIMATORS}:1526",
    formula=f"20 + per row: {_LOOP_TEXT}",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.POINTER, p.SPAN),
    code_bytes=_unary_code_bytes,
    flops=_flops_2d,
    operands=alike,
)
def unary_op_2d(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `out[i] = op(in[i])` over rows of the given elements."""
    return 20 + sum(unary_loop_cycles(op, type, n, data_path_bytes=data_path_bytes) for n in rows)


@codelet(
    "popops::UnaryOp2DInPlace",
    kind="worker",
    source=f"{p.ESTIMATORS}:1561",
    formula=f"20 + per row: {_LOOP_TEXT}",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN),
    code_bytes=_unary_code_bytes,
    flops=_flops_2d,
    operands=alike,
)
def unary_op_2d_in_place(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `inOut[i] = op(inOut[i])` over rows of the given elements."""
    return 20 + sum(unary_loop_cycles(op, type, n, in_place=True, data_path_bytes=data_path_bytes) for n in rows)


@codelet(
    "popops::BinaryOp1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:1616",
    formula=f"workers * (29 float or 26 + {_LOOP_TEXT}) + 11, each worker ceil(n / workers) elements",
    state_bytes=lambda **_: 2 * p.POINTER + p.SPAN,
    code_bytes=_binary_code_1d,
    flops=_flops_1d,
    operands=alike,
)
def binary_op_1d(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `out = in1 op in2` over n elements."""
    loops = binary_loop_cycles(op, type, ceil_div(n, workers), data_path_bytes=data_path_bytes)
    return p.multi(binary_worker_overhead_cycles(type) + loops, workers)


@codelet(
    "popops::BinaryOp1DInPlace",
    kind="multi",
    source=f"{p.ESTIMATORS}:1510",
    formula=f"workers * (58 + {_LOOP_TEXT}) + 11, each worker ceil(n / workers) elements",
    state_bytes=lambda **_: p.SPAN + p.POINTER,
    code_bytes=_binary_code_1d,
    flops=_flops_1d,
    operands=alike,
)
def binary_op_1d_in_place(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `in1Out = in1Out op in2` over n elements."""
    return p.multi(
        58 + binary_loop_cycles(op, type, ceil_div(n, workers), in_place=True, data_path_bytes=data_path_bytes),
        workers,
    )


@codelet(
    "popops::BinaryOp2D",
    kind="worker",
    source=f"{p.ESTIMATORS}:1593",
    formula=f"5 + per row: {_LOOP_TEXT}",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.POINTER, p.POINTER, p.SPAN),
    code_bytes=_binary_code_2d,
    flops=_flops_2d,
    operands=alike,
)
def binary_op_2d(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `out[i] = in1[i] op in2[i]` over rows of the given elements."""
    return 5 + sum(binary_loop_cycles(op, type, n, data_path_bytes=data_path_bytes) for n in rows)


@codelet(
    "popops::BinaryOp2DInPlace",
    kind="worker",
    source=f"{p.ESTIMATORS}:1635",
    formula=f"20 + per row: {_LOOP_TEXT}",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER),
    code_bytes=_binary_code_2d,
    flops=_flops_2d,
    operands=alike,
)
def binary_op_2d_in_place(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `in1Out[i] = in1Out[i] op in2[i]` over rows of the given elements."""
    return 20 + sum(binary_loop_cycles(op, type, n, in_place=True, data_path_bytes=data_path_bytes) for n in rows)


@codelet(
    "popops::BroadcastScalar1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:126",
    formula=f"workers * (20 + {_LOOP_TEXT}) + 11, each worker ceil(n / workers) elements",
    state_bytes=lambda **_: p.SPAN + 2 * p.POINTER,
    code_bytes=_broadcast_code_1d,
    flops=_flops_1d,
)
def broadcast_scalar_1d(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `out = data op scalar` over n elements."""
    return p.multi(
        20 + _broadcast_loop_cycles(op, type, ceil_div(n, workers), False, True, data_path_bytes=data_path_bytes),
        workers,
    )


@codelet(
    "popops::BroadcastScalar1DInPlace",
    kind="multi",
    source=f"{p.ESTIMATORS}:126",
    formula=f"workers * (20 + {_LOOP_TEXT}) + 11, each worker ceil(n / workers) elements",
    state_bytes=lambda **_: p.SPAN + p.POINTER,
    code_bytes=_broadcast_code_1d,
    flops=_flops_1d,
)
def broadcast_scalar_1d_in_place(*, op: str, type: str, n: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of `data = data op scalar` over n elements."""
    return p.multi(
        20 + _broadcast_loop_cycles(op, type, ceil_div(n, workers), True, True, data_path_bytes=data_path_bytes),
        workers,
    )


def _broadcast_2d(
    op: str, dtype: str, rows: Sequence[int], in_place: bool, uniform: bool, *, data_path_bytes: int
) -> int:
    return 20 + sum(
        28 + _broadcast_loop_cycles(op, dtype, n, in_place, uniform, data_path_bytes=data_path_bytes) for n in rows
    )


_BROADCAST_2D_SOURCE = f"{p.ESTIMATORS}:304"
_BROADCAST_2D_FORMULA = f"20 + per row: 28 + {_LOOP_TEXT}"


@codelet(
    "popops::BroadcastScalar2DData",
    kind="worker",
    source=_BROADCAST_2D_SOURCE,
    formula=_BROADCAST_2D_FORMULA,
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER, scalars=p.POINTER),
    code_bytes=_broadcast_code_2d,
    flops=_flops_2d,
)
def broadcast_scalar_2d_data(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `out[i] = data[i] op scalar`, one scalar for all rows."""
    return _broadcast_2d(op, type, rows, in_place=False, uniform=True, data_path_bytes=data_path_bytes)


@codelet(
    "popops::BroadcastScalar2DDataInPlace",
    kind="worker",
    source=_BROADCAST_2D_SOURCE,
    formula=_BROADCAST_2D_FORMULA,
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, scalars=p.POINTER),
    code_bytes=_broadcast_code_2d,
    flops=_flops_2d,
)
def broadcast_scalar_2d_data_in_place(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `data[i] = data[i] op scalar`, one scalar for all rows."""
    return _broadcast_2d(op, type, rows, in_place=True, uniform=True, data_path_bytes=data_path_bytes)


@codelet(
    "popops::BroadcastScalar2D",
    kind="worker",
    source=_BROADCAST_2D_SOURCE,
    formula=_BROADCAST_2D_FORMULA,
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER, p.POINTER),
    code_bytes=_broadcast_code_2d,
    flops=_flops_2d,
)
def broadcast_scalar_2d(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `out[i] = data[i] op scalar[i]`, a scalar per row."""
    return _broadcast_2d(op, type, rows, in_place=False, uniform=False, data_path_bytes=data_path_bytes)


@codelet(
    "popops::BroadcastScalar2DInPlace",
    kind="worker",
    source=_BROADCAST_2D_SOURCE,
    formula=_BROADCAST_2D_FORMULA,
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER),
    code_bytes=_broadcast_code_2d,
    flops=_flops_2d,
)
def broadcast_scalar_2d_in_place(*, op: str, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `data[i] = data[i] op scalar[i]`, a scalar per row."""
    return _broadcast_2d(op, type, rows, in_place=True, uniform=False, data_path_bytes=data_path_bytes)
