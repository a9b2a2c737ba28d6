"""popops Hadamard product, and multiplication of halves by one float."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import alike


@codelet(
    "popops::HadamardProd",
    kind="worker",
    source=f"{p.ESTIMATORS}:1396",
    formula="5 + per row: 6 + 2 * ceil(elements / v)",
    state_bytes=lambda *, rows, **_: p.rows_state(len(rows), p.SPAN, p.POINTER),
    code_bytes=160,
    flops=lambda *, type, rows: p.op_flops("MULTIPLY", type, p.total(rows)),
    operands=alike,
)
def hadamard_prod(*, type: str, rows: Sequence[int], data_path_bytes: int) -> int:
    """Worker cycles of `A[i] *= B[i]` over rows of the given elements."""
    width = p.vector_width(type, data_path_bytes)
    return 5 + sum(6 + 2 * ceil_div(n, width) for n in rows)


def _scalar_multiply_loops(loops: int, rest: int) -> int:
    cycles = 1 + (7 + 5 * (loops - 1) if loops else 0) + 1
    if rest == 0:
        return cycles
    return cycles + 2 + 4 + (5 if rest > 1 else 0) + (6 if rest % 2 else 0) + 1


def _scalar_multiply(n: int, *, workers: int, data_path_bytes: int) -> int:
    """Half by a float scalar: a vector of halves a loop, checked for accuracy first."""
    grain = p.vector_width("half", data_path_bytes)
    per_round = grain * workers
    keeper = (n % per_round - 1) // grain
    slowest = max(
        _scalar_multiply_loops((n + grain * (workers - 1 - worker)) // per_round, n % grain if worker == keeper else 0)
        for worker in range(workers)
    )
    return workers * (50 + slowest + 1)


def _scalar_multiply_codelet(name: str, pointers: int) -> None:
    @codelet(
        name,
        kind="multi",
        source=f"{p.ESTIMATORS}:2731",
        formula="workers * (51 + 9 + 5 per further vector of halves + remainder), elements over the workers",
        state_bytes=lambda **_: p.SPAN + pointers * p.POINTER + 4,
        code_bytes=300,
        flops=lambda *, n: n,
    )
    def scalar_multiply_cycles(*, n: int, workers: int, data_path_bytes: int) -> int:
        """Tile cycles of multiplying n halves by one float."""
        return _scalar_multiply(n, workers=workers, data_path_bytes=data_path_bytes)


_scalar_multiply_codelet("popops::ScalarMultiply1D", 2)
_scalar_multiply_codelet("popops::ScalarMultiply1DInplace", 1)


def _scalar_multiply_2d_codelet(name: str, pointers: int, start: int) -> None:
    @codelet(
        name,
        kind="worker",
        source=f"{p.ESTIMATORS}:2678",
        formula=f"{start} + 1 + per row: 19 + 7 + 5 per further vector of halves + remainder",
        state_bytes=lambda *, rows: p.rows_state(len(rows), p.SPAN, *[p.POINTER] * pointers, scalars=p.POINTER + 4),
        code_bytes=300,
        flops=lambda *, rows: p.total(rows),
    )
    def scalar_multiply_2d_cycles(*, rows: Sequence[int], data_path_bytes: int) -> int:
        """Worker cycles of multiplying rows of halves by one float."""
        vector = p.vector_width("half", data_path_bytes)
        return start + 1 + sum(17 + _scalar_multiply_loops(n // vector, n % vector) for n in rows)


_scalar_multiply_2d_codelet("popops::ScalarMultiply2D", 1, 36)
_scalar_multiply_2d_codelet("popops::ScalarMultiply2DInplace", 0, 35)
