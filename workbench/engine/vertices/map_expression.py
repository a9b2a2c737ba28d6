"""A fused elementwise expression: one generated codelet per tile for a chain of operations.

PopLibs generates such a codelet per expression (`poplibs@7eac0f26 lib/popops/ExpressionGenerator.cpp:264`); its
own placeholder of a cost counts one cycle per vector, input and operation. Here the loads, the stores and every
operation are counted as the single-operation codelets count them.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.elementwise import (
    binary_loop_cycles,
    binary_worker_overhead_cycles,
    unary_loop_cycles,
)
from workbench.errors import InputError

Operation = tuple[str, str]

# Operations of expressions that are neither unary nor binary: (operands, cycles of its own per vector).
_OTHER = {"SELECT": (3, 1), "CLAMP": (3, 2), "CAST": (1, 1)}


def operand_count(op: str) -> int:
    """Operands of an expression operation; an unknown one is an error that lists what there is."""
    if op in _OTHER:
        return _OTHER[op][0]
    if op in p.operations("unary"):
        return 1
    if op in p.operations("binary"):
        return 2
    known = sorted({*_OTHER, *p.operations("unary"), *p.operations("binary")})
    raise InputError(f"unknown operation {op!r} in an expression", expected="one of: " + ", ".join(known))


def _priced_type(op: str, dtype: str) -> str:
    """The type whose figures an operation takes: its own, else the 32-bit integer's or the half's, else any."""
    table = "unary" if operand_count(op) == 1 else "binary"
    near = ["half", "float", "int", "bool"] if p.is_float(dtype) else ["int", "bool", "half"]
    return next(known for known in [dtype, *near] if p.supports(table, op, known))


def _group(op: str, dtype: str, *, data_path_bytes: int) -> tuple[int, int]:
    """(elements of one loop, cycles of the operation alone in it).

    A table row that includes its loads and its store gives them back, down to one cycle.
    """
    if op in _OTHER:
        return p.vector_width(dtype, data_path_bytes), _OTHER[op][1]
    row = p.op_cost("unary" if operand_count(op) == 1 else "binary", op, _priced_type(op, dtype), data_path_bytes)
    included = 0 if row.open_loop else operand_count(op) + 1
    return row.elements, max(1, row.cycles - included)


def _alone(op: str, dtype: str, elements: int, *, data_path_bytes: int) -> int:
    """Loop cycles of the operation as a codelet of its own."""
    if op in _OTHER:
        operands, own = _OTHER[op]
        return ceil_div(elements, p.vector_width(dtype, data_path_bytes)) * (operands + 1 + own)
    unary = operand_count(op) == 1
    return (unary_loop_cycles if unary else binary_loop_cycles)(
        op, _priced_type(op, dtype), elements, data_path_bytes=data_path_bytes
    )


def _fused_loop(
    loads: Sequence[str], stores: Sequence[str], operations: Sequence[Operation], n: int, *, data_path_bytes: int
) -> int:
    moves = sum(ceil_div(n, p.vector_width(dtype, data_path_bytes)) for dtype in (*loads, *stores))
    work = 0
    for op, dtype in operations:
        elements, own = _group(op, dtype, data_path_bytes=data_path_bytes)
        work += ceil_div(n, elements) * own
    return moves + work


def _worker_overhead(loads: Sequence[str]) -> int:
    if len(loads) < 2:
        return 17
    return max(binary_worker_overhead_cycles(dtype) for dtype in loads)


def _flops(*, loads: Sequence[str], stores: Sequence[str], operations: Sequence[Operation], n: int) -> int:
    return sum(p.op_flops(op, dtype, n) for op, dtype in operations if op not in ("CAST", "SELECT"))


def _code_bytes(
    *, loads: Sequence[str], stores: Sequence[str], operations: Sequence[Operation], n: int, data_path_bytes: int
) -> int:
    """Work division and two loops, 8 B per load and store, 8 B per cycle of an operation up to a call's 64."""
    own = sum(min(64, 8 * _group(op, dtype, data_path_bytes=data_path_bytes)[1]) for op, dtype in operations)
    return 120 + 2 * (8 * (len(loads) + len(stores)) + own)


@codelet(
    "popops::MapExpression",
    kind="multi",
    source=f"[D] from the figures of {p.TABLES} and {p.ESTIMATORS}:1616",
    formula=(
        "workers * (17, or 29/26 with several inputs, + loop) + 11 (20 with one input); loop over ceil(n / "
        "workers): one load "
        "per input and one store per result a vector, plus each operation's own cycles; never more than the "
        "operations' own loops one after another"
    ),
    state_bytes=lambda *, loads, stores, **_: 4 + p.POINTER * (len(loads) + len(stores)),
    code_bytes=_code_bytes,
    flops=_flops,
)
def map_expression(
    *,
    loads: Sequence[str],
    stores: Sequence[str],
    operations: Sequence[Operation],
    n: int,
    workers: int,
    data_path_bytes: int,
) -> int:
    """Tile cycles of an expression over n elements.

    `loads` and `stores` are the types of the inputs and results that are tensors (scalars cost no load);
    `operations` are (name, type of its operands) in order, unary and binary names as in PopLibs plus SELECT,
    CLAMP and CAST. An operation without a codelet of its type takes the figures of the int or the half.
    """
    share = ceil_div(n, workers)
    loop = _fused_loop(loads, stores, operations, share, data_path_bytes=data_path_bytes)
    if operations:
        loop = min(loop, sum(_alone(op, dtype, share, data_path_bytes=data_path_bytes) for op, dtype in operations))
    return p.multi(_worker_overhead(loads) + loop, workers) + (9 if len(loads) < 2 else 0)
