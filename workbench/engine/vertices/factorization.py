"""poplin's experimental LU and QR factorizations of float matrices.

LU vertices of `align` 4 or 8 bytes work on a block of `height` x `width` with `depth` columns before it. The workers
are counted by whole rows each; what is left over costs nothing, as published.
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices.operands import untold
from workbench.engine.vertices.sizes import whole_number
from workbench.errors import InputError

_SOURCE = "poplibs@7eac0f26 lib/poplin/poplinCycleEstimators.cpp"
_MAC_FLOPS = 2
_PADDING = 16  # elements skipped before the offset, the estimators' average


def _wide(align: int) -> bool:
    """Whether two floats are taken at once."""
    if align not in (4, 8):
        raise InputError(f"no codelet for an alignment of {align!r} bytes", expected="4 or 8")
    return align == 8


def _pairs(elements: int) -> int:
    return whole_number(max(0, ceil_div(elements, 2)))


def _core(*, align: int, depth: int, workers: int) -> tuple[int, int]:
    """(cycles, multiply-adds) of a diagonal block."""
    wide = _wide(align)
    cycles, work = 5, 0
    for column in range(depth):
        rows, rest = max(0, depth // workers - column - 1), depth - column - 1
        each = 22 + 3 * _pairs(rest) if wide else 16 + 7 * rest
        cycles += 5 + rows * each
        work += rows * (1 + (2 * _pairs(rest) if wide else rest))
    return cycles, work


def _row(*, align: int, depth: int, width: int, workers: int) -> tuple[int, int]:
    """(cycles, multiply-adds) of a block right of the diagonal."""
    wide = _wide(align)
    rows = sum(max(0, depth // workers - column - 1) for column in range(depth))
    each = 22 + 3 * _pairs(width) if wide else 16 + 7 * width
    return 5 + depth * (10 if wide else 5) + rows * each, rows * (2 * _pairs(width) if wide else width)


def _column(*, align: int, depth: int, height: int, workers: int) -> tuple[int, int]:
    """(cycles, multiply-adds) of a block below the diagonal."""
    wide = _wide(align)
    cycles, work = 5, 0
    for column in range(depth):
        rest = depth - column - 1
        rows = max(0, height // workers - column - 1) if wide else height // workers
        cycles += (10 if wide else 5) + rows * (22 + 3 * _pairs(rest) if wide else 16 + 7 * rest)
        work += rows * (1 + (2 * _pairs(rest) if wide else rest))
    return cycles, work


def _block(*, align: int, depth: int, height: int, width: int, workers: int) -> tuple[int, int]:
    """(cycles, multiply-adds) of a block right of and below the diagonal."""
    wide = _wide(align)
    share = height // workers
    rows = sum(max(0, share - column - 1) for column in range(depth)) if wide else depth * share
    each = 28 + 2 * _pairs(width) if wide else 8 + 7 * width
    return 5 + depth * (10 if wide else 5) + rows * each, rows * (2 * _pairs(width) if wide else width)


def _lu_codelet(name: str, line: int, lists: int, work: Callable[..., tuple[int, int]]) -> None:
    """Declare one LU vertex over `lists` vector lists of rows with the arguments of `work`."""

    def flops(*, workers: int, **arguments: int) -> int:
        return _MAC_FLOPS * work(workers=workers, **arguments)[1]

    def cycles(*, workers: int, **arguments: int) -> int:
        """Tile cycles of one block."""
        return work(workers=workers, **arguments)[0]

    codelet(
        f"poplin::experimental::{name}",
        kind="multi",
        source=f"{_SOURCE}:{line}",
        formula="5 + per column: 5 or 10 + rows of a worker * (8 to 28 + 7 a float, or 2 to 3 a pair)",
        state_bytes=lambda *, depth, height=0, **_: 8 * lists + 12 + 4 * lists * max(depth, height),
        code_bytes=600,
        flops=flops,
    )(cycles)


_lu_codelet("LUDCoreVertex", 844, 1, _core)
_lu_codelet("LUDRowVertex", 889, 2, _row)
_lu_codelet("LUDColVertex", 932, 2, _column)
_lu_codelet("LUDBlockVertex", 977, 3, _block)


def _split_codelet(name: str, line: int, row_cycles: int, element_cycles: int) -> None:
    @codelet(
        f"poplin::experimental::{name}",
        kind="multi",
        source=f"{_SOURCE}:{line}",
        formula=f"height / workers * ({row_cycles} + {element_cycles} an element)",
        state_bytes=lambda *, height, **_: 16 + 8 + 8 * height,
        code_bytes=200,
        flops=lambda *, height, width: 2 * height * width,
    )
    def split_cycles(*, height: int, width: int, workers: int) -> int:
        """Tile cycles of writing the lower part of a block of its own."""
        return height // workers * (row_cycles + element_cycles * width)


_split_codelet("LUDCoreSplitVertex", 1021, 25, 8)
_split_codelet("LUDBlockSplitVertex", 1041, 12, 4)


def _skipped(elements: int, offset: int) -> int:
    return max(0, min(_PADDING - offset, elements))


@codelet(
    "poplin::experimental::PartialSquareElements",
    kind="multi",
    source=f"{_SOURCE}:682",
    formula="workers * (41 + 2 * ceil(skipped / workers) + 5 * ceil(others / workers)); skipped 16 - offset",
    state_bytes=lambda **_: 20,
    code_bytes=240,
    flops=lambda *, elements, offset: elements - _skipped(elements, offset),
    operands=untold,
)
def partial_square_elements(*, elements: int, offset: int, workers: int) -> int:
    """Tile cycles of squaring the elements of a row behind the padding."""
    skipped = _skipped(elements, offset)
    others = ceil_div(elements - skipped, workers)
    return workers * whole_number(34 + 2 * ceil_div(skipped, workers) + 6 + 5 * others + 1)


@codelet(
    "poplin::experimental::Householder",
    kind="multi",
    source=f"{_SOURCE}:706",
    formula="workers * (47 + 4 * ceil(skipped / workers) + 5 * ceil(others / workers)); skipped 16 - offset",
    state_bytes=lambda **_: 28,
    code_bytes=320,
    flops=lambda *, elements, offset: elements - _skipped(elements, offset) + 3,
    operands=untold,
)
def householder(*, elements: int, offset: int, workers: int) -> int:
    """Tile cycles of scaling a Householder vector behind the padding."""
    skipped = _skipped(elements, offset)
    others = ceil_div(elements - skipped, workers)
    return workers * whole_number(37 + 4 * ceil_div(skipped, workers) + 9 + 5 * others + 1)


@codelet(
    "poplin::experimental::Update",
    kind="supervisor",
    source=f"{_SOURCE}:731",
    formula="80 + workers * (76 + 7 * ceil((elements - 16) / workers)) * ceil(rows / workers)",
    state_bytes=lambda *, rows, **_: 24 + 8 * rows,
    code_bytes=600,
    flops=lambda *, elements, **_: 4 * max(0, elements - _PADDING),
    operands=untold,
)
def householder_update(*, elements: int, rows: int, workers: int) -> int:
    """Tile cycles of reflecting `rows` of a matrix by a Householder vector of `elements` (padding of 16 included)."""
    others = max(0, ceil_div(elements - _PADDING, workers))
    return 72 + workers * whole_number((41 + 3 * others + 3 + 29 + 4 * others + 3) * ceil_div(rows, workers)) + 8


@codelet(
    "poplin::experimental::RowCopy",
    kind="multi",
    source=f"{_SOURCE}:757",
    formula="workers * (32 + 7 * ceil(rows / workers))",
    state_bytes=lambda *, rows: 36 + 8 * rows,
    code_bytes=240,
)
def row_copy(*, rows: int, workers: int) -> int:
    """Tile cycles of copying one element of each of `rows`."""
    return workers * whole_number(16 + 7 * ceil_div(rows, workers) + 16)
