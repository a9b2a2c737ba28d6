"""Dense linear algebra: Cholesky, triangular solve and inverse, and the inverse standard deviation of norms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.operands import sized
from workbench.engine.vertices.sizes import whole_number

_ESTIMATORS = "poplibs@7eac0f26 lib/poplin/poplinCycleEstimators.cpp"
_COLUMNS_PER_WORKER = 4


def _inverse_flops(*, dim: int, **_: object) -> int:
    """A division per column, a product per pair, a multiply-add per triple."""
    return dim + dim * (dim - 1) // 2 + 2 * ((dim + 1) * dim * (dim - 1) // 6)


@codelet(
    "poplin::TriangularInverseWithTranspose",
    kind="multi",
    source=f"{_ESTIMATORS}:16",
    formula="float 6*d^3 + 51*d^2 + 213*d + 12, half 7*d^3 + 123*d^2 + 269*d - 24",
    state_bytes=lambda **_: 12 + 8 + 8,
    code_bytes=4 * 120,
    flops=_inverse_flops,
    operands=sized(lambda *, dim, **_: (dim * dim,)),
)
def triangular_inverse_with_transpose(*, type: str, dim: int) -> int:
    """Cycles to invert and transpose a triangular matrix of `dim` rows."""
    if type == "half":
        return 7 * dim**3 + 123 * dim**2 + 269 * dim - 24
    return 6 * dim**3 + 51 * dim**2 + 213 * dim + 12


def _cholesky_flops(*, dim: int, **_: object) -> int:
    """A root per column, an add and a division per pair, a multiply-add per triple."""
    return dim + (dim + 1) * dim + 2 * ((dim + 1) * dim * (dim - 1) // 6)


@codelet(
    "poplin::Cholesky",
    kind="worker",
    source=f"{_ESTIMATORS}:39",
    formula="float d^3 + 102*d^2 + 101*d + 102, half d^3/2 + 795*d^2/4 + 191*d/2 + 426",
    state_bytes=lambda **_: 12,
    code_bytes=4 * 120,
    flops=_cholesky_flops,
    operands=sized(lambda *, dim, **_: (dim * dim,)),
)
def cholesky(*, type: str, dim: int, lower: bool = True) -> int:
    """Cycles to factorise a matrix of `dim` rows; the same for both triangles."""
    if type == "half":
        return dim**3 // 2 + 795 * dim**2 // 4 + 191 * dim // 2 + 426
    return dim**3 + 102 * dim**2 + 101 * dim + 102


def _solve_flops(*, an: int, **_: object) -> int:
    return an * (an - 1) // 2 + an


@codelet(
    "poplin::TriangularSolve",
    kind="worker",
    source=f"{_ESTIMATORS}:774",
    formula="lower: float 3*n^2/2 + 180*n - 126, half 3*n^2/4 + 318*n - 150;"
    " upper: float 27*n^2/4 + 327*n/2 + 54, half 135*n^2/16 + 1089*n/4 + 12",
    state_bytes=lambda **_: 4 + 3 * 8,
    code_bytes=4 * 100,
    flops=_solve_flops,
    operands=sized(lambda *, an, **_: (an * an, an), lambda *, an, **_: (an,)),
)
def triangular_solve(*, type: str, an: int, lower: bool) -> int:
    """Cycles to solve one triangular system of `an` unknowns."""
    if type == "half":
        if lower:
            return 3 * an * an // 4 + 318 * an - 150
        return 135 * an * an // 16 + 1089 * an // 4 + 12
    if lower:
        return 3 * an * an // 2 + 180 * an - 126
    return 27 * an * an // 4 + 327 * an // 2 + 54


@codelet(
    "poplin::TriangularSolveMultiWorker",
    kind="supervisor",
    source=f"{_ESTIMATORS}:798",
    formula="workers*(n/4)*(loop*(n - 4)/(workers*elements)/2 + fixed) + (9 lower|6 upper)*(n/4) + (21|42); "
    "loop, fixed:"
    " lower 11, 74 float|17, 112 half; upper 10, 99|17, 145; elements 1 float|2 half",
    state_bytes=lambda **_: 4 + 3 * 8,
    code_bytes=4 * 160,
    flops=_solve_flops,
    operands=sized(lambda *, an, **_: (an * an, an), lambda *, an, **_: (an,)),
)
def triangular_solve_multi_worker(*, type: str, an: int, lower: bool, workers: int) -> int:
    """Tile cycles to solve one triangular system of `an` unknowns with all workers."""
    half = type == "half"
    outside, iteration = (21, 9) if lower else (42, 6)
    loop = 17 if half else 11 if lower else 10
    fixed = (112 if half else 74) if lower else (145 if half else 99)
    calls = an // _COLUMNS_PER_WORKER
    elements = 2 if half else 1
    # Single precision, as the published estimator divides: the truncated total depends on it.
    average = float(np.float32(an - 4) / np.float32(workers * elements) / np.float32(2))
    return whole_number((loop * average + fixed) * calls * workers) + iteration * calls + outside


@codelet(
    "poplin::InverseStdDeviation",
    kind="worker",
    source=f"{_ESTIMATORS}:608",
    formula="6 + sum over rows of 4 + 5*ceil(n/2)",
    state_bytes=lambda *, rows, **_: 8 + 4 + 4 + 8 + 16 * len(rows),
    code_bytes=4 * 60,
    flops=lambda *, rows, **_: 4 * sum(rows),
)
def inverse_std_deviation(*, rows: Sequence[int], out_type: str = "float") -> int:
    """Cycles to turn `rows` of means and powers into inverse standard deviations, in single precision."""
    return 6 + sum(4 + 5 * whole_number(ceil_div(size, 2)) for size in rows)
