"""Copies inside a tile, and a vertex of a stated cost."""

from __future__ import annotations

from workbench.engine.vertices import _popops as p
from workbench.engine.vertices import codelet
from workbench.errors import InputError

_CALL_CYCLES = 23  # what the popops estimators charge for calling the long memory copy


@codelet(
    "poplar::Memcpy",
    kind="multi",
    source=f"poplar::Target getMemcpyBytesPerCycle = 8; call {p.ESTIMATORS}:1742",
    formula="6 * 23 + 11 + ceil(bytes / 8)",
    state_bytes=lambda **_: 2 * p.POINTER + 4,
    code_bytes=220,
)
def memcpy(*, bytes: int) -> int:
    """Tile cycles of copying `bytes` that lie together on both sides."""
    return p.multi(_CALL_CYCLES) + p.ceil_div(bytes, p.DATA_PATH_BYTES)


@codelet(
    "poplar::StridedMemcpy",
    kind="multi",
    source=f"poplibs@7eac0f26 lib/poplin/ConvModel.cpp (on-tile transform: 5/4 per access); call {p.ESTIMATORS}:1742",
    formula="6 * 23 + 11 + ceil(5/4 * bytes / widest power of two up to 8 that divides run_bytes)",
    state_bytes=lambda **_: 2 * p.POINTER + 12,
    code_bytes=260,
)
def strided_memcpy(*, bytes: int, run_bytes: int) -> int:
    """Tile cycles of copying `bytes` in contiguous runs of `run_bytes`."""
    if run_bytes < 1:
        raise InputError(f"run_bytes={run_bytes!r}", expected="at least one byte in a run")
    access = min(p.DATA_PATH_BYTES, run_bytes & -run_bytes)
    return p.multi(_CALL_CYCLES) + p.ceil_div(5 * p.ceil_div(bytes, access), 4)


@codelet(
    "stub",
    kind="worker",
    source="workbench/engine/vertices/copy.py: the caller states the cost",
    formula="cycles, as given",
    state_bytes=lambda **_: 4,
    code_bytes=8,
)
def stub(*, cycles: int) -> int:
    """Worker cycles as given: six times as many on a tile whose other workers are idle or as long."""
    if cycles < 1:
        raise InputError(f"cycles={cycles!r}", expected="at least one worker cycle")
    return cycles
