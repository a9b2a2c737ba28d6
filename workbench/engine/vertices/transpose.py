"""Layout transposes of many small matrices: one worker, all six, split, and for any shape or type.

The vertices live in the closed runtime library; their cycles were published as estimators of an earlier PopLibs
(lib/popops/popopsCycleEstimators.cpp, Transpose2d, Transpose and TransposeSupervisor), and the fast path still in
poplibs@7eac0f26 lib/popsparse/PerformanceEstimation.hpp:877.
"""

from __future__ import annotations

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.operands import sized

_FAST = "poplibs@7eac0f26 lib/popsparse/PerformanceEstimation.hpp:877"
_GENERAL = "graphcore/poplibs (an earlier version) lib/popops/popopsCycleEstimators.cpp, Transpose2d"
_TWO_BYTES = ("half", "short", "unsigned short")
_RPT_LIMIT = 4096
_STRIDE_LIMIT = 512


def _blocks_of_four(row_blocks: int, col_blocks: int, matrices: int) -> int:
    """Worker cycles to transpose matrices of 4x4 blocks."""
    if row_blocks == 1 and col_blocks == 1:
        return 17 + (12 if matrices == 1 else 20 + 4 * (matrices - 2))
    if col_blocks == 1:
        return 27 + matrices * (35 + 4 * (row_blocks - 2))
    return 29 + matrices * (18 + row_blocks * (12 + 4 * (col_blocks - 2)))


_BLOCK_FORMULA = "1x1 blocks 37 + 4*(m-2), Nx1 27 + m*(35 + 4*(r-2)), NxM 29 + m*(18 + r*(12 + 4*(c-2)))"


@codelet(
    "poplar_rt::Transpose1DSingleWorker",
    kind="worker",
    source=_FAST,
    formula=f"{_BLOCK_FORMULA}; r, c = rows/4, cols/4; m matrices",
    state_bytes=lambda **_: 16,
    code_bytes=4 * 95,
    operands=sized(lambda *, rows, cols, matrices, **_: (rows * cols * matrices,)),
)
def transpose_1d_single_worker(*, type: str, rows: int, cols: int, matrices: int) -> int:
    """Cycles of one worker for `matrices` of rows x cols two-byte elements."""
    return _blocks_of_four(rows // 4, cols // 4, matrices)


@codelet(
    "poplar_rt::Transpose1D",
    kind="multi",
    source=_FAST,
    formula=f"7 + workers*({_BLOCK_FORMULA}); m = ceil(matrices/workers)",
    state_bytes=lambda **_: 16,
    code_bytes=4 * 120,
    operands=sized(lambda *, rows, cols, matrices, **_: (rows * cols * matrices,)),
)
def transpose_1d(*, type: str, rows: int, cols: int, matrices: int, workers: int) -> int:
    """Tile cycles of all workers for `matrices` of rows x cols two-byte elements."""
    return 7 + workers * _blocks_of_four(rows // 4, cols // 4, ceil_div(matrices, workers))


def _split(rows: int, cols: int, matrices: int, workers: int) -> tuple[int, int]:
    """Row and column blocks of the first worker: rows are split first, then columns among spare workers."""
    each = workers // matrices
    row_share = ceil_div(rows // 4, each)
    used = ceil_div(rows // 4, row_share)
    return row_share, ceil_div(cols // 4, each // used)


@codelet(
    "poplar_rt::SplitTranspose1D",
    kind="multi",
    source="poplibs@7eac0f26 lib/popops/RearrangeUtil.cpp:22",
    formula=f"7 + workers*({_BLOCK_FORMULA}) of the largest share of one matrix",
    state_bytes=lambda *, workers, **_: 16 + 8 * workers,
    code_bytes=4 * 130,
    operands=sized(lambda *, rows, cols, matrices, **_: (rows * cols * matrices,)),
)
def split_transpose_1d(*, type: str, rows: int, cols: int, matrices: int, workers: int) -> int:
    """Tile cycles of all workers when each takes a part of one of fewer than six matrices."""
    return 7 + workers * _blocks_of_four(*_split(rows, cols, matrices, workers), 1)


def _four_byte_2d(rows: int, cols: int, matrices: int) -> int:
    in_range = cols // 2 < _RPT_LIMIT and rows * (cols - 2) // 2 < _STRIDE_LIMIT and rows < _STRIDE_LIMIT
    if rows % 2 == 0 and cols % 2 == 0 and in_range:
        return 27 + matrices * (11 + rows // 2 * (6 + 3 * (cols // 2 - 1)))
    return 13 + matrices * (8 + cols * (5 + rows * 4 // 2))


def _two_byte_2d(rows: int, cols: int, matrices: int) -> int:
    fours = rows % 4 == 0 and cols % 4 == 0
    if fours and cols >= 8 and cols // 4 < _RPT_LIMIT and 1 + 3 * (cols // 4) < _STRIDE_LIMIT:
        return 37 + matrices * (12 + rows // 4 * (15 + 4 * (cols // 4 - 2)))
    if fours and cols == 4 and rows // 4 < _RPT_LIMIT and 1 + 3 * (rows // 4) < _STRIDE_LIMIT:
        return 32 + 15 * matrices if rows == 4 else 28 + matrices * (37 + 4 * (rows // 4 - 2))
    return 15 + matrices * (8 + cols * (5 + rows * 5 // 2))


@codelet(
    "poplar_rt::Transpose2D",
    kind="worker",
    source=_GENERAL,
    formula="4-byte even 27 + m*(11 + r/2*(6 + 3*(c/2 - 1))), else 13 + m*(8 + c*(5 + 2*r));"
    " 2-byte fours 37 + m*(12 + r/4*(15 + 4*(c/4 - 2))), else 15 + m*(8 + c*(5 + 5*r/2))",
    state_bytes=lambda *, matrices, **_: 24 + 8 * matrices,
    code_bytes=4 * 150,
    operands=sized(lambda *, rows, cols, matrices, **_: (rows * cols * matrices,)),
)
def transpose_2d(*, type: str, rows: int, cols: int, matrices: int) -> int:
    """Cycles of one worker for `matrices` of rows x cols of any type, each matrix a region of its own."""
    if type in _TWO_BYTES:
        return _two_byte_2d(rows, cols, matrices)
    return _four_byte_2d(rows, cols, matrices)
