"""Copies inside a tile, and a vertex of a stated cost."""

from __future__ import annotations

from workbench.base.arrays import ceil_div
from workbench.engine.vertices import codelet
from workbench.engine.vertices import popops as p
from workbench.engine.vertices.operands import copied
from workbench.errors import InputError

CALL_CYCLES = 23  # what the popops estimators charge for calling the long memory copy
_STRIDED_CALL, _PIECE = 36, 44  # 801 - 17 * 45 cycles; each piece 45 with its 4 bytes


@codelet(
    "poplar::Memcpy",
    kind="multi",
    source=f"poplar::Target getMemcpyBytesPerCycle = 8; call {p.ESTIMATORS}:1742",
    formula="workers * 23 + 11 + ceil(bytes / data path bytes)",
    state_bytes=lambda **_: 2 * p.POINTER + 4,
    code_bytes=220,
    operands=copied,
)
def memcpy(*, bytes: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of copying `bytes` that lie together on both sides."""
    return p.multi(CALL_CYCLES, workers) + ceil_div(bytes, data_path_bytes)


@codelet(
    "poplar::StridedMemcpy",
    kind="multi",
    source=f"poplibs@7eac0f26 lib/poplin/ConvModel.cpp (on-tile transform: 5/4 per access); call {p.ESTIMATORS}:1742",
    formula="workers * 23 + 11 + ceil(5/4 * bytes / widest power of two up to the data path that divides run_bytes)",
    state_bytes=lambda **_: 2 * p.POINTER + 12,
    code_bytes=260,
    operands=copied,
)
def strided_memcpy(*, bytes: int, run_bytes: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of copying `bytes` in contiguous runs of `run_bytes`."""
    if run_bytes < 1:
        raise InputError(f"run_bytes={run_bytes!r}", expected="at least one byte in a run")
    access = min(data_path_bytes, run_bytes & -run_bytes)
    return p.multi(CALL_CYCLES, workers) + ceil_div(5 * ceil_div(bytes, access), 4)


@codelet(
    "poplar::DstStridedMemcpy",
    kind="multi",
    source="thorbenlouw/lbm-graphcore@df670f6b experiments/halo-exchange-approaches/results.txt: DstStridedCopyDA32 "
    "takes 801 cycles for 17 pieces of 4 B a worker, 786 in the mean over the workers of 100 pieces; further bytes of "
    "a piece at poplar::Target getMemcpyBytesPerCycle = 8",
    formula="workers * (36 + ceil(pieces / workers) * (44 + ceil(bytes / pieces / data path bytes)))",
    state_bytes=lambda **_: 2 * p.POINTER + 12,
    code_bytes=260,
    operands=copied,
)
def strided_store_memcpy(*, bytes: int, pieces: int, workers: int, data_path_bytes: int) -> int:
    """Tile cycles of laying out `bytes` in `pieces` places that do not lie together."""
    if pieces < 1:
        raise InputError(f"pieces={pieces!r}", expected="at least one piece")
    piece = ceil_div(bytes, pieces)
    return workers * (_STRIDED_CALL + ceil_div(pieces, workers) * (_PIECE + ceil_div(piece, data_path_bytes)))


@codelet(
    "stub",
    kind="worker",
    source="workbench/engine/vertices/copy.py: the caller states the cost",
    formula="cycles, as given",
    state_bytes=lambda **_: 4,
    code_bytes=8,
)
def stub(*, cycles: int) -> int:
    """Worker cycles as given: on a tile as many times as much as it has workers, if the others are idle or as long."""
    if cycles < 1:
        raise InputError(f"cycles={cycles!r}", expected="at least one worker cycle")
    return cycles
