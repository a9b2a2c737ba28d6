"""popops histograms: how many elements lie between limits, and whether any element is not a number."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import sized

_BY_WORKERS = "poplibs@7eac0f26 lib/popops/HistogramPerformanceEstimation.cpp"


def _pass_cycles(dtype: str, is_absolute: bool, elements: int, vectors: int, odd_float: int) -> int:
    """Worker cycles of comparing the elements with one limit, without the loop's start."""
    each = 3 + is_absolute
    rest = [elements & 1, elements >> 1 & 1] if dtype == "half" else [elements & 1]
    last = each if dtype == "half" else odd_float + is_absolute
    return each * vectors + last * sum(rest)


def _by_limits(dtype: str, is_absolute: bool, n: int, count: int, *, workers: int, data_path_bytes: int) -> int:
    """Every worker takes some of the limits and all elements."""
    start = 17 if dtype == "half" else 11
    each = start + _pass_cycles(dtype, is_absolute, n, n // p.vector_width(dtype, data_path_bytes), odd_float=2)
    return 19 + 3 + each * ceil_div(count - 1, workers) + 8 + 2 * (count - 1)


def _by_data(dtype: str, is_absolute: bool, n: int, count: int, *, workers: int, data_path_bytes: int) -> int:
    """Every worker takes some of the elements and all limits; the first adds the counts up."""
    before, start = (5, 19) if dtype == "half" else (4, 17)
    vectors = ceil_div(n // p.vector_width(dtype, data_path_bytes), workers)
    each = start + _pass_cycles(dtype, is_absolute, n, vectors, odd_float=3)
    return 23 + before + each * (count - 1) + 10


def _counts(*, histogram_count: int, **_: object) -> tuple[int, ...]:
    return (histogram_count,)


@codelet(
    "popops::Histogram1D",
    kind="multi",
    source=f"{_BY_WORKERS}:4 (by limits), :43 (by data)",
    formula="by limits workers * (30 + 2 a limit + ceil(limits / workers) * (11|17 + 3 a vector)); by data "
    "workers * (37|38 + limits * "
    "(17|19 + 3 a vector of a worker's)); float|half, 4 a vector of absolute values",
    state_bytes=lambda **_: p.SPAN + 2 * p.POINTER + 4,
    code_bytes=400,
    flops=lambda *, type, is_absolute, n, **_: (1 + is_absolute) * n if p.is_float(type) else 0,
    operands=sized(lambda *, n, histogram_count, **_: (n, histogram_count - 1), _counts),
    also_types=("float", "unsigned int"),
)
def histogram_1d(
    *,
    type: str,
    is_absolute: bool,
    split_by_limits: bool,
    n: int,
    histogram_count: int,
    workers: int,
    data_path_bytes: int,
) -> int:
    """Tile cycles of counting n elements between `histogram_count - 1` limits, without unpacking of pointers."""
    worker = _by_limits if split_by_limits else _by_data
    return workers * worker(type, is_absolute, n, histogram_count, workers=workers, data_path_bytes=data_path_bytes)


@codelet(
    "popops::Histogram2D",
    kind="worker",
    source=f"{p.ESTIMATORS}:1842",
    formula="20 + 3 a row + limits * (17 float, 24 half + 3 a vector (4 of absolute values))",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, scalars=2 * p.POINTER + 4),
    code_bytes=400,
    flops=lambda *, type, is_absolute, rows, **_: (1 + is_absolute) * p.total(rows) if p.is_float(type) else 0,
    operands=sized(lambda *, rows, histogram_count, **_: (sum(rows), histogram_count - 1), _counts),
    also_types=("float", "unsigned int"),
)
def histogram_2d(
    *, type: str, is_absolute: bool, rows: Sequence[int], histogram_count: int, data_path_bytes: int
) -> int:
    """Worker cycles of counting rows of elements between `histogram_count - 1` limits."""
    before, start, after = (5, 16, 6) if type == "half" else (3, 10, 5)
    each = start + sum(
        _pass_cycles(type, is_absolute, n, n // p.vector_width(type, data_path_bytes), odd_float=2) for n in rows
    )
    limits = histogram_count - 1
    return 7 + before + (each + after) * limits + 3 * len(rows) + 10 + 2 * limits


def _nan_loop_cycles(dtype: str, elements: int, or_infinite: bool) -> int:
    """Worker cycles of scanning the elements: steps of 16 bytes, then what is left in powers of two."""
    start = 10 if dtype == "float" else 12
    if elements == 0:
        return start
    if dtype == "half" and or_infinite:
        return start + 2 * (elements // 8) + 2 * sum(elements >> bit & 1 for bit in range(3))
    step = 2 + (or_infinite or dtype == "half")
    return start + step * (elements // 4) + 2 * (elements >> 1 & 1) + (elements & 1)


def _nan_check_cycles(dtype: str, or_infinite: bool) -> int:
    return (7 if dtype == "float" else 11) + or_infinite


_NAN_TEXT = "10 float, 12 half + 2 or 3 per 4 elements (8 halves for NaN or infinity) + rest; check 7 float, 11 half"


@codelet(
    "popops::HasNaNOrInf1D",
    kind="multi",
    source=f"{p.ESTIMATORS}:2439",
    formula=f"24 + workers * (17 + scan + check); {_NAN_TEXT}",
    state_bytes=lambda **_: 2 * p.POINTER + 8,
    code_bytes=300,
    flops=lambda *, type, size_in_8_bytes_per_worker, rem_worker_id=0, rem_worker_extras=0, data_path_bytes, **_: (
        (size_in_8_bytes_per_worker + (rem_worker_id > 0)) * p.elements_per_load(type, data_path_bytes)
        + rem_worker_extras
    ),
    also_types=("bool",),
)
def has_nan_or_inf_1d(
    *,
    type: str,
    has_nan_or_inf: bool,
    size_in_8_bytes_per_worker: int,
    rem_worker_id: int = 0,
    rem_worker_extras: int = 0,
    workers: int,
    data_path_bytes: int,
) -> int:
    """Tile cycles of looking for a NaN (`has_nan_or_inf`: or an infinity).

    A worker scans `size_in_8_bytes_per_worker` loads, one more below `rem_worker_id`, and the extra elements.
    """
    words = size_in_8_bytes_per_worker + (rem_worker_id > 0)
    elements = words * p.elements_per_load(type, data_path_bytes) + rem_worker_extras
    worker = 17 + _nan_loop_cycles(type, elements, has_nan_or_inf) + _nan_check_cycles(type, has_nan_or_inf)
    return 24 + workers * worker


@codelet(
    "popops::HasNaNOrInf2D",
    kind="worker",
    source=f"{p.ESTIMATORS}:2463",
    formula=f"workers * (9 + scan of every row + check), as published for one worker's vertex; 6 without rows; "
    f"{_NAN_TEXT}",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, scalars=p.POINTER),
    code_bytes=300,
    flops=lambda *, rows, **_: p.total(rows),
    also_types=("bool",),
)
def has_nan_or_inf_2d(*, type: str, has_nan_or_inf: bool, rows: Sequence[int], workers: int) -> int:
    """Worker cycles of looking for a NaN (`has_nan_or_inf`: or an infinity) in rows of the given elements."""
    p.type_bytes(type)
    if not rows:
        return 6
    scan = sum(_nan_loop_cycles(type, n, has_nan_or_inf) for n in rows)
    return workers * (9 + scan + _nan_check_cycles(type, has_nan_or_inf))
