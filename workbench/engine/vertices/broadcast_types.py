"""popops broadcasts of a scalar whose result has another type than the data.

`op` of the first two is VARIANCE_TO_INV_STD_DEV (float to half) or INV_STD_DEV_TO_VARIANCE (half to float); that of
the third is a comparison of unsigned ints, whose result and its opposite are written as `out_type`.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.errors import InputError


def _loops_cycles(op: str, out_type: str, elements: int, *, data_path_bytes: int) -> int:
    """Worker cycles of the loops: done in float whatever the types, one cycle more to store halves."""
    row = p.op_cost("broadcast", op, "float", data_path_bytes)
    return ceil_div(elements, row.elements) * (row.cycles + (row.open_loop and out_type != "float"))


_TEXT = "ceil(elements / 2) * (11 to 12), in float whatever the types"


@codelet(
    "popops::BroadcastScalar2Types1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:126",
    formula=f"workers * (20 + {_TEXT}) + 11, each worker ceil(n / workers) elements",
    state_bytes=lambda **_: p.SPAN + 2 * p.POINTER,
    code_bytes=280,
    flops=lambda *, op, n, **_: p.op_flops(op, "float", n),
)
def broadcast_scalar_2_types_1d(
    *, op: str, type: str, out_type: str, n: int, workers: int, data_path_bytes: int
) -> int:
    """Tile cycles of `out = data op scalar` over n elements of `type`."""
    p.type_bytes(type)
    return p.multi(20 + _loops_cycles(op, out_type, ceil_div(n, workers), data_path_bytes=data_path_bytes), workers)


@codelet(
    "popops::BroadcastScalar2Types2DData",
    kind="worker",
    source=f"{p.ESTIMATORS}:304",
    formula=f"20 + per row: 28 + {_TEXT}",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER, scalars=p.POINTER),
    code_bytes=180,
    flops=lambda *, op, rows, **_: p.op_flops(op, "float", p.total(rows)),
)
def broadcast_scalar_2_types_2d_data(
    *, op: str, type: str, out_type: str, rows: Sequence[int], data_path_bytes: int
) -> int:
    """Worker cycles of `out[i] = data[i] op scalar`, one scalar for all rows of `type`."""
    p.type_bytes(type)
    return 20 + sum(28 + _loops_cycles(op, out_type, n, data_path_bytes=data_path_bytes) for n in rows)


# result type: cycles around the loops, and of one loop of half a vector
_DUAL_OUTPUT = {"float": (15, 8), "half": (36, 23)}


@codelet(
    "popops::BroadcastScalar1DRelationalOpDualOutput",
    kind="multi",
    source=f"{p.ESTIMATORS}:209",
    formula="workers * (20 + 15 + 8 an element) + 11 float, workers * (20 + 36 + 23 a pair) + 11 half, each "
    "worker ceil(n / workers)",
    state_bytes=lambda **_: p.SPAN + 3 * p.POINTER,
    code_bytes=280,
)
def broadcast_scalar_relational_dual_output(
    *, op: str, type: str, out_type: str, n: int, workers: int, data_path_bytes: int
) -> int:
    """Tile cycles of `out = data op scalar` and its opposite over n unsigned ints."""
    p.op_cost("broadcast", op, type, data_path_bytes)
    if out_type not in _DUAL_OUTPUT:
        raise InputError(f"no codelet writes {out_type!r}", expected="one of: " + ", ".join(_DUAL_OUTPUT))
    around, loop = _DUAL_OUTPUT[out_type]
    return p.multi(
        20 + around + loop * ceil_div(ceil_div(n, workers), p.vector_width(out_type, data_path_bytes) // 2),
        workers,
    )
