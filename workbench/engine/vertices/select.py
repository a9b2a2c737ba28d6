"""popops selection, clamping, counting and one-hot codelets.

Those over elements take either `n` (one row) or `rows` (the elements of each row).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import alike, counted, sized, untold
from workbench.errors import InputError

Rows = Sequence[int] | None


def _rows(n: int | None, rows: Rows) -> Sequence[int]:
    if rows is None and n is not None:
        return (n,)
    if rows is not None and n is None:
        return rows
    raise InputError(f"n={n!r} with rows={rows!r}", expected="n elements of one row, or the elements of each row")


def _state(*row_fields: int, scalars: int = 0) -> Callable[..., int]:
    def state_bytes(*, n: int | None = None, rows: Rows = None, **_: object) -> int:
        return p.rows_state(len(_rows(n, rows)), *row_fields, scalars=scalars)

    return state_bytes


def _select_code_bytes(*, type: str, **_: object) -> int:
    """Assembly files select_{int_float,half,bool}.S, 4 B an instruction."""
    return {4: 76, 2: 132}.get(p.type_bytes(type), 156)


@codelet(
    "popops::Select",
    kind="worker",
    source=f"{p.ESTIMATORS}:1677",
    formula="5 + per row: 6 + 5 * elements (three loads, a conditional move, a store)",
    state_bytes=_state(p.POINTER, p.POINTER, p.POINTER, p.SPAN),
    code_bytes=_select_code_bytes,
    operands=alike,
    also_types=("bool",),
)
def select(*, type: str, n: int | None = None, rows: Rows = None) -> int:
    """Worker cycles of `out = in3 ? in1 : in2`, element by element."""
    p.type_bytes(type)
    return 5 + sum(6 + 5 * count for count in _rows(n, rows))


@codelet(
    "popops::SelectInPlace",
    kind="worker",
    source=f"{p.ESTIMATORS}:1803",
    formula="5 + rows * (6 + 5 * rows): the published estimator counts the rows where its other forms count elements",
    state_bytes=_state(p.SPAN, p.POINTER, p.POINTER),
    code_bytes=_select_code_bytes,
    operands=alike,
    also_types=("bool",),
)
def select_in_place(*, type: str, n: int | None = None, rows: Rows = None) -> int:
    """Worker cycles of `in1Out = in3 ? in1Out : in2` as published: by the number of rows, whatever their length."""
    p.type_bytes(type)
    count = len(_rows(n, rows))
    return 5 + count * (6 + 5 * count)


@codelet(
    "popops::BroadcastSelect",
    kind="worker",
    source=f"{p.ESTIMATORS}:1697",
    formula="10 + per row: 8 + 4 n (32 bits), 30 (23 if odd) + 4 n (16 bits), 66 + 17 * (n / 4) (8 bits)",
    state_bytes=_state(p.POINTER, p.SPAN, scalars=2 * p.POINTER),
    code_bytes=232,
    also_types=("bool",),
)
def broadcast_select(*, type: str, n: int | None = None, rows: Rows = None) -> int:
    """Worker cycles of `out = in3 ? scalar : scalar`."""

    def row_cycles(count: int) -> int:
        if p.type_bytes(type) == 4:
            return 8 + 4 * count
        if p.type_bytes(type) == 2:
            return (23 if count % 2 else 30) + 4 * count
        return 66 + count // 4 * 17

    return 10 + sum(row_cycles(count) for count in _rows(n, rows))


def _selector_codelet(name: str, line: int, *row_fields: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:{line}",
        formula="12 + per row: 35 + bytes / 4 + 5 * (bytes mod 4)",
        state_bytes=_state(*row_fields, scalars=p.POINTER),
        code_bytes=180,
        also_types=("bool",),
    )
    def selector_cycles(*, type: str, n: int | None = None, rows: Rows = None) -> int:
        """Worker cycles of copying in1 or in2 whole, chosen by one scalar."""
        sizes = [count * p.type_bytes(type) for count in _rows(n, rows)]
        return 12 + sum(35 + size // 4 + size % 4 * 5 for size in sizes)


_selector_codelet("popops::BroadcastSelectorSelect", 1742, p.POINTER, p.POINTER, p.SPAN)
_selector_codelet("popops::BroadcastSelectorSelectInPlace", 1820, p.SPAN, p.POINTER)


def _clamp_row_cycles(dtype: str, elements: int, *, data_path_bytes: int) -> int:
    if p.is_float(dtype):
        return 6 + p.loop_cycles(elements, p.vector_width(dtype, data_path_bytes), 2)
    return 6 + elements * (7 if dtype == "int" else 1)


def _clamp_flops(*, type: str, n: int | None = None, rows: Rows = None) -> int:
    return 2 * p.total(_rows(n, rows)) if p.is_float(type) else 0


def _clamp_codelet(name: str, line: int, *row_fields: int, scalars: int = 0) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:{line}",
        formula="5 + per row: 6 + 2 a vector (float 2, half 4 elements), 7 an element for int",
        state_bytes=_state(*row_fields, scalars=scalars),
        code_bytes=256,
        flops=_clamp_flops,
        operands=counted if scalars else alike,
    )
    def clamp_cycles(*, type: str, n: int | None = None, rows: Rows = None, data_path_bytes: int) -> int:
        """Worker cycles of `out = min(max(in1, low), high)`."""
        return 5 + sum(_clamp_row_cycles(type, count, data_path_bytes=data_path_bytes) for count in _rows(n, rows))


_clamp_codelet("popops::Clamp", 1949, p.POINTER, p.POINTER, p.POINTER, p.SPAN)
_clamp_codelet("popops::ClampInPlace", 1972, p.SPAN, p.POINTER, p.POINTER)
_clamp_codelet("popops::BroadcastClamp", 1991, p.POINTER, p.SPAN, scalars=2 * p.POINTER)
_clamp_codelet("popops::BroadcastClampInPlace", 2013, p.SPAN, scalars=2 * p.POINTER)


@codelet(
    "popops::Iota",
    kind="worker",
    source=f"{p.ESTIMATORS}:2269",
    formula="10 + per row: 4 + 3 * ceil(elements / v), v = 1 for integers",
    state_bytes=_state(p.SPAN, 4),
    code_bytes=140,
)
def iota(*, type: str, n: int | None = None, rows: Rows = None, data_path_bytes: int) -> int:
    """Worker cycles of writing consecutive numbers from an offset per row."""
    width = p.vector_width(type, data_path_bytes)
    return 10 + sum(4 + 3 * ceil_div(count, width) for count in _rows(n, rows))


@codelet(
    "popops::EncodeOneHot",
    kind="supervisor",
    source=f"{p.ESTIMATORS}:2235",
    formula="11 + 74 per index for unsigned int to half (assembly, worst branch), else 100 per index",
    state_bytes=lambda **_: p.SPAN + p.POINTER + 8,
    code_bytes=132,
    operands=sized(lambda *, indices, **_: (indices, 1), untold),
)
def encode_one_hot(*, index_type: str, output_type: str, indices: int) -> int:
    """Cycles of setting one element per index in a cleared output."""
    if (index_type, output_type) == ("unsigned int", "half"):
        return p.SUPERVISOR_CYCLES + 74 * indices
    return 100 * indices


@codelet(
    "popops::EncodeOneHotCustomValues",
    kind="worker",
    source=f"{p.ESTIMATORS}:2257",
    formula="100 per index",
    state_bytes=lambda **_: p.SPAN + 3 * p.POINTER + 12,
    code_bytes=260,
    operands=sized(lambda *, indices, **_: (indices, 1), untold),
)
def encode_one_hot_custom_values(*, index_type: str, output_type: str, indices: int) -> int:
    """Worker cycles of writing the on and off values of every index."""
    p.type_bytes(index_type)
    p.type_bytes(output_type)
    return 100 * indices


@codelet(
    "popops::ForLoopCounter",
    kind="supervisor",
    source=f"{p.ESTIMATORS}:1925",
    formula="43, one step of a counted loop",
    state_bytes=lambda **_: 3 * p.POINTER + 4,
    code_bytes=64,
    also_types=("bool",),
)
def for_loop_counter(*, type: str) -> int:
    """Tile cycles of counting and comparing with the limit."""
    p.type_bytes(type)
    return 43


@codelet(
    "popops::CircBufIncrIndex",
    kind="worker",
    source=f"{p.ESTIMATORS}:2224",
    formula="8, one index modulo the buffer's length",
    state_bytes=lambda **_: p.POINTER + 4,
    code_bytes=48,
)
def circ_buf_incr_index() -> int:
    """Worker cycles of advancing a circular buffer's index."""
    return 8


@codelet(
    "popops::CircOffset",
    kind="worker",
    source=f"{p.ESTIMATORS}:2230",
    formula="10, one index plus an offset modulo the buffer's length",
    state_bytes=lambda **_: 2 * p.POINTER + 8,
    code_bytes=56,
)
def circ_offset() -> int:
    """Worker cycles of an offset position in a circular buffer."""
    return 10
