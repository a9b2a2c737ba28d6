"""What the popops families share: element types, op tables, field sizes, the loop arithmetic of PopLibs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workbench.base.dtypes import FLOATING_WORDS, TYPE_BYTES
from workbench.errors import InputError

SUPERVISOR_CYCLES = 11  # poplibs@7eac0f26 lib/popops/PerformanceEstimation.cpp:19

ESTIMATORS = "poplibs@7eac0f26 lib/popops/popopsCycleEstimators.cpp"
ESTIMATION = "poplibs@7eac0f26 lib/popops/PerformanceEstimation.cpp"
TABLES = "poplibs@7eac0f26 lib/popops/popopsCycleEstimators.hpp:104"

# Bytes of a field in a vertex's state. The 16-bit scaled pointers and the short span of some codelets reach 256
# or 512 KiB: less than a Mk2 tile, where those codelets fall back to the full pointer and span.
POINTER = 4
SPAN = 8
SCALED_POINTER = 4
VECTOR_LIST = 8


# Worker cycles of turning a field's pointer into an address: poplibs@7eac0f26 include/poputil/cyclesTables.hpp:77
_UNPACK_CYCLES = {
    "NotAVector": 0,
    "Span": 0,
    "OnePtr": 0,
    "ShortSpan": 2,
    "ScaledPtr32": 2,
    "ScaledPtr64": 1,
    "ScaledPtr128": 1,
}


def unpack_cycles(layout: str) -> int:
    """Cycles of unpacking a pointer of this layout; an unknown layout is an error that lists the known ones."""
    try:
        return _UNPACK_CYCLES[layout]
    except KeyError:
        raise InputError(f"unknown layout {layout!r}", expected="one of: " + ", ".join(_UNPACK_CYCLES)) from None


def type_bytes(dtype: str) -> int:
    """Bytes of one element; an unknown type is an error that lists the known ones."""
    try:
        return TYPE_BYTES[dtype]
    except KeyError:
        raise InputError(f"unknown element type {dtype!r}", expected="one of: " + ", ".join(TYPE_BYTES)) from None


def vector_width(dtype: str, data_path_bytes: int) -> int:
    """Elements one vector instruction handles: 2 float, 4 half, 8 quarter, and 1 of any other type."""
    size_bytes = type_bytes(dtype)
    return data_path_bytes // size_bytes if is_float(dtype) else 1


def elements_per_load(dtype: str, data_path_bytes: int) -> int:
    """Elements in one 64-bit load."""
    return data_path_bytes // type_bytes(dtype)


def is_float(dtype: str) -> bool:
    """True for the floating-point types, the only ones whose operations count as FLOPs."""
    return dtype in FLOATING_WORDS


def ceil_log2(n: int) -> int:
    """The least e with 2**e >= n."""
    return max(0, (n - 1).bit_length())


def loop_cycles(elements: int, vector: int, cycles_per_vector: int) -> int:
    """`cycles_per_vector * (elements + vector - 1) // vector`, evaluated left to right as PopLibs does."""
    return cycles_per_vector * (elements + vector - 1) // vector


def multi(worker_cycles: int, workers: int) -> int:
    """Tile cycles of a multi-vertex: the workers in turn, then the supervisor's launch."""
    return workers * worker_cycles + SUPERVISOR_CYCLES


def rows_state(rows: int, *row_fields: int, scalars: int = 0) -> int:
    """State of a 2D vertex, in bytes: per field one outer pointer and `row_fields` bytes per row, one count."""
    return 4 + sum(POINTER + rows * size for size in row_fields) + scalars


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCost:
    """Inner loop of one elementwise operation: `cycles` per loop of `elements`.

    With `open_loop` the cycles are the operation alone and the vertex adds its loads, stores and loop control.
    """

    cycles: int
    elements: int
    open_loop: bool


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[str, dict[str, tuple[int, bool, int]]]]:
    text = (Path(__file__).parent / "data" / "elementwise.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, dict[str, tuple[int, bool, int]]]] = json.loads(text)["tables"]
    return tables


def op_cost(table: str, op: str, dtype: str, data_path_bytes: int) -> OpCost:
    """The row of an operation; an operation or type that PopLibs has not is an error that lists what it has."""
    known = _tables()[table]
    if op not in known:
        raise InputError(f"unknown {table} operation {op!r}", expected="one of: " + ", ".join(sorted(known)))
    if dtype not in known[op]:
        raise InputError(f"{op} has no codelet for {dtype!r}", expected="one of: " + ", ".join(known[op]))
    cycles, natural, unroll = known[op][dtype]
    if natural:
        return OpCost(cycles=cycles, elements=vector_width(dtype, data_path_bytes), open_loop=True)
    return OpCost(cycles=cycles, elements=max(1, unroll), open_loop=unroll == 0)


def supports(table: str, op: str, dtype: str) -> bool:
    """Whether PopLibs has a codelet of this operation and type; `table` as in `operations`."""
    return dtype in _tables()[table].get(op, {})


def operations(table: str) -> list[str]:
    """Names of the operations of a table: `unary`, `binary`, `broadcast`, each also `..._in_place`."""
    return sorted(_tables()[table])


_BITS = {
    "BITWISE_AND",
    "BITWISE_OR",
    "BITWISE_XOR",
    "BITWISE_XNOR",
    "BITWISE_NOT",
    "SHIFT_LEFT",
    "SHIFT_RIGHT",
    "SHIFT_RIGHT_SIGN_EXTEND",
    "COUNT_LEADING_ZEROS",
    "LOGICAL_NOT",
    "POPCOUNT",
}
_FLOPS = {"REMAINDER": 3, "VARIANCE_TO_INV_STD_DEV": 2, "INV_STD_DEV_TO_VARIANCE": 2}


def op_flops(op: str, dtype: str, elements: int) -> int:
    """FLOPs of an elementwise operation: one per element, REMAINDER 3, bit operations and integers none."""
    if not is_float(dtype) or op in _BITS:
        return 0
    return _FLOPS.get(op, 1) * elements


def total(rows: Sequence[int]) -> int:
    """Elements of all rows."""
    return sum(rows)
