"""popops scaled additions of many regions in one worker: `rows` are the elements of each region."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.scaled_add import INTS, mixed_core_cycles


def _half_rest(rest: int) -> int:
    return (4 if rest else 0) + (6 if rest >= 2 else 0) + (7 if rest % 2 else 0)


def _row_cycles(dtype: str, n: int, loop: int, *, data_path_bytes: int) -> int:
    vectors, rest = divmod(n, p.vector_width(dtype, data_path_bytes))
    tail = (7 if rest else 0) if dtype == "float" else _half_rest(rest)
    return 15 + (5 + vectors * loop if vectors else 0) + tail


def _plain(
    operation: str, dtype: str, constrained: bool, rows: Sequence[int], layout: str, *, data_path_bytes: int
) -> int:
    """Worker cycles where data and scales are of one type; a short span's pointers are unpacked for every row."""
    if dtype in INTS:
        return 9 + sum(7 + 5 * n for n in rows) + (operation == "SUBTRACT")
    blends_floats = operation in ("AXPLUSBY", "AXMINUSBY") and dtype == "float"
    loop = 2 if constrained and not blends_floats else 3
    start = 10 + {"SUBTRACT": 2, "AXPLUSBY": 6}.get(operation, 0)
    unpack = p.unpack_cycles(layout) if layout == "ShortSpan" else 0
    return start + sum(unpack + _row_cycles(dtype, n, loop, data_path_bytes=data_path_bytes) for n in rows)


def _mixed(constrained: bool, rows: Sequence[int], layout: str) -> int:
    """Worker cycles of half data with float scales: PopLibs multiplies a row's start with its elements' cycles."""
    per_row = 2 + (4 if layout == "ShortSpan" else 2) + (2 if layout == "ScaledPtr64" else 1)
    return (2 if constrained else 1) + 21 + per_row * sum(mixed_core_cycles(n) for n in rows)


def _flops(*, type: str, rows: Sequence[int], **_: object) -> int:
    return 2 * p.total(rows) if p.is_float(type) else 0


_TEXT = (
    "10 (+2 subtract, +6 aX + bY) + per row: 15 + 5 + 3 a vector (2 with memory constraints) + rest; half data with "
    "float scales 22 + 5 * (10 + 5 a pair) per row"
)


def _scaled_2d_codelet(name: str, line: int, code_bytes: int, cycles: Callable[..., int]) -> None:
    """Declare one 2D vertex with the arguments of `cycles`."""
    codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:{line}",
        formula=_TEXT,
        state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER, scalars=2 * p.POINTER),
        code_bytes=code_bytes,
        flops=_flops,
        also_types=("float", "half"),
    )(cycles)


def scaled_add_2d(
    *, type: str, memory_constraints: bool, rows: Sequence[int], layout: str = "OnePtr", data_path_bytes: int
) -> int:
    """Worker cycles of `A[i] += scale * B[i]`."""
    return _plain("ADD", type, memory_constraints, rows, layout, data_path_bytes=data_path_bytes)


def scaled_subtract_2d(
    *, type: str, memory_constraints: bool, rows: Sequence[int], layout: str = "OnePtr", data_path_bytes: int
) -> int:
    """Worker cycles of `A[i] -= scale * B[i]`."""
    return _plain("SUBTRACT", type, memory_constraints, rows, layout, data_path_bytes=data_path_bytes)


def ax_plus_by_2d(
    *,
    type: str,
    memory_constraints: bool,
    rows: Sequence[int],
    scale_type: str = "",
    layout: str = "OnePtr",
    data_path_bytes: int,
) -> int:
    """Worker cycles of `X[i] = a * X[i] + b * Y[i]`; `scale_type` is that of the data unless given."""
    if (type, scale_type) == ("half", "float"):
        return _mixed(memory_constraints, rows, layout)
    return _plain("AXPLUSBY", type, memory_constraints, rows, layout, data_path_bytes=data_path_bytes)


def ax_minus_by_2d(
    *,
    type: str,
    memory_constraints: bool,
    rows: Sequence[int],
    scale_type: str = "",
    layout: str = "OnePtr",
    data_path_bytes: int,
) -> int:
    """Worker cycles of `X[i] = a * X[i] - b * Y[i]`; `scale_type` is that of the data unless given."""
    if (type, scale_type) == ("half", "float"):
        return _mixed(memory_constraints, rows, layout)
    return _plain("AXMINUSBY", type, memory_constraints, rows, layout, data_path_bytes=data_path_bytes)


def x_minus_ax_plus_by_2d(
    *, type: str, memory_constraints: bool, rows: Sequence[int], layout: str = "OnePtr", data_path_bytes: int
) -> int:
    """Worker cycles of `X[i] = X[i] - a * X[i] + b * Y[i]`."""
    return _plain("AXPLUSBY", type, memory_constraints, rows, layout, data_path_bytes=data_path_bytes)


_scaled_2d_codelet("popops::ScaledAdd2D", 655, 488, scaled_add_2d)
_scaled_2d_codelet("popops::ScaledSubtract2D", 661, 488, scaled_subtract_2d)
_scaled_2d_codelet("popops::aXPlusbY2D", 667, 488, ax_plus_by_2d)
_scaled_2d_codelet("popops::aXMinusbY2D", 677, 488, ax_minus_by_2d)
_scaled_2d_codelet("popops::XMinusaXPlusbY2D", 689, 376, x_minus_ax_plus_by_2d)  # ScaledAdd2DXminusaXPlusbY_half.S
